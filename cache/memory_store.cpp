// SPDX-License-Identifier: Apache-2.0
#include "cache/memory_store.h"
#include "cache/fork_guard.h"
#include "cache/summary.h"
#include <algorithm>

namespace cubridge::cache {

MemoryStore::MemoryStore(std::int64_t budget, std::function<std::int64_t()> clock)
    : budget_(budget), clock_(std::move(clock)) {}

void MemoryStore::use(Entries::iterator entry) {
    entry->summary.used = std::max(entry->summary.used, clock_());
    entries_.splice(entries_.begin(), entries_, entry);
}

std::optional<Record> MemoryStore::find(const Digest& key, const Accept& accept) noexcept try {
    const Visit visit;
    if (!visit.safe()) return std::nullopt;
    std::shared_ptr<const Record> found;
    {
        std::lock_guard lock(mutex_);
        auto best = entries_.end();
        for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
            if (entry->summary.key == key && (best == entries_.end() || better(entry->summary, best->summary)) &&
                (!accept || accept(entry->summary)))
                best = entry;
        if (best == entries_.end()) return std::nullopt;
        use(best);
        found = best->record;
    }
    return *found;
} catch (...) {
    return std::nullopt;
}

std::optional<Record> MemoryStore::load(const Digest& id) noexcept try {
    const Visit visit;
    if (!visit.safe()) return std::nullopt;
    std::shared_ptr<const Record> found;
    {
        std::lock_guard lock(mutex_);
        const auto entry =
            std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.summary.id == id; });
        if (entry == entries_.end()) return std::nullopt;
        use(entry);
        found = entry->record;
    }
    return *found;
} catch (...) {
    return std::nullopt;
}

// What is removed is handed out, so that large records are freed after the mutex.
bool MemoryStore::make_room(std::int64_t bytes, Entries& removed) {
    std::int64_t evictable = budget_ - stats_.bytes;
    for (const auto& entry : entries_) evictable += entry.summary.pinned ? 0 : entry.summary.bytes;
    if (evictable < bytes) return false;
    for (auto entry = entries_.end(); stats_.bytes + bytes > budget_ && entry != entries_.begin();) {
        --entry;
        if (entry->summary.pinned) continue;
        const auto victim = entry++;
        stats_.bytes -= victim->summary.bytes;
        ++stats_.evicted;
        removed.splice(removed.begin(), entries_, victim);
    }
    return true;
}

Outcome MemoryStore::publish(const Record& record) noexcept try {
    const Visit visit;
    if (!visit.safe()) return {Code::UNAVAILABLE, "forked inside a call"};
    if (auto refused = check_publishable(record, budget_); !refused) return refused;
    const auto now = clock_();
    Entries removed, added;
    added.push_back({std::make_shared<const Record>(record), summarise(record, now)});
    std::lock_guard lock(mutex_);
    for (const auto& entry : entries_)
        if (entry.summary.key == record.key && entry.summary.id == record.id) return {};
    if (!make_room(added.front().summary.bytes, removed)) {
        ++stats_.write_failures;
        return {Code::TOO_LARGE, "pinned records leave no room within the budget"};
    }
    stats_.bytes += added.front().summary.bytes;
    ++stats_.writes;
    entries_.splice(entries_.begin(), added);
    return {};
} catch (...) {
    return {Code::UNAVAILABLE, {}};
}

std::vector<Summary> MemoryStore::list() noexcept try {
    const Visit visit;
    if (!visit.safe()) return {};
    std::vector<Summary> out;
    std::lock_guard lock(mutex_);
    for (const auto& entry : entries_) out.push_back(entry.summary);
    return out;
} catch (...) {
    return {};
}

Verification MemoryStore::verify(const std::optional<Digest>& id) noexcept try {
    // Memory is believed; what is counted is what is there.
    Verification out;
    for (const auto& summary : list()) out.checked += !id || summary.id == *id ? 1 : 0;
    if (id && out.checked == 0) out.outcome = {Code::MISSING, {}};
    return out;
} catch (...) {
    return {};
}

template <class Change> Outcome MemoryStore::change(const Digest& id, Change change) noexcept try {
    const Visit visit;
    if (!visit.safe()) return {Code::UNAVAILABLE, "forked inside a call"};
    Entries removed;
    std::lock_guard lock(mutex_);
    bool any = false;
    for (auto entry = entries_.begin(); entry != entries_.end();) {
        const auto current = entry++;
        if (current->summary.id != id) continue;
        any = true;
        change(current, removed);
    }
    return any ? Outcome{} : Outcome{Code::MISSING, {}};
} catch (...) {
    return {Code::UNAVAILABLE, {}};
}

Outcome MemoryStore::quarantine(const Digest& id, std::string_view) noexcept {
    return change(id, [this](Entries::iterator entry, Entries& removed) {
        stats_.bytes -= entry->summary.bytes;
        ++stats_.quarantined;
        removed.splice(removed.end(), entries_, entry);
    });
}

Outcome MemoryStore::forget(const Digest& key, const Digest& id) noexcept {
    return change(id, [&](Entries::iterator entry, Entries& removed) {
        if (entry->summary.key != key) return;
        stats_.bytes -= entry->summary.bytes;
        removed.splice(removed.end(), entries_, entry);
    });
}

Outcome MemoryStore::pin(const Digest& id, bool pinned) noexcept {
    return change(id, [pinned](Entries::iterator entry, Entries&) { entry->summary.pinned = pinned; });
}

Outcome MemoryStore::touch(const Digest& id) noexcept {
    return change(id, [this](Entries::iterator entry, Entries&) { use(entry); });
}

Stats MemoryStore::stats() noexcept {
    const Visit visit;
    if (!visit.safe()) return {};
    std::lock_guard lock(mutex_);
    auto out = stats_;
    out.entries = static_cast<std::int64_t>(entries_.size());
    return out;
}

} // namespace cubridge::cache
