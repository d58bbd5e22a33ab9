// SPDX-License-Identifier: Apache-2.0
#include "cache/folder.h"
#include "cache/file.h"
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statfs.h>
#include <unistd.h>

namespace cubridge::cache {

const char* network_file_system(std::int64_t type) {
    // From the headers of Linux and of the file systems: linux/magic.h has about half of them.
    switch (static_cast<std::uint32_t>(type)) {
    case 0x00006969: return "NFS";
    case 0x0000517B: return "SMB";
    case 0xFE534D42: return "SMB2";
    case 0xFF534D42: return "CIFS";
    case 0x00C36400: return "Ceph";
    case 0x0BD00BD0: return "Lustre";
    case 0x47504653: return "GPFS";
    case 0x65735546: return "FUSE"; // sshfs, s3fs, gcsfuse, JuiceFS, virtiofs: nothing tells them from local ones
    case 0x01021997: return "9p";
    case 0x5346414F: return "OpenAFS";
    case 0x6B414653: return "AFS";
    case 0x73757245: return "Coda";
    case 0x0000564C: return "NCP";
    case 0x19830326: return "BeeGFS";
    case 0xAAD7AAEA: return "PanFS";
    case 0x013111A8: return "IBRIX";
    case 0xBEEFDEAD: return "StorNext";
    case 0x61636673: return "ACFS";
    case 0x7461636F: return "OCFS2";
    case 0x01161970: return "GFS2";
    case 0x20030528: return "OrangeFS";
    case 0x786F4256: return "VirtualBox shared folder";
    case 0xBACBACBC: return "VMware shared folder";
    case 0x7C7C6673: return "Parallels shared folder";
    default: return nullptr;
    }
}

std::optional<std::int64_t> system_file_system(const std::string& path) {
    struct statfs status {};
    int result;
    do result = statfs(path.c_str(), &status);
    while (result != 0 && errno == EINTR);
    if (result != 0) return std::nullopt;
    return static_cast<std::int64_t>(status.f_type);
}

std::string why_untrusted(const struct stat& status) {
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return fmt::format("it belongs to user {}, not to user {}", status.st_uid, geteuid());
    if ((status.st_mode & 022u) != 0) return fmt::format("others can write it (mode {:04o})", status.st_mode & 07777u);
    return {};
}

std::string existing_part(const std::string& path) {
    std::string part = path;
    struct stat status {};
    while (part.size() > 1 && stat(part.c_str(), &status) != 0) {
        const auto slash = part.find_last_of('/');
        if (slash == std::string::npos || slash == 0) return "/";
        part.resize(slash);
    }
    return part;
}

bool writable(const std::string& path) {
    return faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

int make_folders(const std::string& path) {
    for (auto end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const auto part = path.substr(0, end);
        if (mkdir(part.c_str(), 0700) == 0) {
            if (chmod(part.c_str(), 0700) != 0) return errno; // a umask of 0277 or so
        } else { // EEXIST, or EROFS or EACCES for what is there all the same
            const int error = errno;
            struct stat status {};
            if (stat(part.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return error == EEXIST ? ENOTDIR : error;
        }
        if (end == std::string::npos) return 0;
    }
}

Outcome inspect(const std::string& folder) {
    struct stat status {};
    if (lstat(folder.c_str(), &status) != 0) {
        if (errno != ENOENT) return {Code::UNWRITABLE, error_text(errno)};
        const auto parent = existing_part(folder);
        if (stat(parent.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
            return {Code::UNWRITABLE, parent + " is not a folder"};
        if (!writable(parent)) return {Code::UNWRITABLE, "it can't be made in " + parent + ": " + error_text(errno)};
        return {Code::MISSING, {}};
    }
    if (S_ISLNK(
            status.st_mode)) { // a link of ours is how people put a cache on another disk; somebody else's is a trap
        if (status.st_uid != geteuid() && status.st_uid != 0) return {Code::UNTRUSTED, "it is a link of somebody else"};
        if (stat(folder.c_str(), &status) != 0) return {Code::UNWRITABLE, "it is a link to nothing"};
    }
    if (!S_ISDIR(status.st_mode)) return {Code::UNWRITABLE, "it is not a folder"};
    if (auto why = why_untrusted(status); !why.empty()) return {Code::UNTRUSTED, std::move(why)};
    if (!writable(folder)) return {Code::READ_ONLY, error_text(errno)};
    return {};
}

} // namespace cubridge::cache
