// Open addressing over atomic pointers.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/registry/table.h"
#include <cstring>

namespace cubridge::runtime {
namespace {

std::size_t hash_of(const Query& query) {
    std::array<std::uint64_t, sizeof(Query) / 8> words;
    std::memcpy(words.data(), &query, sizeof query);
    std::uint64_t h = 0x9e3779b97f4a7c15u;
    for (const auto word : words) {
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h;
}

} // namespace

struct Table::Array {
    explicit Array(std::size_t capacity) : entries(capacity) {}
    std::vector<std::atomic<Slot*>> entries; ///< a power of two, at most half full
};

Table::Table() : current_(nullptr) {
    arrays_.push_back(std::make_unique<Array>(256));
    current_.store(arrays_.back().get(), std::memory_order_release);
}
Table::~Table() = default;

Slot* Table::probe(const Array& array, const Query& query, std::size_t hash) const {
    const std::size_t mask = array.entries.size() - 1;
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
        Slot* slot = array.entries[at].load(std::memory_order_acquire);
        if (slot == nullptr || std::memcmp(&slot->query, &query, sizeof query) == 0) return slot;
    }
}

Slot* Table::find(const Query& query) const {
    return probe(*current_.load(std::memory_order_acquire), query, hash_of(query));
}

void Table::insert(Array& array, Slot& slot) {
    const std::size_t mask = array.entries.size() - 1;
    std::size_t at = hash_of(slot.query) & mask;
    while (array.entries[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & mask;
    array.entries[at].store(&slot, std::memory_order_release);
}

Slot& Table::find_or_add(const Query& query) {
    const std::lock_guard lock(mutex_);
    if (Slot* slot = find(query)) return *slot;
    Array* array = arrays_.back().get();
    if (2 * (slots_.size() + 1) > array->entries.size()) {
        auto larger = std::make_unique<Array>(2 * array->entries.size());
        for (auto& slot : slots_) insert(*larger, slot);
        arrays_.push_back(std::move(larger));
        array = arrays_.back().get();
        current_.store(array, std::memory_order_release);
    }
    auto& slot = slots_.emplace_back(query);
    slot.known.store(&history_.emplace_back(), std::memory_order_release);
    insert(*array, slot);
    return slot;
}

void Table::publish(Slot& slot, Known known) {
    const std::lock_guard lock(mutex_);
    slot.known.store(&history_.emplace_back(std::move(known)), std::memory_order_release);
}

} // namespace cubridge::runtime
