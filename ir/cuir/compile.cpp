// Kernels and programs: from a tree of text to code. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/compile.h"
#include <algorithm>
#include <functional>

namespace cubridge::ir::cuir {
namespace {

using syntax::Kind;
using syntax::Node;
using K = Statement::Kind;

constexpr const char* kSizes[] = {"B", "Hq", "Hk", "Sq", "Sk", "D", "Dv"};

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
        ExprCompiler compiler(code_, nobody, sizes, nullptr);
        if (call.items[2]->kind == Kind::Tuple)
            for (const auto& e : call.items[2]->items) out.extents.push_back(compiler.compile(*e));
        else
            out.extents.push_back(compiler.compile(*call.items[2]));
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
        out.prelude = compile_block(code_, out, common, nullptr, out.map ? Where::Map : Where::Prelude, source.body);
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
            ExprCompiler compiler(code_, out, common, nullptr);
            for (const auto* e : extents) { // a size of its own is whatever the operand has
                const bool known = e->kind != Kind::Name || common.slots.count(e->text) != 0;
                p.extents.push_back(known ? compiler.compile(*e) : nullptr);
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
                def.body = compile_block(code_, out, common, &local, Where::Def, s.body);
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
        ExprCompiler head(code_, out, common, nullptr);
        const auto args = head.builtin(*node.items[0], *find_builtin("role"))->args;
        if (args[0]->node->kind != Kind::String) fail("static", "a role has a name");
        role.name = args[0]->node->text;
        role.warps = args[1];
        role.warpgroups = args[2];
        role.registers = args[3];
        if ((role.warps != nullptr) == (role.warpgroups != nullptr)) fail("static", "a role has warps= or warpgroups=");
        role.body = compile_block(code_, out, common, &local, Where::Role, s.body);
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
