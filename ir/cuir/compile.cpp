// Statements, kernels and programs: from a tree of text to code. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/compile.h"
#include <algorithm>
#include <functional>

namespace cubridge::ir::cuir {
namespace {

using syntax::Kind;
using syntax::Node;
using K = Statement::Kind;
using Do = Step::Do;

constexpr const char* kSizes[] = {"B", "Hq", "Hk", "Sq", "Sk", "D", "Dv"};

bool is_call_of(const Node& node, std::string_view name) {
    return node.kind == Kind::Call && node.items[0]->kind == Kind::Name && node.items[0]->text == name;
}

/// Every name that a block binds, nested blocks included, defs and roles not.
void bound(const Node& target, Names& names) {
    if (target.kind == Kind::Name) names.slot(target.text);
    if (target.kind == Kind::Tuple)
        for (const auto& item : target.items) bound(*item, names);
}

void bound(const std::vector<Statement>& block, Names& names) {
    for (const auto& s : block) {
        if (s.kind == K::Def || s.kind == K::With) continue;
        if (s.kind == K::For || (s.kind == K::Simple && s.node->kind == Kind::Assign)) bound(*s.node->items[0], names);
        if (s.kind == K::Simple && s.node->kind == Kind::AugAssign) bound(*s.node->items[0], names);
        bound(s.body, names);
    }
}

/// Compiles the statements of one frame.
class BlockCompiler {
public:
    enum class Where : std::uint8_t { Prelude, Role, Def, Map };

    BlockCompiler(Code& code, KernelCode& kernel, Names& common, Names* local, Where where)
        : code_(code), kernel_(kernel), own_(local ? *local : common), exprs_(code, kernel, common, local),
          where_(where) {}

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

    const Expr* expression(const Node& node) { return exprs_.compile(node); }
    const Expr* builtin(const Node& node, std::string_view name) { return exprs_.builtin(node, *find_builtin(name)); }

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
    KernelCode& kernel_;
    Names& own_;
    ExprCompiler exprs_;
    Where where_;
};

class ProgramCompiler {
public:
    explicit ProgramCompiler(Code& code) : code_(code) {}

    void program() {
        for (const auto& s : code_.program->storage) guarded(s, [&] { storage(s); });
        for (const auto& k : code_.program->kernels) kernel(k);
    }

private:
    template <class F> void guarded(const Statement& s, F f) {
        try {
            f();
        } catch (const Failure& e) {
            code_.findings.push_back({e.error.kind, "", s.line, 0, "`" + line_of(s) + "`: " + e.error.message});
        }
    }

    void storage(const Statement& s) {
        const Node& node = *s.node;
        const auto wrong = [&] { fail("static", "storage is `T = alloc(workspace, (B, Sk), i32)`"); };
        if (node.items.size() != 2 || node.items[0]->kind != Kind::Name || !is_call_of(*node.items[1], "alloc"))
            wrong();
        const Node& call = *node.items[1];
        if (call.items.size() != 4 || call.items[1]->text != "workspace" || call.items[3]->kind != Kind::Name) wrong();
        StorageCode out;
        out.name = node.items[0]->text;
        out.source = &s;
        const auto type = dtype_from_short(call.items[3]->text);
        if (!type) fail("static", "`" + call.items[3]->text + "` is no type of storage");
        out.type = *type;
        Names sizes;
        for (const char* size : kSizes) {
            sizes.slot(size);
            out.sizes.emplace_back(size);
        }
        KernelCode nobody;
        BlockCompiler compiler(code_, nobody, sizes, nullptr, BlockCompiler::Where::Prelude);
        if (call.items[2]->kind == Kind::Tuple)
            for (const auto& e : call.items[2]->items) out.extents.push_back(compiler.expression(*e));
        else
            out.extents.push_back(compiler.expression(*call.items[2]));
        code_.storage.push_back(std::move(out));
    }

    void kernel(const Kernel& source) {
        code_.kernels.emplace_back();
        auto& out = code_.kernels.back();
        out.source = &source;
        out.name = source.name();
        out.map = source.is_map();
        Names common;
        for (const char* size : kSizes) common.slot(size);
        constants(source, out, common);
        for (const char* size : kSizes) out.sizes.emplace_back(size, common.slot(size));
        for (const auto& s : source.head)
            if (s.kind == K::Param) guarded(s, [&] { param(s, out, common); });
        for (std::size_t k = 0; k < code_.storage.size(); ++k)
            out.workspace.emplace_back(static_cast<int>(k), common.slot(code_.storage[k].name));
        bound(source.body, common);
        declare(source, out);
        using Where = BlockCompiler::Where;
        BlockCompiler prelude(code_, out, common, nullptr, out.map ? Where::Map : Where::Prelude);
        out.prelude = prelude.block(source.body);
        bodies(source, out, common);
        out.slots = static_cast<int>(common.slots.size());
        out.names.resize(common.slots.size());
        for (const auto& [name, slot] : common.slots) out.names[static_cast<std::size_t>(slot)] = name;
    }

    void constants(const Kernel& source, KernelCode& out, Names& common) {
        const auto& head = source.head.back();
        bool after = false;
        for (const auto& p : head.node->params) {
            if (p.form == syntax::Param::Form::Bar) {
                after = true;
            } else if (after) {
                guarded(head, [&] {
                    if (p.name == "elem") {
                        const auto type =
                            p.fallback->kind == Kind::Name ? dtype_from_short(p.fallback->text) : std::nullopt;
                        if (!type) fail("static", "`elem` is a type");
                        out.element = *type;
                        return;
                    }
                    const Node* v = p.fallback.get();
                    const bool negative = v->kind == Kind::Unary && v->text == "-";
                    if (negative) v = v->items[0].get();
                    Value value;
                    if (v->kind == Kind::Int)
                        value = Value::integer(negative ? -v->integer : v->integer);
                    else if (v->kind == Kind::Float)
                        value = Value::number(negative ? -v->real : v->real);
                    else
                        fail("static", "the constant `" + p.name + "` is a number");
                    out.constants.emplace_back(p.name, common.slot(p.name));
                    out.constant_values.push_back(value);
                });
            }
        }
    }

    void param(const Statement& s, KernelCode& out, Names& common) {
        ParamCode p;
        p.name = s.name;
        p.slot = common.slot(s.name);
        p.source = &s;
        const Node* type = s.node.get();
        if (type->kind == Kind::Subscript) {
            p.tensor = true;
            const auto* index = type->items[1].get();
            std::vector<const Node*> extents;
            if (index->kind == Kind::Tuple)
                for (const auto& e : index->items) extents.push_back(e.get());
            else
                extents.push_back(index);
            BlockCompiler compiler(code_, out, common, nullptr, BlockCompiler::Where::Prelude);
            for (const auto* e : extents) { // a size of its own is whatever the operand has
                const bool known = e->kind != Kind::Name || common.slots.count(e->text) != 0;
                p.extents.push_back(known ? compiler.expression(*e) : nullptr);
            }
            type = type->items[0].get();
        }
        if (type->kind == Kind::Name && type->text == "counter" && !p.tensor) {
            p.counter = true;
        } else {
            const auto t = type->kind == Kind::Name ? type_named(type->text, out) : std::nullopt;
            if (!t) fail("static", "`" + source_of(*s.node) + "` is no type of a parameter");
            p.type = *t;
            p.element = type->text == "elem";
        }
        out.params.push_back(std::move(p));
    }

    void declare(const Kernel& source, KernelCode& out) {
        for (const auto& s : source.body) {
            if (s.kind != K::Def) continue;
            Def def;
            def.name = s.name;
            def.source = &s;
            for (const auto& p : s.node->params) def.params.push_back(p.name);
            out.defs.push_back(std::move(def));
        }
    }

    void bodies(const Kernel& source, KernelCode& out, Names& common) {
        std::size_t next = 0;
        for (const auto& s : source.body) {
            if (s.kind == K::Def) {
                auto& def = out.defs[next++];
                Names local;
                for (const auto& p : def.params) local.slot(p);
                bound(s.body, local);
                BlockCompiler compiler(code_, out, common, &local, BlockCompiler::Where::Def);
                def.body = compiler.block(s.body);
                def.slots = static_cast<int>(local.slots.size());
            } else if (s.kind == K::With) {
                guarded(s, [&] { role(s, out, common); });
            }
        }
        if (!out.map && out.roles.empty())
            code_.findings.push_back({"static", "", source.head[1].line, 0, "`" + out.name + "`: a kernel has a role"});
    }

    void role(const Statement& s, KernelCode& out, Names& common) {
        const Node& node = *s.node;
        if (out.map) fail("static", "a @map kernel has no roles");
        if (node.items.size() != 1 || !is_call_of(*node.items[0], "role"))
            fail("static", "a role is `with role(\"math\", warps=4, registers=240) as g:`");
        RoleCode role;
        role.source = &s;
        Names local;
        if (!node.names.empty() && !node.names[0].empty()) role.index_slot = local.slot(node.names[0]);
        bound(s.body, local);
        BlockCompiler head(code_, out, common, nullptr, BlockCompiler::Where::Prelude);
        const auto args = head.builtin(*node.items[0], "role")->args;
        if (args[0]->node->kind != Kind::String) fail("static", "a role has a name");
        role.name = args[0]->node->text;
        role.warps = args[1];
        role.warpgroups = args[2];
        role.registers = args[3];
        if ((role.warps != nullptr) == (role.warpgroups != nullptr)) fail("static", "a role has warps= or warpgroups=");
        BlockCompiler body(code_, out, common, &local, BlockCompiler::Where::Role);
        role.body = body.block(s.body);
        role.slots = static_cast<int>(local.slots.size());
        out.roles.push_back(std::move(role));
    }

    Code& code_;
};

bool has_lines(const std::vector<Statement>& block) {
    return std::all_of(block.begin(), block.end(), [](const auto& s) { return s.line > 0 && has_lines(s.body); });
}

bool has_lines(const Program& p) {
    return has_lines(p.storage) && std::all_of(p.kernels.begin(), p.kernels.end(),
                                               [](const auto& k) { return has_lines(k.head) && has_lines(k.body); });
}

} // namespace

std::unique_ptr<const Code> compile(const Program& program) {
    auto code = std::make_unique<Code>();
    auto own = std::make_shared<Program>(program);
    if (!has_lines(program)) {
        if (auto again = read(print(program)))
            *own = std::move(*again);
        else
            code->findings.push_back({"static", "", again.error().span.line, 0, again.error().message});
    }
    code->program = own;
    if (code->findings.empty()) ProgramCompiler(*code).program();
    return code;
}

} // namespace cubridge::ir::cuir
