// A seccomp filter, written out. What is not listed fails with an error and does not kill: NVRTC tries things that it
// can do without (libcuda, a cache, a temporary file).
// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker/filter.h"
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace cubridge::runtime::worker {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kMachine = 0;
#endif

constexpr long kClone3 = 435; // newer than some systems' headers

/// No argument of these reaches another process, the network, or a file that is not open.
constexpr long kHarmless[] = {
    // the socket, and files that are open
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_recvfrom,
    SYS_sendto,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_ppoll,
    SYS_close,
    SYS_fstat,
    SYS_lseek,
    SYS_getcwd,
    // memory
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_membarrier,
    // threads and signals of its own
    SYS_futex,
    SYS_set_robust_list,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_exit,
    SYS_exit_group,
    SYS_restart_syscall,
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_poll
    SYS_poll,
#endif
    // time and sizes
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_times,
    SYS_getrusage,
    SYS_getrlimit,
    SYS_setrlimit,
    SYS_sysinfo,
    SYS_uname,
    SYS_getcpu,
    SYS_getrandom,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
#ifdef SYS_time
    SYS_time,
#endif
};

/// What a process that drives a GPU has no need of.
constexpr long kForeign[] = {
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept4,
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kill,
    SYS_tkill,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_keyctl,
    SYS_add_key,
    SYS_reboot,
    SYS_sethostname,
    SYS_settimeofday,
    SYS_clock_settime,
    424, // pidfd_send_signal
    425, // io_uring_setup
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
#ifdef SYS_accept
    SYS_accept,
#endif
};

class Filter {
public:
    Filter() { // all but kForeign
        begin();
        for (const long call : kForeign) on(call, {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)});
        own_threads();
        add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    explicit Filter(bool reading) {
        begin();
        for (const long call : kHarmless) on(call, {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)});
        own_threads();
        on(SYS_prlimit64, equals(argument(0), 0));
        on(SYS_prctl, equals(argument(0), PR_SET_NAME));
        on(SYS_newfstatat, all_of(argument(3), AT_EMPTY_PATH)); // how fstat() asks; there are no names to look up
        if (reading) {
            // Only what changes nothing: no O_CREAT, no O_TRUNC, no access but to read.
            constexpr std::uint32_t allowed = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_DIRECTORY;
            on(SYS_openat, none_of(argument(2), ~allowed));
        }
        add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }

    sock_fprog program() { return {static_cast<unsigned short>(code_.size()), code_.data()}; }

private:
    using Code = std::vector<sock_filter>;

    void begin() {
        load(offsetof(seccomp_data, arch));
        add(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0);
        add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
        load(offsetof(seccomp_data, nr)); // x86's second set of numbers begins above all of ours: no list has them
#if defined(__x86_64__)
        add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1);
        add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
#endif
    }
    void own_threads() {
        on(kClone3, {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)}); // its flags can't be seen: clone then
        on(SYS_clone, all_of(argument(0), CLONE_THREAD));
        on(SYS_tgkill, equals(argument(0), static_cast<std::uint32_t>(getpid())));
    }
    void add(unsigned code, std::uint32_t k, unsigned char yes = 0, unsigned char no = 0) {
        code_.push_back({static_cast<unsigned short>(code), yes, no, k});
    }
    void load(std::size_t offset) {
        add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
    }
    /// The lower half, which is all that the kernel looks at of those below.
    static std::uint32_t argument(unsigned n) {
        return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + 8 * n; // little-endian
    }
    /// `then` ends in all its ways with an answer.
    void on(long call, const Code& then) {
        add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, static_cast<unsigned char>(then.size()));
        code_.insert(code_.end(), then.begin(), then.end());
    }
    static Code decide(std::uint32_t offset, std::uint32_t mask, std::uint32_t value) {
        return {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)};
    }
    static Code all_of(std::uint32_t offset, std::uint32_t bits) {
        return decide(offset, bits, bits);
    }
    static Code none_of(std::uint32_t offset, std::uint32_t bits) {
        return decide(offset, bits, 0);
    }
    static Code equals(std::uint32_t offset, std::uint32_t value) {
        return decide(offset, ~0u, value);
    }

    Code code_;
};

bool install(Filter filter, std::string& why) {
    if (kMachine == 0) {
        why = "not written for this machine";
        return false;
    }
    auto program = filter.program();
    const auto done = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    if (done != 0) why = done > 0 ? "a thread can't be bound" : std::strerror(errno);
    return done == 0;
}

} // namespace

bool filter_system_calls(bool reading, std::string& why) {
    return install(Filter(reading), why);
}

bool deny_system_calls(std::string& why) {
    return install(Filter(), why);
}

} // namespace cubridge::runtime::worker
