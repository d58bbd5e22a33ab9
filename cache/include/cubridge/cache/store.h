// The interface of everything that keeps kernels. One conformance suite (tests/unit/cache/conformance_test.cpp) runs on
// each of them. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/record.h"
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cubridge::cache {

/// How a call ended, by what a caller can do about it.
enum class Code {
    OK,          ///< done, and on disk where the store has one
    IN_MEMORY,   ///< done, but only this process sees it
    MISSING,     ///< no such record
    INVALID,     ///< the record's id is not its content's, or it is too large for any store
    TOO_LARGE,   ///< larger than the budget
    READ_ONLY,   ///< the store was opened so, or its place is
    UNWRITABLE,  ///< disk full, quota, permissions, a failing disk
    UNTRUSTED,   ///< the place belongs to, or can be written by, somebody else
    UNKNOWN,     ///< a database of another format; it was not touched
    CORRUPT,     ///< damaged, and set aside where possible
    BUSY,        ///< others held the database for longer than the time-out
    UNAVAILABLE, ///< out of memory, or forked in the middle of a call
};
/// A stable word: "ok", "in_memory", ...
std::string_view name(Code code);

/// True if the record is kept. `reason` is for people and empty on OK.
struct Outcome {
    Code code = Code::OK;
    std::string reason;
    explicit operator bool() const { return code == Code::OK || code == Code::IN_MEMORY; }
};

/// Counters since the store was opened, and two gauges.
struct Stats {
    std::int64_t writes = 0;            ///< records published and kept as durably as the store can
    std::int64_t write_failures = 0;    ///< publishes that failed or ended in memory instead of on disk
    std::int64_t quarantined = 0;       ///< rows set aside
    std::int64_t untrusted_refused = 0; ///< calls that kept away from a place that isn't ours alone
    std::int64_t evicted = 0;
    std::int64_t entries = 0; ///< gauge
    std::int64_t bytes = 0;   ///< gauge: sum of footprints
};

struct Verification {
    struct Finding {
        Digest id;
        std::string reason;
    };
    std::int64_t checked = 0;
    std::vector<Finding> bad; ///< these were set aside, unless the store is read-only
    Outcome outcome; ///< MISSING if an id was asked for that isn't there, CORRUPT if the database as a whole is
};

/// Where a store keeps its records.
struct Place {
    std::string folder; ///< empty: memory only
    std::string file;   ///< the database; empty: memory only
    bool read_only = false;
    std::string reason; ///< why not the folder that was asked for, or why read-only; empty if all is as asked
};

/// May this record be served? Called while the store is locked: it must be quick and not call the store.
using Accept = std::function<bool(const Summary&)>;

/// Keeps records by key. All functions may be called from any thread and none throws; a record is returned by value and
/// owned by the caller. What can't be read is a miss. Calls may take as long as the disk: keep what is hot elsewhere.
/// In a child made by fork the store works on, unless another thread was inside a call at that moment: then each call
/// answers a miss or UNAVAILABLE.
class Store {
public:
    virtual ~Store() = default;
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    /// The best record of a key (highest rank, then newest) that passes its digests and is accepted; an empty `accept`
    /// takes any.
    virtual std::optional<Record> find(const Digest& key, const Accept& accept) noexcept = 0;
    std::optional<Record> find(const Digest& key) noexcept { return find(key, Accept{}); }
    /// A record of that content, under whichever key.
    virtual std::optional<Record> load(const Digest& id) noexcept = 0;
    /// Keeps a copy. Publishing the same (key, id) again is OK and changes nothing. May evict others, never pinned
    /// ones.
    virtual Outcome publish(const Record& record) noexcept = 0;
    /// All records, most recently used first.
    virtual std::vector<Summary> list() noexcept = 0;
    /// Reads and checks the records of one id, or all.
    virtual Verification verify(const std::optional<Digest>& id) noexcept = 0;
    Verification verify() noexcept { return verify(std::nullopt); }
    /// Sets aside all records of that id: a driver refused them, or a signature didn't hold. They are never served
    /// again.
    virtual Outcome quarantine(const Digest& id, std::string_view reason) noexcept = 0;
    /// Drops a record of a key: another has taken its place.
    virtual Outcome forget(const Digest& key, const Digest& id) noexcept = 0;
    /// publish(), then forget() of the record of that id under the same key; pinned if that was.
    Outcome replace(const Digest& id, const Record& record) noexcept;
    /// Pinned records are never evicted.
    virtual Outcome pin(const Digest& id, bool pinned) noexcept = 0;
    /// Says that the record is in use; find and load do so by themselves. Written at most once an hour.
    virtual Outcome touch(const Digest& id) noexcept = 0;

    virtual Stats stats() noexcept = 0;
    virtual Place place() const = 0;

protected:
    Store() = default;
};

} // namespace cubridge::cache
