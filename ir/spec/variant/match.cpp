// out = post(sum over j of W(i, j) v(j, d)), W over s = sum over c of q(i, c) k(j, c): found by naming, from the inside
// out, what the parts are (scores, row maxima, sums of weights, sums of weighted values) and seeing what is left.
// SPDX-License-Identifier: Apache-2.0
#include "ir/spec/variant/match.h"
#include "cubridge/ir/error.h"
#include "ir/spec/variant/interior.h"
#include <algorithm>
#include <set>

namespace cubridge::ir::variant {

namespace {

// Names of what was recognised: Loads of inputs that no specification has.
enum : int { kRowMax = 9000, kMass = 9100, kMixed = 9200 };

struct Dot {
    Expr q, k, inner; // over b, h, i, c and b, h, j, c
    Expr keys;
    bool operator==(const Dot&) const = default;
};
struct Mass { // sum over j of keep ? weight : 0
    Expr keep, weight, keys;
    bool operator==(const Mass&) const = default;
};
struct Mixed { // sum over j of keep ? weight * gain * value : 0
    Expr keep, weight, gain, value, keys;
    bool operator==(const Mixed&) const = default;
};

[[noreturn]] void refuse(const std::string& why) {
    fail("unsupported", why);
}

bool reads(Expr e, int input) {
    std::set<Expr> seen;
    const auto visit = [&](auto&& self, Expr x) -> bool {
        if (!seen.insert(x).second) return false;
        if (x->kind == Kind::Load && x->number == input) return true;
        return std::any_of(x->args.begin(), x->args.end(), [&](Expr a) { return self(self, a); });
    };
    return visit(visit, e);
}

bool reads_named(Expr e) { // anything that was recognised so far
    std::set<Expr> seen;
    const auto visit = [&](auto&& self, Expr x) -> bool {
        if (!seen.insert(x).second) return false;
        if (x->kind == Kind::Load && x->number >= kScore) return true;
        return std::any_of(x->args.begin(), x->args.end(), [&](Expr a) { return self(self, a); });
    };
    return visit(visit, e);
}

bool reads_output(Expr e) { // what was recognised is a weighted sum of values already
    std::set<Expr> seen;
    const auto visit = [&](auto&& self, Expr x) -> bool {
        if (!seen.insert(x).second) return false;
        if (x->kind == Kind::Load && x->number >= kMixed) return true;
        return std::any_of(x->args.begin(), x->args.end(), [&](Expr a) { return self(self, a); });
    };
    return visit(visit, e);
}

class Matcher {
public:
    explicit Matcher(const Scalar& scalar) : scalar_(scalar), pool_(*scalar.pool), interior_(pool_) {}

    Variant run();

private:
    Expr at(int axis) { return pool_.index(axis); }
    Expr name(int what, std::size_t n, std::vector<Expr> where) {
        return pool_.load(what + static_cast<int>(n), Type::Real, std::move(where));
    }
    template <class T> std::size_t number(std::vector<T>& list, const T& x) {
        const auto it = std::find(list.begin(), list.end(), x);
        if (it != list.end()) return static_cast<std::size_t>(it - list.begin());
        list.push_back(x);
        return list.size() - 1;
    }

    Expr dots(Expr e);
    Expr dot(Expr reduce);
    Expr sums(Expr e);
    Expr sum_over_keys(Expr reduce);
    Expr sum_of(Expr body, Expr keys);
    bool over_keys(Expr reduce) const { return reads_named(reduce->args[0]); }
    Expr outputs(Expr e);
    void finish_parts(Variant& v);

    const Scalar& scalar_;
    ExprPool& pool_;
    Interior interior_;
    std::vector<Dot> dots_;
    std::vector<Expr> maxima_;
    std::vector<Mass> masses_;
    std::vector<Mixed> mixed_;
    struct Chosen {
        bool used = false;
        Weights weights;
    };
    std::vector<Chosen> chosen_; // by Mixed
};

// A sum over c of products that read q and k. Factors without c leave it; what depends on the row goes to q, on the key
// to k, on neither to q.
Expr Matcher::dot(Expr r) {
    const Expr body = interior_.simplify(pool_.open(r, at(axis::c)));
    Factors f = interior_.factors(body);
    std::vector<Expr> with_c;
    Factors outside, q, k;
    outside.coefficient = f.coefficient;
    for (const auto& [t, c] : f.exponent) {
        if (t && (t->free & index_bit(axis::c)) != 0) return nullptr;
        outside.exponent[t] = c;
    }
    Expr key = nullptr; // the variable that counts keys
    for (const auto& [b, p] : f.factors) {
        if ((b->free & index_bit(axis::c)) == 0) {
            outside.factors[b] = p;
            continue;
        }
        // keys are what is indexed by a variable that a sum around this one binds: k[b, h, j, c], or a captured tensor
        std::set<Expr> seen;
        bool from_k = false, several = false;
        const auto find = [&](auto&& self, Expr x) -> void {
            if (!seen.insert(x).second) return;
            if (x->kind == Kind::Load && x->number != 0)
                for (const Expr a : x->args)
                    if (a->kind == Kind::Bound) {
                        several = several || (key && key != a);
                        key = a;
                        from_k = true;
                    }
            if (x->kind != Kind::Reduce)
                for (const Expr a : x->args) self(self, a);
        };
        find(find, b);
        if (several || (from_k && reads(b, 0))) return nullptr;
        (from_k ? k : q).factors[b] = p;
    }
    if (!key || k.factors.empty() || q.factors.empty()) return nullptr;
    const std::uint64_t key_bit = key->free;
    Dot d;
    d.q = interior_.build(q);
    d.k = interior_.build(k);
    if ((d.q->free & key_bit) != 0 || (d.k->free & index_bit(axis::i)) != 0) return nullptr;
    // q may use h, i, c only, k the key's variable instead of i
    if ((d.q->free & kAllBound) != 0) return nullptr;
    d.k = pool_.rewrite(d.k, [&](Expr x) { return x == key ? at(axis::j) : x; });
    if ((d.k->free & kAllBound) != 0) return nullptr;
    d.inner = r->args[1];
    d.keys = nullptr;
    const Expr s = name(kScore, number(dots_, d), {at(axis::b), at(axis::h), at(axis::i), key});
    std::vector<ExprPool::Power> product{{s, 1, 1}, {interior_.build(outside), 1, 1}};
    return pool_.product(Type::Real, std::move(product));
}

Expr Matcher::dots(Expr e) {
    return pool_.rewrite(e, [&](Expr x) {
        if (x->kind != Kind::Reduce || x->reduce != ReduceOp::Sum || x->type != Type::Real) return x;
        if (!reads(x->args[0], 0) || reads_named(x->args[0])) return x;
        const Expr d = dot(x);
        return d ? d : x;
    });
}

// sum over j of `body`, over Index(j), by its terms.
Expr Matcher::sum_of(Expr body, Expr keys) {
    const std::uint64_t j = index_bit(axis::j), d = index_bit(axis::d);
    Expr keep = pool_.boolean(true);
    if (body->kind == Kind::Select && is_zero(body->args[2]))
        keep = body->args[0], body = body->args[1];
    else if (body->kind == Kind::Select && is_zero(body->args[1]))
        keep = pool_.logical_not(body->args[0]), body = body->args[2];
    const bool mixes = ((body->free | keep->free) & d) != 0;
    if ((keep->free & d) != 0) refuse("the mask depends on the output's column");
    // Terms of different scores, or a sum in a product of weights: one sum each.
    if (body->kind == Kind::Sum && body->args.size() + (body->real != 0 ? 1 : 0) > 1) {
        const bool split = mixes || body->args.size() > 1;
        if (split && body->real == 0) {
            std::vector<std::pair<double, Expr>> terms;
            for (std::size_t k = 0; k < body->args.size(); ++k) {
                const Expr part = is_true(keep) ? body->args[k] : pool_.select(keep, body->args[k], pool_.real(0));
                terms.emplace_back(body->rcoef[k], sum_of(part, keys));
            }
            return pool_.rsum(0, std::move(terms));
        }
    }
    Factors f = interior_.factors(body), outside, weight, gain, value;
    if (mixes) // (p1 - lam * p2) * v is a sum of two, where the scores differ
        for (const auto& [b, p] : f.factors) {
            if (b->kind != Kind::Sum || p.num != 1 || p.den != 1 || (b->free & d) != 0 || (b->free & j) == 0 ||
                b->real != 0)
                continue;
            Factors rest = f;
            rest.factors.erase(b);
            const Expr others = interior_.build(rest);
            std::vector<std::pair<double, Expr>> terms;
            for (std::size_t k = 0; k < b->args.size(); ++k) {
                Expr part = interior_.simplify(pool_.product(Type::Real, {{b->args[k], 1, 1}, {others, 1, 1}}));
                if (!is_true(keep)) part = interior_.simplify(pool_.select(keep, part, pool_.real(0)));
                terms.emplace_back(b->rcoef[k], sum_of(part, keys));
            }
            return pool_.rsum(0, std::move(terms));
        }
    outside.coefficient = f.coefficient;
    bool exponential = false;
    for (const auto& [t, c] : f.exponent) {
        if (t && (t->free & d) != 0) refuse("the weights depend on the output's column");
        const bool inside = t && (t->free & j) != 0;
        (inside ? weight : outside).exponent[t] = c;
        exponential = exponential || inside;
    }
    for (const auto& [b, p] : f.factors) {
        if ((b->free & d) != 0) {
            if (reads_named(b)) refuse("a value depends on the scores");
            if ((b->free & j) == 0)
                outside.factors[b] = p;
            else
                value.factors[b] = p;
        } else if ((b->free & j) == 0) {
            outside.factors[b] = p;
        } else {
            // beside an exponential, what does not hang on the score multiplies after the normaliser
            (exponential && !reads_named(b) && mixes ? gain : weight).factors[b] = p;
        }
    }
    const Expr w = interior_.build(weight);
    Expr symbol = nullptr;
    if (mixes && !value.factors.empty()) {
        const Mixed m{keep, w, interior_.build(gain), interior_.build(value), keys};
        if ((m.value->free & (index_bit(axis::i) | kAllBound)) != 0) refuse("the values depend on the query row");
        symbol = name(kMixed, number(mixed_, m), {at(axis::b), at(axis::h), at(axis::i), at(axis::d)});
    } else {
        symbol = name(kMass, number(masses_, Mass{keep, w, keys}), {at(axis::b), at(axis::h), at(axis::i)});
    }
    return pool_.product(Type::Real, {{symbol, 1, 1}, {interior_.build(outside), 1, 1}});
}

// The values' column may be the output's, or bound by a reduction over columns (a norm of the output).
Expr Matcher::sum_over_keys(Expr r) {
    Expr column = nullptr;
    if ((r->free & kAllBound) != 0) {
        std::set<Expr> seen;
        const auto find = [&](auto&& self, Expr x) -> void {
            if (!seen.insert(x).second) return;
            if (x->kind == Kind::Load && (x->number == 1 || x->number == 2) && x->args.size() == 4 &&
                x->args[3]->kind == Kind::Bound)
                column = x->args[3];
            for (const Expr a : x->args) self(self, a);
        };
        find(find, r->args[0]);
        if (!column || (r->free & kAllBound) != column->free || (r->free & index_bit(axis::d)) != 0)
            refuse("a sum over keys depends on another sum's key");
    }
    Expr body = pool_.open(r, at(axis::j));
    if (column) body = pool_.rewrite(body, [&](Expr x) { return x == column ? at(axis::d) : x; });
    const Expr sum = sum_of(interior_.simplify(body), r->args[1]);
    return column ? pool_.rewrite(sum, [&](Expr x) { return x == at(axis::d) ? column : x; }) : sum;
}

// Reductions over keys, innermost first.
Expr Matcher::sums(Expr e) {
    return interior_.simplify(pool_.rewrite(e, [&](Expr x) -> Expr {
        if (x->kind != Kind::Reduce || x->type != Type::Real || !over_keys(x)) return x;
        if (x->reduce == ReduceOp::Sum && reads_output(x->args[0])) return x; // over the columns of the output
        if (x->reduce == ReduceOp::Max) {
            if ((x->free & kAllBound) != 0) refuse("a maximum over keys depends on another sum's key");
            const Expr body = interior_.simplify(pool_.open(x, at(axis::j)));
            return name(kRowMax, number(maxima_, body), {at(axis::b), at(axis::h), at(axis::i)});
        }
        if (x->reduce == ReduceOp::Sum) return sum_over_keys(x);
        refuse("a reduction over keys that is neither a sum nor a maximum");
    }));
}

// Names what is left: kMixed with its mass in a denominator is a softmax's output.
Expr Matcher::outputs(Expr e) {
    const auto is_mass = [](Expr x) { return x->kind == Kind::Load && x->number >= kMass && x->number < kMixed; };
    const auto is_mixed = [](Expr x) { return x->kind == Kind::Load && x->number >= kMixed; };
    chosen_.resize(mixed_.size());
    // The mass of a weighted sum: the same weights, kept under the same mask.
    const auto belongs = [&](Expr mass, const Mixed& m) {
        const Mass& x = masses_[static_cast<std::size_t>(mass->number - kMass)];
        return x.keep == m.keep && x.weight == m.weight && x.keys == m.keys;
    };
    const auto choose = [&](std::size_t n, Weights w) {
        Chosen& c = chosen_[n];
        if (c.used && (c.weights.kind != w.kind || c.weights.extra != w.extra || c.weights.rest != w.rest))
            refuse("one weighted sum is normalised in two ways");
        c.used = true;
        c.weights = std::move(w);
    };
    const auto exponential = [&](const Mixed& m) { return m.weight->kind == Kind::Fn && m.weight->op == Op::Exp; };
    const auto normalised = [&](Expr x) -> Expr { // a Product with numerator and denominator
        if (x->kind != Kind::Product) return x;
        for (std::size_t u = 0; u < x->args.size(); ++u) {
            if (!is_mixed(x->args[u]) || x->num[u] != 1 || x->den[u] != 1) continue;
            const auto n = static_cast<std::size_t>(x->args[u]->number - kMixed);
            const Mixed& m = mixed_[n];
            for (std::size_t l = 0; l < x->args.size(); ++l) {
                if (x->num[l] != -1 || x->den[l] != 1) continue;
                const Expr base = x->args[l];
                Weights w;
                w.kind = exponential(m) ? Weights::Kind::Softmax : Weights::Kind::Ratio;
                Expr scale = pool_.real(1);
                if (is_mass(base) && belongs(base, m)) {
                } else if (base->kind == Kind::Sum) {
                    // f * mass + rest: everything by f
                    bool found = false;
                    std::vector<std::pair<double, Expr>> rest;
                    for (std::size_t k = 0; k < base->args.size(); ++k) {
                        Factors f = interior_.factors(base->args[k]);
                        f.coefficient *= base->rcoef[k];
                        const auto mass = std::find_if(f.factors.begin(), f.factors.end(), [&](const auto& p) {
                            return is_mass(p.first) && p.second.num == 1 && p.second.den == 1 && belongs(p.first, m);
                        });
                        if (mass == f.factors.end() || found) {
                            rest.emplace_back(base->rcoef[k], base->args[k]);
                            continue;
                        }
                        found = true;
                        f.factors.erase(mass);
                        scale = interior_.build(f);
                    }
                    if (!found) continue;
                    std::vector<Expr> extra;
                    if (base->real != 0) rest.emplace_back(base->real, pool_.real(1));
                    std::vector<std::pair<double, Expr>> scaled;
                    for (const auto& [c, t] : rest) {
                        const Expr q = interior_.simplify(
                            pool_.rsum(0, {{c, pool_.product(Type::Real, {{t, 1, 1}, {scale, -1, 1}})}}));
                        scaled.emplace_back(1.0, q);
                        if (interior_.positive(q)) extra.push_back(interior_.simplify(pool_.apply(Op::Log, q)));
                    }
                    if (w.kind == Weights::Kind::Softmax && extra.size() == scaled.size())
                        w.extra = std::move(extra);
                    else if (w.kind == Weights::Kind::Ratio)
                        w.rest = pool_.rsum(0, std::move(scaled));
                    else
                        continue;
                } else {
                    continue;
                }
                choose(n, std::move(w));
                std::vector<ExprPool::Power> factors{
                    {pool_.load(kOutput + static_cast<int>(n), Type::Real, x->args[u]->args), 1, 1}, {scale, -1, 1}};
                for (std::size_t k = 0; k < x->args.size(); ++k)
                    if (k != u && k != l) factors.push_back({x->args[k], x->num[k], x->den[k]});
                return pool_.product(Type::Real, std::move(factors));
            }
        }
        return x;
    };
    e = interior_.simplify(pool_.rewrite(e, normalised));
    // What is left over: a weighted sum whose mass stands elsewhere (merged parts), or one that is not normalised.
    e = pool_.rewrite(e, [&](Expr x) -> Expr {
        if (is_mixed(x)) {
            const auto n = static_cast<std::size_t>(x->number - kMixed);
            const Expr o = pool_.load(kOutput + static_cast<int>(n), Type::Real, x->args);
            if (exponential(mixed_[n])) {
                Weights w;
                if (!chosen_[n].used) choose(n, w);
                const Expr lse = name(kLse, n, {at(axis::b), at(axis::h), at(axis::i)});
                return pool_.product(Type::Real, {{o, 1, 1}, {pool_.apply(Op::Exp, lse), 1, 1}});
            }
            Weights w;
            w.kind = Weights::Kind::Pointwise;
            choose(n, w);
            return o;
        }
        if (!is_mass(x)) return x;
        for (std::size_t n = 0; n < mixed_.size(); ++n)
            if (belongs(x, mixed_[n]) && exponential(mixed_[n])) {
                // exp(lse) is the mass and what a sink adds to it
                Expr mass = pool_.apply(Op::Exp, name(kLse, n, {at(axis::b), at(axis::h), at(axis::i)}));
                for (const Expr s : chosen_[n].weights.extra) mass = pool_.sub(mass, pool_.apply(Op::Exp, s));
                return mass;
            }
        refuse("a sum over keys belongs to no weighted sum of values");
    });
    e = interior_.simplify(e);
    // log(exp(lse) - exp(sink) + exp(sink)) found its form in simplify; nothing else may be left
    std::set<Expr> seen;
    const auto check = [&](auto&& self, Expr x) -> void {
        if (!seen.insert(x).second) return;
        if (x->kind == Kind::Load && x->number >= kRowMax && x->number < kMass)
            refuse("the maximum of a row does not cancel");
        if (x->kind == Kind::Load && x->number >= kScore && x->number < kOutput)
            refuse("a score stands outside the sums over keys");
        if (x->kind == Kind::Load && x->number >= kMass) refuse("a sum over keys is left over");
        if ((x->kind == Kind::Load) &&
            (x->number == 1 || (x->number == 2 && scalar_.inputs[2].fate != Input::Fate::Absent)))
            refuse("keys or values stand outside the sums over keys");
        for (const Expr a : x->args) self(self, a);
    };
    check(check, e);
    return e;
}

void Matcher::finish_parts(Variant& v) {
    for (std::size_t n = 0; n < mixed_.size(); ++n) {
        const Mixed& m = mixed_[n];
        Part p;
        p.keys = m.keys;
        p.keep = m.keep;
        p.v = m.value;
        p.gain = is_real(m.gain, 1) ? nullptr : m.gain;
        p.weights = chosen_[n].weights;
        // one score a part
        std::set<Expr> seen;
        int score = -1;
        const auto find = [&](auto&& self, Expr x) -> void {
            if (!seen.insert(x).second) return;
            if (x->kind == Kind::Load && x->number >= kScore && x->number < kOutput) {
                if (score >= 0 && score != x->number) refuse("the weights of one sum hang on two different scores");
                if (x->args[3] != at(axis::j)) refuse("a weight hangs on the score of another key");
                score = x->number;
            }
            for (const Expr a : x->args) self(self, a);
        };
        find(find, m.weight);
        find(find, m.gain);
        find(find, m.keep);
        if (score < 0) refuse("the weights do not hang on a score");
        const Dot& d = dots_[static_cast<std::size_t>(score - kScore)];
        p.q = d.q, p.k = d.k, p.inner = d.inner;
        const Expr plain = name(kScore, 0, {at(axis::b), at(axis::h), at(axis::i), at(axis::j)});
        const Expr own = name(kScore, static_cast<std::size_t>(score - kScore),
                              {at(axis::b), at(axis::h), at(axis::i), at(axis::j)});
        const auto renamed = [&](Expr e) {
            return e ? pool_.rewrite(e, [&](Expr x) { return x == own ? plain : x; }) : e;
        };
        p.keep = renamed(p.keep), p.gain = renamed(p.gain);
        if (p.weights.kind == Weights::Kind::Softmax) {
            p.score = renamed(m.weight->args[0]);
        } else {
            p.score = plain;
            p.weights.value = renamed(m.weight);
        }
        v.parts.push_back(std::move(p));
    }
}

Variant Matcher::run() {
    Variant v;
    v.pool = scalar_.pool;
    std::vector<Expr> results;
    for (std::size_t k = 0; k < scalar_.out.size(); ++k) {
        // The output's column is Index(3) in a Scalar; keys take that number here.
        const Expr map[] = {at(0), at(1), at(2), at(axis::d)};
        Expr e = pool_.substitute(scalar_.out[k].body, map);
        e = dots(e);
        if (dots_.empty()) refuse("no sum over the head dim is a product of query and key");
        e = interior_.simplify(e);
        e = sums(e);
        results.push_back(e);
    }
    if (mixed_.empty()) refuse("no sum over keys weighs values");
    for (Expr& e : results) e = outputs(e);
    for (const Chosen& c : chosen_)
        if (!c.used) refuse("a weighted sum is not part of the output");
    finish_parts(v);
    v.out = results[0];
    // A number that scales the whole output belongs to weights that nothing normalises: max(s, 0) / Sk.
    if (v.parts.size() == 1 && v.parts[0].weights.kind == Weights::Kind::Pointwise) {
        Factors f = interior_.factors(v.out);
        const Expr o = name(kOutput, 0, {at(axis::b), at(axis::h), at(axis::i), at(axis::d)});
        const auto it = f.factors.find(o);
        const auto per_request = [](Expr e) { return e == nullptr || (e->free & ~index_bit(axis::b)) == 0; };
        const bool alone =
            it != f.factors.end() && it->second.num == 1 && it->second.den == 1 &&
            std::all_of(f.factors.begin(), f.factors.end(),
                        [&](const auto& x) { return x.first == o || per_request(x.first); }) &&
            std::all_of(f.exponent.begin(), f.exponent.end(), [&](const auto& x) { return per_request(x.first); });
        if (alone) {
            f.factors.erase(o);
            Expr& w = v.parts[0].weights.value;
            w = interior_.simplify(pool_.product(Type::Real, {{w, 1, 1}, {interior_.build(f), 1, 1}}));
            v.out = o;
        }
    }
    if (results.size() > 1) {
        v.lse = results[1];
        if ((v.lse->free & index_bit(axis::d)) != 0) refuse("the LSE depends on the output's column");
    }
    return v;
}

} // namespace

Variant match(const Scalar& scalar) {
    return Matcher(scalar).run();
}

} // namespace cubridge::ir::variant
