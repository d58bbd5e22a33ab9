// SPDX-License-Identifier: Apache-2.0
#include "cache/sqlite/database.h"
#include "cache/summary.h"
#include <cstring>
#include <new>
#include <sqlite3.h>

namespace cubridge::cache::sqlite {

namespace {

[[noreturn]] void raise(sqlite3* handle, int result) {
    if ((result & 0xff) == SQLITE_NOMEM) throw std::bad_alloc();
    const int extended = handle ? sqlite3_extended_errcode(handle) : result;
    const bool same = (extended & 0xff) == (result & 0xff);
    throw Error{code_of(same ? extended : result), same ? extended : result,
                handle && same ? sqlite3_errmsg(handle) : sqlite3_errstr(result)};
}

// A path as an SQLite URI: everything that could mean something there is escaped.
std::string uri(const std::string& path, const char* query) {
    static constexpr char DIGITS[] = "0123456789abcdef";
    std::string out = "file:";
    for (const char c : path) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::strchr("/-_.~", c);
        if (plain) {
            out += c;
        } else {
            out += '%';
            out += DIGITS[byte >> 4];
            out += DIGITS[byte & 15];
        }
    }
    return out + query;
}

constexpr int PATIENCE_MS = 5000;

} // namespace

Code code_of(int extended) {
    switch (extended) {
    case SQLITE_IOERR_SHORT_READ:
    case SQLITE_IOERR_CORRUPTFS: return Code::CORRUPT;
    default: break;
    }
    switch (extended & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_SCHEMA: return Code::CORRUPT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL: return Code::BUSY;
    case SQLITE_READONLY: return Code::READ_ONLY;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH: return Code::UNWRITABLE;
    default: return Code::UNAVAILABLE;
    }
}

Database::Database(const std::string& path, Access access) {
    int flags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    flags |= access == Access::CREATE || access == Access::READ_WRITE ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
    const auto name = uri(path, access == Access::IMMUTABLE ? "?immutable=1" : "");
    const int result = sqlite3_open_v2(name.c_str(), &handle_, flags, nullptr);
    try {
        if (result != SQLITE_OK) raise(handle_, result);
        sqlite3_extended_result_codes(handle_, 1);
        patience(PATIENCE_MS); // before the first statement: even reading the header can meet a recovery under way
        sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, static_cast<int>(LARGEST_RECORD + 4096));
        sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
        sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
        execute("PRAGMA synchronous = NORMAL");
        execute("PRAGMA temp_store = MEMORY");
        execute("PRAGMA cell_size_check = ON");
        execute("PRAGMA mmap_size = 0"); // a file truncated under a mapping is a SIGBUS in the host
    } catch (...) {
        sqlite3_close(handle_);
        throw;
    }
}

Database::~Database() {
    sqlite3_close(handle_);
}

void Database::execute(const char* sql) {
    Statement statement(*this, sql);
    statement.run();
}

std::int64_t Database::number(const char* sql) {
    Statement statement(*this, sql);
    return statement.step() ? statement.integer(0) : 0;
}

std::int64_t Database::last_number() const {
    return sqlite3_last_insert_rowid(handle_);
}

int Database::changes() const {
    return sqlite3_changes(handle_);
}

void Database::patience(int milliseconds) {
    sqlite3_busy_timeout(handle_, milliseconds);
}

void Database::hurry() {
    patience(0);
    execute("PRAGMA synchronous = OFF");
    sqlite3_wal_autocheckpoint(handle_, 0);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

Statement::Statement(Database& database, const char* sql) : database_(database) {
    const int result = sqlite3_prepare_v2(database.get(), sql, -1, &handle_, nullptr);
    // Our statements are constants: if one doesn't compile, the tables are not what the header of the file says.
    if (result == SQLITE_ERROR) throw Error{Code::CORRUPT, result, sqlite3_errmsg(database.get())};
    if (result != SQLITE_OK) raise(database.get(), result);
}

Statement::~Statement() {
    sqlite3_finalize(handle_);
}

Statement& Statement::text(std::string_view value) {
    // A null pointer would bind NULL, which no column takes.
    const int result = sqlite3_bind_text64(handle_, ++bound_, value.empty() ? "" : value.data(), value.size(),
                                           SQLITE_STATIC, SQLITE_UTF8);
    if (result != SQLITE_OK) raise(database_.get(), result);
    return *this;
}

Statement& Statement::blob(std::string_view value) {
    const int result =
        sqlite3_bind_blob64(handle_, ++bound_, value.empty() ? "" : value.data(), value.size(), SQLITE_STATIC);
    if (result != SQLITE_OK) raise(database_.get(), result);
    return *this;
}

Statement& Statement::blob(const Digest& value) {
    return blob(std::string_view(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()));
}

Statement& Statement::number(std::int64_t value) {
    const int result = sqlite3_bind_int64(handle_, ++bound_, value);
    if (result != SQLITE_OK) raise(database_.get(), result);
    return *this;
}

bool Statement::step() {
    const int result = sqlite3_step(handle_);
    if (result == SQLITE_ROW) return true;
    if (result == SQLITE_DONE) return false;
    raise(database_.get(), result);
}

void Statement::run() {
    while (step()) {
    }
}

std::string Statement::bytes(int column) {
    const void* data = sqlite3_column_blob(handle_, column);
    const int size = sqlite3_column_bytes(handle_, column);
    // Reading an overflow page can fail here, and SQLite says so only by a null pointer and its error code.
    if (!data) {
        const int result = sqlite3_errcode(database_.get());
        if (result != SQLITE_OK && result != SQLITE_ROW && result != SQLITE_DONE) raise(database_.get(), result);
        return {};
    }
    return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

Digest Statement::digest(int column) {
    const auto value = bytes(column);
    Digest out;
    if (value.size() == out.bytes.size()) std::memcpy(out.bytes.data(), value.data(), value.size());
    return out;
}

std::int64_t Statement::integer(int column) {
    return sqlite3_column_int64(handle_, column);
}

Transaction::Transaction(Database& database, Kind kind) : database_(database) {
    database_.execute(kind == Kind::WRITE ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
    // SQLite may have rolled back by itself (disk full); then this fails, and that is fine.
    if (open_) sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
    database_.execute("COMMIT");
    open_ = false;
}

} // namespace cubridge::cache::sqlite
