// The in-memory table: queries to slots. A hit takes no lock. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/engine.h"
#include <atomic>
#include <deque>
#include <mutex>

namespace cubridge::runtime {

/// What is known about a query at one moment. Immutable once published; kept until the table goes, so that a reader
/// needs neither a count nor a lock.
struct Known {
    enum class Kind {
        Nothing,   ///< not asked yet, or the last try was cancelled
        Pending,   ///< `job` is at work
        NotStored, ///< looked up only: not in the store
        Served,    ///< `kernel`
        Refused    ///< for good
    } kind = Kind::Nothing;
    std::uint32_t reasons = 0;
    const ServedKernel* kernel = nullptr;
    std::uint64_t job = 0;
    bool makes = false;                 ///< Pending: the job makes what is not stored
    std::int64_t retry_at = 0;          ///< Refused: steady-clock seconds from which it may be tried again; 0: never
    std::string message, exact_message; ///< why not READY; why not EXACT
};

struct Slot {
    explicit Slot(const Query& q) : query(q) {}
    const Query query;
    std::atomic<const Known*> known{nullptr};
};

/// Slots never move and never go. Readers take no lock: they see an array of pointers that only ever gains entries; one
/// that has become too small is replaced, and kept for those who still read it.
class Table {
public:
    Table();
    ~Table();
    /// Null where the query is new.
    Slot* find(const Query& query) const;
    Slot& find_or_add(const Query& query);
    /// Keeps `known` and makes it what readers see.
    void publish(Slot& slot, Known known);
    template <class Visit> void each(Visit visit) {
        const std::lock_guard lock(mutex_);
        for (auto& slot : slots_) visit(slot);
    }

    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;

private:
    struct Array;
    Slot* probe(const Array& array, const Query& query, std::size_t hash) const;
    void insert(Array& array, Slot& slot);

    std::atomic<Array*> current_;
    std::mutex mutex_; ///< of what follows, and of writing to the array
    std::vector<std::unique_ptr<Array>> arrays_;
    std::deque<Slot> slots_;
    std::deque<Known> history_;
};

} // namespace cubridge::runtime
