// SPDX-License-Identifier: Apache-2.0
#include "runtime/tune/inputs.h"
#include "runtime/check/rounding.h"
#include <algorithm>
#include <random>

namespace cubridge::runtime {
namespace {

using ir::Input;

constexpr std::int64_t kRuns = 4;                             // documents
constexpr std::int64_t kSmall = 96;                           // keys of a case for the CPU
constexpr std::int64_t kMostElements = std::int64_t{1} << 26; // of all operands
constexpr std::size_t kPeriod = 1048573;                      // a prime: no two rows begin alike

/// Axes as long as a sequence are positions.
bool of_positions(const std::vector<std::int64_t>& shape, const Case& c) {
    return !shape.empty() && shape.back() >= std::min(c.Sq, c.Sk) && shape.back() > 1;
}

} // namespace

std::optional<Case> case_of(const ir::Specification& specification, const ir::Request& request,
                            const ir::Shape& shape) {
    Case c;
    const int group = std::max(1, request.group);
    c.B = shape.batch;
    c.Hk = shape.heads_kv > 0 ? shape.heads_kv : std::max(1, 32 / group);
    if (specification.heads() != 0) c.Hk = std::max(1, specification.heads() / group);
    c.Hq = c.Hk * group;
    c.Sq = shape.rows;
    c.Sk = shape.keys;
    c.tame = 1; // axes that nothing says the size of are as long as a sequence
    if (!dims_of_request(specification, c, request, c.Sk)) return std::nullopt;
    return c;
}

ir::Result<std::vector<ir::Argument>> typical_operands(const ir::Specification& specification,
                                                       const ir::Request& request, const Case& c, bool tame) {
    const ir::Scalar& scalar = specification.scalar();
    const auto dims = dims_of_request(specification, c, request, c.Sk);
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    std::vector<ir::Argument> out(scalar.inputs.size());
    std::int64_t total = 0;
    for (std::size_t k = 0; k < scalar.inputs.size(); ++k) {
        const Input& x = scalar.inputs[k];
        const bool other = x.role == Input::Role::Tensor || x.role == Input::Role::Scalar;
        if (!other || x.fate != Input::Fate::Operand || !dims) continue;
        auto shape =
            x.role == Input::Role::Scalar ? std::vector<std::int64_t>{} : sizes_of(scalar, scalar.shapes[k], *dims);
        std::int64_t count = 1;
        for (const auto n : shape) count = n <= 0 ? 0 : count > kMostElements / n ? kMostElements : count * n;
        if ((total += count) >= kMostElements)
            return ir::Error{"memory",
                             "operand `" + x.name + "` is too large to measure with at this shape",
                             {},
                             "give a smaller --shape"};
        const bool positions = of_positions(shape, c);
        const std::int64_t row = shape.empty() ? 1 : std::max<std::int64_t>(1, shape.back());
        ir::Array a{x.dtype, std::move(shape), std::vector<double>(static_cast<std::size_t>(count))};
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t at = i % row;
            const auto n = static_cast<std::size_t>(i);
            if (ir::is_float(x.dtype))
                a.values[n] = rounded(x.role == Input::Role::Scalar ? 0.5 : normal(random), x.dtype);
            else if (x.dtype == ir::DType::Bool)
                a.values[n] = 1;
            else
                a.values[n] = static_cast<double>(tame ? 0 : positions ? at * kRuns / row : c.Sk / 4);
        }
        out[k] = std::move(a);
    }
    return out;
}

bool needs_tame(const ir::Specification& specification, const ir::Request& request, const Case& c) {
    Case small = c;
    small.B = std::min<std::int64_t>(c.B, 2);
    small.Sk = std::min(c.Sk, kSmall);
    small.Sq = request.rows == ir::Request::Rows::Tail ? small.Sk : std::min(c.Sq, kSmall);
    const auto dims = dims_of_request(specification, small, request, small.Sk);
    if (!dims) return true;
    auto drawn = typical_operands(specification, request, small, false);
    if (!drawn) return true;
    auto& inputs = *drawn;
    const ir::Scalar& scalar = specification.scalar();
    for (std::size_t k = 0; k < 3 && k < inputs.size(); ++k) {
        auto shape = sizes_of(scalar, scalar.shapes[k], *dims);
        std::size_t count = 1;
        for (const auto n : shape) count *= static_cast<std::size_t>(n);
        inputs[k] = ir::Array{scalar.inputs[k].dtype, std::move(shape), std::vector<double>(count, 0.0)};
    }
    return !specification.evaluate(inputs);
}

std::vector<std::uint16_t> normal_elements(ir::DType type, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<std::uint16_t> out(kPeriod);
    for (auto& x : out) encode(normal(random), type, reinterpret_cast<std::byte*>(&x));
    return out;
}

} // namespace cubridge::runtime
