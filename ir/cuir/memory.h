// Global memory of a launch: inputs, outputs, workspace. Written once an element, read only by later kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/code.h"

namespace cubridge::ir::cuir {

struct Tensor {
    enum class Use : std::uint8_t { Input, Output, Workspace };
    std::string name;
    Use use = Use::Input;
    DType type = DType::F32;
    std::vector<std::int64_t> shape;
    const double* input = nullptr; ///< of an input
    std::vector<double> values;    ///< of the others
    std::vector<const Step*> writer;
    std::vector<std::int16_t> written_in; ///< kernel; -1: not yet
    bool is_int = false;

    std::int64_t size() const;
    std::string element(std::int64_t at) const; ///< "Out[0, 1, 3, 2]"
    /// Troubles of kind "output" (written twice), "range", "unwritten", "race" (read in the kernel that wrote it).
    void write(std::int64_t at, double value, const Step& step, int kernel);
    double read(std::int64_t at, int kernel) const;
};

/// Rows of a tensor, each or every `step`-th: all indices before the sliced dimension are given, all after it are
/// whole. Clips at both ends.
struct TensorSlice final : Object {
    int tensor = 0;
    std::int64_t base = 0;   ///< of row 0 of the dimension
    std::int64_t first = 0;  ///< row
    std::int64_t step = 1;   ///< from one row to the next
    std::int64_t rows = 0;   ///< asked for
    std::int64_t extent = 0; ///< of the dimension
    std::int64_t cols = 1;   ///< elements a row

    std::int64_t in_tensor(std::int64_t row) const { return first + row * step; }
    bool inside(std::int64_t row) const { return in_tensor(row) >= 0 && in_tensor(row) < extent; }
    std::int64_t at(std::int64_t row) const { return base + in_tensor(row) * cols; }
};

} // namespace cubridge::ir::cuir
