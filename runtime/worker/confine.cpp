// Limits, Landlock, and the process's manners. The filter of system calls is in filter.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker/confine.h"
#include "runtime/worker/filter.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CUBRIDGE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CUBRIDGE_SANITIZED 1
#endif
#endif

namespace cubridge::runtime::worker {
namespace {

#ifdef CUBRIDGE_SANITIZED
constexpr bool kSanitized = true; // its shadow takes terabytes of address space
#else
constexpr bool kSanitized = false;
#endif

// Of linux/landlock.h, which older systems lack: the numbers are the kernel's, the same on all machines.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446, kCloseRange = 436;
constexpr std::uint64_t kExecute = 1u << 0, kWriteFile = 1u << 1, kReadFile = 1u << 2, kReadFolder = 1u << 3,
                        kTruncate = 1u << 14, kControl = 1u << 15;
struct Ruleset {
    std::uint64_t files = 0, net = 0, scoped = 0;
};
struct __attribute__((packed)) BeneathRule {
    std::uint64_t allowed = 0;
    std::int32_t folder = -1;
};

/// One of several threads can't bind the others.
bool alone() {
    std::error_code error;
    std::filesystem::directory_iterator tasks("/proc/self/task", error);
    return !error && std::distance(begin(tasks), end(tasks)) == 1;
}

/// What may be done with the files of a folder.
struct Allowed {
    std::string folder;
    std::uint64_t what = kReadFile | kReadFolder;
};

/// The ABI that is in force afterwards; 0: none, and `why`. `left`: rights that are not taken away.
int landlock(const std::vector<Allowed>& folders, std::uint64_t left, std::string& why) {
    const auto abi = syscall(kCreateRuleset, nullptr, 0, 1u /* the version */);
    if (abi < 1) {
        why = "the kernel has none";
        return 0;
    }
    if (!alone()) {
        why = "there are threads already";
        return 0;
    }
    Ruleset rules;
    rules.files = (1u << 13) - 1;
    if (abi >= 2) rules.files |= 1u << 13; // to move among folders
    if (abi >= 3) rules.files |= 1u << 14; // to truncate
    if (abi >= 5) rules.files |= 1u << 15; // ioctl of devices
    if (abi >= 4) rules.net = 3;           // to bind and to connect
    if (abi >= 6) rules.scoped = 3;        // abstract sockets and signals of others
    rules.files &= ~left;
    const std::size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    const auto set = static_cast<int>(syscall(kCreateRuleset, &rules, size, 0u));
    if (set < 0) {
        why = std::strerror(errno);
        return 0;
    }
    bool fine = true;
    for (const auto& [folder, what] : folders) {
        BeneathRule rule;
        rule.allowed = what & rules.files;
        rule.folder = open(folder.c_str(), O_PATH | O_CLOEXEC);
        if (rule.folder < 0) continue;
        fine = fine && syscall(kAddRule, set, 1 /* beneath */, &rule, 0u) == 0;
        if (!fine) why = std::strerror(errno);
        close(rule.folder);
    }
    fine = fine && syscall(kRestrictSelf, set, 0u) == 0;
    if (!fine && why.empty()) why = std::strerror(errno);
    close(set);
    return fine ? static_cast<int>(abi) : 0;
}

bool limit(decltype(RLIMIT_AS) what, rlim_t soft, rlim_t hard) {
    rlimit now{};
    if (getrlimit(what, &now) != 0) return false;
    now.rlim_max = std::min(hard, now.rlim_max);
    now.rlim_cur = std::min(soft, now.rlim_max);
    return setrlimit(what, &now) == 0;
}

void prefer_to_kill() {
    const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    [[maybe_unused]] const auto written = write(file, "1000", 4);
    close(file);
}

} // namespace

void settle(int keep) {
    if (syscall(kCloseRange, static_cast<unsigned>(keep) + 1, ~0u, 0u) != 0)
        for (long fd = keep + 1, end = sysconf(_SC_OPEN_MAX); fd < std::min(end, 65536L); ++fd)
            close(static_cast<int>(fd));
    (void)setpgid(0, 0);
    (void)setpriority(PRIO_PROCESS, 0, 10);
    prefer_to_kill();
    [[maybe_unused]] const int moved = chdir("/"); // a folder that somebody wants to unmount
    umask(077);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); // a host that is gone before this has closed the socket
}

void limit_resources(std::uint64_t memory, Confinement& confinement) {
    (void)limit(RLIMIT_CORE, 0, 0);
    (void)limit(RLIMIT_FSIZE, 0, 0);
    (void)limit(RLIMIT_NOFILE, 64, 64);
    if (memory != 0 && !kSanitized) confinement.memory = limit(RLIMIT_AS, memory, memory);
    if (!confinement.memory)
        confinement.missing.emplace_back(kSanitized ? "memory limit (a build with sanitizers)" : "memory limit");
}

void lock_down(const std::string& folder, Confinement& confinement) {
    std::string why;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        confinement.missing.emplace_back("seccomp and landlock (the kernel refuses to give up privileges)");
        return;
    }
    std::vector<Allowed> folders;
    if (!folder.empty()) folders.push_back({folder});
    confinement.landlock = landlock(folders, 0, why);
    if (confinement.landlock == 0) confinement.missing.push_back(fmt::format("landlock ({})", why));
    confinement.seccomp = filter_system_calls(confinement.landlock != 0, why);
    if (!confinement.seccomp) confinement.missing.push_back(fmt::format("seccomp ({})", why));
}

void allow_devices(Confinement& confinement) {
    std::string why;
    (void)limit(RLIMIT_CORE, 0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        confinement.missing.emplace_back("landlock (the kernel refuses to give up privileges)");
        return;
    }
    constexpr auto read = kReadFile | kReadFolder, use = read | kWriteFile | kTruncate | kControl;
    confinement.landlock = landlock({{"/", read}, {"/dev", use}, {"/proc", use}}, kExecute, why);
    if (confinement.landlock == 0) confinement.missing.push_back(fmt::format("landlock ({})", why));
}

void lock_calls(Confinement& confinement) {
    std::string why;
    confinement.seccomp = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && deny_system_calls(why);
    if (!confinement.seccomp) confinement.missing.push_back(fmt::format("seccomp ({})", why));
}

void limit_compile(std::uint64_t memory, std::chrono::milliseconds time) {
    if (!kSanitized) (void)limit(RLIMIT_AS, memory == 0 ? RLIM_INFINITY : memory, RLIM_INFINITY);
    rusage used{};
    if (getrusage(RUSAGE_SELF, &used) != 0) return;
    const auto spent = used.ru_utime.tv_sec + used.ru_stime.tv_sec;
    const auto more = std::chrono::ceil<std::chrono::seconds>(time).count() + 5;
    (void)limit(RLIMIT_CPU, static_cast<rlim_t>(spent + 4 * more), RLIM_INFINITY); // NVRTC may use several threads
}

} // namespace cubridge::runtime::worker

std::string cubridge::runtime::Confinement::text() const {
    auto line = fmt::format("seccomp {}, landlock {}, memory limit {}", seccomp ? "yes" : "no",
                            landlock != 0 ? fmt::format("ABI {}", landlock) : "no", memory ? "yes" : "no");
    if (!missing.empty()) line += fmt::format("; missing: {}", fmt::join(missing, ", "));
    return line;
}
