// SPDX-License-Identifier: Apache-2.0
#include "ir/expr/evaluate.h"
#include "cubridge/ir/error.h"
#include "ir/expr/narrow.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace cubridge::ir {

namespace {
constexpr double kMaxElements = 1 << 25, kMaxMetered = 1 << 24;
}

Evaluator::Array Evaluator::blank(std::uint64_t free) {
    Array a;
    double n = 1;
    for (int v = 0; v < 64; ++v) {
        if ((free >> v & 1) == 0) continue;
        a.variables.push_back(v);
        a.extents.push_back(extent_of(v));
        n *= static_cast<double>(a.extents.back());
    }
    elements_ += n;
    if (n > kMaxElements || (meter_ && elements_ > kMaxMetered))
        fail("limit", "an expression has too many values to be evaluated", {}, "use smaller sizes");
    if (meter_) meter_->spend(4 + static_cast<std::uint64_t>(n) / 16);
    a.data.resize(static_cast<std::size_t>(n));
    return a;
}

// out[...] = f(values of `from` at the same variables), in row-major order of out.
template <class F> void Evaluator::fill(Array& out, const std::vector<const Array*>& from, F f) const {
    const std::size_t rank = out.variables.size(), n = from.size();
    std::vector<std::vector<std::size_t>> strides(n, std::vector<std::size_t>(rank, 0));
    for (std::size_t k = 0; k < n; ++k) {
        std::size_t stride = 1;
        for (std::size_t m = from[k]->variables.size(); m-- > 0;) {
            const auto at =
                std::find(out.variables.begin(), out.variables.end(), from[k]->variables[m]) - out.variables.begin();
            strides[k][static_cast<std::size_t>(at)] = stride;
            stride *= static_cast<std::size_t>(from[k]->extents[m]);
        }
    }
    std::vector<std::int64_t> index(rank, 0);
    std::vector<std::size_t> offset(n, 0);
    std::vector<double> x(n);
    for (double& value : out.data) {
        for (std::size_t k = 0; k < n; ++k) x[k] = from[k]->data[offset[k]];
        value = f(x.data());
        for (std::size_t d = rank; d-- > 0;) {
            for (std::size_t k = 0; k < n; ++k) offset[k] += strides[k][d];
            if (++index[d] < out.extents[d]) break;
            for (std::size_t k = 0; k < n; ++k) offset[k] -= strides[k][d] * static_cast<std::size_t>(index[d]);
            index[d] = 0;
        }
    }
}

const Evaluator::Array& Evaluator::array(Expr e) {
    // A bound variable has the extent of the reduction around it: the same node under another one is another array.
    std::vector<std::int64_t> context;
    for (int v = 0; v < 64; ++v)
        if ((e->free >> v & 1) != 0) context.push_back(extent_of(v));
    std::pair key{e, std::move(context)};
    const auto it = done_.find(key);
    if (it != done_.end()) return it->second;
    Array a = make(e);
    return done_.emplace(std::move(key), std::move(a)).first->second;
}

Evaluator::Array Evaluator::make(Expr e) {
    const auto variable = [&](int v) {
        Array a = blank(std::uint64_t{1} << v);
        for (std::size_t k = 0; k < a.data.size(); ++k) a.data[k] = static_cast<double>(k);
        return a;
    };
    const auto constant = [](double v) { return Array{{}, {}, {v}}; };
    switch (e->kind) {
    case Kind::Const:
        return constant(e->type == Type::Int || e->type == Type::Bool ? static_cast<double>(e->integer) : e->real);
    case Kind::Index: return variable(e->number);
    case Kind::Bound: return variable(kMaxIndex + e->number);
    case Kind::Dim: {
        const auto it = env_.dims.find(e->number);
        if (it == env_.dims.end()) fail("internal", "the size " + dims::name(e->number) + " has no value");
        return constant(static_cast<double>(it->second));
    }
    case Kind::Arg:
    case Kind::Load: {
        const auto it = env_.inputs.find(e->number);
        if (it == env_.inputs.end()) fail("internal", "input " + std::to_string(e->number) + " has no value");
        if (e->kind == Kind::Arg) return constant((*it->second.values)[0]);
        break;
    }
    case Kind::Reduce: {
        const double n = value(e->args[1]);
        const auto v = static_cast<std::size_t>(kMaxIndex + e->number);
        const std::int64_t saved = extents_[v];
        extents_[v] = static_cast<std::int64_t>(n > 0 ? std::min(n, 1e15) : 0);
        const Array& body = array(e->args[0]);
        Array out = blank(e->free);
        if (meter_)
            meter_->spend(static_cast<std::uint64_t>(static_cast<double>(out.data.size()) *
                                                     static_cast<double>(extents_[v]) / 32));
        double start = 0;
        switch (e->reduce) {
        case ReduceOp::Max: start = -std::numeric_limits<double>::infinity(); break;
        case ReduceOp::Min: start = std::numeric_limits<double>::infinity(); break;
        case ReduceOp::All:
        case ReduceOp::Prod: start = 1; break;
        default: break;
        }
        // The reduced variable has a higher number than its kin in the body or not at all: walk the body once.
        const auto at =
            std::find(body.variables.begin(), body.variables.end(), static_cast<int>(v)) - body.variables.begin();
        std::size_t inner = 1, extent = static_cast<std::size_t>(extents_[v]);
        for (std::size_t k = static_cast<std::size_t>(at) + 1; k < body.extents.size(); ++k)
            inner *= static_cast<std::size_t>(body.extents[k]);
        const bool depends = at < static_cast<std::ptrdiff_t>(body.variables.size());
        const auto combine = [&](double a, double x) {
            switch (e->reduce) {
            case ReduceOp::Sum:
                return e->type == Type::F32 ? static_cast<double>(static_cast<float>(a) + static_cast<float>(x))
                                            : a + x;
            case ReduceOp::Prod: return a * x;
            case ReduceOp::Max: return a != a || x != x ? std::nan("") : std::max(a, x);
            case ReduceOp::Min: return a != a || x != x ? std::nan("") : std::min(a, x);
            case ReduceOp::Any: return a != 0 || x != 0 ? 1.0 : 0.0;
            case ReduceOp::All: return a != 0 && x != 0 ? 1.0 : 0.0;
            }
            return a;
        };
        for (std::size_t k = 0; k < out.data.size(); ++k) {
            double a = start;
            const std::size_t from = depends ? k / inner * inner * extent + k % inner : k;
            for (std::size_t m = 0; m < extent; ++m) a = combine(a, body.data[depends ? from + m * inner : from]);
            out.data[k] = a;
        }
        extents_[v] = saved;
        return out;
    }
    default: break;
    }
    std::vector<const Array*> x;
    for (const Expr a : e->args) x.push_back(&array(a));
    Array out = blank(e->free);
    switch (e->kind) {
    case Kind::Load:
    case Kind::Table: {
        const auto& shape = e->kind == Kind::Load ? env_.inputs.at(e->number).shape : pool_.table(e->number).shape;
        const auto& values = e->kind == Kind::Load ? *env_.inputs.at(e->number).values : pool_.table(e->number).values;
        if (shape.size() != e->args.size())
            fail("internal", "input " + std::to_string(e->number) + " has another rank");
        fill(out, x, [&](const double* v) {
            std::int64_t at = 0;
            for (std::size_t k = 0; k < shape.size(); ++k)
                at = at * shape[k] + std::clamp<std::int64_t>(static_cast<std::int64_t>(v[k]), 0,
                                                              std::max<std::int64_t>(0, shape[k] - 1));
            return values.empty() ? 0.0 : values[static_cast<std::size_t>(at)];
        });
        break;
    }
    case Kind::Sum:
        fill(out, x, [&](const double* v) {
            // -0.0 is what nothing is added to: a negated 0 keeps its sign
            double s = e->type == Type::Int ? static_cast<double>(e->integer) : e->real == 0 ? -0.0 : e->real;
            for (std::size_t k = 0; k < x.size(); ++k)
                s += (e->type == Type::Int ? static_cast<double>(e->icoef[k]) : e->rcoef[k]) * v[k];
            return s;
        });
        break;
    case Kind::Product:
        fill(out, x, [&](const double* v) {
            double s = 1, by = 1; // a / b is one division, as in PyTorch
            for (std::size_t k = 0; k < x.size(); ++k) {
                const double n = static_cast<double>(e->num[k]) / static_cast<double>(e->den[k]);
                if (n == -1)
                    by *= v[k];
                else if (n == -0.5)
                    by *= std::sqrt(v[k]);
                else
                    s *= n == 1 ? v[k] : n == 2 ? v[k] * v[k] : n == 0.5 ? std::sqrt(v[k]) : std::pow(v[k], n);
            }
            return by == 1 ? s : s / by;
        });
        break;
    case Kind::FloorDiv:
    case Kind::Mod:
        fill(out, x, [&](const double* v) {
            const auto a = static_cast<std::int64_t>(v[0]), b = static_cast<std::int64_t>(v[1]);
            return static_cast<double>(e->kind == Kind::FloorDiv ? floor_div(a, b) : floor_mod(a, b));
        });
        break;
    case Kind::Min:
    case Kind::Max:
        fill(out, x, [&](const double* v) {
            double m = v[0];
            for (std::size_t k = 1; k < x.size(); ++k)
                m = m != m || v[k] != v[k] ? std::nan("")
                    : e->kind == Kind::Max ? std::max(m, v[k])
                                           : std::min(m, v[k]);
            return m;
        });
        break;
    case Kind::Fn: fill(out, x, [f = info(e->op).real](const double* v) { return f(v); }); break;
    case Kind::F32Fn:
        fill(out, x, [&, f = info(e->op).f32](const double* v) {
            float w[3] = {};
            for (std::size_t k = 0; k < x.size(); ++k) w[k] = static_cast<float>(v[k]);
            return static_cast<double>(f(w));
        });
        break;
    case Kind::Cmp:
        fill(out, x, [&](const double* v) {
            const double b = x.size() == 1 ? 0 : v[1];
            return (e->op == Op::Lt ? v[0] < b : e->op == Op::Le ? v[0] <= b : v[0] == b) ? 1.0 : 0.0;
        });
        break;
    case Kind::And:
    case Kind::Or:
        fill(out, x, [&](const double* v) {
            const bool all = e->kind == Kind::And;
            for (std::size_t k = 0; k < x.size(); ++k)
                if ((v[k] != 0) != all) return all ? 0.0 : 1.0;
            return all ? 1.0 : 0.0;
        });
        break;
    case Kind::Not: fill(out, x, [](const double* v) { return v[0] == 0 ? 1.0 : 0.0; }); break;
    case Kind::Select: fill(out, x, [](const double* v) { return v[0] != 0 ? v[1] : v[2]; }); break;
    case Kind::Cast:
        fill(out, x, [&](const double* v) {
            if (e->args[0]->type == Type::Int) // a product of integers that is 0 has no sign
                return (e->type == Type::F32 ? static_cast<double>(static_cast<float>(v[0])) : v[0]) + 0.0;
            if (e->type == Type::F32) return static_cast<double>(static_cast<float>(v[0]));
            const bool narrows =
                e->type == Type::Int && (e->args[0]->type == Type::Real || e->args[0]->type == Type::F32);
            return narrows ? static_cast<double>(narrowed(v[0])) : v[0];
        });
        break;
    default: fail("internal", "an expression of an unknown kind");
    }
    return out;
}

double Evaluator::value(Expr e) {
    const Array& a = array(e);
    if (a.data.size() != 1 || e->free != 0) fail("internal", "a value of an expression with free variables");
    return a.data[0];
}

std::vector<double> Evaluator::over(Expr e, const std::vector<std::int64_t>& extents) {
    for (std::size_t k = 0; k < extents.size(); ++k) {
        if (extents_[k] != extents[k]) done_.clear();
        extents_[k] = extents[k];
    }
    std::uint64_t all = 0;
    for (std::size_t k = 0; k < extents.size(); ++k) all |= index_bit(static_cast<int>(k));
    const Array& a = array(e);
    Array out = blank(all | e->free);
    fill(out, {&a}, [](const double* v) { return v[0]; });
    return std::move(out.data);
}

} // namespace cubridge::ir
