// A store in memory: where there is no disk, and for what a disk didn't take.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/store.h"
#include <list>
#include <mutex>

namespace cubridge::cache {

/// Records in a list, most recently used first. Holds the mutex for pointer work only: records are copied outside it.
class MemoryStore final : public Store {
public:
    /// `clock` gives Unix seconds.
    MemoryStore(std::int64_t budget, std::function<std::int64_t()> clock);

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
    Place place() const override { return {}; }

private:
    struct Entry {
        std::shared_ptr<const Record> record;
        Summary summary;
    };
    using Entries = std::list<Entry>;
    void use(Entries::iterator entry);
    bool make_room(std::int64_t bytes, Entries& removed);
    template <class Change> Outcome change(const Digest& id, Change change) noexcept;

    const std::int64_t budget_;
    const std::function<std::int64_t()> clock_;
    std::mutex mutex_;
    Entries entries_;
    Stats stats_;
};

} // namespace cubridge::cache
