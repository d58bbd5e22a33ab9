// Small sizes and random inputs that a specification accepts: what certification compares on.
// SPDX-License-Identifier: Apache-2.0
#include "ir/expr/evaluate.h"
#include "ir/spec/state.h"
#include <algorithm>
#include <cmath>
#include <random>
#include <set>

namespace cubridge::ir::spec {

namespace {

struct Template {
    std::int64_t B, Hk, G, Sq, Sk, D, Dv;
};
// Groups 1 to 3, Sq unlike Sk, one key, no key, rows without keys under every alignment.
constexpr Template templates[] = {
    {1, 2, 1, 3, 3, 4, 3}, {2, 1, 3, 2, 5, 3, 2}, {1, 2, 2, 5, 2, 2, 3}, {1, 1, 1, 1, 1, 3, 2},
    {2, 2, 1, 1, 6, 2, 2}, {1, 1, 2, 2, 0, 2, 2}, {1, 2, 3, 4, 4, 4, 4},
};

bool holds(const Scalar& scalar, const Fact& f, const Environment& env) {
    Evaluator at(*scalar.pool, env);
    const double l = at.value(f.left), r = at.value(f.right);
    switch (f.kind) {
    case Fact::Kind::Equal: return l == r;
    case Fact::Kind::AtLeast: return l >= r;
    case Fact::Kind::Divides: return r != 0 && std::fmod(l, r) == 0;
    }
    return false;
}

bool mentions_input(Expr e) {
    std::set<Expr> seen;
    const auto visit = [&](auto&& self, Expr x) -> bool {
        if (!seen.insert(x).second) return false;
        if (x->kind == Kind::Arg || x->kind == Kind::Load) return true;
        return std::any_of(x->args.begin(), x->args.end(), [&](Expr a) { return self(self, a); });
    };
    return visit(visit, e);
}

constexpr std::int64_t kMaxSize = 1 << 20;             // of one axis of a small case
constexpr double kMaxElements = std::int64_t{1} << 22; // of one input of it

} // namespace

std::vector<std::map<int, std::int64_t>> small_sizes(const Scalar& scalar, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::map<int, std::int64_t>> out;
    for (const std::int64_t tables : {6, 40, 300}) // sizes of captured axes that the text leaves free
        for (const Template& t : templates) {
            std::map<int, std::int64_t> s{{dims::B, t.B},   {dims::Hk, t.Hk}, {dims::Hq, t.Hk * t.G}, {dims::Sq, t.Sq},
                                          {dims::Sk, t.Sk}, {dims::D, t.D},   {dims::Dv, t.Dv}};
            if (scalar.heads > 0)
                s[dims::Hq] = scalar.heads, s[dims::Hk] = t.Hk <= 1               ? 1
                                                          : scalar.heads % 2 == 0 ? scalar.heads / 2
                                                                                  : scalar.heads;
            for (const Fact& f : scalar.facts) { // what a template can be bent to
                if (f.left->kind != Kind::Dim) continue;
                std::int64_t& left = s[f.left->number];
                if (f.kind == Fact::Kind::Equal && f.right->kind == Kind::Dim) left = s[f.right->number];
                if (is_const(f.right)) {
                    const std::int64_t c = f.right->integer;
                    if (c < -kMaxSize || c > kMaxSize) continue; // no small case
                    if (f.kind == Fact::Kind::Equal) left = c;
                    if (f.kind == Fact::Kind::AtLeast && left < c) left = c + left % 3;
                    if (f.kind == Fact::Kind::Divides && c > 0) {
                        const bool heads = f.left->number == dims::Hq;
                        left = (left + c - 1) / c * c;
                        if (heads && left % std::max<std::int64_t>(1, s[dims::Hk]) != 0) s[dims::Hk] = left;
                    }
                }
                if (f.left->number == dims::Hq && s[dims::Hk] != 0 && s[dims::Hq] % s[dims::Hk] != 0) s[dims::Hk] = 1;
            }
            for (const Fact& f : scalar.facts)
                if (f.kind == Fact::Kind::Equal && f.left->kind == Kind::Dim && f.right->kind == Kind::Dim)
                    s[f.left->number] = s[f.right->number];
            for (const auto& shape : scalar.shapes)
                for (const Expr e : shape)
                    if (e->kind == Kind::Dim && !s.contains(e->number))
                        s[e->number] = dims::is_input(e->number) ? tables + static_cast<std::int64_t>(random() % 3)
                                       : e->number == dims::Hv   ? s[dims::Hk]
                                       : e->number == dims::kD   ? s[dims::D]
                                       : e->number == dims::vS   ? s[dims::Sk]
                                                                 : s[dims::B];
            Environment env;
            env.dims = s;
            bool fits = s[dims::Hk] > 0 && s[dims::Hq] % s[dims::Hk] == 0;
            for (const Fact& f : scalar.facts)
                if (!mentions_input(f.left) && !mentions_input(f.right)) fits = fits && holds(scalar, f, env);
            if (fits) out.push_back(std::move(s));
        }
    return out;
}

std::vector<Argument> random_inputs(const Scalar& scalar, const std::map<int, std::int64_t>& sizes, std::uint64_t seed,
                                    Meter* meter) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    Environment env;
    env.dims = sizes;
    Evaluator at(*scalar.pool, env);
    const std::int64_t reach = std::max(sizes.at(dims::Sq), sizes.at(dims::Sk));
    std::vector<Argument> out;
    for (std::size_t k = 0; k < scalar.inputs.size(); ++k) {
        const Input& x = scalar.inputs[k];
        if (x.fate == Input::Fate::Absent || x.fate == Input::Fate::Static) {
            out.emplace_back();
            continue;
        }
        Array a;
        a.dtype = x.dtype;
        double n = 1;
        for (const Expr e : scalar.shapes[k]) {
            const double size = std::max(0.0, at.value(e));
            n *= size;
            if (!(n <= kMaxElements)) fail("limit", "the text demands sizes that are too large to be compared on");
            a.shape.push_back(static_cast<std::int64_t>(size));
        }
        if (meter) meter->spend(static_cast<std::uint64_t>(n / 4));
        for (std::int64_t m = 0; m < static_cast<std::int64_t>(n); ++m) {
            if (x.dtype == DType::Bool)
                a.values.push_back(static_cast<double>(random() % 2));
            else if (!is_float(x.dtype))
                a.values.push_back(static_cast<double>(random() % static_cast<std::uint64_t>(reach + 2)));
            else if (x.role == Input::Role::Scalar)
                a.values.push_back(0.25 + static_cast<double>(random() % 8) / 4);
            else if (x.role == Input::Role::Tensor)
                a.values.push_back(
                    static_cast<double>(static_cast<float>(normal(random)))); // as a launch could hold it
            else
                a.values.push_back(normal(random));
        }
        // Half of the runs take the value that the specification holds.
        if (x.fate == Input::Fate::Bound && random() % 2 == 0) a.values[0] = x.value;
        out.emplace_back(std::move(a));
    }
    return out;
}

std::vector<Array> evaluate_outputs(const Scalar& scalar, const std::vector<ScalarOutput>& outputs,
                                    const std::vector<Argument>& inputs, Meter* meter) {
    Environment env;
    static constexpr int known[3][4] = {{dims::B, dims::Hq, dims::Sq, dims::D},
                                        {dims::kB, dims::Hk, dims::Sk, dims::kD},
                                        {dims::vB, dims::Hv, dims::vS, dims::Dv}};
    for (std::size_t k = 0; k < scalar.inputs.size(); ++k) {
        const Input& x = scalar.inputs[k];
        if (x.fate == Input::Fate::Absent) continue;
        Environment::Data d;
        if (k < inputs.size() && inputs[k] && x.fate != Input::Fate::Static) {
            d.shape = inputs[k]->shape;
            d.values = std::make_shared<const std::vector<double>>(inputs[k]->values);
        } else {
            d.values = std::make_shared<const std::vector<double>>(1, x.value);
        }
        for (std::size_t a = 0; a < d.shape.size(); ++a)
            env.dims[k < 3 ? known[k][a] : dims::of(static_cast<int>(k), static_cast<int>(a))] = d.shape[a];
        env.inputs[static_cast<int>(k)] = std::move(d);
    }
    if (!env.dims.contains(dims::Dv)) env.dims[dims::Dv] = env.dims[dims::D]; // v is absent
    if (!env.dims.contains(dims::Hv)) env.dims[dims::Hv] = env.dims[dims::Hk];
    Evaluator at(*scalar.pool, env, meter);
    std::vector<Array> out;
    for (const ScalarOutput& o : outputs) {
        Array a{o.dtype, {}, {}};
        for (const Expr e : o.shape) a.shape.push_back(static_cast<std::int64_t>(std::clamp(at.value(e), 0.0, 1e15)));
        a.values = at.over(o.body, a.shape);
        out.push_back(std::move(a));
    }
    return out;
}

} // namespace cubridge::ir::spec
