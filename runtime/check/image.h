// The memory of one launch, laid out on the host as it will lie on the device: tensors between guard zones, padding
// full of NaN, outputs poisoned. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/ir/launch.h"
#include "runtime/check/reference.h"

namespace cubridge::runtime {

class Image {
public:
    /// Lays out a case for a kernel of `unit`'s dtypes. Offsets only: addresses come with bind().
    Image(const ir::Specification& specification, const Unit& unit, const Case& c,
          const std::vector<ir::Argument>& inputs, const ir::launch::Plan& plan,
          const std::vector<std::int64_t>& out_shape);

    const std::vector<std::byte>& bytes() const { return bytes_; }
    /// Every byte of the outputs, padding included, becomes `pattern`.
    void poison(std::byte pattern);
    /// The argument block, once the image lies at `address`, with the workspace.
    ir::abi::cb_args bind(std::uint64_t address, std::uint64_t workspace) const;
    ir::launch::Sizes sizes(int multiprocessors) const;

    /// What a launch left of the image: the first byte changed that is no output's, in words; empty: none.
    std::string disturbed(const std::vector<std::byte>& after) const;
    /// The outputs of two launches, whose poisons were `first` and `second`: elements not written, or not the same.
    std::string unequal(const std::vector<std::byte>& one, std::byte first, const std::vector<std::byte>& two,
                        std::byte second) const;
    Outputs outputs(const std::vector<std::byte>& after) const;

private:
    struct Placed {
        ir::DType dtype = ir::DType::F32;
        std::vector<std::int64_t> shape, stride; ///< elements
        std::int64_t at = -1;                    ///< bytes from the image's beginning; -1: there is none
        std::int64_t extent = 0;                 ///< bytes, padding included
    };
    std::int64_t reserve(std::int64_t bytes, std::byte fill, const char* name);
    Placed strided(std::vector<std::int64_t> shape, ir::DType dtype, Lay lay, const char* name, bool output);
    void write(const Placed& to, const ir::Array& from);
    void blank_rows(const Placed& to, const Case& c);
    void operands(const ir::Specification& specification, const Case& c, const std::vector<ir::Argument>& inputs,
                  const ir::launch::Plan& plan);
    template <class F> static void each(const Placed& p, F f); ///< f(element number, byte offset)

    std::vector<std::byte> bytes_;
    std::vector<std::byte> kept_; ///< 0 for bytes of output elements, else all ones
    std::vector<std::pair<std::int64_t, std::string>> zones_;
    Placed q_, k_, v_, o_, lse_;
    struct Operand {
        Placed placed;
        double value = 0;
    };
    std::vector<Operand> operands_;
    std::int64_t lengths_ = -1;
    Case case_;
};

} // namespace cubridge::runtime
