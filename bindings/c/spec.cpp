// Specifications.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/c/handles.h"
#include "cubridge/runtime/builtin.h"
#include <cmath>

namespace cubridge::c {
namespace {

using ir::DType;
using ir::Setting;

Verdict setting_of(const cubridge_param& p, Setting& out) {
    static constexpr DType kTypes[] = {DType::F16, DType::BF16, DType::F32, DType::E4M3, DType::E5M2,
                                       DType::I8,  DType::I32,  DType::I64, DType::Bool};
    if (p.name == nullptr || *p.name == 0) return misuse("a parameter has no name");
    if (p.kind < CUBRIDGE_CONSTANT || p.kind > CUBRIDGE_OPERAND)
        return {Status::Misuse, std::string("the kind of parameter ") + p.name + " is unknown"};
    if (p.dtype < CUBRIDGE_SAME || p.dtype > CUBRIDGE_BOOL)
        return {Status::Misuse, std::string("the dtype of parameter ") + p.name + " is unknown"};
    if (p.kind != CUBRIDGE_OPERAND && p.dtype != CUBRIDGE_SAME)
        return {Status::Misuse, std::string("parameter ") + p.name + " is no operand and has a dtype"};
    out.kind = static_cast<Setting::Kind>(p.kind);
    if (p.kind == CUBRIDGE_CONSTANT) out.value = p.value;
    if (p.kind == CUBRIDGE_OPERAND && p.dtype != CUBRIDGE_SAME) out.dtype = kTypes[p.dtype - 1];
    return {};
}

/// The text, or the built-in one that `function` names.
Verdict text_into(const cubridge_source& s, ir::Source& out) {
    if (s.text == nullptr) {
        if (s.length != 0) return misuse("source.text is NULL and source.length is not 0");
        if (s.function == nullptr)
            return misuse("source.text and source.function are NULL: nothing names a specification");
        const auto* built_in = runtime::find_built_in(s.function);
        if (built_in == nullptr)
            return {Status::BadSpec, std::string("no specification comes with the library under the name \"") +
                                         s.function + "\"; `cubridge specs` lists them"};
        out.text = built_in->text;
        return {};
    }
    out.text.assign(s.text, s.length == 0 ? std::strlen(s.text) : s.length);
    if (s.function != nullptr) out.function = s.function;
    const auto first = out.text.find_first_not_of(" \t\r\n");
    if (first != out.text.npos && out.text[first] == '{')
        return {Status::BadSpec, "1:1: exported graphs are not built yet\n    hint: give the function as Python text"};
    return {};
}

} // namespace
} // namespace cubridge::c

using namespace cubridge::c;

cubridge_status cubridge_parse(cubridge_context* context, const cubridge_source* source, const cubridge_spec** spec) {
    return guarded([&]() -> Verdict {
        if (auto v = check(context); !v) return v;
        if (spec == nullptr) return misuse("spec is NULL");
        *spec = nullptr;
        cubridge_source given;
        if (auto v = read(source, "source", kSource, given); !v) return v;
        if (given.params == nullptr && given.param_count != 0) return misuse("source.params is NULL");
        cubridge::ir::Source text;
        if (auto v = text_into(given, text); !v) return v;
        if (given.mask != nullptr) text.mask = given.mask;
        for (std::size_t k = 0; k < given.param_count; ++k) {
            cubridge::ir::Setting setting;
            if (auto v = setting_of(given.params[k], setting); !v) return v;
            if (!text.settings.emplace(given.params[k].name, setting).second)
                return {Status::Misuse, std::string("parameter ") + given.params[k].name + " is given twice"};
        }
        const cubridge::runtime::Text* parsed = nullptr;
        auto v = context->engine->parse(text, parsed);
        *spec = reinterpret_cast<const cubridge_spec*>(parsed);
        return v;
    });
}

const char* cubridge_operand_name(const cubridge_spec* spec, size_t index) {
    if (spec == nullptr) {
        set_message("spec is NULL");
        return nullptr;
    }
    const auto& names = text_of(spec)->operands();
    return index < names.size() ? names[index].c_str() : nullptr;
}
