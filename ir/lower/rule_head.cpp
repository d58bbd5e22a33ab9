// A kernel's head: its opening, parameters, constants and workspace. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/dtype.h"
#include "ir/lower/rules.h"

namespace cubridge::ir::lower {

using cuir::Kernel;
using cuir::Statement;
using syntax::Kind;
using syntax::Node;
using syntax::NodePtr;
using K = Statement::Kind;

namespace {

constexpr int kFile = 65536; // registers of an SM

Region param(const Statement& s, const Facts& f) {
    const Variable& v = *f.scope->find(s.name);
    if (v.type.form == Form::Counter) {
        for (const auto& other : f.kernel->head) // a launch has one
            if (other.kind == K::Param && &other != &s && f.scope->find(other.name)->type.form == Form::Counter)
                fail("no_rule", "a kernel has one counter of work items", s.node->span);
        return {"parameter", {"int* const " + s.name + " = args.ticket;"}, {}};
    }
    if (s.name[0] != 'x' || s.name.find_first_not_of("0123456789", 1) != std::string::npos || s.name.size() < 2)
        fail("no_rule", "a parameter that a rule makes is an operand, x0, x1, ...", s.node->span);
    const std::string number = s.name.substr(1), type = c_element(f.derived.empty() ? v.type.element : f.derived);
    if (v.type.form == Form::Operand)
        return {"parameter",
                {"const Operand<" + type + ", " + std::to_string(v.type.extents.size()) + "> " + s.name +
                 "(args.operand[" + number + "], b);"},
                {}};
    return {"parameter",
            {std::string("const ") + c_name(v.type.elem) + " " + s.name + " = Operand<" + type + ", 0>(args.operand[" +
             number + "], b)();"},
            {}};
}

/// Constants are the main kernel's: other kernels see the same workspace, but not its names.
NodePtr with_values(const NodePtr& node, const std::map<std::string, std::int64_t>& values) {
    auto out = std::make_shared<Node>(*node);
    if (const auto v = known_int(*node, values)) {
        *out = Node{};
        out->kind = Kind::Int;
        out->span = node->span;
        out->integer = *v;
        return out;
    }
    for (auto& i : out->items)
        if (i) i = with_values(i, values);
    return out;
}

} // namespace

std::string launch_bounds(const Resources& r) {
    const int registers = (r.registers + 7) / 8 * 8, used = registers * r.threads;
    const int ctas = used > 0 && used <= kFile ? kFile / used : 1;
    return "__launch_bounds__(" + std::to_string(r.threads) + ", " + std::to_string(ctas) + ")";
}

bool names_bounds(const Lines& region) {
    for (const auto& line : region)
        if (const auto at = line.find("__launch_bounds__("); at != line.npos)
            return line.find_first_of("0123456789", at) == at + std::string_view("__launch_bounds__(").size();
    return false;
}

Lines constants_block(const Kernel& kernel, const cuir::Program& program) {
    std::string integers;
    Lines out;
    Scope sizes;
    for (const char* n : {"B", "Hq", "Hk", "Sq", "Sk"}) sizes.variables[n].type = scalar(Elem::Int, true);
    const Expressions x(sizes);
    const auto values = program.main() != nullptr ? int_constants(*program.main()) : int_constants(kernel);
    bool constants = false;
    for (const auto& p : kernel.head.back().node->params) {
        if (p.form == syntax::Param::Form::Bar) constants = true;
        if (p.form == syntax::Param::Form::Bar || !constants) continue;
        const Node& value = *p.fallback;
        if (value.kind == Kind::Name && value.text != "inf") {
            out.push_back("using " + p.name + " = " + c_element(value.text) + ";");
            continue;
        }
        const Type t = x.type(value);
        const std::string text = p.name + " = " + x.print(value, t.elem);
        if (t.elem == Elem::Int)
            integers += (integers.empty() ? "constexpr int " : ", ") + text;
        else
            out.push_back(std::string("constexpr ") + c_name(t.elem) + " " + text + ";");
    }
    if (!integers.empty()) out.insert(out.begin(), integers + ";");
    if (!program.storage.empty()) out.push_back("i64 workspace_end = 0;");
    for (const auto& s : program.storage) {
        const Node& call = *s.node->items.back();
        const auto shape = parts(call.items[2]);
        std::string extents;
        for (const auto& axis : shape) { // heads are counted from the model's first
            const bool heads = axis->kind == Kind::Name;
            if (heads && axis->text == "Hq")
                extents += ", args.head_begin + Hq";
            else if (heads && axis->text == "Hk")
                extents += ", args.head_begin / (Hq / Hk) + Hk";
            else
                extents += ", " + x.print(*with_values(axis, values), Elem::Int);
        }
        out.push_back("const Work<" + c_element(call.items[3]->text) + ", " + std::to_string(shape.size()) + "> " +
                      s.node->items[0]->text + "(args.workspace, workspace_end" + extents + ");");
    }
    return out;
}

Region print_head(const Statement& s, const Analysis& analysis) {
    const Facts& f = analysis.of(s);
    switch (s.kind) {
    case K::Decorator: return {"launch", {}, {}};
    case K::Kernel:
        if (!f.kernel->is_map()) fail("no_rule", "a kernel with roles is not made by a rule");
        return {"map",
                {"extern \"C\" __global__ void __launch_bounds__(64) " + s.name +
                     "(const __grid_constant__ cb_args args) {",
                 "    const int B = args.requests, Hq = args.heads_q, Hk = args.heads_kv, Sq = args.max_q;",
                 "    int b = 0, Sk = args.max_kv;"},
                {"}"}};
    case K::Param: return param(s, f);
    default: fail("no_rule", "no rule prints this line of a kernel's head");
    }
}

Region print_region(const Statement& s, const Analysis& analysis) {
    return located(s, [&]() -> Region {
        if (s.opens_block()) return print_opening(s, analysis);
        if (s.kind == K::Simple) return print_simple(s, analysis);
        return print_head(s, analysis);
    });
}

} // namespace cubridge::ir::lower
