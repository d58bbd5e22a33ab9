// The store that open_store gives: a disk where there is one, and memory for what it doesn't take.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cache/memory_store.h"
#include "cache/sqlite_store.h"

namespace cubridge::cache {

/// Reads from both, writes to disk or else to memory. A record that a disk refused is served from memory to this
/// process.
class LocalStore final : public Store {
public:
    /// `disk` may be null: memory only, by wish if `place.reason` is empty. `refused` counts places that weren't
    /// trusted.
    LocalStore(std::unique_ptr<SqliteStore> disk, std::unique_ptr<MemoryStore> memory, std::shared_ptr<Warner> warner,
               Place place, std::int64_t refused);

    using Store::find;
    using Store::verify;
    std::optional<Record> find(const Digest& key, const Accept& accept) noexcept override;
    std::optional<Record> load(const Digest& id) noexcept override;
    Outcome publish(const Record& record) noexcept override;
    std::vector<Summary> list() noexcept override;
    Verification verify(const std::optional<Digest>& id) noexcept override;
    Outcome quarantine(const Digest& id, std::string_view reason) noexcept override;
    Outcome forget(const Digest& key, const Digest& id) noexcept override;
    Outcome pin(const Digest& id, bool pinned) noexcept override;
    Outcome touch(const Digest& id) noexcept override;
    Stats stats() noexcept override;
    Place place() const override { return place_; }

private:
    Outcome keep(const Record& record, std::string reason);
    template <class Call> Outcome both(Call call) noexcept;

    const std::unique_ptr<SqliteStore> disk_;
    const std::unique_ptr<MemoryStore> memory_;
    const std::shared_ptr<Warner> warner_;
    const Place place_;
    const std::int64_t refused_;
    std::atomic<std::int64_t> kept_{0}; ///< records that should have gone to disk
};

} // namespace cubridge::cache
