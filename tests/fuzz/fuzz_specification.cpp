// Any bytes: the front end refuses them with an Error, or makes a Specification that is the same every time, whose
// generic kernel is printed or refused and whose launch plan survives its own text. Texts as they are make good seeds;
// one that begins with "#!" says in the two bytes after it what the caller says beside the text.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/generic.h"
#include "cubridge/ir/specification.h"
#include <cstdint>
#include <cstdlib>
#include <string>

using namespace cubridge::ir;

namespace {

void demand(bool holds) {
    if (!holds) std::abort();
}

Setting constant(double value) {
    Setting s;
    s.value = value;
    return s;
}

// What the caller says: the function, settings for the names that seeds use, heads.
void say(std::uint8_t a, std::uint8_t b, Source& source, ParseOptions& options) {
    if (a >> 4 & 1) source.mask = "mask_mod";
    static constexpr const char* names[] = {"window", "prefix", "cap", "scale", "bias", "doc", "mask", "softcap"};
    const std::string name = names[b & 7];
    switch (b >> 3 & 7) {
    case 0: source.settings[name] = constant(3); break;
    case 1: source.settings[name] = constant(-1e300); break;
    case 2: source.settings[name].kind = Setting::Kind::Absent; break;
    case 3: {
        Setting s;
        s.kind = Setting::Kind::Operand;
        s.dtype = DType::I32, s.rank = b >> 6;
        source.settings[name] = s;
        break;
    }
    default: break;
    }
    static constexpr int heads[] = {0, 0, 8, 6, 1, 3, 32, 1 << 20};
    options.heads = heads[a & 7];
}

std::string outcome(const Result<GenericKernel>& k) {
    return k ? k->cuda + k->plan.text() : k.error().kind + ": " + k.error().message;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Source source;
    ParseOptions options;
    source.text = std::string(reinterpret_cast<const char*>(data), size);
    const auto defines = [&](const char* f) {
        return source.text.find(std::string("def ") + f + "(") != std::string::npos;
    };
    if (!defines("attention") && defines("score_mod"))
        source.function = "score_mod";
    else if (!defines("attention") && defines("mask_mod"))
        source.function = "mask_mod";
    if (size >= 4 && data[0] == '#' && data[1] == '!') say(data[2], data[3], source, options);
    const auto first = Specification::parse(source, options);
    const auto second = Specification::parse(source, options);
    demand(static_cast<bool>(first) == static_cast<bool>(second));
    if (!first) {
        const Error& e = first.error();
        demand(!e.kind.empty() && !e.message.empty());
        demand(e.kind != "internal");
        demand(e.kind == second.error().kind && e.message == second.error().message);
        demand(!e.render(source.text).empty());
        return 0;
    }
    const Specification& s = **first;
    demand(!s.subject().empty() && s.subject() == (*second)->subject());
    demand(s.has_variant() == s.no_variant_reason().empty());
    for (const int n : s.order()) demand(n > 2 && n < static_cast<int>(s.inputs().size()));
    Request request;
    request.head_dim = request.head_dim_v = 16;
    request.heads = s.heads();
    request.arch = "sm_90a";
    const auto kernel = generic_kernel(s, request);
    demand(outcome(kernel) == outcome(generic_kernel(**second, request)));
    if (!kernel) {
        demand(!kernel.error().kind.empty() && !kernel.error().message.empty());
        return 0;
    }
    const auto plan = launch::Plan::parse(kernel->plan.text());
    demand(plan && *plan == kernel->plan);
    return 0;
}
