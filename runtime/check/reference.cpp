// Requests of several lengths from a text that knows one. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/reference.h"
#include <cmath>
#include <limits>
#include <set>

namespace cubridge::runtime {

namespace {

using ir::Array;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The first shape[a] elements of every axis; an axis of size 1 stays.
Array beginning(const Array& from, const std::vector<std::int64_t>& shape) {
    Array out{from.dtype, shape, {}};
    std::int64_t n = 1;
    for (const std::int64_t s : shape) n *= s;
    out.values.reserve(static_cast<std::size_t>(n));
    std::vector<std::int64_t> at(shape.size(), 0);
    for (std::int64_t k = 0; k < n; ++k) {
        std::int64_t offset = 0;
        for (std::size_t a = 0; a < shape.size(); ++a) offset = offset * from.shape[a] + at[a];
        out.values.push_back(from.values[static_cast<std::size_t>(offset)]);
        for (std::size_t a = shape.size(); a-- > 0;) {
            if (++at[a] < shape[a]) break;
            at[a] = 0;
        }
    }
    return out;
}

// q of `length` rows, of which the last are those of the request.
Array tail_rows(const Array& q, std::int64_t length) {
    const std::int64_t rows = q.shape[2], width = q.shape[3], outer = q.shape[0] * q.shape[1];
    Array out{q.dtype,
              {q.shape[0], q.shape[1], length, width},
              std::vector<double>(static_cast<std::size_t>(outer * length * width), 0)};
    for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t t = std::max<std::int64_t>(0, rows - length); t < rows; ++t)
            for (std::int64_t c = 0; c < width; ++c)
                out.values[static_cast<std::size_t>((o * length + t + length - rows) * width + c)] =
                    q.values[static_cast<std::size_t>((o * rows + t) * width + c)];
    return out;
}

class Joiner {
public:
    Joiner(const Unit& unit, const Case& c)
        : unit_(unit), case_(c), tail_(unit.request.rows == ir::Request::Rows::Tail) {}

    // Copies the requests of that length out of one evaluation.
    void take(const std::vector<Array>& from, std::int64_t length) {
        const Array& o = from[0];
        if (out_.o.values.empty()) {
            out_.o = {ir::DType::F64, {case_.B, o.shape[1], case_.Sq, o.shape[3]}, {}};
            out_.o.values.resize(static_cast<std::size_t>(case_.B * o.shape[1] * case_.Sq * o.shape[3]));
        }
        // Also where another length came first, of which there was nothing to evaluate.
        if (from.size() > 1 && out_.lse.values.empty())
            out_.lse = {ir::DType::F64,
                        {case_.B, o.shape[1], case_.Sq},
                        std::vector<double>(static_cast<std::size_t>(case_.B * o.shape[1] * case_.Sq), -kInfinity)};
        for (std::int64_t b = 0; b < case_.B; ++b)
            if (case_.length(b) == length)
                for (std::int64_t h = 0; h < o.shape[1]; ++h)
                    for (std::int64_t t = 0; t < case_.Sq; ++t) row(from, length, b, h, t);
    }

    Outputs take_all() { return std::move(out_); }

private:
    void row(const std::vector<Array>& from, std::int64_t length, std::int64_t b, std::int64_t h, std::int64_t t) {
        const Array& o = from[0];
        const std::int64_t width = o.shape[3], source = tail_ ? t + length - case_.Sq : t;
        const std::int64_t to = (b * o.shape[1] + h) * case_.Sq + t, at = (b * o.shape[1] + h) * o.shape[2] + source;
        bool none = source<0, nan = width> 0;
        for (std::int64_t d = 0; d < width && !none; ++d)
            nan = nan && std::isnan(o.values[static_cast<std::size_t>(at * width + d)]);
        none = none || (nan && unit_.request.empty_rows == ir::Request::EmptyRows::Zero);
        for (std::int64_t d = 0; d < width; ++d)
            out_.o.values[static_cast<std::size_t>(to * width + d)] =
                none ? 0 : o.values[static_cast<std::size_t>(at * width + d)];
        if (from.size() > 1)
            out_.lse.values[static_cast<std::size_t>(to)] =
                none ? -kInfinity : from[1].values[static_cast<std::size_t>(at)];
    }

    const Unit& unit_;
    const Case& case_;
    const bool tail_;
    Outputs out_;
};

} // namespace

ir::Result<Outputs> reference(const ir::Specification& specification, const Unit& unit, const Case& c,
                              const std::vector<ir::Argument>& inputs, const Evaluate& evaluate) {
    const ir::Scalar& scalar = specification.scalar();
    std::set<std::int64_t> lengths;
    for (std::int64_t b = 0; b < c.B; ++b) lengths.insert(c.length(b));
    Joiner joiner(unit, c);
    for (const std::int64_t length : lengths) {
        const auto dims = dims_of_request(specification, c, unit.request, length);
        if (!dims) return ir::Error{"domain", "the text forbids a length of this case", {}, ""};
        if (length == 0 && unit.request.rows == ir::Request::Rows::Tail) { // not one row exists: nothing to evaluate
            std::vector<Array> none;
            for (const auto& out : scalar.out) none.push_back({out.dtype, sizes_of(scalar, out.shape, *dims), {}});
            joiner.take(none, length);
            continue;
        }
        std::vector<ir::Argument> arguments;
        for (std::size_t k = 0; k < inputs.size(); ++k) {
            if (!inputs[k])
                arguments.emplace_back();
            else if (scalar.inputs[k].role == ir::Input::Role::Query)
                arguments.emplace_back(unit.request.rows == ir::Request::Rows::Tail ? tail_rows(*inputs[k], length)
                                                                                    : *inputs[k]);
            else
                arguments.emplace_back(beginning(*inputs[k], sizes_of(scalar, scalar.shapes[k], *dims)));
        }
        const auto got = evaluate(arguments);
        if (!got) return got.error();
        if ((*got)[0].shape.size() != 4)
            return ir::Error{"unsupported", "the output is no tensor of four axes", {}, ""};
        joiner.take(*got, length);
    }
    return joiner.take_all();
}

} // namespace cubridge::runtime
