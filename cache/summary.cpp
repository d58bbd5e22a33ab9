// SPDX-License-Identifier: Apache-2.0
#include "cache/summary.h"
#include <fmt/format.h>
#include <tuple>

namespace cubridge::cache {

Summary summarise(const Record& record, std::int64_t used) {
    Summary out;
    out.key = record.key;
    out.id = record.id;
    out.build = record.build;
    out.arch = record.arch;
    out.made_by = record.made_by;
    out.rank = record.rank;
    out.created = record.created;
    out.bytes = footprint(record);
    out.used = used;
    return out;
}

bool better(const Summary& a, const Summary& b) {
    return std::tie(a.rank, a.created) > std::tie(b.rank, b.created);
}

Outcome check_publishable(const Record& record, std::int64_t budget) {
    const auto bytes = footprint(record);
    if (bytes > LARGEST_RECORD)
        return {Code::INVALID, fmt::format("{} bytes are more than any record may have", bytes)};
    if (content_id(record) != record.id) return {Code::INVALID, "its id is not the digest of its content"};
    if (bytes > budget) return {Code::TOO_LARGE, fmt::format("{} bytes are more than the budget of {}", bytes, budget)};
    return {};
}

Outcome Store::replace(const Digest& id, const Record& record) noexcept try {
    auto outcome = publish(record);
    if (!outcome || record.id == id) return outcome;
    for (const Summary& s : list())
        if (s.id == id && s.key == record.key && s.pinned) (void)pin(record.id, true);
    (void)forget(record.key, id); // where that can't be, both stay
    return outcome;
} catch (...) {
    return {Code::UNAVAILABLE, {}};
}

std::string_view name(Code code) {
    switch (code) {
    case Code::OK: return "ok";
    case Code::IN_MEMORY: return "in_memory";
    case Code::MISSING: return "missing";
    case Code::INVALID: return "invalid";
    case Code::TOO_LARGE: return "too_large";
    case Code::READ_ONLY: return "read_only";
    case Code::UNWRITABLE: return "unwritable";
    case Code::UNTRUSTED: return "untrusted";
    case Code::UNKNOWN: return "unknown";
    case Code::CORRUPT: return "corrupt";
    case Code::BUSY: return "busy";
    case Code::UNAVAILABLE: return "unavailable";
    }
    return "unknown";
}

} // namespace cubridge::cache
