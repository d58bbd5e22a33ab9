// Facts of statements, and what follows from a kernel's constants and roles. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/facts.h"
#include "ir/lower/expression.h"
#include <algorithm>

namespace cubridge::ir::lower {

using cuir::Kernel;
using cuir::Statement;
using K = Statement::Kind;

const Binding* Facts::result(const std::string& name) const {
    for (const auto& b : results)
        if (b.name == name) return &b;
    return nullptr;
}

std::string Pending::text() const {
    std::string out = std::to_string(copies) + "," + std::to_string(stores) + "," + std::to_string(products);
    for (const auto& r : retired) out += "," + r;
    return out;
}

const Facts& Analysis::of(const Statement& s) const {
    static const Facts none;
    const auto it = facts.find(&s);
    return it == facts.end() ? none : it->second;
}

std::string Analysis::key(const Statement& s) const {
    return std::to_string(static_cast<int>(s.kind)) + " " + cuir::line_of(s) + "\n" + facts_key(s);
}

std::string Analysis::facts_key(const Statement& s) const {
    const Facts& f = of(s);
    std::string out;
    const auto add = [&](char mark, const std::vector<Binding>& list) {
        for (const auto& b : list)
            out +=
                mark + b.name + "=" + b.type.text() + (b.declares ? "d" : "") + (b.constant ? "c" : "") + b.note + " ";
    };
    add('>', f.results);
    add('^', f.before);
    for (const auto& r : f.reads) out += "<" + r + " ";
    out += f.derived + " " + f.pending.text() + " " + std::to_string(f.vote);
    return out;
}

std::map<std::string, std::int64_t> int_constants(const Kernel& kernel) {
    std::map<std::string, std::int64_t> out;
    bool constants = false;
    for (const auto& p : kernel.head.back().node->params) {
        if (p.form == syntax::Param::Form::Bar)
            constants = true;
        else if (constants)
            if (const auto v = known_int(*p.fallback, out)) out[p.name] = *v;
    }
    return out;
}

Resources resources(const Kernel& kernel) {
    if (kernel.is_map()) return {256, 255};
    Resources out;
    out.registers = 0;
    int warps = 0, groups = 0;
    const auto values = int_constants(kernel);
    for (const auto& s : kernel.body) {
        if (s.kind != K::With) continue;
        for (const auto& k : s.node->items[0]->keywords) {
            const auto v = known_int(*k.value, values);
            if (!v) fail("no_rule", "`" + k.name + "` of a role is a constant", k.span);
            if (k.name == "warps") warps += static_cast<int>(*v);
            if (k.name == "warpgroups") groups += static_cast<int>(*v);
            if (k.name == "registers") out.registers = std::max(out.registers, static_cast<int>(*v));
        }
    }
    // Beside warpgroups, roles of single warps share one: registers are given out by four warps.
    out.threads = groups == 0 ? 32 * warps : 128 * (groups + (warps + 3) / 4);
    if (out.registers == 0) out.registers = 255;
    return out;
}

} // namespace cubridge::ir::lower
