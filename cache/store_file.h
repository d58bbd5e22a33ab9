// The database file in its folder: opening, making and setting it aside, under the folder's lock. Errors are thrown
// (sqlite::Error). SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cache/file.h"
#include "cache/sqlite/database.h"
#include <memory>
#include <string>
#include <sys/stat.h>

namespace cubridge::cache {

/// Names a place, holds nothing open. Any thread.
class StoreFile {
public:
    enum class Intent {
        READ,   ///< writes little things where it can
        CHANGE, ///< must be able to write
        ADD,    ///< the same, and makes the database if there is none
    };
    /// Which file it was, so that only that one is set aside.
    struct Identity {
        dev_t device = 0;
        ino_t inode = 0;
        bool operator==(const Identity&) const = default;
    };
    /// An open database and the lock that keeps it under its name. Closed before the lock is given back.
    struct Session {
        File folder;
        std::unique_ptr<sqlite::Database> database;
        bool writable = false;
    };

    StoreFile(std::string folder, bool read_only);
    const std::string& path() const { return path_; }
    const std::string& folder() const { return folder_; }

    /// `seen` is set as soon as the file is known, also if opening it then fails. MISSING: there is no database.
    Session open(Intent intent, Identity& seen) const;
    /// Renames the database if it still is the one that was seen. True if it is out of the way.
    bool set_aside(const Identity& seen, std::int64_t now) const;

private:
    File lock_folder(int operation) const;
    struct stat examine(Identity& seen) const;
    Session open_writable(Identity& seen) const;
    Session open_readable(Identity& seen) const;
    void create() const;
    void prune() const;

    const std::string folder_, path_;
    const bool read_only_;
};

} // namespace cubridge::cache
