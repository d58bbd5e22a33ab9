// Artifact to Record and back: blobs for what is large, JSON metadata for the rest.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/artifact.h"
#include "cubridge/runtime/json.h"
#include "runtime/adapter/asked.h"
#include "runtime/driver/elf.h"
#include <algorithm>
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

constexpr int kMetadataFormat = 1;

/// What serves first among the artifacts of one key: how it was made, whether it was chosen by measuring, then how far
/// it was verified.
std::int64_t rank_of(const Artifact& artifact) {
    const auto& by = artifact.build.made_by;
    return (by == "rules"   ? 30
            : by == "model" ? 20
                            : 10) +
           (artifact.build.tuned.empty() ? 0 : 5) + static_cast<std::int64_t>(artifact.verification.level);
}

ir::Error incomplete(const std::string& what) {
    return {"artifact", "the record is no artifact: " + what, {}, "it is to be set aside and made again"};
}

/// Members of one object; remembers the first that is missing or of another kind.
class Members {
public:
    Members(const Json* object, std::string& missing) : object_(object), missing_(missing) {}

    std::string string(const char* name) const {
        const auto* v = value(name);
        if (v != nullptr && v->string() != nullptr) return *v->string();
        return lack(name), std::string();
    }
    std::int64_t integer(const char* name) const {
        const auto* v = value(name);
        if (v != nullptr && v->integer() != nullptr) return *v->integer();
        return lack(name), 0;
    }
    int small(const char* name) const {
        const auto v = integer(name);
        if (v >= 0 && v <= 1 << 30) return static_cast<int>(v);
        return lack(name), 0;
    }
    Members object(const char* name) const {
        const auto* v = value(name);
        if (v == nullptr || v->members() == nullptr) lack(name);
        return {v, missing_};
    }
    const Json::Array& array(const char* name) const {
        static const Json::Array kNone;
        const auto* v = value(name);
        if (v != nullptr && v->items() != nullptr) return *v->items();
        return lack(name), kNone;
    }

private:
    const Json* value(const char* name) const { return object_ == nullptr ? nullptr : object_->find(name); }
    void lack(const char* name) const {
        if (missing_.empty()) missing_ = name;
    }

    const Json* object_;
    std::string& missing_;
};

Json metadata_of(const Artifact& a) {
    const auto& b = a.build;
    auto build = Json::object();
    build.add("rules", b.rules).add("expert", b.expert).add("model", b.model);
    build.add("compiler", b.compiler).add("options", b.options);
    auto entries = Json::array();
    for (const auto& e : a.entries) {
        auto entry = Json::object();
        entry.add("name", e.name).add("registers", e.registers).add("stack", e.stack);
        entry.add("spill_stores", e.spill_stores).add("spill_loads", e.spill_loads);
        entry.add("shared", e.shared).add("barriers", e.barriers);
        entries.push(std::move(entry));
    }
    auto places = Json::array();
    for (const int place : a.places) places.push(place);
    auto all = Json::object();
    all.add("format", kMetadataFormat).add("build", std::move(build)).add("subject", a.subject);
    all.add("specification", a.specification.hex()).add("places", std::move(places));
    all.add("entries", std::move(entries)).add("verification", a.verification.json());
    if (a.asked) all.add("asked", json_of(*a.asked));
    if (a.tuning) all.add("tuning", a.tuning->json());
    return all;
}

} // namespace

std::string BuildId::text() const {
    std::string out = "by=" + made_by;
    const auto add = [&](const char* name, const std::string& value) {
        if (!value.empty()) out += fmt::format(" {}=\"{}\"", name, value);
    };
    add("rules", rules);
    add("expert", expert);
    add("model", model);
    add("compiler", compiler);
    add("options", options);
    add("tuned", tuned);
    return out;
}

cache::Digest source_id(const ir::Specification& specification) {
    const auto& source = specification.source();
    cache::Digester id("cubridge-source-1");
    id.field(source.text).field(source.function).field(source.mask).number(specification.heads());
    id.number(static_cast<std::int64_t>(source.settings.size()));
    for (const auto& [name, setting] : source.settings) {
        id.field(name).number(static_cast<std::int64_t>(setting.kind)).field(Json(setting.value).text());
        id.field(setting.dtype ? ir::short_name(*setting.dtype) : "").number(setting.rank.value_or(-1));
    }
    return id.finish();
}

std::vector<int> places_of(const ir::Specification& specification, const ir::launch::Plan& plan) {
    const auto& inputs = specification.inputs();
    const auto order = specification.order();
    std::vector<int> out;
    for (const auto& operand : plan.operands) {
        const auto it = std::find_if(order.begin(), order.end(), [&](int number) {
            return inputs[static_cast<std::size_t>(number)].name == operand.name;
        });
        out.push_back(it == order.end() ? -1 : static_cast<int>(it - order.begin()));
    }
    return out;
}

cache::Record Artifact::to_record() const {
    cache::Record record;
    record.key = key;
    record.build = build.text() + " text=" + specification.hex(16); // own_record() looks for it
    record.arch = arch;
    record.made_by = build.made_by;
    record.rank = rank_of(*this);
    record.created = created;
    record.metadata = metadata_of(*this).text();
    record.blobs.push_back({"cubin", {reinterpret_cast<const char*>(cubin.data()), cubin.size()}});
    record.blobs.push_back({"plan", plan.text()});
    record.blobs.push_back({"cuda", cuda});
    for (const auto& [name, text] :
         {std::pair("expert", &expert_program), {"cuir", &program}, {"difference", &difference}})
        if (!text->empty()) record.blobs.push_back({name, *text});
    if (asked) record.blobs.push_back({"text", asked->source.text});
    cache::seal(record);
    return record;
}

ir::Result<Artifact> Artifact::from_record(const cache::Record& record) {
    const auto json = Json::parse(record.metadata);
    if (!json) return incomplete("its metadata can't be read");
    std::string missing;
    const Members all(&*json, missing);
    if (all.integer("format") != kMetadataFormat) return incomplete("its metadata has another format");

    Artifact a;
    a.key = record.key;
    a.id = record.id;
    a.arch = record.arch;
    a.created = record.created;
    a.subject = all.string("subject");
    const auto specification = cache::Digest::from_hex(all.string("specification"));
    const Members build = all.object("build");
    a.build = {record.made_by,
               build.string("rules"),
               build.string("expert"),
               build.string("model"),
               build.string("compiler"),
               build.string("options"),
               ""};
    if (const auto* tuning = json->find("tuning")) {
        a.tuning = Tuning::read(*tuning);
        if (!a.tuning) return incomplete("what was measured can't be read");
        a.build.tuned = a.tuning->device;
    }
    for (const auto& entry : all.array("entries")) {
        const Members e(&entry, missing);
        a.entries.push_back({e.string("name"), e.small("registers"), e.small("stack"), e.small("spill_stores"),
                             e.small("spill_loads"), e.small("shared"), e.small("barriers")});
    }
    for (const auto& place : all.array("places"))
        a.places.push_back(place.integer() == nullptr ? -2 : static_cast<int>(*place.integer()));
    (void)all.object("verification");
    if (!missing.empty()) return incomplete("its metadata lacks \"" + missing + "\"");
    auto verification = Verification::read(*json->find("verification"));
    if (!verification) return incomplete(verification.error().message);
    a.verification = std::move(*verification);
    if (!specification) return incomplete("its metadata names no specification");
    a.specification = *specification;

    const auto* cubin = record.blob("cubin");
    const auto* plan = record.blob("plan");
    const auto* cuda = record.blob("cuda");
    if (cubin == nullptr || plan == nullptr || cuda == nullptr) return incomplete("a blob is missing");
    const auto* bytes = reinterpret_cast<const std::byte*>(cubin->bytes.data());
    a.cubin.assign(bytes, bytes + cubin->bytes.size());
    if (!is_whole_elf(a.cubin)) return incomplete("its cubin is torn");
    a.cuda = cuda->bytes;
    for (const auto& [name, text] :
         {std::pair("expert", &a.expert_program), {"cuir", &a.program}, {"difference", &a.difference}})
        if (const auto* blob = record.blob(name)) *text = blob->bytes;
    if (const auto* asked = json->find("asked")) {
        const auto* text = record.blob("text");
        a.asked = text == nullptr ? std::nullopt : asked_of(*asked, text->bytes, a.arch);
        if (!a.asked) return incomplete("what it was made for can't be read");
    }
    auto parsed = ir::launch::Plan::parse(plan->bytes);
    if (!parsed) return incomplete(parsed.error().message);
    a.plan = std::move(*parsed);
    if (a.places.size() != a.plan.operands.size() ||
        std::any_of(a.places.begin(), a.places.end(), [](int place) { return place < -1 || place >= 64; }))
        return incomplete("its operands don't fit its plan");
    if (record.made_by != "rules" && record.made_by != "generic")
        if (const auto passed = both_gates(a.cuda, a.cubin, declared_by(a.plan)); !passed)
            return incomplete("it does not pass the gates: " + passed.fault().text());
    return a;
}

} // namespace cubridge::runtime
