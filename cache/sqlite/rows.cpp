// SPDX-License-Identifier: Apache-2.0
#include "cache/sqlite/rows.h"
#include <fmt/format.h>

namespace cubridge::cache::sqlite {

namespace {

constexpr std::int64_t QUARANTINE_KEPT = 20;

#define CUBRIDGE_COLUMNS "SELECT number, key, id, build, arch, made_by, rank, created, bytes, used, pinned FROM entry "

std::vector<Row> rows(Statement& statement) {
    std::vector<Row> out;
    while (statement.step()) {
        Row row;
        row.number = statement.integer(0);
        row.summary.key = statement.digest(1);
        row.summary.id = statement.digest(2);
        row.summary.build = statement.bytes(3);
        row.summary.arch = statement.bytes(4);
        row.summary.made_by = statement.bytes(5);
        row.summary.rank = statement.integer(6);
        row.summary.created = statement.integer(7);
        row.summary.bytes = statement.integer(8);
        row.summary.used = statement.integer(9);
        row.summary.pinned = statement.integer(10) != 0;
        out.push_back(std::move(row));
    }
    return out;
}

void drop_quarantined(Database& database, std::int64_t kept) {
    for (const char* sql : {"DELETE FROM blob WHERE entry IN (SELECT number FROM quarantine ORDER BY time DESC, number "
                            "DESC LIMIT -1 OFFSET ?)",
                            "DELETE FROM quarantine WHERE number IN (SELECT number FROM quarantine ORDER BY time DESC, "
                            "number DESC LIMIT -1 OFFSET ?)"})
        Statement(database, sql).number(kept).run();
}

std::int64_t quarantined_bytes(Database& database) {
    return database.number("SELECT sum(bytes) FROM quarantine");
}

} // namespace

std::vector<Row> rows_of_key(Database& database, const Digest& key) {
    Statement statement(database, CUBRIDGE_COLUMNS "WHERE key = ? ORDER BY rank DESC, created DESC, number DESC");
    return rows(statement.blob(key));
}

std::vector<Row> rows_of_id(Database& database, const Digest& id) {
    Statement statement(database, CUBRIDGE_COLUMNS "WHERE id = ? ORDER BY number");
    return rows(statement.blob(id));
}

std::vector<Row> all_rows(Database& database) {
    Statement statement(database, CUBRIDGE_COLUMNS "ORDER BY used DESC, number DESC");
    return rows(statement);
}

#undef CUBRIDGE_COLUMNS

Loaded load_row(Database& database, const Row& row) {
    Loaded out;
    Record record;
    record.key = row.summary.key;
    record.id = row.summary.id;
    record.build = row.summary.build;
    record.arch = row.summary.arch;
    record.made_by = row.summary.made_by;
    record.rank = row.summary.rank;
    record.created = row.summary.created;
    Digest bound;
    {
        Statement statement(database, "SELECT binding, metadata FROM entry WHERE number = ?");
        if (!statement.number(row.number).step()) return {std::nullopt, "its row is gone"};
        bound = statement.digest(0);
        record.metadata = statement.bytes(1);
    }
    Statement statement(database, "SELECT name, digest, bytes FROM blob WHERE entry = ? ORDER BY place");
    statement.number(row.number);
    // Digests of the bytes are compared here for the message; content_id below would find the same fault.
    while (statement.step()) {
        Blob blob{statement.bytes(0), statement.bytes(2)};
        if (sha256(blob.bytes) != statement.digest(1))
            return {std::nullopt, fmt::format("digest of blob {} differs", blob.name)};
        record.blobs.push_back(std::move(blob));
    }
    if (content_id(record) != record.id) return {std::nullopt, "digest differs from its id"};
    if (binding(record.key, record.id, record.created) != bound) return {std::nullopt, "it is not bound to its key"};
    out.record = std::move(record);
    return out;
}

bool exists(Database& database, const Digest& key, const Digest& id) {
    return Statement(database, "SELECT 1 FROM entry WHERE key = ? AND id = ?").blob(key).blob(id).step();
}

void insert(Database& database, const Record& record, std::int64_t now) {
    Statement entry(database,
                    "INSERT INTO entry(key, id, binding, build, arch, made_by, rank, created, bytes, used, metadata) "
                    "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    const auto bound = binding(record.key, record.id, record.created);
    entry.blob(record.key).blob(record.id).blob(bound).text(record.build).text(record.arch).text(record.made_by);
    entry.number(record.rank).number(record.created).number(footprint(record)).number(now).blob(record.metadata).run();
    const auto number = database.last_number();
    std::int64_t place = 0;
    for (const auto& blob : record.blobs) {
        Statement row(database, "INSERT INTO blob(entry, place, name, digest, bytes) VALUES(?, ?, ?, ?, ?)");
        const auto digest = sha256(blob.bytes);
        row.number(number).number(place++).text(blob.name).blob(digest).blob(blob.bytes).run();
    }
}

bool set_aside(Database& database, std::int64_t number, std::string_view reason, std::int64_t now) {
    Statement(
        database,
        "INSERT INTO quarantine(number, time, reason, key, id, build, arch, made_by, rank, created, bytes, metadata) "
        "SELECT number, ?, ?, key, id, build, arch, made_by, rank, created, bytes, metadata FROM entry "
        "WHERE number = ?")
        .number(now)
        .text(reason)
        .number(number)
        .run();
    if (database.changes() == 0) return false;
    Statement(database, "DELETE FROM entry WHERE number = ?").number(number).run();
    drop_quarantined(database, QUARANTINE_KEPT);
    return true;
}

void remove(Database& database, std::int64_t number) {
    Statement(database, "DELETE FROM blob WHERE entry = ?").number(number).run();
    Statement(database, "DELETE FROM entry WHERE number = ?").number(number).run();
}

void set_used(Database& database, std::int64_t number, std::int64_t now) {
    Statement(database, "UPDATE entry SET used = ? WHERE number = ?").number(now).number(number).run();
}

void set_pinned(Database& database, std::int64_t number, bool pinned) {
    Statement(database, "UPDATE entry SET pinned = ? WHERE number = ?").number(pinned ? 1 : 0).number(number).run();
}

std::int64_t make_room(Database& database, std::int64_t bytes, std::int64_t budget) {
    auto held = totals(database).bytes;
    if (held + quarantined_bytes(database) + bytes > budget) drop_quarantined(database, 0);
    std::vector<std::int64_t> victims;
    {
        Statement statement(database, "SELECT number, bytes FROM entry WHERE pinned = 0 ORDER BY used, number");
        while (held + bytes > budget && statement.step()) {
            victims.push_back(statement.integer(0));
            held -= statement.integer(1);
        }
    }
    if (held + bytes > budget) throw Error{Code::TOO_LARGE, 0, "pinned records leave no room within the budget"};
    for (const auto number : victims) remove(database, number);
    return static_cast<std::int64_t>(victims.size());
}

Totals totals(Database& database) {
    Statement statement(database, "SELECT count(*), coalesce(sum(bytes), 0) FROM entry");
    if (!statement.step()) return {};
    return {statement.integer(0), statement.integer(1)};
}

} // namespace cubridge::cache::sqlite
