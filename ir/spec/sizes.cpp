// Small sizes and random inputs that a specification accepts: what certification compares on.
// SPDX-License-Identifier: Apache-2.0
#include "ir/expr/evaluate.h"
#include "ir/spec/state.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
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

// Integers that the text writes or holds: positions and counts on either side of them may mean different things.
struct Thresholds {
    std::set<std::int64_t> numbers;
    std::int64_t nodes = 0; ///< of the expressions: what one position costs
    bool ranks = false;     ///< keys are compared with keys
};
Thresholds thresholds(const Scalar& scalar, const std::vector<Expr>& in, bool held = true) {
    Thresholds found;
    const auto note = [&](double c) {
        if (std::fabs(c) >= 4 && std::fabs(c) <= 1e15 && std::floor(c) == c)
            found.numbers.insert(static_cast<std::int64_t>(std::fabs(c)));
    };
    std::set<Expr> seen;
    const auto visit = [&](auto&& self, Expr e) -> void {
        if (!seen.insert(e).second) return;
        ++found.nodes;
        if (held && e->kind == Kind::Arg && e->type == Type::Int) {
            const Input& x = scalar.inputs[static_cast<std::size_t>(e->number)];
            if (x.fate == Input::Fate::Bound) note(x.value);
        }
        if (e->type == Type::Int && (e->kind == Kind::Const || e->kind == Kind::Sum))
            note(static_cast<double>(e->integer));
        if (e->kind == Kind::Cmp && std::popcount(e->free & kAllBound) > 1) found.ranks = true;
        if (e->kind == Kind::Cmp)
            for (const Expr a : e->args)
                if (is_const(a)) note(a->type == Type::Int ? static_cast<double>(a->integer) : a->real);
        for (const Expr a : e->args) self(self, a);
    };
    for (const Expr e : in) visit(visit, e);
    return found;
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

// A template bent to what the text demands; nothing where it does not fit.
std::optional<std::map<int, std::int64_t>> fitted(const Scalar& scalar, const Template& t, std::int64_t tables,
                                                  std::mt19937_64& random) {
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
        if (f.kind == Fact::Kind::AtLeast && f.right->kind == Kind::Dim) left = std::max(left, s[f.right->number]);
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
    if (!fits) return std::nullopt;
    return s;
}

} // namespace

std::vector<std::map<int, std::int64_t>> small_sizes(const Scalar& scalar, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::map<int, std::int64_t>> out;
    for (const std::int64_t tables : {6, 40, 300}) // sizes of captured axes that the text leaves free
        for (const Template& t : templates) {
            auto s = fitted(scalar, t, tables, random);
            if (s && std::find(out.begin(), out.end(), *s) == out.end()) out.push_back(std::move(*s));
        }
    return out;
}

std::optional<std::map<int, std::int64_t>> sizes_near(const Scalar& scalar, const std::array<std::int64_t, 7>& w,
                                                      std::int64_t tables, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    return fitted(scalar, Template{w[0], w[1], w[2], w[3], w[4], w[5], w[6]}, std::max(tables, w[4]), random);
}

std::set<std::int64_t> numbers_of(const Scalar& scalar) {
    std::vector<Expr> bodies;
    for (const ScalarOutput& o : scalar.out) bodies.push_back(o.body);
    return thresholds(scalar, bodies, false).numbers;
}

bool is_crossed(const Scalar& scalar, Expr e, const std::vector<std::map<int, std::int64_t>>& sizes) {
    const auto all = thresholds(scalar, {e}).numbers;
    if (all.empty()) return true;
    const auto reached = [&](int dim) {
        return std::any_of(sizes.begin(), sizes.end(), [&](const auto& s) { return s.at(dim) > *all.rbegin(); });
    };
    return reached(dims::Sq) && reached(dims::Sk);
}

std::vector<std::map<int, std::int64_t>> crossing_sizes(const Scalar& scalar, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::map<int, std::int64_t>> out;
    std::vector<Expr> bodies;
    for (const ScalarOutput& o : scalar.out) bodies.push_back(o.body);
    const Thresholds found = thresholds(scalar, bodies);
    const auto& all = found.numbers;
    const auto add = [&](const Template& t) {
        const std::int64_t cost = found.nodes * (found.ranks ? t.Sk : 1);
        const std::int64_t tables = std::max({std::int64_t{6}, t.Sq, t.Sk});
        auto s = fitted(scalar, t, tables, random);
        constexpr std::int64_t most = 600000; // parsing stays a matter of milliseconds
        if (s && cost * s->at(dims::B) * s->at(dims::Hq) * s->at(dims::Sq) * s->at(dims::Sk) * s->at(dims::D) <= most &&
            std::find(out.begin(), out.end(), *s) == out.end())
            out.push_back(std::move(*s));
    };
    add({3, 2, 4, 2, 3, 2, 2});
    if (all.empty()) return out;
    const auto upto = [&](std::int64_t most) { // the largest that stays affordable
        const auto it = all.upper_bound(most);
        return it == all.begin() ? 0 : *std::prev(it);
    };
    if (const auto c = upto(4100)) {
        add({1, 1, 1, 2, c + 3, 2, 1});
        add({1, 1, 1, c + 3, 2, 2, 1});
    }
    if (const auto c = upto(90)) add({1, 1, 1, c + 3, c + 2, 2, 1});
    if (const auto c = upto(64)) add({1, 1, c + 2, 2, 3, 2, 1});
    return out;
}

std::vector<Argument> random_inputs(const Scalar& scalar, const std::map<int, std::int64_t>& sizes, std::uint64_t seed,
                                    Draw draw, Meter* meter) {
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
                a.values.push_back(static_cast<double>(draw == Draw::Nothing ? 0 : random() % 2));
            else if (draw == Draw::Nothing && !is_float(x.dtype))
                a.values.push_back(0);
            else if (draw == Draw::Signed && x.role == Input::Role::Scalar && is_float(x.dtype))
                a.values.push_back(static_cast<double>(random() % 9) / 4 - 1.25);
            else if (draw == Draw::Signed && !is_float(x.dtype))
                a.values.push_back(static_cast<double>(random() % static_cast<std::uint64_t>(2 * reach + 3)) -
                                   static_cast<double>(reach + 1));
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
        if (x.fate == Input::Fate::Bound && random() % 2 == 0 && draw == Draw::Usual) a.values[0] = x.value;
        for (const Fact& f : scalar.facts) // what a launch may not give
            if (f.kind == Fact::Kind::AtLeast && f.left->kind == Kind::Arg && f.left->number == static_cast<int>(k) &&
                is_const(f.right) && f.right->type == Type::Int)
                a.values[0] = std::max(a.values[0], static_cast<double>(f.right->integer));
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
