// SPDX-License-Identifier: Apache-2.0
#include "cache/store_file.h"
#include "cache/folder.h"
#include "cache/sqlite/schema.h"
#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace cubridge::cache {

using sqlite::Access;
using sqlite::Database;
using sqlite::Error;

namespace {

constexpr std::chrono::milliseconds PATIENCE{5000};
constexpr off_t SMALLEST = 512; // the smallest page SQLite knows: less is a file cut short
constexpr std::size_t BAD_KEPT = 2;

[[noreturn]] void fail(Code code, std::string message) {
    throw Error{code, 0, std::move(message)};
}

bool has_content(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && status.st_size > 0;
}

void remove_with_companions(const std::string& path) {
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) unlink((path + suffix).c_str());
}

// Removes what was begun unless it was finished.
struct Unfinished {
    std::string path;
    bool finished = false;
    ~Unfinished() {
        if (!finished) remove_with_companions(path);
    }
};

} // namespace

StoreFile::StoreFile(std::string folder, bool read_only)
    : folder_(std::move(folder)), path_(folder_ + "/" + sqlite::FILE_NAME), read_only_(read_only) {}

File StoreFile::lock_folder(int operation) const {
    File folder = open_file(folder_, O_RDONLY | O_DIRECTORY);
    if (!folder) {
        const int error = errno;
        fail(error == ENOENT || error == ENOTDIR ? Code::MISSING : Code::UNWRITABLE, error_text(error));
    }
    struct stat status {};
    if (fstat(folder.get(), &status) != 0) fail(Code::UNWRITABLE, error_text(errno));
    if (auto why = why_untrusted(status); !why.empty()) fail(Code::UNTRUSTED, "the folder: " + why);
    if (!lock_within(folder, operation, PATIENCE)) fail(Code::BUSY, "its folder stays locked");
    return folder;
}

struct stat StoreFile::examine(Identity& seen) const {
    struct stat status {};
    if (lstat(path_.c_str(), &status) != 0) {
        const int error = errno;
        fail(error == ENOENT || error == ENOTDIR ? Code::MISSING : Code::UNWRITABLE, error_text(error));
    }
    if (!S_ISREG(status.st_mode)) fail(Code::UNTRUSTED, "the database is not a plain file");
    if (auto why = why_untrusted(status); !why.empty()) fail(Code::UNTRUSTED, "the database: " + why);
    seen = {status.st_dev, status.st_ino};
    if (status.st_size < SMALLEST) fail(Code::CORRUPT, fmt::format("it has only {} bytes", status.st_size));
    return status;
}

StoreFile::Session StoreFile::open_writable(Identity& seen) const {
    Session session;
    session.folder = lock_folder(LOCK_SH);
    examine(seen);
    if (faccessat(AT_FDCWD, path_.c_str(), W_OK, AT_EACCESS) != 0) fail(Code::READ_ONLY, error_text(errno));
    session.database = std::make_unique<Database>(path_, Access::READ_WRITE);
    sqlite::check_schema(*session.database);
    session.writable = true;
    return session;
}

StoreFile::Session StoreFile::open_readable(Identity& seen) const {
    Session session;
    session.folder =
        lock_folder(LOCK_EX); // nobody else has the database open: without its shared memory that must be so
    examine(seen);
    const bool whole = !has_content(path_ + "-wal"); // else the last writer died, and the log holds what the file lacks
    if (!whole) {
        try {
            session.database = std::make_unique<Database>(path_, Access::READ);
            sqlite::check_schema(*session.database);
            return session;
        } catch (const Error& error) {
            if (error.code != Code::UNWRITABLE && error.code != Code::READ_ONLY) throw;
            // Without its log the file may look damaged though it isn't: so only where it can't be set aside for that.
            if (!read_only_ && writable(folder_)) throw;
        }
    }
    session.database = std::make_unique<Database>(path_, Access::IMMUTABLE);
    sqlite::check_schema(*session.database);
    return session;
}

StoreFile::Session StoreFile::open(Intent intent, Identity& seen) const {
    const bool may_write = !read_only_ && (intent == Intent::ADD || writable(folder_));
    if (!may_write) {
        if (intent == Intent::READ) return open_readable(seen);
        examine(seen); // what isn't there is missing, also where nothing may be written
        fail(Code::READ_ONLY, "the store is read-only");
    }
    try {
        return open_writable(seen);
    } catch (const Error& error) {
        if (intent == Intent::ADD && error.code == Code::MISSING) {
            create();
            return open_writable(seen);
        }
        // A full disk has no room for SQLite's shared memory; what is there can still be read.
        if (intent != Intent::READ || (error.code != Code::UNWRITABLE && error.code != Code::READ_ONLY)) throw;
    }
    return open_readable(seen);
}

void StoreFile::create() const {
    if (const int error = make_folders(folder_); error != 0)
        fail(error == EROFS || error == EACCES ? Code::READ_ONLY : Code::UNWRITABLE,
             "making its folder: " + error_text(error));
    const File folder = lock_folder(LOCK_EX);
    struct stat status {};
    if (lstat(path_.c_str(), &status) == 0) return; // another process was first
    // A log without its database would be replayed into the new one.
    remove_with_companions(path_);
    Unfinished fresh{path_ + ".new"};
    remove_with_companions(fresh.path);
    {
        const File file = open_file(fresh.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (!file || fchmod(file.get(), 0600) != 0) {
            const int error = errno;
            fail(error == EROFS || error == EACCES ? Code::READ_ONLY : Code::UNWRITABLE, error_text(error));
        }
    } // SQLite gives its log and shared memory the mode of this file
    {
        Database database(fresh.path, Access::CREATE);
        sqlite::create_schema(database);
    }
    if (has_content(fresh.path + "-wal")) fail(Code::UNWRITABLE, "its log could not be folded into it");
    if (rename(fresh.path.c_str(), path_.c_str()) != 0) fail(Code::UNWRITABLE, error_text(errno));
    fresh.finished = true;
    fsync(folder.get());
}

bool StoreFile::set_aside(const Identity& seen, std::int64_t now) const {
    if (read_only_ || !writable(folder_)) return false;
    const File folder = lock_folder(LOCK_EX);
    struct stat status {};
    if (lstat(path_.c_str(), &status) != 0) return errno == ENOENT;
    if (Identity{status.st_dev, status.st_ino} != seen) return true; // another process did it
    auto bad = fmt::format("{}.bad-{}", path_, now);
    for (int more = 1; lstat(bad.c_str(), &status) == 0; ++more) bad = fmt::format("{}.bad-{}-{}", path_, now, more);
    if (rename(path_.c_str(), bad.c_str()) != 0) return false;
    rename((path_ + "-wal").c_str(), (bad + "-wal").c_str());
    unlink((path_ + "-shm").c_str());
    prune();
    return true;
}

// Bad files are for people to look at; the newest two are enough, and a disk that fails again and again must not fill
// up with them.
void StoreFile::prune() const {
    DIR* listing = opendir(folder_.c_str());
    if (!listing) return;
    const std::string prefix = std::string(sqlite::FILE_NAME) + ".bad-";
    std::vector<std::string> names;
    while (const dirent* item = readdir(listing)) {
        const std::string name = item->d_name;
        if (name.starts_with(prefix) && !name.ends_with("-wal")) names.push_back(name);
    }
    closedir(listing);
    std::sort(names.begin(), names.end());
    for (std::size_t i = 0; i + BAD_KEPT < names.size(); ++i) remove_with_companions(folder_ + "/" + names[i]);
}

} // namespace cubridge::cache
