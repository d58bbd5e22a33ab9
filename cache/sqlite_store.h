// The store on disk: docs/store.md as code.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cache/sqlite/rows.h"
#include "cache/store_file.h"
#include "cache/warner.h"
#include <atomic>

namespace cubridge::cache {

/// One SQLite database in a folder. Opens it for the length of each call, so that nothing is open between calls: a fork
/// then is harmless, a folder that appears, vanishes or fills up is noticed, and no process keeps another from setting
/// a bad file aside. What fails is reported by Outcome; keeping it in memory is LocalStore's business.
class SqliteStore final : public Store {
public:
    struct Config {
        std::string folder; ///< absolute
        std::int64_t budget;
        bool read_only;
        std::function<std::int64_t()> clock; ///< Unix seconds
        std::shared_ptr<Warner> warner;
    };
    explicit SqliteStore(Config config);

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
    Place place() const override;

private:
    using Intent = StoreFile::Intent;
    struct Fault {
        std::int64_t number;
        Digest id;
        std::string reason;
    };

    struct Failure {
        sqlite::Error error{};
        bool set_aside = false; ///< the file is out of the way
    };

    template <class Work> std::optional<Failure> attempt(Intent intent, Work& work);
    template <class Work> Outcome run(Intent intent, Work work) noexcept;
    void say(const Failure& failure, Intent intent);
    template <class Change> Outcome change(const Digest& id, Change change) noexcept;
    std::optional<Record> serve(StoreFile::Session& session, const std::vector<sqlite::Row>& rows, const Accept& accept,
                                std::vector<Fault>& faults);
    void drop(StoreFile::Session& session, const std::vector<Fault>& faults);
    void use(StoreFile::Session& session, const sqlite::Row& row);
    void report(const std::vector<Fault>& faults);

    const Config config_;
    const StoreFile file_;
    std::atomic<std::int64_t> writes_{0}, write_failures_{0}, quarantined_{0}, untrusted_{0}, evicted_{0};
};

} // namespace cubridge::cache
