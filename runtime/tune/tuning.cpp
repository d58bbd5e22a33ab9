// What was measured, as JSON. SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/tune.h"
#include <cmath>

namespace cubridge::runtime {
namespace {

double rounded(double x, double digits) {
    return std::round(x * digits) / digits;
}

/// Members of one object; whether all were there.
class Reader {
public:
    Reader(const Json& from, bool& whole) : from_(from), whole_(whole) {}
    std::int64_t integer(const char* name) const {
        const Json* v = from_.find(name);
        return v != nullptr && v->integer() != nullptr ? *v->integer() : (whole_ = false, 0);
    }
    int small(const char* name) const {
        const auto v = integer(name);
        return v >= 0 && v <= 1 << 30 ? static_cast<int>(v) : (whole_ = false, 0);
    }
    double number(const char* name) const {
        const Json* v = from_.find(name);
        const auto n = v != nullptr ? v->number() : std::nullopt;
        return n ? *n : (whole_ = false, 0.0);
    }
    std::string string(const char* name) const {
        const Json* v = from_.find(name);
        return v != nullptr && v->string() != nullptr ? *v->string() : (whole_ = false, std::string());
    }
    bool boolean(const char* name) const {
        const Json* v = from_.find(name);
        return v != nullptr && v->boolean() != nullptr ? *v->boolean() : (whole_ = false, false);
    }

private:
    const Json& from_;
    bool& whole_;
};

} // namespace

Json json_of(const ir::Configuration& c) {
    return Json::object()
        .add("name", c.name)
        .add("keys", c.keys)
        .add("order", c.order)
        .add("model_us", rounded(c.us, 10))
        .add("tiles", c.tiles)
        .add("masked", c.masked)
        .add("guessed", c.guessed);
}

Json Tuning::json() const {
    auto all = Json::array();
    for (const Row& r : rows) {
        auto row = json_of(r.configuration);
        row.add("us", rounded(r.us, 100)).add("spread", rounded(r.spread, 1e4)).add("launches", r.launches);
        row.add("chosen", r.chosen).add("refused", r.refused);
        all.push(std::move(row));
    }
    auto at = Json::object();
    at.add("batch", shape.batch).add("rows", shape.rows).add("keys", shape.keys).add("heads_kv", shape.heads_kv);
    return Json::object().add("device", device).add("shape", std::move(at)).add("configurations", std::move(all));
}

std::optional<Tuning> Tuning::read(const Json& json) {
    bool whole = true;
    Tuning out;
    out.device = Reader(json, whole).string("device");
    const Json* at = json.find("shape");
    const Json* all = json.find("configurations");
    if (at == nullptr || all == nullptr || all->items() == nullptr || out.device.empty()) return std::nullopt;
    const Reader shape(*at, whole);
    out.shape = {shape.integer("batch"), shape.integer("rows"), shape.integer("keys"), shape.small("heads_kv")};
    for (const Json& one : *all->items()) {
        const Reader r(one, whole);
        Row row;
        row.configuration = {r.string("name"),   r.small("keys"),     r.string("order"),   r.number("model_us"),
                             r.integer("tiles"), r.integer("masked"), r.boolean("guessed")};
        row.us = r.number("us"), row.spread = r.number("spread"), row.launches = r.small("launches");
        row.chosen = r.boolean("chosen"), row.refused = r.string("refused");
        out.rows.push_back(std::move(row));
    }
    if (!whole) return std::nullopt;
    return out;
}

} // namespace cubridge::runtime
