// Finds the place for a store and opens it. There is always one: if need be in memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/store.h"
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cubridge::cache {

enum class Trouble {
    NETWORK_FILE_SYSTEM,
    UNTRUSTED,
    UNWRITABLE,     ///< at opening: no place to write
    WRITE_FAILED,   ///< a publish failed and was kept in memory; said again after an hour
    CORRUPT,        ///< the database was set aside
    UNKNOWN_FORMAT, ///< somebody else's database lies under our name
    QUARANTINED,    ///< a row was set aside
    UNREADABLE,     ///< the database can't be opened or read just now
};
/// A stable word: "network_file_system", ...
std::string_view name(Trouble trouble);

struct Warning {
    Trouble trouble;
    std::string path;
    std::string message; ///< one sentence, with what is done instead
};

/// What the caller read from the environment. The library itself never does.
struct Environment {
    std::string xdg_cache_home; ///< $XDG_CACHE_HOME
    std::string home;           ///< $HOME
};

struct OpenOptions {
    /// Unset: the first of <xdg>/cubridge, <home>/.cache/cubridge, /var/tmp/cubridge-<uid> that is local, ours and
    /// writable (else the first that can be read). Empty: memory only. Otherwise this folder, or memory.
    std::optional<std::string> folder;
    Environment environment;
    std::int64_t budget = std::int64_t{2} << 30; ///< bytes on disk, by footprint
    std::int64_t memory_budget = std::int64_t{64}
                                 << 20; ///< bytes of what couldn't be written, or of all where there is no folder
    bool read_only = false;
    /// Called once per kind of trouble, from the thread that met it, without any lock of the store held. May be empty.
    std::function<void(const Warning&)> warn;
    /// Unix seconds; empty: the system's clock.
    std::function<std::int64_t()> clock;
    /// statfs(path).f_type, or nothing if that fails; empty: the system's. Replaced where a network file system is to
    /// be simulated.
    std::function<std::optional<std::int64_t>(const std::string& path)> file_system;
};

/// Never null, never throws but for std::bad_alloc, creates nothing on disk. The store owns what it needs; it may
/// outlive the options.
std::unique_ptr<Store> open_store(OpenOptions options);

} // namespace cubridge::cache
