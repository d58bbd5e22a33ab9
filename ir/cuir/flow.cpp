// Facts through expressions and statements. Branches are joined, loops run until nothing changes, defs are followed
// where they are called. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/facts.h"
#include <algorithm>
#include <functional>
#include <set>

namespace cubridge::ir::cuir {
namespace {

using Form = Expr::Form;
using Do = Step::Do;
using S = Fact::Statistic;

constexpr int kRounds = 6, kDepth = 8; // of a loop; of calls

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

class Flow : private FactRules {
public:
    Flow(const Code& code, const KernelCode& kernel) : kernel_(kernel) {
        common_.resize(static_cast<std::size_t>(kernel.slots));
        for (std::size_t k = 0; k < kernel.constants.size(); ++k)
            common_[static_cast<std::size_t>(kernel.constants[k].second)] = fact_of(kernel.constant_values[k]);
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

    void found(std::string message) override {
        const Step* at = call_ ? call_ : step_;
        if (!at || !said_.emplace(step_, message).second) return;
        std::string text = "`" + at->text() + "`: " + message;
        if (step_ != at) text += " (line " + std::to_string(step_->line) + ", `" + step_->text() + "`)";
        findings_.push_back({"static", role_, at->line, 0, std::move(text)});
    }

    Fact eval(const Expr& e, Scope& s) {
        switch (e.form) {
        case Form::Constant: return fact_of(e);
        case Form::Local: return (*s.names)[static_cast<std::size_t>(e.slot)];
        case Form::Common: return common_[static_cast<std::size_t>(e.slot)];
        case Form::Elementwise:
        case Form::ElementwiseF32: {
            std::vector<Fact> x;
            for (const auto* a : e.args) x.push_back(eval(*a, s));
            return elementwise(e.op, x);
        }
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
        case Builtin::TanhSmall: return elementwise(Op::Tanh, x);
        case Builtin::LogisticSmall: return elementwise(Op::Sigmoid, x);
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
            f.base = join(join(x[0], x[1]), x[2]).base;
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
