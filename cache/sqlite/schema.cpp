// SPDX-License-Identifier: Apache-2.0
#include "cache/sqlite/schema.h"
#include <fmt/format.h>

namespace cubridge::cache::sqlite {

namespace {

constexpr std::int64_t APPLICATION = 0x43754272; // "CuBr"
constexpr std::int64_t FORMAT = 1;

// AUTOINCREMENT: the number of a row that was set aside must not be given to another while its blobs are still there.
// Wide columns come last, so that reading the others doesn't walk their overflow pages.
constexpr const char* TABLES[] = {
    "CREATE TABLE entry(number INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL, id BLOB NOT NULL, binding BLOB "
    "NOT NULL, "
    "build TEXT NOT NULL, arch TEXT NOT NULL, made_by TEXT NOT NULL, rank INTEGER NOT NULL, created INTEGER NOT NULL, "
    "bytes INTEGER NOT NULL, used INTEGER NOT NULL, pinned INTEGER NOT NULL DEFAULT 0, metadata BLOB NOT NULL)",
    "CREATE UNIQUE INDEX entry_key ON entry(key, id)",
    "CREATE INDEX entry_id ON entry(id)",
    "CREATE INDEX entry_use ON entry(pinned, used, bytes)",
    "CREATE TABLE blob(entry INTEGER NOT NULL, place INTEGER NOT NULL, name TEXT NOT NULL, digest BLOB NOT NULL, bytes "
    "BLOB NOT NULL)",
    "CREATE UNIQUE INDEX blob_entry ON blob(entry, place)",
    "CREATE TABLE quarantine(number INTEGER PRIMARY KEY, time INTEGER NOT NULL, reason TEXT NOT NULL, key BLOB NOT "
    "NULL, "
    "id BLOB NOT NULL, build TEXT NOT NULL, arch TEXT NOT NULL, made_by TEXT NOT NULL, rank INTEGER NOT NULL, "
    "created INTEGER NOT NULL, bytes INTEGER NOT NULL, metadata BLOB NOT NULL)",
};

} // namespace

void create_schema(Database& database) {
    {
        Transaction transaction(database, Transaction::Kind::WRITE);
        for (const char* table : TABLES) database.execute(table);
        database.execute(fmt::format("PRAGMA application_id = {}", APPLICATION).c_str());
        database.execute(fmt::format("PRAGMA user_version = {}", FORMAT).c_str());
        transaction.commit();
    }
    Statement log(database, "PRAGMA journal_mode = WAL");
    if (!log.step() || log.bytes(0) != "wal")
        throw Error{Code::UNWRITABLE, 0, "this place can't have a write-ahead log"};
}

void check_schema(Database& database) {
    const auto format = database.number("PRAGMA user_version");
    const auto application = database.number("PRAGMA application_id");
    if (application != APPLICATION)
        throw Error{Code::UNKNOWN, 0,
                    fmt::format("it is a database of another program (application id {:#x})", application)};
    if (format != FORMAT) throw Error{Code::UNKNOWN, 0, fmt::format("its format is {}, not {}", format, FORMAT)};
}

} // namespace cubridge::cache::sqlite
