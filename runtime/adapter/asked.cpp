// SPDX-License-Identifier: Apache-2.0
#include "runtime/adapter/asked.h"
#include <array>
#include <charconv>
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

constexpr std::array<const char*, 3> kLayouts = {"dense", "ragged", "paged"}, kPhases = {"mixed", "prefill", "decode"},
                                     kLse = {"none", "natural", "log2"}, kKinds = {"constant", "absent", "operand"};
constexpr std::array<const char*, 2> kRows = {"as-written", "tail"}, kEmpty = {"as-written", "zero"};

template <class E, std::size_t N> const char* word(const std::array<const char*, N>& words, E value) {
    return words[static_cast<std::size_t>(value)];
}

/// Members of an object, into values; remembers whether one was missing or of another kind.
class Taken {
public:
    explicit Taken(const Json& json) : json_(json) {}
    bool fine() const { return fine_; }

    void take(const char* name, std::string& into) {
        const auto* v = find(name);
        if (v != nullptr && v->string() != nullptr)
            into = *v->string();
        else
            fine_ = false;
    }
    void take(const char* name, int& into) {
        const auto* v = find(name);
        if (v != nullptr && v->integer() != nullptr && *v->integer() >= 0 && *v->integer() <= 1 << 30)
            into = static_cast<int>(*v->integer());
        else
            fine_ = false;
    }
    void take(const char* name, ir::DType& into) {
        std::string text;
        take(name, text);
        const auto type = ir::dtype_from_short(text);
        type ? void(into = *type) : void(fine_ = false);
    }
    template <class E, std::size_t N> void take(const char* name, const std::array<const char*, N>& words, E& into) {
        std::string text;
        take(name, text);
        std::size_t k = 0;
        while (k < N && text != words[k]) ++k;
        k < N ? void(into = static_cast<E>(k)) : void(fine_ = false);
    }
    /// Null where it is none.
    const Json::Array* array(const char* name) {
        const auto* v = find(name);
        fine_ = fine_ && v != nullptr && v->items() != nullptr;
        return v == nullptr ? nullptr : v->items();
    }

private:
    const Json* find(const char* name) const { return json_.find(name); }
    const Json& json_;
    bool fine_ = true;
};

Json json_of(const std::string& name, const ir::Setting& s) {
    auto axes = Json::array();
    for (const auto& axis : s.axes) axes.push(axis);
    auto out = Json::object();
    out.add("name", name).add("kind", word(kKinds, s.kind));
    out.add("value", fmt::format("{}", s.value)); // infinities too
    out.add("dtype", s.dtype ? ir::short_name(*s.dtype) : "").add("rank", s.rank ? Json(*s.rank) : Json());
    out.add("axes", std::move(axes));
    return out;
}

bool read_setting(const Json& json, std::string& name, ir::Setting& s) {
    Taken in(json);
    std::string value, dtype;
    in.take("name", name);
    in.take("kind", kKinds, s.kind);
    in.take("value", value);
    in.take("dtype", dtype);
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), s.value);
    if (error != std::errc() || end != value.data() + value.size()) return false;
    if (!dtype.empty() && !(s.dtype = ir::dtype_from_short(dtype))) return false;
    if (const auto* rank = json.find("rank"); rank == nullptr || !rank->is_null()) in.take("rank", s.rank.emplace());
    const auto* axes = in.array("axes");
    for (const auto& axis : axes == nullptr ? Json::Array{} : *axes) {
        if (axis.string() == nullptr) return false;
        s.axes.push_back(*axis.string());
    }
    return in.fine();
}

} // namespace

Json json_of(const ir::Request& r) {
    auto out = Json::object();
    out.add("q_dtype", ir::short_name(r.q_dtype)).add("kv_dtype", ir::short_name(r.kv_dtype));
    out.add("o_dtype", ir::short_name(r.o_dtype)).add("head_dim", r.head_dim).add("head_dim_v", r.head_dim_v);
    out.add("group", r.group).add("heads", r.heads);
    out.add("layout", word(kLayouts, r.layout)).add("page_size", r.page_size);
    out.add("phase", word(kPhases, r.phase)).add("rows", word(kRows, r.rows));
    out.add("empty_rows", word(kEmpty, r.empty_rows)).add("lse", word(kLse, r.lse));
    out.add("alignment", r.alignment).add("flags", static_cast<std::int64_t>(r.flags));
    return out;
}

Json json_of(const Asked& asked) {
    auto settings = Json::array();
    for (const auto& [name, setting] : asked.source.settings) settings.push(json_of(name, setting));
    auto out = Json::object();
    out.add("function", asked.source.function).add("mask", asked.source.mask).add("settings", std::move(settings));
    out.add("heads", asked.heads).add("request", json_of(asked.request));
    return out;
}

std::optional<Asked> asked_of(const Json& json, const std::string& text, const std::string& arch) {
    Asked out;
    out.source.text = text;
    out.request.arch = arch;
    Taken in(json);
    in.take("function", out.source.function);
    in.take("mask", out.source.mask);
    in.take("heads", out.heads);
    const auto* settings = in.array("settings");
    for (const auto& one : settings == nullptr ? Json::Array{} : *settings) {
        std::string name;
        ir::Setting setting;
        if (!read_setting(one, name, setting)) return std::nullopt;
        out.source.settings[name] = std::move(setting);
    }
    const auto* request = json.find("request");
    if (request == nullptr) return std::nullopt;
    Taken asks(*request);
    auto& r = out.request;
    asks.take("q_dtype", r.q_dtype);
    asks.take("kv_dtype", r.kv_dtype);
    asks.take("o_dtype", r.o_dtype);
    asks.take("head_dim", r.head_dim);
    asks.take("head_dim_v", r.head_dim_v);
    asks.take("group", r.group);
    asks.take("heads", r.heads);
    asks.take("layout", kLayouts, r.layout);
    asks.take("page_size", r.page_size);
    asks.take("phase", kPhases, r.phase);
    asks.take("rows", kRows, r.rows);
    asks.take("empty_rows", kEmpty, r.empty_rows);
    asks.take("lse", kLse, r.lse);
    asks.take("alignment", r.alignment);
    int flags = 0;
    asks.take("flags", flags);
    r.flags = static_cast<std::uint32_t>(flags);
    if (!in.fine() || !asks.fine()) return std::nullopt;
    return out;
}

} // namespace cubridge::runtime
