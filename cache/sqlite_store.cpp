// SPDX-License-Identifier: Apache-2.0
#include "cache/sqlite_store.h"
#include "cache/fork_guard.h"
#include "cache/summary.h"
#include <fmt/format.h>

namespace cubridge::cache {

using sqlite::Error;
using sqlite::Row;
using sqlite::Transaction;

SqliteStore::SqliteStore(Config config) : config_(std::move(config)), file_(config_.folder, config_.read_only) {}

// What went wrong with the file, if anything; a corrupt one is out of the way when this returns.
template <class Work> std::optional<SqliteStore::Failure> SqliteStore::attempt(Intent intent, Work& work) {
    const Visit visit;
    if (!visit.safe()) return Failure{{Code::UNAVAILABLE, 0, "forked inside a call"}};
    StoreFile::Identity seen;
    Failure failure;
    try {
        auto session = file_.open(intent, seen);
        work(session);
        return std::nullopt;
    } catch (Error& error) {
        failure.error = std::move(error); // answered when the session is closed and its lock given back
    }
    if (failure.error.code == Code::CORRUPT) {
        try {
            failure.set_aside = file_.set_aside(seen, config_.clock());
        } catch (const Error&) { // it stays where it is
        }
    }
    return failure;
}

// Who adds to a file that turns out corrupt tries once more, on a fresh one.
template <class Work> Outcome SqliteStore::run(Intent intent, Work work) noexcept try {
    for (bool retried = false;; retried = true) {
        const auto failure = attempt(intent, work);
        if (!failure) return {};
        say(*failure, intent);
        if (!failure->set_aside || intent != Intent::ADD || retried)
            return {failure->error.code, failure->error.message};
    }
} catch (...) {
    return {Code::UNAVAILABLE, {}};
}

void SqliteStore::say(const Failure& failure, Intent intent) {
    const auto& path = file_.path();
    const auto& why = failure.error.message;
    switch (failure.error.code) {
    case Code::CORRUPT:
        config_.warner->say(Trouble::CORRUPT, path,
                            fmt::format("the store is damaged ({}); {}kernels are made again", why,
                                        failure.set_aside ? "it was set aside and " : ""));
        break;
    case Code::UNTRUSTED:
        ++untrusted_;
        config_.warner->say(Trouble::UNTRUSTED, path, fmt::format("the store is not used: {}", why));
        break;
    case Code::UNKNOWN:
        config_.warner->say(Trouble::UNKNOWN_FORMAT, path, fmt::format("the store is left alone: {}", why));
        break;
    case Code::UNWRITABLE:
    case Code::BUSY:
        // Who publishes learns it from the outcome.
        if (intent == Intent::READ)
            config_.warner->say(Trouble::UNREADABLE, path, fmt::format("the store can't be read now: {}", why));
        break;
    default: break;
    }
}

std::optional<Record> SqliteStore::serve(StoreFile::Session& session, const std::vector<Row>& rows,
                                         const Accept& accept, std::vector<Fault>& faults) {
    for (const auto& row : rows) {
        if (accept && !accept(row.summary)) continue;
        auto loaded = sqlite::load_row(*session.database, row);
        if (loaded.record) {
            drop(session, faults); // first: a note of use is made in a hurry, this is not
            use(session, row);
            return std::move(loaded.record);
        }
        faults.push_back({row.number, row.summary.id, std::move(loaded.fault)});
    }
    drop(session, faults);
    return std::nullopt;
}

// A look-up is not worth waiting for a writer: if the note of its use can't be made now, the next one makes it.
void SqliteStore::use(StoreFile::Session& session, const Row& row) {
    const auto now = config_.clock();
    if (!session.writable || now - row.summary.used < COARSE_USE) return;
    try {
        session.database->hurry();
        sqlite::set_used(*session.database, row.number, now);
    } catch (const Error& error) {
        if (error.code == Code::CORRUPT) throw;
    }
}

void SqliteStore::drop(StoreFile::Session& session, const std::vector<Fault>& faults) {
    if (faults.empty() || !session.writable) return;
    try {
        Transaction transaction(*session.database, Transaction::Kind::WRITE);
        for (const auto& fault : faults)
            sqlite::set_aside(*session.database, fault.number, fault.reason, config_.clock());
        transaction.commit();
    } catch (const Error& error) {
        if (error.code == Code::CORRUPT) throw;
    }
}

void SqliteStore::report(const std::vector<Fault>& faults) {
    quarantined_ += static_cast<std::int64_t>(faults.size());
    for (const auto& fault : faults)
        config_.warner->say(Trouble::QUARANTINED, file_.path(),
                            fmt::format("record {} is not served: {}", fault.id.hex(8), fault.reason));
}

std::optional<Record> SqliteStore::find(const Digest& key, const Accept& accept) noexcept try {
    std::optional<Record> found;
    std::vector<Fault> faults;
    run(Intent::READ, [&](StoreFile::Session& session) {
        found = serve(session, sqlite::rows_of_key(*session.database, key), accept, faults);
    });
    report(faults);
    return found;
} catch (...) {
    return std::nullopt;
}

std::optional<Record> SqliteStore::load(const Digest& id) noexcept try {
    std::optional<Record> found;
    std::vector<Fault> faults;
    run(Intent::READ, [&](StoreFile::Session& session) {
        found = serve(session, sqlite::rows_of_id(*session.database, id), {}, faults);
    });
    report(faults);
    return found;
} catch (...) {
    return std::nullopt;
}

Outcome SqliteStore::publish(const Record& record) noexcept try {
    if (auto refused = check_publishable(record, config_.budget); !refused) return refused;
    bool written = false;
    std::int64_t evicted = 0;
    auto outcome = run(Intent::ADD, [&](StoreFile::Session& session) {
        auto& database = *session.database;
        Transaction transaction(database, Transaction::Kind::WRITE);
        if (sqlite::exists(database, record.key, record.id)) return;
        evicted = sqlite::make_room(database, footprint(record), config_.budget);
        sqlite::insert(database, record, config_.clock());
        transaction.commit();
        written = true;
    });
    if (written) {
        ++writes_;
        evicted_ += evicted;
    }
    if (!outcome) ++write_failures_;
    return outcome;
} catch (...) {
    return {Code::UNAVAILABLE, {}};
}

std::vector<Summary> SqliteStore::list() noexcept try {
    std::vector<Summary> out;
    run(Intent::READ, [&](StoreFile::Session& session) {
        for (auto& row : sqlite::all_rows(*session.database)) out.push_back(std::move(row.summary));
    });
    return out;
} catch (...) {
    return {};
}

Verification SqliteStore::verify(const std::optional<Digest>& id) noexcept try {
    Verification out;
    std::vector<Fault> faults;
    out.outcome = run(Intent::READ, [&](StoreFile::Session& session) {
        auto& database = *session.database;
        if (!id) {
            sqlite::Statement check(database, "PRAGMA quick_check(1)");
            if (!check.step()) throw Error{Code::CORRUPT, 0, "it can't be checked"};
            if (auto verdict = check.bytes(0); verdict != "ok") throw Error{Code::CORRUPT, 0, std::move(verdict)};
        }
        const auto rows = id ? sqlite::rows_of_id(database, *id) : sqlite::all_rows(database);
        if (id && rows.empty()) throw Error{Code::MISSING, 0, {}};
        for (const auto& row : rows) {
            ++out.checked;
            if (auto loaded = sqlite::load_row(database, row); !loaded.record)
                faults.push_back({row.number, row.summary.id, std::move(loaded.fault)});
        }
        drop(session, faults);
    });
    if (!id && out.outcome.code == Code::MISSING) out.outcome = {}; // no database: nothing in it is bad
    report(faults);
    for (auto& fault : faults) out.bad.push_back({fault.id, std::move(fault.reason)});
    return out;
} catch (...) {
    return {};
}

template <class Change> Outcome SqliteStore::change(const Digest& id, Change change) noexcept {
    return run(Intent::CHANGE, [&](StoreFile::Session& session) {
        Transaction transaction(*session.database, Transaction::Kind::WRITE);
        const auto rows = sqlite::rows_of_id(*session.database, id);
        if (rows.empty()) throw Error{Code::MISSING, 0, {}};
        for (const auto& row : rows) change(*session.database, row);
        transaction.commit();
    });
}

Outcome SqliteStore::quarantine(const Digest& id, std::string_view reason) noexcept try {
    std::vector<Fault> faults;
    auto outcome = change(id, [&](sqlite::Database& database, const Row& row) {
        if (sqlite::set_aside(database, row.number, reason, config_.clock()))
            faults.push_back({row.number, id, std::string(reason)});
    });
    if (outcome) report(faults);
    return outcome;
} catch (...) {
    return {Code::UNAVAILABLE, {}};
}

Outcome SqliteStore::forget(const Digest& key, const Digest& id) noexcept {
    return change(id, [&](sqlite::Database& database, const Row& row) {
        if (row.summary.key == key) sqlite::remove(database, row.number);
    });
}

Outcome SqliteStore::pin(const Digest& id, bool pinned) noexcept {
    return change(
        id, [&](sqlite::Database& database, const Row& row) { sqlite::set_pinned(database, row.number, pinned); });
}

Outcome SqliteStore::touch(const Digest& id) noexcept {
    return run(Intent::READ, [&](StoreFile::Session& session) {
        const auto rows = sqlite::rows_of_id(*session.database, id);
        if (rows.empty()) throw Error{Code::MISSING, 0, {}};
        for (const auto& row : rows) use(session, row);
    });
}

Stats SqliteStore::stats() noexcept {
    Stats out;
    run(Intent::READ, [&](StoreFile::Session& session) {
        const auto totals = sqlite::totals(*session.database);
        out.entries = totals.entries;
        out.bytes = totals.bytes;
    });
    out.writes = writes_;
    out.write_failures = write_failures_;
    out.quarantined = quarantined_;
    out.untrusted_refused = untrusted_;
    out.evicted = evicted_;
    return out;
}

Place SqliteStore::place() const {
    return {config_.folder, file_.path(), config_.read_only, {}};
}

} // namespace cubridge::cache
