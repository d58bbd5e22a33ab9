// The canonical text of a Variant and of a Scalar: sorted, so that equal things print equally. docs/variant.md has the
// grammar. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/spec/variant/match.h"
#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <numeric>
#include <set>

namespace cubridge::ir::variant {

namespace {

constexpr std::size_t kMaxOrders = 720;

// How binding a printed form is: 0 or, 1 and, 2 comparison, 3 sum, 4 product, 5 atom.
struct Text {
    std::string s;
    int level = 5;
};

constexpr std::size_t kMaxText = 1 << 18;

class Printer {
public:
    /// `label` names an input.
    Printer(ExprPool& pool, std::function<std::string(int)> label) : pool_(pool), label_(std::move(label)) {}
    std::string operator()(Expr e) { return print(e).s; }

private:
    static std::string wrap(const Text& t, int level) { return t.level < level ? "(" + t.s + ")" : t.s; }

    std::vector<std::string> sorted(const std::vector<Expr>& x, int level) {
        std::vector<std::string> out;
        for (const Expr e : x) out.push_back(wrap(print(e), level));
        std::sort(out.begin(), out.end());
        return out;
    }
    static std::string join(const std::vector<std::string>& x, const char* by) {
        std::string out;
        for (const auto& s : x) out += (out.empty() ? "" : by) + s;
        return out;
    }

    static std::string number(double v) {
        std::string s = fmt::format("{}", v);
        return s;
    }

    // c * t, sorted by t; a leading "-" where c is negative
    std::string sum(std::vector<std::pair<std::string, double>> terms, double constant) {
        std::sort(terms.begin(), terms.end());
        std::string out;
        for (const auto& [t, c] : terms) {
            const double a = c < 0 ? -c : c;
            const std::string body = a == 1 ? t : number(a) + "*" + t;
            if (out.empty())
                out = (c < 0 ? "-" : "") + body;
            else
                out += (c < 0 ? " - " : " + ") + body;
        }
        if (constant != 0 || out.empty()) {
            if (out.empty()) return number(constant);
            out += (constant < 0 ? " - " : " + ") + number(constant < 0 ? -constant : constant);
        }
        return out;
    }

    std::vector<std::pair<std::string, double>> terms(Expr e) {
        std::vector<std::pair<std::string, double>> out;
        if (e->kind != Kind::Sum) {
            if (!is_const(e)) out.emplace_back(wrap(print(e), 4), 1);
            return out;
        }
        for (std::size_t k = 0; k < e->args.size(); ++k)
            out.emplace_back(wrap(print(e->args[k]), 4),
                             e->type == Type::Int ? static_cast<double>(e->icoef[k]) : e->rcoef[k]);
        return out;
    }

    Text compare_with_zero(Expr e, bool negated) { // e <= 0, e == 0: the constant goes to the right
        const Expr x = e->args[0];
        const double constant = x->kind == Kind::Sum ? static_cast<double>(x->integer) : 0;
        auto t = terms(x);
        double right = -constant;
        if (e->op == Op::Eq) { // the sign that makes the first term positive
            auto s = t;
            std::sort(s.begin(), s.end());
            if (!s.empty() && s[0].second < 0) {
                for (auto& p : t) p.second = -p.second;
                right = -right;
            }
            if (t.size() == 2 && right == 0) { // a - b == 0 reads better as a == b
                std::sort(t.begin(), t.end());
                if (t[0].second == 1 && t[1].second == -1)
                    return {t[0].first + (negated ? " != " : " == ") + t[1].first, 2};
            }
            return {sum(t, 0) + (negated ? " != " : " == ") + number(right == 0 ? 0 : right), 2};
        }
        return {sum(t, 0) + " <= " + number(right == 0 ? 0 : right), 2};
    }

    Text print(Expr e) {
        if (const auto it = done_.find(e); it != done_.end()) return it->second;
        Text t = make(e);
        // a shared node stands at each of its uses: doubling a value doubles the text
        if (t.s.size() > kMaxText)
            fail("limit", "the text's meaning is too long to be written down", {},
                 "use fewer operations on the scores");
        pool_.meter().spend(1 + t.s.size() / 16);
        done_.emplace(e, t);
        return t;
    }

    std::string call(const std::string& name, Expr e) {
        std::string out = name + "(";
        for (std::size_t k = 0; k < e->args.size(); ++k) out += (k ? ", " : "") + print(e->args[k]).s;
        return out + ")";
    }

    Text make(Expr e) {
        static constexpr const char* names[] = {"b", "h", "i", "j", "c", "d"};
        switch (e->kind) {
        case Kind::Const:
            if (e->type == Type::Bool) return {e->integer != 0 ? "true" : "false"};
            if (e->type == Type::Int) return {std::to_string(e->integer), e->integer < 0 ? 3 : 5};
            return {number(e->real), e->real < 0 ? 3 : 5};
        case Kind::Index: return {e->number < 6 ? names[e->number] : fmt::format("v{}", e->number)};
        case Kind::Bound: return {fmt::format("r{}", e->number)};
        case Kind::Dim:
            return {dims::is_input(e->number)
                        ? fmt::format("size({}, {})", label_(dims::input(e->number)), dims::axis(e->number))
                        : dims::name(e->number)};
        case Kind::Arg: return {label_(e->number)};
        case Kind::Load: {
            if (e->number == kScore) return {"s"};
            const std::string name = e->number == 0         ? "q"
                                     : e->number == 1       ? "k"
                                     : e->number == 2       ? "v"
                                     : e->number >= kLse    ? fmt::format("lse{}", e->number - kLse)
                                     : e->number >= kOutput ? fmt::format("o{}", e->number - kOutput)
                                                            : label_(e->number);
            if (e->number >= kOutput) { // at its own place, unless a reduction moved the column
                const bool own = e->number >= kLse || e->args[3]->kind == Kind::Index;
                return {own ? name : name + "[" + print(e->args[3]).s + "]"};
            }
            std::string out = name + "[";
            for (std::size_t k = 0; k < e->args.size(); ++k) out += (k ? ", " : "") + print(e->args[k]).s;
            return {out + "]"};
        }
        case Kind::Table: {
            const ConstTable& t = pool_.table(e->number);
            std::string out = "table(";
            for (std::size_t k = 0; k < t.values.size(); ++k) out += (k ? " " : "") + number(t.values[k]);
            out += ")[";
            for (std::size_t k = 0; k < e->args.size(); ++k) out += (k ? ", " : "") + print(e->args[k]).s;
            return {out + "]"};
        }
        case Kind::Sum: return {sum(terms(e), e->type == Type::Int ? static_cast<double>(e->integer) : e->real), 3};
        case Kind::Product: {
            std::vector<std::string> f;
            for (std::size_t k = 0; k < e->args.size(); ++k) {
                std::string s = wrap(print(e->args[k]), 5);
                if (e->den[k] != 1)
                    s += fmt::format("^({}/{})", e->num[k], e->den[k]);
                else if (e->num[k] != 1)
                    s += fmt::format("^{}", e->num[k]);
                f.push_back(std::move(s));
            }
            std::sort(f.begin(), f.end());
            return {join(f, "*"), 4};
        }
        case Kind::FloorDiv:
            if (debug_text(e) == "(i1 // (Hq // Hk))") return {"kv"};
            return {wrap(print(e->args[0]), 5) + " // " + wrap(print(e->args[1]), 5), 4};
        case Kind::Mod: return {wrap(print(e->args[0]), 5) + " % " + wrap(print(e->args[1]), 5), 4};
        case Kind::Min:
        case Kind::Max: return {(e->kind == Kind::Min ? "min(" : "max(") + join(sorted(e->args, 0), ", ") + ")"};
        case Kind::Fn: return {call(info(e->op).name, e)};
        case Kind::F32Fn: return {call(std::string("f32.") + info(e->op).name, e)};
        case Kind::Cmp:
            if (e->args.size() == 1) return compare_with_zero(e, false);
            if (e->op == Op::Eq) {
                auto x = sorted(e->args, 3);
                return {x[0] + " == " + x[1], 2};
            }
            return {wrap(print(e->args[0]), 3) + (e->op == Op::Lt ? " < " : " <= ") + wrap(print(e->args[1]), 3), 2};
        case Kind::And: return {join(sorted(e->args, 2), " and "), 1};
        case Kind::Or: return {join(sorted(e->args, 1), " or "), 0};
        case Kind::Not:
            if (e->args[0]->kind == Kind::Cmp && e->args[0]->args.size() == 1 && e->args[0]->op == Op::Eq)
                return compare_with_zero(e->args[0], true);
            return {"not(" + print(e->args[0]).s + ")"};
        case Kind::Select: return {call("select", e)};
        case Kind::Cast: {
            const Expr x = e->args[0];
            if (e->type == Type::Real && x->type == Type::Int)
                return x->kind == Kind::Dim || x->kind == Kind::Arg || is_const(x) ? print(x)
                                                                                   : Text{"real(" + print(x).s + ")"};
            constexpr const char* to[] = {"bool", "int", "f32", "real"};
            return {call(to[static_cast<int>(e->type)], e)};
        }
        case Kind::Reduce: {
            constexpr const char* r[] = {"sum", "max", "min", "any", "all", "prod"};
            return {fmt::format("{}(r{} < {}: {})", r[static_cast<int>(e->reduce)], e->number, print(e->args[1]).s,
                                print(e->args[0]).s)};
        }
        }
        return {"?"};
    }

    ExprPool& pool_;
    std::function<std::string(int)> label_;
    std::unordered_map<Expr, Text> done_;
};

const char* type_name(DType t) {
    return t == DType::Bool ? "bool" : is_float(t) ? "real" : "int";
}

std::string body_of(const Scalar& scalar, const Variant& v, const std::function<std::string(int)>& label) {
    Printer p(*v.pool, label);
    std::string out;
    const auto line = [&](const char* what, const std::string& text) { out += std::string(what) + " " + text + "\n"; };
    for (std::size_t n = 0; n < v.parts.size(); ++n) {
        const Part& x = v.parts[n];
        out += fmt::format("part {}\n", n);
        line("q", p(x.q));
        line("k", p(x.k));
        line("v", p(x.v));
        line("inner", p(x.inner));
        line("keys", p(x.keys));
        line("keep", p(x.keep));
        line("score", x.weights.kind == Weights::Kind::Softmax ? p(x.score) : "s");
        switch (x.weights.kind) {
        case Weights::Kind::Softmax: {
            std::vector<std::string> extra;
            for (const Expr e : x.weights.extra) extra.push_back(p(e));
            std::sort(extra.begin(), extra.end());
            std::string list;
            for (const auto& e : extra) list += (list.empty() ? " extra " : ", ") + e;
            line("weights", "softmax" + list);
            break;
        }
        case Weights::Kind::Pointwise: line("weights", "pointwise " + p(x.weights.value)); break;
        case Weights::Kind::Ratio:
            line("weights", "ratio " + p(x.weights.value) + (x.weights.rest ? " rest " + p(x.weights.rest) : ""));
            break;
        }
        if (x.gain) line("gain", p(x.gain));
        constexpr const char* empties[] = {"never", "zero", "nan", "uniform", "other"};
        line("empty", empties[static_cast<int>(x.empty)]);
    }
    line("out", p(v.out));
    if (v.lse) line("lse", p(v.lse));
    line("heads", p(scalar.out[0].shape[1]));
    line("columns", p(scalar.out[0].shape[3]));
    return out;
}

std::vector<int> used_inputs(const std::vector<Expr>& roots) {
    std::set<int> used;
    std::set<Expr> seen;
    const auto visit = [&](auto&& self, Expr e) -> void {
        if (!e || !seen.insert(e).second) return;
        if ((e->kind == Kind::Load || e->kind == Kind::Arg) && e->number >= 3 && e->number < kScore)
            used.insert(e->number);
        if (e->kind == Kind::Dim && dims::is_input(e->number) && dims::input(e->number) >= 3)
            used.insert(dims::input(e->number));
        for (const Expr a : e->args) self(self, a);
    };
    for (const Expr e : roots) visit(visit, e);
    return {used.begin(), used.end()};
}

// Numbers for inputs that do not hang on what the text calls them or lists first: by type and rank, then by where the
// text without their names first shows them; among equals the numbering that gives the least text.
std::vector<int> order_of(const Scalar& scalar, const std::vector<int>& used,
                          const std::function<std::string(const std::function<std::string(int)>&)>& body) {
    struct Key {
        std::size_t place;
        std::string text;
        int input;
    };
    std::vector<Key> keys;
    for (const int n : used) {
        const auto blind = [&](int other) {
            const Input& x = scalar.inputs[static_cast<std::size_t>(other)];
            return other == n ? std::string("@") : fmt::format("?{}{}", type_name(x.dtype), x.rank);
        };
        std::string t = body(blind);
        const std::size_t place = t.find('@');
        keys.push_back({place, std::move(t), n});
    }
    std::stable_sort(keys.begin(), keys.end(),
                     [](const Key& a, const Key& b) { return std::tie(a.place, a.text) < std::tie(b.place, b.text); });
    std::vector<int> order;
    for (const Key& k : keys) order.push_back(k.input);
    // ties
    std::size_t orders = 1;
    std::vector<std::pair<std::size_t, std::size_t>> groups;
    for (std::size_t k = 0; k < keys.size();) {
        std::size_t m = k + 1;
        while (m < keys.size() && keys[m].text == keys[k].text) ++m;
        if (m - k > 1) {
            groups.emplace_back(k, m);
            for (std::size_t f = 2; f <= m - k; ++f) orders *= f;
        }
        k = m;
    }
    if (groups.empty() || orders > kMaxOrders) return order;
    const auto text_of = [&](const std::vector<int>& o) {
        return body([&](int n) { return "x" + std::to_string(std::find(o.begin(), o.end(), n) - o.begin()); });
    };
    std::vector<int> best = order;
    std::string least = text_of(order);
    const auto search = [&](auto&& self, std::size_t g) -> void {
        if (g == groups.size()) {
            const std::string t = text_of(order);
            if (t < least) least = t, best = order;
            return;
        }
        const auto begin = order.begin() + static_cast<std::ptrdiff_t>(groups[g].first),
                   end = order.begin() + static_cast<std::ptrdiff_t>(groups[g].second);
        std::sort(begin, end);
        do self(self, g + 1);
        while (std::next_permutation(begin, end));
    };
    search(search, 0);
    return best;
}

std::string with_inputs(const Scalar& scalar, const char* version, const std::vector<int>& order,
                        const std::function<std::string(const std::function<std::string(int)>&)>& body) {
    std::string out = std::string(version) + "\n";
    for (std::size_t k = 0; k < order.size(); ++k) {
        const Input& x = scalar.inputs[static_cast<std::size_t>(order[k])];
        out += fmt::format("in x{} {} {}\n", k, type_name(x.dtype), x.rank);
    }
    return out +
           body([&](int n) { return "x" + std::to_string(std::find(order.begin(), order.end(), n) - order.begin()); });
}

} // namespace

void write_text(const Scalar& scalar, Variant& v) {
    v.heads = scalar.out[0].shape[1];
    v.columns = scalar.out[0].shape[3];
    std::vector<Expr> roots{v.out, v.lse, scalar.out[0].shape[1], scalar.out[0].shape[3]};
    for (const Part& p : v.parts) {
        for (const Expr e : {p.q, p.k, p.v, p.inner, p.keys, p.score, p.keep, p.weights.value, p.weights.rest, p.gain})
            roots.push_back(e);
        roots.insert(roots.end(), p.weights.extra.begin(), p.weights.extra.end());
    }
    const auto body = [&](const std::function<std::string(int)>& label) { return body_of(scalar, v, label); };
    v.order = order_of(scalar, used_inputs(roots), body);
    v.text = with_inputs(scalar, "cubridge-variant 1", v.order, body);
}

std::string program_text(const Scalar& scalar) {
    std::vector<Expr> roots;
    for (const ScalarOutput& o : scalar.out) {
        roots.push_back(o.body);
        roots.insert(roots.end(), o.shape.begin(), o.shape.end());
    }
    const auto body = [&](const std::function<std::string(int)>& label) {
        Printer p(*scalar.pool, label);
        std::string out;
        for (const ScalarOutput& o : scalar.out) {
            out += "shape";
            for (const Expr e : o.shape) out += " " + p(e) + ";";
            out += "\nvalue " + p(o.body) + "\n";
        }
        return out;
    };
    return with_inputs(scalar, "cubridge-program 1", order_of(scalar, used_inputs(roots), body), body);
}

} // namespace cubridge::ir::variant
