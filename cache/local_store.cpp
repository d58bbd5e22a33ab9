// SPDX-License-Identifier: Apache-2.0
#include "cache/local_store.h"
#include "cache/summary.h"
#include <algorithm>
#include <fmt/format.h>

namespace cubridge::cache {

LocalStore::LocalStore(std::unique_ptr<SqliteStore> disk, std::unique_ptr<MemoryStore> memory,
                       std::shared_ptr<Warner> warner, Place place, std::int64_t refused)
    : disk_(std::move(disk)), memory_(std::move(memory)), warner_(std::move(warner)), place_(std::move(place)),
      refused_(refused) {}

std::optional<Record> LocalStore::find(const Digest& key, const Accept& accept) noexcept try {
    auto kept = memory_->find(key, accept);
    if (!disk_) return kept;
    auto stored = disk_->find(key, accept);
    if (!kept || !stored) return stored ? std::move(stored) : std::move(kept);
    return better(summarise(*stored, 0), summarise(*kept, 0)) ? std::move(stored) : std::move(kept); // kept: later
} catch (...) {
    return std::nullopt;
}

std::optional<Record> LocalStore::load(const Digest& id) noexcept {
    auto kept = memory_->load(id);
    return kept || !disk_ ? std::move(kept) : disk_->load(id);
}

Outcome LocalStore::keep(const Record& record, std::string reason) {
    auto outcome = memory_->publish(record);
    ++kept_;
    return outcome ? Outcome{Code::IN_MEMORY, std::move(reason)} : outcome;
}

Outcome LocalStore::publish(const Record& record) noexcept try {
    if (!disk_) {
        if (place_.reason.empty()) return memory_->publish(record);
        return keep(record, place_.reason);
    }
    if (place_.read_only) {
        auto outcome = memory_->publish(record);
        return outcome ? Outcome{Code::IN_MEMORY, "the store is read-only"} : outcome;
    }
    auto outcome = disk_->publish(record);
    if (outcome || outcome.code == Code::INVALID) return outcome;
    auto reason = std::move(outcome.reason);
    outcome = keep(record, reason);
    warner_->say(Trouble::WRITE_FAILED, place_.file,
                 fmt::format("a kernel could not be stored ({}); {}", reason,
                             outcome ? "it is served from memory" : "it is not kept"));
    return outcome;
} catch (...) {
    return {Code::UNAVAILABLE, {}};
}

std::vector<Summary> LocalStore::list() noexcept try {
    auto out = memory_->list();
    if (!disk_) return out;
    for (auto& summary : disk_->list()) out.push_back(std::move(summary));
    std::stable_sort(out.begin(), out.end(), [](const Summary& a, const Summary& b) { return a.used > b.used; });
    return out;
} catch (...) {
    return {};
}

Verification LocalStore::verify(const std::optional<Digest>& id) noexcept try {
    auto out = memory_->verify(id);
    if (!disk_) return out;
    auto stored = disk_->verify(id);
    stored.checked += out.checked;
    if (stored.outcome.code == Code::MISSING && out.checked > 0) stored.outcome = {};
    return stored;
} catch (...) {
    return {};
}

// What isn't on disk may be in memory; it is missing only if it is in neither.
template <class Call> Outcome LocalStore::both(Call call) noexcept try {
    auto kept = call(*memory_);
    if (!disk_) return kept;
    auto stored = call(*disk_);
    return kept && !stored ? std::move(kept) : std::move(stored);
} catch (...) {
    return {Code::UNAVAILABLE, {}};
}

Outcome LocalStore::quarantine(const Digest& id, std::string_view reason) noexcept {
    return both([&](Store& store) { return store.quarantine(id, reason); });
}

Outcome LocalStore::forget(const Digest& key, const Digest& id) noexcept {
    return both([&](Store& store) { return store.forget(key, id); });
}

Outcome LocalStore::pin(const Digest& id, bool pinned) noexcept {
    return both([&](Store& store) { return store.pin(id, pinned); });
}

Outcome LocalStore::touch(const Digest& id) noexcept {
    return both([&](Store& store) { return store.touch(id); });
}

Stats LocalStore::stats() noexcept {
    auto out = memory_->stats();
    const bool by_wish = !disk_ && place_.reason.empty();
    if (!by_wish) out.writes = 0; // what memory took was meant for a disk
    if (disk_) {
        const auto stored = disk_->stats();
        out.writes += stored.writes;
        out.quarantined += stored.quarantined;
        out.untrusted_refused += stored.untrusted_refused;
        out.evicted += stored.evicted;
        out.entries += stored.entries;
        out.bytes += stored.bytes;
    }
    if (!by_wish) out.write_failures = kept_;
    out.untrusted_refused += refused_;
    return out;
}

} // namespace cubridge::cache
