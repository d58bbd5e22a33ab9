// Drawing inputs that see much: integers at the edges, one-hot values, keys that stand out.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/inputs.h"
#include "runtime/check/edges.h"
#include "runtime/check/rounding.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>

namespace cubridge::runtime {

namespace {

using ir::Array;
using ir::DType;
using ir::Input;

/// Normal numbers that a type can hold. Drawing one takes as long as all else that is done to an element, so they are
/// drawn once, and inputs are made of them in random order.
class Normals {
public:
    static constexpr int kBits = 14;
    static const std::vector<double>& of(DType type) {
        static const Normals all;
        return all.values_[static_cast<std::size_t>(type)];
    }

private:
    Normals() {
        std::mt19937_64 random(20);
        std::normal_distribution<double> normal;
        std::vector<double> drawn(std::size_t{1} << kBits);
        for (double& v : drawn) v = normal(random);
        for (const DType type : {DType::F16, DType::BF16, DType::F32, DType::F64, DType::E4M3, DType::E5M2}) {
            auto& to = values_[static_cast<std::size_t>(type)];
            for (const double v : drawn) to.push_back(rounded(v, type));
        }
    }
    std::array<std::vector<double>, 12> values_;
};

class Drawer {
public:
    Drawer(const Unit& unit, const Case& c, std::uint64_t seed)
        : request_(unit.request), case_(c),
          random_(seed * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(c.number) * 7919 +
                  static_cast<std::uint64_t>(c.tame)) {}

    Array main(const Input& x, std::vector<std::int64_t> shape) {
        Array a = blank(x.role == Input::Role::Query ? request_.q_dtype : request_.kv_dtype, std::move(shape));
        const std::int64_t width = a.shape[3], rows = a.shape[2];
        const std::int64_t needle =
            static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(std::max<std::int64_t>(1, rows)));
        const auto& numbers = Normals::of(a.dtype);
        const bool loud = case_.contents == Contents::Loud && x.role == Input::Role::Query,
                   one_hot = case_.contents == Contents::OneHot && x.role == Input::Role::Value,
                   needles = case_.contents == Contents::Needles && x.role == Input::Role::Key,
                   sloped = case_.contents == Contents::Sloped && x.role == Input::Role::Key;
        std::uint64_t four = 0;
        double* to = a.values.data();
        double* const end = to + a.values.size();
        for (std::int64_t row = 0; to != end; row = row + 1 == rows ? 0 : row + 1) {
            // The needle, and the keys at both ends of every row, score far above the rest.
            const double by = needles && (row == needle || row == 0 || row == rows - 1) ? 4 : 1; // no more digits
            const std::int64_t from_end = case_.number % 2 == 0 ? row : rows - 1 - row;
            const double slope = 8 * static_cast<double>(from_end) / static_cast<double>(rows);
            for (std::int64_t column = 0; column < width; ++column, ++to) {
                four = column % 4 == 0 ? random_() : four >> Normals::kBits;
                const double v = numbers[four & ((1U << Normals::kBits) - 1)];
                *to = one_hot  ? (row % width == column ? 1 : 0)
                      : loud   ? rounded(6 * v, a.dtype)
                      : sloped ? rounded(slope * v, a.dtype)
                               : v * by;
            }
        }
        return share(x, std::move(a));
    }

    /// Keys at and beside what the rows of both ends and the middle may see last or first, by a number that the text or
    /// an operand compares positions with, stand out: one key too many or too few then shows however many there are.
    void boundaries(Array& k, const std::vector<std::int64_t>& numbers) const {
        const std::int64_t rows = k.shape[2], width = k.shape[3];
        std::set<std::int64_t> stand_out;
        const auto around = [&](std::int64_t at) {
            for (const std::int64_t j : {at - 1, at, at + 1})
                if (j > 0 && j < rows - 1) stand_out.insert(j); // both ends stand out already
        };
        for (const std::int64_t i : {std::int64_t{0}, case_.Sq / 2, case_.Sq - 1})
            for (const std::int64_t at : {i, i + case_.Sk - case_.Sq}) {
                around(at);
                for (const std::int64_t x : numbers) around(at - x);
            }
        for (const std::int64_t x : numbers) around(x);
        for (std::size_t n = 0; n < k.values.size(); n += static_cast<std::size_t>(width))
            if (stand_out.contains(static_cast<std::int64_t>(n) / width % rows))
                for (std::int64_t c = 0; c < width; ++c) k.values[n + static_cast<std::size_t>(c)] *= 4;
    }

    Array tensor(const Input& x, std::vector<std::int64_t> shape) {
        Array a = blank(x.dtype, std::move(shape));
        const std::int64_t row = a.shape.empty() ? 1 : std::max<std::int64_t>(1, a.shape.back());
        const Integers style = case_.tame >= 2 && !ir::is_float(x.dtype) ? Integers::Descent : case_.integers;
        for (std::size_t n = 0; n < a.values.size(); ++n) {
            const std::int64_t at = static_cast<std::int64_t>(n) % row;
            if (x.dtype == DType::Bool)
                a.values[n] = static_cast<double>(below(2));
            else if (ir::is_float(x.dtype))
                a.values[n] = rounded(normal_(random_), x.dtype);
            else
                a.values[n] = integer(style, at);
        }
        if (style == Integers::Sorted && !ir::is_float(x.dtype))
            for (std::size_t n = 0; n + static_cast<std::size_t>(row) <= a.values.size();
                 n += static_cast<std::size_t>(row))
                std::sort(a.values.begin() + static_cast<std::ptrdiff_t>(n),
                          a.values.begin() + static_cast<std::ptrdiff_t>(n) + row);
        return a;
    }

    Array scalar(const Input& x) {
        Array a = blank(x.dtype, {});
        const bool bound = x.fate == Input::Fate::Bound;
        if (x.dtype == DType::Bool)
            a.values[0] = static_cast<double>(below(2));
        else if (ir::is_float(x.dtype))
            a.values[0] = rounded(bound ? x.value * (0.5 + 0.25 * static_cast<double>(below(4)))
                                        : 0.25 + static_cast<double>(below(8)) / 4,
                                  x.dtype);
        else
            a.values[0] = case_.tame >= 2 && bound ? x.value : std::max(0.0, integer(Integers::Edges, 0));
        return a;
    }

private:
    std::int64_t below(std::int64_t n) {
        return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(std::max<std::int64_t>(1, n)));
    }

    static Array blank(DType type, std::vector<std::int64_t> shape) {
        std::size_t n = 1;
        for (const std::int64_t s : shape) n *= static_cast<std::size_t>(std::max<std::int64_t>(0, s));
        return {type, std::move(shape), std::vector<double>(n)};
    }

    double integer(Integers style, std::int64_t at) {
        if (case_.tame >= 3) return static_cast<double>(below(2));
        switch (style) {
        case Integers::Sorted: return static_cast<double>(below(4));
        case Integers::Unsorted: return static_cast<double>(below(5) - 1);
        case Integers::Descent: return static_cast<double>(below(at + 1) - 1);
        default: break;
        }
        const std::int64_t edges[] = {0, 1, case_.Sk - 1, case_.Sk, case_.Sk + 1, case_.Sk / 2, 2, 3};
        return static_cast<double>(edges[below(8)]);
    }

    // Memory that is read through a stride of 0 holds one copy: all see its first.
    Array share(const Input& x, Array a) {
        const Lay lay = x.role == Input::Role::Query ? case_.q : case_.kv;
        const std::size_t head = static_cast<std::size_t>(a.shape[2] * a.shape[3]),
                          batch = head * static_cast<std::size_t>(a.shape[1]);
        if (lay == Lay::SharedBatch)
            for (std::size_t n = batch; n < a.values.size(); ++n) a.values[n] = a.values[n % batch];
        if (lay == Lay::SharedHeads)
            for (std::size_t n = 0; n < a.values.size(); ++n)
                a.values[n] = a.values[n / batch * batch + n % batch % head];
        return a;
    }

    const ir::Request& request_;
    const Case& case_;
    std::mt19937_64 random_;
    std::normal_distribution<double> normal_;
};

} // namespace

std::vector<ir::Argument> draw_inputs(const ir::Specification& specification, const Unit& unit, const Case& c,
                                      std::uint64_t seed) {
    const ir::Scalar& scalar = specification.scalar();
    const auto dims = dims_of_request(specification, c, unit.request, c.Sk);
    Drawer draw(unit, c, seed);
    std::vector<ir::Argument> out;
    for (std::size_t k = 0; k < scalar.inputs.size(); ++k) {
        const Input& x = scalar.inputs[k];
        ir::Argument a;
        const bool given = x.fate == Input::Fate::Operand || (x.fate == Input::Fate::Bound && !c.held);
        if (given && dims) {
            auto shape = sizes_of(scalar, scalar.shapes[k], *dims);
            if (x.role == Input::Role::Query) shape[2] = c.Sq;
            if (x.role == Input::Role::Scalar)
                a = draw.scalar(x);
            else if (x.role == Input::Role::Tensor)
                a = draw.tensor(x, std::move(shape));
            else
                a = draw.main(x, std::move(shape));
        }
        out.push_back(std::move(a));
    }
    if (c.contents == Contents::Needles && out.size() > 1 && out[1]) {
        auto numbers = numbers_of(specification);
        for (std::size_t k = 0; k < out.size(); ++k)
            if (out[k] && out[k]->shape.empty() && !ir::is_float(scalar.inputs[k].dtype))
                numbers.push_back(static_cast<std::int64_t>(out[k]->values[0]));
        draw.boundaries(*out[1], numbers);
    }
    return out;
}

} // namespace cubridge::runtime
