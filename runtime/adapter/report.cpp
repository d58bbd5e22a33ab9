// A Report as JSON: what `cubridge adapt --json` prints.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/adapter.h"
#include "cubridge/runtime/json.h"
#include "cubridge/runtime/why.h"
#include "runtime/adapter/asked.h"
#include <array>
#include <cmath>

namespace cubridge::runtime {
namespace {

double rounded(double ms) {
    return std::round(ms * 1000) / 1000;
}

Json error_of(const std::optional<ir::Error>& error) {
    if (!error) return {};
    auto out = Json::object();
    out.add("kind", error->kind).add("message", error->message);
    out.add("line", error->span.line).add("column", error->span.column).add("hint", error->hint);
    return out;
}

Json stages_of(const std::vector<Stage>& stages) {
    static constexpr std::array<const char*, 3> kVerdicts = {"ok", "skipped", "failed"};
    auto out = Json::array();
    for (const auto& stage : stages) {
        auto one = Json::object();
        one.add("name", stage.name).add("ms", rounded(stage.ms));
        one.add("verdict", kVerdicts[static_cast<std::size_t>(stage.verdict)]).add("reason", stage.reason);
        out.push(std::move(one));
    }
    return out;
}

Json entries_of(const std::vector<CompiledEntry>& entries) {
    auto out = Json::array();
    for (const auto& e : entries) {
        auto one = Json::object();
        one.add("name", e.name).add("registers", e.registers).add("stack", e.stack);
        one.add("spill", e.spill_stores + e.spill_loads);
        one.add("spills", e.spill_stores + e.spill_loads).add("shared", e.shared);
        out.push(std::move(one));
    }
    return out;
}

Json texts(const std::vector<std::string>& list) {
    auto out = Json::array();
    for (const auto& text : list) out.push(text);
    return out;
}

Json reasons_of(std::uint32_t bits) {
    auto out = Json::array();
    for (std::uint32_t bit = 1; bit != 0; bit <<= 1)
        if (const auto name = why::names(bits & bit); !name.empty()) out.push(name);
    return out;
}

} // namespace

std::string Report::json(const ir::Specification* specification, const ir::Request& request) const {
    static constexpr std::array<const char*, 4> kStatus = {"ready", "fallback", "rejected", "failed"};
    const bool keyed = specification != nullptr && !request.arch.empty();
    const auto or_null = [](bool there, std::string text) { return there ? Json(std::move(text)) : Json(); };
    auto out = Json::object();
    out.add("status", kStatus[static_cast<std::size_t>(status)]).add("error", error_of(error));
    out.add("reasons", reasons_of(reasons));
    out.add("variant", or_null(specification != nullptr, specification != nullptr ? specification->subject() : ""));
    out.add("request_key", or_null(keyed, keyed ? request_key(*specification, request).hex() : ""));
    out.add("artifact", or_null(artifact.has_value(), artifact ? artifact->id.hex() : ""));
    out.add("arch", or_null(!request.arch.empty(), request.arch));
    out.add("made_by", or_null(artifact.has_value(), artifact ? artifact->build.made_by : ""));
    out.add("tier", or_null(artifact.has_value(), tier));
    const bool expert = artifact && !artifact->build.expert.empty();
    out.add("expert", or_null(expert, expert ? artifact->build.expert : ""));
    out.add("verified", or_null(artifact.has_value(), artifact ? artifact->verification.record : ""));
    out.add("verification", artifact ? artifact->verification.json() : Json());
    out.add("compiled_in", or_null(!compiled_in.empty(), compiled_in));
    out.add("stages", stages_of(stages)).add("total_ms", rounded(total_ms));
    out.add("cubin_bytes", artifact ? static_cast<std::int64_t>(artifact->cubin.size()) : 0);
    out.add("entries", entries_of(artifact ? artifact->entries : std::vector<CompiledEntry>{}));
    out.add("tuning", artifact && artifact->tuning ? artifact->tuning->json() : Json());
    out.add("request", json_of(request)).add("warnings", texts(warnings));
    return out.text();
}

} // namespace cubridge::runtime
