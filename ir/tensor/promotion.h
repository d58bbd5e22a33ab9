// Which dtype a result has, whether it keeps a pin, and what fits into an integer dtype. SPDX-License-Identifier:
// Apache-2.0
#pragma once
#include "ir/expr/narrow.h"
#include "ir/tensor/tensor.h"
#include <optional>
#include <span>

namespace cubridge::ir::tensor {

/// torch.result_type: tensors with dims decide, then 0-d tensors, then Python numbers; a later group only counts if its
/// category (bool, integer, float) is higher. Numbers stand for bool, int64 and the default dtype, float32.
class Promotion {
public:
    /// One operand; `number`: a Python number, `rank` 0 otherwise: a 0-d tensor.
    void add(DType dtype, std::size_t rank, bool number);
    /// Of no operand: float32.
    DType result() const;

private:
    std::optional<DType> dims_, points_, numbers_;
};
DType result_type(std::span<const Tensor> x);

/// Its float32 value is known: it has a pin, or it is an integer or a Python number that rounds to one.
inline bool pinnable(const Tensor& t) {
    return t.pin || t.scalar || !is_float(t.dtype);
}
bool all_pinnable(std::span<const Tensor> x);

/// Element i as float32, of a pinnable tensor.
inline float pin_at(const Tensor& t, std::size_t i) {
    return t.pin ? (*t.pin)[i] : static_cast<float>((*t.data)[i]);
}

/// The pin of a pinnable tensor, made if it has none.
std::shared_ptr<const std::vector<float>> pin_of(const Tensor& t);

/// The largest magnitude of an integer.
constexpr std::int64_t kMaxInteger = kWholeNumbers;

/// An integer stored as `dtype`: narrow dtypes wrap, as PyTorch's do; an int64 beyond kMaxInteger is a Failure "limit".
double fit(std::int64_t value, DType dtype);

/// A float as an integer, truncated. C++ leaves NaN and what doesn't fit undefined; here it is what a CUDA cast to
/// int32, the integer of every kernel, makes of them: 0 and the ends of int32 (T5's log(0) is cast, then not selected).
std::int64_t truncated(double value);

/// Fails with kind "limit".
[[noreturn]] void too_large(double value);

} // namespace cubridge::ir::tensor
