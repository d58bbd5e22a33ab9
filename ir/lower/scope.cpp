// Names and the scopes they live in. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/scope.h"
#include <algorithm>

namespace cubridge::ir::lower {

bool Def::is_param(const std::string& name) const {
    return std::find(params.begin(), params.end(), name) != params.end();
}

std::string Def::signature() const {
    std::string out;
    const auto add = [&](const std::string& name, bool result) {
        const Variable* v = scope->find(name);
        const Type type = v != nullptr ? v->type : Type{};
        const bool array = type.array() || type.form == Form::Fragments;
        std::string text =
            declaration(type, name, result || array || type.form == Form::Rows || type.form == Form::Cols);
        if (array && !result) text = "const " + text;
        out += (out.empty() ? "" : ", ") + text;
    };
    for (const auto& p : params) add(p, !by_value && std::find(results.begin(), results.end(), p) != results.end());
    if (by_value) return out;
    for (std::size_t k = 0; k < results.size(); ++k)
        if (!is_param(results[k])) {
            if (scope->find(results[k]) != nullptr)
                add(results[k], true);
            else
                out += (out.empty() ? "" : ", ") + declaration(types[k], results[k], true);
        }
    return out;
}

const Variable* Scope::find(const std::string& name) const {
    for (const Scope* s = this; s != nullptr; s = s->outer)
        if (const auto it = s->variables.find(name); it != s->variables.end()) return &it->second;
    return nullptr;
}

Variable* Scope::find(const std::string& name) {
    return const_cast<Variable*>(static_cast<const Scope*>(this)->find(name));
}

const Def* Scope::find_def(const std::string& name) const {
    for (const Scope* s = this; s != nullptr; s = s->outer)
        if (const auto it = s->defs.find(name); it != s->defs.end()) return &it->second;
    return nullptr;
}

Def* Scope::find_def(const std::string& name) {
    return const_cast<Def*>(static_cast<const Scope*>(this)->find_def(name));
}

} // namespace cubridge::ir::lower
