// Statements of one frame: control, bindings, stores, effects. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/compile.h"
#include <algorithm>

namespace cubridge::ir::cuir {
namespace {

using syntax::Kind;
using syntax::Node;
using K = Statement::Kind;
using Do = Step::Do;

/// Compiles the statements of one frame.
class BlockCompiler {
public:
    BlockCompiler(Code& code, KernelCode& kernel, Names& common, Names* local, Where where)
        : code_(code), own_(local ? *local : common), exprs_(code, kernel, common, local), where_(where) {}

    Block block(const std::vector<Statement>& statements) {
        Block out;
        for (std::size_t k = 0; k < statements.size(); ++k) {
            const auto& s = statements[k];
            try {
                if (s.kind == K::Else) {
                    if (out.empty() || k == 0 || statements[k - 1].kind != K::If)
                        fail("static", "an else follows an if");
                    out.back().other = block(s.body);
                } else if (s.kind != K::Def && s.kind != K::With) {
                    out.push_back(step(s));
                } else if (where_ != Where::Prelude) {
                    fail("static", "defs and roles stand in the kernel itself");
                }
            } catch (const Failure& f) {
                code_.findings.push_back(
                    {f.error.kind, "", s.line, 0,
                     "`" + line_of(s) + "`: " + f.error.message + (f.error.hint.empty() ? "" : "; " + f.error.hint)});
                out.emplace_back().source = &s; // keeps an else in its place
            }
        }
        return out;
    }

private:
    Step step(const Statement& s) {
        Step out;
        out.source = &s;
        out.line = s.line;
        const Node& node = *s.node;
        switch (s.kind) {
        case K::If:
            out.what = Do::If;
            out.args = {exprs_.compile(*node.items[0])};
            out.body = block(s.body);
            break;
        case K::While:
            out.what = Do::While;
            out.args = {exprs_.compile(*node.items[0])};
            out.body = block(s.body);
            break;
        case K::For:
            out.what = Do::For;
            out.target = target(*node.items[0]);
            out.args = {iteration(*node.items[1])};
            out.body = block(s.body);
            break;
        default: simple(out, node); break;
        }
        return out;
    }

    void simple(Step& out, const Node& node) {
        switch (node.kind) {
        case Kind::Assign: assign(out, node); break;
        case Kind::AugAssign: augmented(out, node); break;
        case Kind::ExprStmt: effect(out, *node.items[0]); break;
        case Kind::Return:
            if (where_ != Where::Def) fail("static", "only a def returns");
            out.what = Do::Return;
            if (!node.items.empty() && node.items[0]) out.args = {exprs_.compile(*node.items[0])};
            break;
        case Kind::Break: out.what = Do::Break; break;
        case Kind::Pass: out.what = Do::Pass; break;
        case Kind::Assert:
            out.what = Do::Assert;
            out.args = {exprs_.compile(*node.items[0])};
            break;
        default: fail("static", "this statement does not exist in CuIR");
        }
    }

    Target target(const Node& node) {
        Target out;
        if (node.kind == Kind::Name) {
            if (std::find(own_.storage.begin(), own_.storage.end(), node.text) != own_.storage.end())
                fail("static", "`" + node.text + "` is storage; assigning a name never writes it", node.span,
                     "write " + node.text + "[:] = ...");
            out.slot = own_.slot(node.text);
        } else if (node.kind == Kind::Tuple) {
            for (const auto& item : node.items) out.items.push_back(target(*item));
        } else {
            fail("static", "only a name or a tuple of names can be bound here", node.span);
        }
        return out;
    }

    /// What a name is given: also storage, barriers and channels.
    const Expr* given(const Node& node, const Node& name) {
        for (const char* maker : {"alloc", "barrier", "named_barrier", "channel"}) {
            if (!is_call_of(node, maker)) continue;
            if (name.kind != Kind::Name) fail("static", std::string("`") + maker + "` is given one name", node.span);
            return made(node, maker, name.text);
        }
        if (node.kind == Kind::Tuple && name.kind == Kind::Tuple && node.items.size() == name.items.size()) {
            std::vector<const Expr*> items;
            for (std::size_t k = 0; k < node.items.size(); ++k) items.push_back(given(*node.items[k], *name.items[k]));
            auto& e = code_.exprs.emplace_back();
            e.form = Expr::Form::Tuple;
            e.node = &node;
            e.args = std::move(items);
            return &e;
        }
        return exprs_.compile(node);
    }

    const Expr* made(const Node& node, std::string_view maker, const std::string& name) {
        const bool prelude = where_ == Where::Prelude;
        if (maker == "alloc") {
            const Node* space = node.items.size() > 1 ? node.items[1].get() : nullptr;
            const std::string in = space && space->kind == Kind::Name ? space->text : "";
            if (in == "shared" ? !prelude : in == "register" ? where_ != Where::Role : true)
                fail("static",
                     "shared storage is allocated in the prelude, registers in a role, workspace before the kernels",
                     node.span);
            if (node.items.size() != 4 || !node.keywords.empty())
                fail("static", "alloc takes a space, extents and a type", node.span);
            auto& e = code_.exprs.emplace_back();
            e.form = Expr::Form::Call;
            e.builtin = Builtin::Alloc;
            e.node = &node;
            e.name = name;
            e.slot = in == "register" ? 1 : 0;
            e.args = {nullptr, exprs_.compile(*node.items[2]), exprs_.compile(*node.items[3])};
            own_.storage.push_back(name);
            return &e;
        }
        if (!prelude) fail("static", "barriers and channels are made in the prelude", node.span);
        const auto* e = exprs_.builtin(node, *find_builtin(maker));
        code_.exprs.back().name = name;
        return e;
    }

    void assign(Step& out, const Node& node) {
        if (node.items.size() != 2) fail("static", "one assignment a statement", node.span);
        const Node &to = *node.items[0], &value = *node.items[1];
        if (is_call_of(value, "take")) {
            out.what = Do::Take;
            out.builtin = Builtin::Take;
            out.args = exprs_.builtin(value, *find_builtin("take"))->args;
            out.target = target(to);
        } else if (to.kind == Kind::Subscript) {
            out.what = Do::Store;
            out.args = {exprs_.compile(to), exprs_.compile(value)};
        } else {
            out.what = Do::Assign;
            out.target = target(to);
            out.args = {given(value, to)};
        }
    }

    void augmented(Step& out, const Node& node) {
        auto sum = std::make_shared<Node>();
        sum->kind = Kind::Binary;
        sum->span = node.span;
        sum->text = node.text;
        sum->items = node.items;
        const auto* value = exprs_.compile(*sum);
        code_.made.push_back(sum);
        if (node.items[0]->kind == Kind::Name) {
            out.what = Do::Assign;
            out.target = target(*node.items[0]);
            out.args = {value};
        } else {
            out.what = Do::Store;
            out.args = {exprs_.compile(*node.items[0]), value};
        }
    }

    void effect(Step& out, const Node& node) {
        const Signature* s =
            node.kind == Kind::Call && node.items[0]->kind == Kind::Name ? find_builtin(node.items[0]->text) : nullptr;
        if (!s || s->builtin < Builtin::Wait)
            fail("static", "this statement does nothing", node.span, "give its value a name");
        if (s->builtin == Builtin::Take) fail("static", "what is taken needs a name", node.span);
        out.what = Do::Effect;
        out.builtin = s->builtin;
        out.args = exprs_.builtin(node, *s)->args;
        if (s->builtin == Builtin::Gemm || s->builtin == Builtin::GemmAsync) {
            if (!out.args[2] && !out.args[3]) fail("static", "a product needs out= or add=", node.span);
            if (s->builtin == Builtin::Gemm && out.args[2] && out.args[3])
                fail("static", "`gemm` has out= or add=, not both", node.span);
            out.accumulates = !out.args[2];
        }
    }

    const Expr* iteration(const Node& node) {
        const Signature* s =
            node.kind == Kind::Call && node.items[0]->kind == Kind::Name ? find_builtin(node.items[0]->text) : nullptr;
        if (!s || s->builtin < Builtin::Range || s->builtin > Builtin::Each)
            fail("static", "a loop goes over range, enumerate, bind, draw, walk or each", node.span);
        if ((s->builtin == Builtin::Each) != (where_ == Where::Map) && s->builtin != Builtin::Range)
            fail("static", std::string("`") + s->name + "` does not stand in this kind of kernel", node.span);
        if (s->builtin != Builtin::Enumerate) return exprs_.builtin(node, *s);
        if (node.items.size() != 2 || !node.keywords.empty())
            fail("static", "enumerate takes what a loop can go over", node.span);
        const auto* inner = iteration(*node.items[1]);
        auto& e = code_.exprs.emplace_back();
        e.form = Expr::Form::Call;
        e.builtin = Builtin::Enumerate;
        e.node = &node;
        e.args = {inner};
        return &e;
    }

    Code& code_;
    Names& own_;
    ExprCompiler exprs_;
    Where where_;
};

} // namespace

bool is_call_of(const Node& node, std::string_view name) {
    return node.kind == Kind::Call && node.items[0]->kind == Kind::Name && node.items[0]->text == name;
}

Block compile_block(Code& code, KernelCode& kernel, Names& common, Names* local, Where where,
                    const std::vector<Statement>& statements) {
    return BlockCompiler(code, kernel, common, local, where).block(statements);
}

} // namespace cubridge::ir::cuir
