// Facts through expressions and statements. Branches are joined, loops run until nothing changes, defs are followed
// where they are called. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/flow.h"
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

namespace cubridge::ir::cuir {
namespace {

using Form = Expr::Form;
using Do = Step::Do;
using S = Fact::Statistic;

constexpr int kRounds = 6, kDepth = 8; // of a loop; of calls
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool known(int base) {
    return base != Fact::kConstant && base != Fact::kUnknown;
}

int joined(int a, int b) {
    if (a == Fact::kConstant || a == b) return b;
    return b == Fact::kConstant ? a : Fact::kUnknown;
}

S joined(S a, S b) {
    if (a == S::Zero || a == b) return b;
    return b == S::Zero ? a : S::None;
}

Fact join(const Fact& a, const Fact& b) {
    if (a.unset) return b;
    if (b.unset) return a;
    Fact out;
    out.statistic = joined(a.statistic, b.statistic);
    out.base = joined(a.base, b.base);
    out.factor = a.factor || b.factor;
    out.score = a.score || b.score;
    out.masked = a.masked || b.masked;
    out.weight = a.weight || b.weight;
    out.loaded = a.loaded || b.loaded;
    out.minus_inf = a.minus_inf && b.minus_inf;
    out.vote = a.vote || b.vote;
    if (a.items.size() == b.items.size())
        for (std::size_t k = 0; k < a.items.size(); ++k) out.items.push_back(join(a.items[k], b.items[k]));
    return out;
}

using Frame = std::vector<Fact>;

void join(Frame& into, const Frame& from) {
    for (std::size_t k = 0; k < into.size(); ++k) into[k] = join(into[k], from[k]);
}

Fact unset() {
    Fact f;
    f.unset = true;
    return f;
}

Fact unknown(bool vote = false) {
    Fact f;
    f.base = Fact::kUnknown;
    f.vote = vote;
    return f;
}

/// Functions that take -inf to something that is not 0 weight: of a score they come before the mask.
bool bends(Op op) {
    switch (op) {
    case Op::Tanh:
    case Op::Sin:
    case Op::Cos:
    case Op::Tan:
    case Op::Atan:
    case Op::Erf:
    case Op::Abs:
    case Op::Sqrt:
    case Op::Rsqrt:
    case Op::Log:
    case Op::Log2:
    case Op::Log10:
    case Op::Log1p:
    case Op::Pow: return true;
    default: return false;
    }
}

class Flow {
public:
    Flow(const Code& code, const KernelCode& kernel) : code_(code), kernel_(kernel) {
        common_.resize(static_cast<std::size_t>(kernel.slots));
        for (std::size_t k = 0; k < kernel.constants.size(); ++k)
            common_[static_cast<std::size_t>(kernel.constants[k].second)] = number(kernel.constant_values[k]);
        for (const auto& p : kernel.params) {
            auto& f = common_[static_cast<std::size_t>(p.slot)];
            if (is_float(p.type)) f.base = 0;
            f.loaded = p.tensor && is_float(p.type);
        }
        for (const auto& [number, slot] : kernel.workspace) {
            auto& f = common_[static_cast<std::size_t>(slot)];
            f.loaded = is_float(code.storage[static_cast<std::size_t>(number)].type);
            if (f.loaded) f.base = Fact::kUnknown; // a map kernel may have changed it
        }
    }

    std::vector<Finding> run() {
        Scope prelude{&common_, false, false};
        block(kernel_.prelude, prelude);
        for (const auto& role : kernel_.roles) {
            role_ = role.name;
            Frame locals(static_cast<std::size_t>(role.slots), unset());
            Scope scope{&locals, false, true};
            block(role.body, scope);
            role_.clear();
        }
        return std::move(findings_);
    }

private:
    struct Scope {
        Frame* names;
        bool under_vote;
        bool is_role;
        Fact result{};
        bool returned = false;
    };

    void found(std::string message) {
        const Step* at = call_ ? call_ : step_;
        if (!at || !said_.emplace(step_, message).second) return;
        std::string text = "`" + at->text() + "`: " + message;
        if (step_ != at) text += " (line " + std::to_string(step_->line) + ", `" + step_->text() + "`)";
        findings_.push_back({"static", role_, at->line, 0, std::move(text)});
    }

    static Fact number(const Value& v) {
        Fact f;
        if (v.tag != Value::Tag::Real) return f;
        const double x = std::fabs(v.real);
        if (x == 0) f.statistic = S::Zero;
        f.minus_inf = v.real == -kInfinity;
        f.factor = x != 0 && x != 1 && x != 2 && x != kInfinity;
        return f;
    }

    Fact constant(const Expr& e) {
        if (e.node && e.node->kind == syntax::Kind::Name) {
            Fact f;
            if (e.node->text == "LOG2E") f.base = 1;
            if (e.node->text == "LN2") f.base = -1;
            return f;
        }
        return number(e.constant);
    }

    /// Two values that are added, compared, or stand for one another.
    int together(const Fact& a, const Fact& b, const char* how) {
        if (known(a.base) && known(b.base) && a.base != b.base && (a.score || b.score))
            found(std::string(how) + " of a score in base " +
                  (a.base == 1   ? "2"
                   : a.base == 0 ? "e"
                                 : "?") +
                  " and one in base " +
                  (b.base == 1   ? "2"
                   : b.base == 0 ? "e"
                                 : "?") +
                  "; LOG2E or LN2 is missing or too many");
        return joined(a.base, b.base);
    }

    static int product(const Fact& a, const Fact& b, int sign) {
        if (a.base == Fact::kUnknown || b.base == Fact::kUnknown || a.factor || b.factor) return Fact::kUnknown;
        if (!known(a.base) && !known(b.base)) return Fact::kConstant;
        return (known(a.base) ? a.base : 0) + sign * (known(b.base) ? b.base : 0);
    }

    S sum_of(const Fact& a, const Fact& b) {
        const bool pa = a.statistic == S::Partial, pb = b.statistic == S::Partial;
        if (pa && pb) return S::Partial;
        if (pa || pb) {
            if ((pa ? b : a).statistic != S::Zero)
                found(
                    "a partial row statistic is added to a whole value; every thread that holds a share would add it");
            return S::Partial;
        }
        return joined(a.statistic, b.statistic);
    }

    void whole(const Fact& f, const char* where) {
        if (f.statistic == S::Partial || f.statistic == S::Compared)
            found(std::string("a partial row statistic in ") + where + "; complete(x) comes first");
    }

    Fact elementwise(const Expr& e, Scope& s) {
        std::vector<Fact> x;
        for (const auto* a : e.args) x.push_back(eval(*a, s));
        Fact out;
        for (const auto& f : x) {
            out.vote = out.vote || f.vote;
            out.score = out.score || f.score;
            out.masked = out.masked || f.masked;
            out.weight = out.weight || f.weight;
            out.loaded = out.loaded || f.loaded;
        }
        if (out.score) out.loaded = false;
        switch (e.op) {
        case Op::Add:
        case Op::Sub:
            if ((x[0].masked && x[1].loaded) || (x[1].masked && x[0].loaded))
                found("a masked score is modified again; the mask comes last");
            out.base = together(x[0], x[1], e.op == Op::Add ? "the sum" : "the difference");
            out.statistic = sum_of(x[0], x[1]);
            return out;
        case Op::Mul:
        case Op::Div:
            if (x[1].statistic == S::Partial && (e.op == Op::Div || x[0].statistic == S::Partial))
                found("a partial row statistic may only be scaled and added; complete(x) comes first");
            out.base = product(x[0], x[1], e.op == Op::Mul ? 1 : -1);
            if (x[0].statistic == S::Partial || x[1].statistic == S::Partial) out.statistic = S::Partial;
            if (x[0].statistic == S::Zero || x[1].statistic == S::Zero) out.statistic = S::Zero;
            return out;
        case Op::Neg:
            out.base = x[0].base;
            out.statistic = x[0].statistic;
            out.factor = x[0].factor;
            return out;
        case Op::Max:
        case Op::Min:
            whole(x[0], "a maximum or minimum");
            whole(x[1], "a maximum or minimum");
            out.base = together(x[0], x[1], "the maximum or minimum");
            return out;
        case Op::Lt:
        case Op::Le:
        case Op::Gt:
        case Op::Ge:
        case Op::Eq:
        case Op::Ne: {
            together(x[0], x[1], "the comparison");
            Fact test;
            test.vote = out.vote;
            if (x[0].statistic == S::Partial || x[1].statistic == S::Partial) test.statistic = S::Compared;
            return test;
        }
        case Op::Where: {
            if (x[0].statistic == S::Compared) whole(x[0], "a choice");
            Fact chosen = join(x[1], x[2]);
            chosen.base = together(x[1], x[2], "the choice");
            chosen.statistic = sum_of(x[1], x[2]);
            chosen.vote = out.vote;
            chosen.masked = chosen.masked || (x[1].score && x[2].minus_inf) || (x[2].score && x[1].minus_inf);
            return chosen;
        }
        default: break;
        }
        for (const auto& f : x) whole(f, "a function");
        if (x.size() == 1) return function(e.op, x[0], out);
        out.base = Fact::kUnknown;
        return out;
    }

    Fact function(Op op, const Fact& x, Fact out) {
        if (x.masked && x.score && bends(op)) found("a masked score is modified again; the mask comes last");
        if (op == Op::Exp2 || op == Op::Exp) {
            const int needed = op == Op::Exp2 ? 1 : 0;
            if (x.score && known(x.base) && x.base != needed)
                found(op == Op::Exp2 ? "exp2 of a score that was not multiplied by LOG2E once"
                                     : "exp of a score that was multiplied by LOG2E; exp2 it is");
            if (x.score) {
                Fact weight;
                weight.weight = true;
                weight.vote = x.vote;
                return weight;
            }
        }
        if ((op == Op::Log2 || op == Op::Log) && x.weight) {
            Fact f;
            f.score = true;
            f.base = op == Op::Log2 ? 1 : 0;
            return f;
        }
        if (op == Op::Sigmoid) {
            out.masked = out.score = false;
            out.base = Fact::kConstant;
        } else if (op != Op::Tanh || x.base != 0) {
            out.base = x.base == Fact::kConstant && !x.factor ? Fact::kConstant : Fact::kUnknown;
        } else {
            out.base = 0;
        }
        return out;
    }

    Fact eval(const Expr& e, Scope& s) {
        switch (e.form) {
        case Form::Constant: return constant(e);
        case Form::Local: return (*s.names)[static_cast<std::size_t>(e.slot)];
        case Form::Common: return common_[static_cast<std::size_t>(e.slot)];
        case Form::Elementwise:
        case Form::ElementwiseF32: return elementwise(e, s);
        case Form::Conditional: {
            const Fact c = eval(*e.args[0], s);
            Fact out = join(eval(*e.args[1], s), eval(*e.args[2], s));
            out.vote = out.vote || c.vote;
            return out;
        }
        case Form::Tuple: {
            Fact out;
            for (const auto* a : e.args) out.items.push_back(eval(*a, s));
            return out;
        }
        case Form::Amax: {
            Fact f = eval(*e.args[0], s);
            f.masked = false;
            return f;
        }
        case Form::Sum: {
            Fact f = eval(*e.args[0], s);
            if (f.statistic == S::Partial) found("a sum of a sum that is not complete");
            f.statistic = S::Partial;
            return f;
        }
        case Form::Def: {
            std::vector<Fact> args;
            for (const auto* a : e.args) args.push_back(eval(*a, s));
            return call(e.slot, std::move(args), s);
        }
        case Form::Call: return builtin(e, s);
        case Form::Index: {
            Fact f = eval(*e.args[0], s);
            for (std::size_t k = 1; k < e.args.size(); ++k) f.vote = f.vote || eval(*e.args[k], s).vote;
            return f;
        }
        default: { // and, or, not, slices, .T, lists
            Fact out;
            for (const auto* a : e.args)
                if (a) {
                    const Fact f = eval(*a, s);
                    out.vote = out.vote || f.vote;
                }
            return e.form == Form::Transpose ? eval(*e.args[0], s) : out;
        }
        }
    }

    Fact builtin(const Expr& e, Scope& s) {
        std::vector<Fact> x;
        for (const auto* a : e.args) x.push_back(a && e.builtin != Builtin::Alloc ? eval(*a, s) : Fact{});
        Fact out;
        for (const auto& f : x) out.vote = out.vote || f.vote;
        switch (e.builtin) {
        case Builtin::Vote: {
            Fact f;
            f.vote = true;
            return f;
        }
        case Builtin::Full: return x[1];
        case Builtin::Complete: {
            if (x[0].statistic == S::Complete) found("a row statistic is completed twice");
            Fact f = x[0];
            f.statistic = S::Complete;
            return f;
        }
        case Builtin::Clamp: {
            Fact f = x[0];
            whole(f, "a clamp");
            f.base = joined(joined(x[0].base, x[1].base), x[2].base);
            return f;
        }
        case Builtin::Divmod:
        case Builtin::Pick:
            out.items.resize(2);
            for (auto& f : out.items) f.vote = out.vote;
            return out;
        default: return out;
        }
    }

    Fact call(int number, std::vector<Fact> args, const Scope& from) {
        const auto& def = kernel_.defs[static_cast<std::size_t>(number)];
        if (depth_ >= kDepth) {
            Fact f;
            f.base = Fact::kUnknown;
            return f;
        }
        Frame locals = std::move(args);
        locals.resize(static_cast<std::size_t>(def.slots), unset());
        Scope scope{&locals, from.under_vote, false};
        const auto* step = step_;
        const auto* outer = call_;
        if (!call_) call_ = step_;
        ++depth_;
        block(def.body, scope);
        --depth_;
        step_ = step;
        call_ = outer;
        return scope.result;
    }

    void bind(const Target& t, const Fact& f, Scope& s) {
        if (t.items.empty()) {
            if (t.slot < 0) return;
            auto& to = (*s.names)[static_cast<std::size_t>(t.slot)];
            to = f;
            to.unset = false;
            to.vote = to.vote || s.under_vote;
            return;
        }
        for (std::size_t k = 0; k < t.items.size(); ++k)
            bind(t.items[k], f.items.size() == t.items.size() ? f.items[k] : unknown(f.vote), s);
    }

    /// The frame's place of the storage that an expression names; null for what this analysis does not follow.
    Fact* storage(const Expr* e, Scope& s) {
        while (e->form == Form::Index || e->form == Form::Transpose) e = e->args[0];
        if (e->form == Form::Local) return &(*s.names)[static_cast<std::size_t>(e->slot)];
        if (e->form == Form::Common) return &common_[static_cast<std::size_t>(e->slot)];
        return nullptr;
    }

    void product(const Step& step, Scope& s) {
        const Fact a = eval(*step.args[0], s);
        const bool transposed = step.args[1]->form == Form::Transpose;
        Fact out;
        out.score = transposed && !a.weight; // rows of Q with rows of K
        out.base = out.score ? 0 : Fact::kUnknown;
        if (auto* to = storage(step.accumulates ? step.args[3] : step.args[2], s)) *to = out;
    }

    void effect(const Step& step, Scope& s) {
        if (synchronises(step.builtin)) {
            const std::string name = std::string("`") + name_of(step.builtin) + "`";
            if (!s.is_role) found(name + " stands in a def; what synchronises or moves data stands in a role");
            if (s.under_vote) found(name + " under a vote, which the warps of one agent may decide differently");
        }
        if (step.builtin == Builtin::Gemm || step.builtin == Builtin::GemmAsync) return product(step, s);
        for (const auto* a : step.args)
            if (a) eval(*a, s);
        if ((step.builtin == Builtin::Copy || step.builtin == Builtin::CopyAsync) && step.args.size() > 1)
            if (auto* to = storage(step.args[1], s); to && !to->loaded) *to = unknown();
    }

    void block(const Block& statements, Scope& s) {
        for (const auto& step : statements) {
            if (s.returned) return;
            step_ = &step;
            statement(step, s);
        }
    }

    void branch(const Step& step, Scope& s) {
        const Fact c = eval(*step.args[0], s);
        if (c.statistic == S::Compared) whole(c, "a condition");
        const bool vote = s.under_vote;
        s.under_vote = vote || c.vote;
        Frame other = *s.names, before = common_;
        block(step.body, s);
        const bool left = s.returned;
        s.returned = false;
        std::swap(*s.names, other);
        std::swap(common_, before);
        block(step.other, s);
        if (s.returned && !left) {
            std::swap(*s.names, other);
            std::swap(common_, before);
        } else if (!left) {
            join(*s.names, other);
            join(common_, before);
        }
        s.returned = s.returned && left;
        s.under_vote = vote;
    }

    void loop(const Step& step, Scope& s) {
        for (int round = 0; round < kRounds; ++round) {
            const Frame before = *s.names, common = common_;
            step_ = &step;
            const Fact over = step.what == Do::While ? eval(*step.args[0], s) : Fact{};
            if (step.what == Do::For) items(*step.args[0], step.target, s);
            const bool vote = s.under_vote;
            s.under_vote = vote || over.vote;
            block(step.body, s);
            s.under_vote = vote;
            s.returned = false;
            join(*s.names, before);
            join(common_, common);
            if (*s.names == before && common_ == common) break;
        }
    }

    void items(const Expr& e, const Target& target, Scope& s) {
        bool vote = false;
        const Expr* inner = &e;
        while (inner->builtin == Builtin::Enumerate) inner = inner->args[0];
        for (const auto* a : inner->args)
            if (a) vote = vote || eval(*a, s).vote;
        const bool before = s.under_vote;
        s.under_vote = vote;
        const std::function<void(const Target&)> clear = [&](const Target& t) {
            bind(t, Fact{}, s);
            for (const auto& i : t.items) clear(i);
        };
        clear(target);
        s.under_vote = before;
    }

    void statement(const Step& step, Scope& s) {
        switch (step.what) {
        case Do::Assign: bind(step.target, eval(*step.args[0], s), s); break;
        case Do::Take: {
            effect(step, s);
            bind(step.target, Fact{}, s);
            break;
        }
        case Do::Store: {
            Fact f = eval(*step.args[1], s);
            whole(f, "what is stored");
            auto* to = storage(step.args[0], s);
            if (to && !to->loaded) {
                const bool out = step.args[0]->args[0]->form == Form::Common; // shared storage and tensors
                *to = out ? unknown() : f;
            }
            break;
        }
        case Do::Effect: effect(step, s); break;
        case Do::If: branch(step, s); break;
        case Do::For:
        case Do::While: loop(step, s); break;
        case Do::Break:
            if (s.under_vote && s.is_role)
                found("break under a vote, which the warps of one agent may decide differently");
            break;
        case Do::Return:
            if (!step.args.empty()) {
                Fact f = eval(*step.args[0], s);
                f.vote = f.vote || s.under_vote;
                for (auto& i : f.items) i.vote = i.vote || s.under_vote;
                s.result = has_result(s) ? join(s.result, f) : f;
            }
            s.returned = true;
            break;
        case Do::Assert: eval(*step.args[0], s); break;
        case Do::Pass: break;
        }
    }

    static bool has_result(const Scope& s) { return !(s.result == Fact{}); }

    const Code& code_;
    const KernelCode& kernel_;
    Frame common_;
    std::vector<Finding> findings_;
    std::set<std::pair<const Step*, std::string>> said_;
    const Step* step_ = nullptr;
    const Step* call_ = nullptr; ///< the role's statement, inside a def
    std::string role_;
    int depth_ = 0;
};

} // namespace

std::vector<Finding> follow(const Code& code, const KernelCode& kernel) {
    return Flow(code, kernel).run();
}

} // namespace cubridge::ir::cuir
