// What was verified, to JSON and back. Records of older libraries have no "gpu". SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/artifact.h"
#include <algorithm>
#include <array>

namespace cubridge::runtime {
namespace {

constexpr std::array<const char*, 3> kLevels = {"none", "executor", "gpu"};

ir::Error broken(const std::string& what) {
    return {"artifact", "its verification " + what, {}, ""};
}

Json json_of(const GpuRun& run) {
    auto out = Json::object();
    out.add("format", run.format).add("cases", run.cases).add("against_text", run.against_text);
    out.add("seed", static_cast<std::int64_t>(run.seed)).add("device", run.device).add("driver", run.driver);
    out.add("date", run.date);
    return out;
}

} // namespace

Json Verification::json() const {
    auto out = Json::object();
    out.add("level", kLevels[static_cast<std::size_t>(level)]).add("record", record).add("error_ratio", error_ratio);
    out.add("gpu", gpu ? json_of(*gpu) : Json());
    return out;
}

ir::Result<Verification> Verification::read(const Json& json) {
    const auto text = [](const Json& of, const char* name) {
        const auto* v = of.find(name);
        return v == nullptr ? nullptr : v->string();
    };
    const auto *level = text(json, "level"), *record = text(json, "record");
    const auto* ratio = json.find("error_ratio");
    if (level == nullptr || record == nullptr || ratio == nullptr || !ratio->number()) return broken("is not whole");
    const auto known = std::find(kLevels.begin(), kLevels.end(), *level);
    if (known == kLevels.end()) return broken("is of no known level");
    Verification out;
    out.level = static_cast<Verified>(known - kLevels.begin());
    out.record = *record;
    out.error_ratio = *ratio->number();
    const auto* gpu = json.find("gpu");
    if (gpu == nullptr || gpu->is_null()) return out;
    bool whole = true;
    const auto number = [&](const char* name) {
        const auto* v = gpu->find(name);
        whole = whole && v != nullptr && v->integer() != nullptr;
        return whole ? *v->integer() : 0;
    };
    GpuRun run;
    run.format = static_cast<int>(number("format"));
    run.cases = static_cast<int>(number("cases"));
    run.against_text = static_cast<int>(number("against_text"));
    run.seed = static_cast<std::uint64_t>(number("seed"));
    run.driver = static_cast<int>(number("driver"));
    run.date = number("date");
    const auto* device = text(*gpu, "device");
    if (!whole || device == nullptr) return broken("on a GPU is not whole");
    run.device = *device;
    out.gpu = std::move(run);
    return out;
}

} // namespace cubridge::runtime
