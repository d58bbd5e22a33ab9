// Entries as rows: writing, reading, checking, setting aside, evicting. No policy and no files here. Errors are thrown.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cache/sqlite/database.h"
#include "cubridge/cache/record.h"
#include <vector>

namespace cubridge::cache::sqlite {

struct Row {
    std::int64_t number = 0;
    Summary summary;
};

/// Of one key, the best first; of one id; of all, the last used first.
std::vector<Row> rows_of_key(Database& database, const Digest& key);
std::vector<Row> rows_of_id(Database& database, const Digest& id);
std::vector<Row> all_rows(Database& database);

/// The record of a row, or what is wrong with it.
struct Loaded {
    std::optional<Record> record;
    std::string fault;
};
Loaded load_row(Database& database, const Row& row);

bool exists(Database& database, const Digest& key, const Digest& id);
void insert(Database& database, const Record& record, std::int64_t now);
/// Moves a row to `quarantine` and keeps the newest 20 there. False if it is gone already.
bool set_aside(Database& database, std::int64_t number, std::string_view reason, std::int64_t now);
/// With its blobs.
void remove(Database& database, std::int64_t number);
void set_used(Database& database, std::int64_t number, std::int64_t now);
void set_pinned(Database& database, std::int64_t number, bool pinned);

/// Makes room for `bytes` more within the budget: quarantined rows first, then what was used least recently. Returns
/// how many entries went. Throws TOO_LARGE if pinned ones leave no room; the transaction is then to be rolled back.
std::int64_t make_room(Database& database, std::int64_t bytes, std::int64_t budget);

struct Totals {
    std::int64_t entries = 0, bytes = 0;
};
Totals totals(Database& database);

} // namespace cubridge::cache::sqlite
