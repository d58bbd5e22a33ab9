// Is this folder one that a store may live in? Who owns it, who can write it, what file system is it on.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/store.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/stat.h>

namespace cubridge::cache {

using FileSystemOf = std::function<std::optional<std::int64_t>(const std::string& path)>;

/// The name of a network (or otherwise unfit) file system by its statfs number; null: fit.
const char* network_file_system(std::int64_t type);
/// statfs(path).f_type.
std::optional<std::int64_t> system_file_system(const std::string& path);

/// Empty if a file or folder with this status belongs to us or root and nobody else can write it; otherwise why not.
std::string why_untrusted(const struct stat& status);

/// The longest leading part of an absolute path that exists.
std::string existing_part(const std::string& path);

/// May the effective user create files in it? Asked of the kernel, so that read-only mounts count.
bool writable(const std::string& path);

/// mkdir -p with mode 0700 for what is made, whatever the umask. 0 or an errno.
int make_folders(const std::string& path);

/// What a store in `folder` could do: OK; READ_ONLY with the reason; MISSING if it could be made; UNWRITABLE if not;
/// UNTRUSTED. Creates nothing. Whether it is on a network is asked apart.
Outcome inspect(const std::string& folder);

} // namespace cubridge::cache
