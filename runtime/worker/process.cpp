// Starts, watches, kills and reaps a worker.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker/process.h"
#include "runtime/registry/thread.h"
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <new>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace cubridge::runtime::worker {
namespace {

constexpr int kSocket = 3; ///< the worker's
constexpr long kPidfdOpen = 434, kPidfdSendSignal = 424;
constexpr int kPidfd = 3;            ///< P_PIDFD, which older headers lack
constexpr unsigned kGroup = 1u << 2; ///< PIDFD_SIGNAL_PROCESS_GROUP, of Linux 6.9
constexpr auto kStuck = std::chrono::seconds(10);

/// Where libraries are found, and what sanitizers are told. Nothing else of the host's is the worker's business.
std::vector<std::string> environment(const Hello& hello, const std::string& visible) {
    std::vector<std::string> rows = {"LC_ALL=C"};
    if (hello.gpu) { // one GPU, no server that others' faults reach, nothing kept in a file
        rows.insert(rows.end(), {"CUDA_MPS_PIPE_DIRECTORY=/dev/null/none", "CUDA_CACHE_DISABLE=1"});
        if (!visible.empty()) rows.push_back("CUDA_VISIBLE_DEVICES=" + visible);
    }
    for (const char* name : {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"})
        if (const char* value = std::getenv(name); value != nullptr) rows.push_back(fmt::format("{}={}", name, value));
    return rows;
}

struct Actions {
    Actions() { posix_spawn_file_actions_init(&files), posix_spawnattr_init(&attributes); }
    ~Actions() { posix_spawn_file_actions_destroy(&files), posix_spawnattr_destroy(&attributes); }
    Actions(const Actions&) = delete;
    Actions& operator=(const Actions&) = delete;
    posix_spawn_file_actions_t files{};
    posix_spawnattr_t attributes{};
};

std::string ended_how(const siginfo_t& info) {
    if (info.si_code == CLD_EXITED) return fmt::format("with status {}", info.si_status);
    return fmt::format("by signal {} ({})", info.si_status, strsignal(info.si_status));
}

void close_if_open(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
}

} // namespace

/// Looks at what the worker takes while it is waited for.
struct Process::Meter final : Watch {
    /// `held`: the worker's address space is limited, so that it may end at less than `most` bytes in use.
    Meter(int sizes, std::uint64_t most, bool held) : sizes_(sizes), most_(most), held_(held) {}
    bool look() override {
        char text[64];
        const auto got = sizes_ < 0 || most_ == 0 ? 0 : pread(sizes_, text, sizeof text, 0);
        if (got <= 0) return true;
        static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
        std::uint64_t all = 0, resident = 0;
        const auto [at, error] = std::from_chars(text, text + got, all);
        if (error != std::errc() || at == text + got) return true;
        std::from_chars(at + 1, text + got, resident);
        reached_ = std::max(reached_, (held_ ? all : resident) * page);
        over_ = resident * page > most_;
        return !over_;
    }
    bool over() const { return over_; }
    std::uint64_t reached() const { return reached_; } ///< bytes that were seen of what is limited

private:
    const int sizes_;
    const std::uint64_t most_;
    const bool held_;
    std::uint64_t reached_ = 0;
    bool over_ = false;
};

Outcome<std::unique_ptr<Process>> Process::start(const std::string& file, const Hello& hello,
                                                 Clock::time_point deadline, const std::string& visible) {
    std::unique_ptr<Process> process(new Process);
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return Fault{"worker", fmt::format("no socket for a worker: {}", std::strerror(errno))};
    process->socket_ = ends[0];
    try {
        auto* self = process.get();
        process->keeper_ =
            start_thread("cubridge-keep", [self, file, end = ends[1], variables = environment(hello, visible)] {
                self->keep(file, end, variables);
            });
    } catch (const std::system_error& e) {
        close(ends[1]);
        return Fault{"worker", fmt::format("no thread for a worker: {}", e.what())};
    }
    {
        std::unique_lock lock(process->mutex_);
        process->changed_.wait(lock, [&] { return process->started_; });
        if (!process->why_.empty())
            return Fault{"worker", fmt::format("{} can't be started as a worker: {}", file, process->why_)};
    }
    if (auto met = process->greet(hello, deadline); !met) return met.fault();
    process->usable_ = true;
    return process;
}

void Process::keep(const std::string& file, int socket, const std::vector<std::string>& variables) {
    std::string why;
    bool fine = false;
    try {
        fine = spawn(file, socket, variables, why);
    } catch (const std::bad_alloc&) { // said below
    }
    close(socket);
    std::unique_lock lock(mutex_);
    started_ = true;
    if (!fine) why_ = why.empty() ? "no memory" : why;
    changed_.notify_all();
    changed_.wait(lock, [&] { return ended_; });
}

bool Process::spawn(const std::string& file, int socket, const std::vector<std::string>& variables, std::string& why) {
    Actions actions;
    auto* files = &actions.files;
    for (const int fd : {0, 1, 2})
        posix_spawn_file_actions_addopen(files, fd, "/dev/null", fd == 0 ? O_RDONLY : O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(files, socket, kSocket); // equal numbers: the mark to close it is taken off
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    posix_spawn_file_actions_addclosefrom_np(files, kSocket + 1);
#endif // else the worker closes what it finds, first of all
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&actions.attributes, &none);
    posix_spawnattr_setsigdefault(&actions.attributes, &all);
    posix_spawnattr_setpgroup(&actions.attributes, 0);
    posix_spawnattr_setflags(&actions.attributes, static_cast<short>(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                                     POSIX_SPAWN_SETSIGDEF));
    auto rows = variables;
    std::vector<char*> pointers;
    for (auto& row : rows) pointers.push_back(row.data());
    pointers.push_back(nullptr);
    std::string name = "cubridge", role = "worker";
    char* arguments[] = {name.data(), role.data(), nullptr};
    // A descriptor of the host's that has the number of the worker's socket and is the socket's own: dup2 would leave
    // it; a socket below 3 (a host without standard descriptors) would be overwritten by /dev/null.
    int copy = -1;
    if (socket <= kSocket) {
        copy = fcntl(socket, F_DUPFD_CLOEXEC, kSocket + 1);
        if (copy >= 0) posix_spawn_file_actions_adddup2(files, copy, kSocket);
    }
    const int error = posix_spawn(&pid_, file.c_str(), files, &actions.attributes, arguments, pointers.data());
    close_if_open(copy);
    if (error != 0) {
        pid_ = -1;
        why = std::strerror(error);
        return false;
    }
    handle_ = static_cast<int>(syscall(kPidfdOpen, pid_, 0));
    sizes_ = open(fmt::format("/proc/{}/statm", pid_).c_str(), O_RDONLY | O_CLOEXEC);
    return true;
}

Outcome<void> Process::greet(const Hello& hello, Clock::time_point deadline) {
    const auto wrong = [&](const std::string& what) {
        kill();
        const auto how = reap();
        return Fault{"worker", fmt::format("the worker {}{}", what, how.empty() ? "" : "; it ended " + how),
                     "CUBRIDGE_WORKER or the path given should name the `cubridge` of this library"};
    };
    const auto said = [&](const Fault& fault) {
        if (fault.kind == "deadline") return wrong("did not get ready in time");
        return wrong(fault.kind == "closed" ? "ended before it was ready" : "is none: " + fault.message);
    };
    if (auto sent = send_frame(socket_, Message::Hello, write(hello), deadline); !sent) return said(sent.fault());
    auto frame = receive_frame(socket_, deadline);
    if (!frame) return said(frame.fault());
    if (frame->message != Message::Ready || !read(frame->body, ready_))
        return wrong("is none: its greeting is not one");
    if (ready_.build != hello.build)
        return wrong(fmt::format("is of another build, {} and not {}", ready_.build, hello.build));
    if (!ready_.fault.kind.empty()) return ready_.fault;
    if (ready_.pid != pid_) return wrong("is none: it does not know its number");
    return {};
}

Outcome<Frame> Process::ask(Message message, const std::string& body, const char* doing, std::uint64_t memory,
                            Clock::time_point deadline) {
    Meter meter(sizes_, memory, ready_.confinement.memory);
    const auto gone = [&](const Fault& fault) {
        usable_ = false;
        if (meter.over() || (fault.kind == "closed" && memory != 0 && meter.reached() > memory - memory / 4)) {
            kill();
            return Fault{"memory",
                         fmt::format("{} took more than the {} MiB that it was allowed", doing, memory >> 20)};
        }
        return lost(fault, doing);
    };
    if (auto sent = send_frame(socket_, message, body, deadline, &meter); !sent) {
        if (sent.fault().kind == "garbage") return Fault{"worker", sent.fault().message}; // it was not sent
        return gone(sent.fault());
    }
    auto frame = receive_frame(socket_, deadline, &meter);
    if (!frame) return gone(frame.fault());
    return frame;
}

Outcome<CompileResult> Process::compile(const Request& request, Clock::time_point deadline) {
    constexpr char kDoing[] = "compiling";
    const auto frame = ask(Message::Compile, write(request), kDoing, request.memory, deadline);
    if (!frame) return frame.fault();
    Outcome<CompileResult> answer{CompileResult{}};
    const bool fine = frame->message == Message::Compiled && read(frame->body, answer);
    if (!fine || (answer && answer->compiler != ready_.identity)) {
        usable_ = false;
        return lost({"garbage", fine ? "another compiler answered" : "what came is no answer"}, kDoing);
    }
    if (!answer && answer.fault().kind == "memory") usable_ = false; // NVRTC is not asked to have kept its order
    return answer;
}

Outcome<Answer> Process::verify(const Question& question, std::uint64_t memory, Clock::time_point deadline) {
    constexpr char kDoing[] = "running the kernel";
    const auto frame = ask(Message::Verify, write(question), kDoing, memory, deadline);
    if (!frame) return frame.fault();
    Answer answer;
    if (frame->message != Message::Verified || !read(frame->body, answer)) {
        usable_ = false;
        return lost({"garbage", "what came is no answer"}, kDoing);
    }
    if (answer.spent) usable_ = false;
    return answer;
}

bool Process::idle() const {
    pollfd one{socket_, POLLIN, 0};
    return usable_ && poll(&one, 1, 0) == 0;
}

Fault Process::lost(const Fault& fault, const char* doing) {
    const bool died = fault.kind == "closed";
    if (died && handle_ >= 0) { // the socket closes before the process has ended: wait for its own end, not for ours
        pollfd one{handle_, POLLIN, 0};
        (void)poll(&one, 1, 1000);
    }
    kill();
    const auto how = reap();
    if (died) return Fault{"died", fmt::format("the worker died{}", how.empty() ? "" : " " + how)};
    if (fault.kind == "deadline")
        return Fault{"deadline", fmt::format("{} took too long, and the worker was killed", doing)};
    return Fault{"worker", "the worker gave no proper answer: " + fault.message};
}

void Process::kill() {
    if (pid_ <= 0) return;
    if (handle_ < 0) {
        (void)::kill(-pid_, SIGKILL);
        (void)::kill(pid_, SIGKILL);
    } else if (syscall(kPidfdSendSignal, handle_, SIGKILL, nullptr, kGroup) != 0) {
        (void)syscall(kPidfdSendSignal, handle_, SIGKILL, nullptr, 0u);
    }
}

std::string Process::reap() {
    if (pid_ <= 0) return {};
    const auto until = Clock::now() + kStuck; // one that hangs in the kernel is given up
    siginfo_t info{};
    for (;;) {
        if (handle_ >= 0) {
            pollfd one{handle_, POLLIN, 0};
            if (poll(&one, 1, 100) < 0 && errno != EINTR) break;
        }
        info = {};
        const auto done = waitid(handle_ >= 0 ? static_cast<idtype_t>(kPidfd) : P_PID,
                                 static_cast<id_t>(handle_ >= 0 ? handle_ : pid_), &info, WEXITED | WNOHANG);
        const int error = done == 0 ? 0 : errno;
        if (done == 0 && info.si_pid != 0) break;
        if (error == EINVAL && handle_ >= 0) { // Linux 5.3 opens what 5.4 can wait for
            close_if_open(handle_);
            continue;
        }
        if (error != 0 && error != EINTR) break; // the host took its status
        if (Clock::now() >= until) break;
        if (handle_ < 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    pid_ = -1;
    return info.si_pid != 0 ? ended_how(info) : std::string();
}

void Process::disown() {
    for (int* fd : {&socket_, &handle_, &sizes_}) close_if_open(*fd);
}

Process::~Process() {
    close_if_open(socket_);
    kill();
    reap();
    if (keeper_.joinable()) {
        {
            const std::lock_guard lock(mutex_);
            ended_ = true;
        }
        changed_.notify_all();
        keeper_.join();
    }
    close_if_open(handle_);
    close_if_open(sizes_);
}

} // namespace cubridge::runtime::worker
