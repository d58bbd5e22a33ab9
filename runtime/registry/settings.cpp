// The environment, read once.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/settings.h"
#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <string_view>

namespace cubridge::runtime {
namespace {

using Table = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view kPrefix = "CUBRIDGE_";
constexpr std::array<std::string_view, 11> kRead = {"MODE",   "STORE",      "STORE_MAX", "WORKERS", "NVRTC", "WORKER",
                                                    "VERIFY", "VERIFY_GPU", "DEADLINE",  "LOG",     "TRACE"};
constexpr std::array<std::string_view, 3> kNotBuilt = {"BUNDLES", "REMOTE", "TRUSTED_KEYS"};

template <std::size_t N> bool has(const std::array<std::string_view, N>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// "2G": a whole number with K, M, G or T, powers of 1024.
std::optional<std::int64_t> bytes(std::string_view text) {
    int shift = 0;
    if (const auto at = std::string_view("KMGT").find(text.empty() ? ' ' : text.back()); at != std::string_view::npos) {
        shift = 10 * (static_cast<int>(at) + 1);
        text.remove_suffix(1);
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > INT64_MAX >> shift)
        return std::nullopt;
    return value << shift;
}

std::optional<int> whole(const std::string& text, int least, int most) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) return std::nullopt;
    return value;
}

class Completion {
public:
    Completion(Settings given, const char* const* environment) : s_(std::move(given)) {
        for (; environment != nullptr && *environment != nullptr; ++environment) {
            const std::string_view row = *environment;
            const auto equals = row.find('=');
            if (equals == row.npos) continue;
            const auto name = row.substr(0, equals);
            if (name.starts_with(kPrefix))
                ours_.emplace(name.substr(kPrefix.size()), row.substr(equals + 1));
            else if (name == "XDG_CACHE_HOME")
                s_.places.xdg_cache_home = row.substr(equals + 1);
            else if (name == "HOME")
                s_.places.home = row.substr(equals + 1);
            else if (name == "CUDA_VISIBLE_DEVICES")
                s_.visible = row.substr(equals + 1);
        }
    }

    Settings run() {
        unknown();
        if (const auto* v = value("MODE")) {
            if (*v == "cached")
                s_.mode = Mode::Cached;
            else if (*v == "off")
                s_.mode = Mode::Off;
            else if (*v != "adapt")
                bad("MODE", *v, "adapt, cached or off");
        }
        if (const auto* v = value("STORE"); v != nullptr && !s_.store) s_.store = *v == "none" ? "" : *v;
        if (const auto* v = value("STORE_MAX")) {
            if (const auto size = bytes(*v))
                s_.store_max = *size;
            else
                bad("STORE_MAX", *v, "bytes, as 512M or 2G");
        }
        if (const auto* v = value("WORKERS"); v != nullptr && !s_.workers) {
            s_.workers = whole(*v, -1, 256);
            if (!s_.workers) bad("WORKERS", *v, "a number from 0 to 256, or -1 for none");
        }
        if (!s_.workers || *s_.workers == 0) s_.workers = 2;
        if (const auto* v = value("NVRTC"); v != nullptr && s_.nvrtc.empty()) s_.nvrtc = *v;
        if (const auto* v = value("WORKER"); v != nullptr && s_.worker.empty()) s_.worker = *v;
        if (const auto* v = value("VERIFY_GPU")) s_.verify_gpu = *v;
        if (const auto* v = value("VERIFY")) {
            if (*v == "executor")
                s_.executor = true;
            else if (*v != "gpu")
                bad("VERIFY", *v, "gpu or executor");
        }
        if (const auto* v = value("DEADLINE")) {
            if (const auto seconds = whole(*v, 1, 86400))
                s_.deadline = std::chrono::seconds(*seconds);
            else
                bad("DEADLINE", *v, "seconds from 1 to 86400");
        }
        log();
        if (const auto* v = value("TRACE")) s_.trace = *v;
        return std::move(s_);
    }

private:
    const std::string* value(std::string_view name) const {
        const auto it = ours_.find(name);
        return it == ours_.end() || it->second.empty() ? nullptr : &it->second;
    }
    void bad(std::string_view name, std::string_view given, std::string_view wanted) {
        s_.warnings.push_back(fmt::format("{}{}=\"{}\" is not understood, {} was expected: the default is taken",
                                          kPrefix, name, given, wanted));
    }
    void unknown() {
        for (const auto& [name, text] : ours_) {
            if (has(kRead, name) || name.starts_with("LLM_")) continue;
            if (has(kNotBuilt, name))
                s_.warnings.push_back(fmt::format("{}{} has no effect in this version", kPrefix, name));
            else
                s_.warnings.push_back(fmt::format("{}{} is no variable of this library", kPrefix, name));
        }
    }
    void log() {
        const auto* v = value("LOG");
        bool known = false;
        if (v != nullptr) {
            static constexpr std::array<std::string_view, 4> kLevels = {"error", "warn", "info", "trace"};
            const auto it = std::find(kLevels.begin(), kLevels.end(), *v);
            known = it != kLevels.end();
            if (known)
                s_.level = static_cast<Level>(it - kLevels.begin() + 1);
            else
                bad("LOG", *v, "error, warn, info or trace");
        }
        s_.log_to_stderr = known && !s_.log;
        if (!s_.log && !s_.log_to_stderr) s_.level = Level::Silent;
    }

    Settings s_;
    Table ours_;
};

} // namespace

Settings complete_settings(Settings given, const char* const* environment) {
    return Completion(std::move(given), environment).run();
}

} // namespace cubridge::runtime
