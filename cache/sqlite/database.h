// SQLite as objects: one connection, its statements, its transactions. Errors are thrown, within this room only.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/digest.h"
#include "cubridge/cache/store.h"
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace cubridge::cache::sqlite {

/// What SQLite (or the file under it) answered, sorted by what the store does about it.
struct Error {
    Code code;
    int extended; ///< SQLite's extended result code, 0 if the finding is ours
    std::string message;
};
Code code_of(int extended);

enum class Access {
    CREATE,     ///< an empty file that is to become a database
    READ_WRITE, ///< an existing database
    READ,       ///< the same, without writing; SQLite may still need its shared memory
    IMMUTABLE,  ///< nobody writes while it is open: no locks, no shared memory, no log
};

/// One connection. For one thread, for the length of one call.
class Database {
public:
    Database(const std::string& path, Access access);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    void execute(const char* sql);
    std::int64_t number(const char* sql); ///< the first column of the first row
    std::int64_t last_number() const;     ///< rowid of the last insert
    int changes() const;
    void patience(int milliseconds);
    /// For a note that may be lost and must not cost anything: waits for no lock and no disk, and leaves the log to be
    /// folded by the next one who publishes. Losing power can lose the note but not harm the file: the log has
    /// checksums.
    void hurry();
    sqlite3* get() const { return handle_; }

private:
    sqlite3* handle_ = nullptr;
};

/// One prepared statement. Parameters are bound in order by `with`, columns are read by index. Values are copied.
class Statement {
public:
    Statement(Database& database, const char* sql);
    ~Statement();
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    /// The bytes must live until the last step.
    Statement& text(std::string_view value);
    Statement& blob(std::string_view value);
    Statement& blob(const Digest& value);
    Statement& number(std::int64_t value);

    bool step(); ///< true: there is a row
    void run();  ///< steps to the end, once

    std::string bytes(int column); ///< text or blob
    Digest digest(int column);     ///< all zeros unless it has 32 bytes
    std::int64_t integer(int column);

private:
    Database& database_;
    sqlite3_stmt* handle_ = nullptr;
    int bound_ = 0;
};

/// BEGIN ... COMMIT; rolled back if not committed.
class Transaction {
public:
    enum class Kind { READ, WRITE };
    Transaction(Database& database, Kind kind);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    void commit();

private:
    Database& database_;
    bool open_ = true;
};

} // namespace cubridge::cache::sqlite
