// The tables of format 1 (docs/store.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cache/sqlite/database.h"

namespace cubridge::cache::sqlite {

inline constexpr const char* FILE_NAME = "store-1.db";

/// Makes the tables in an empty file and turns the log on.
void create_schema(Database& database);

/// Throws UNKNOWN if the database is not of this format. The first read of a connection: also throws what keeps SQLite
/// from reading.
void check_schema(Database& database);

} // namespace cubridge::cache::sqlite
