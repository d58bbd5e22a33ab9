// One worker process, from its start to its end.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/worker/messages.h"
#include <condition_variable>
#include <mutex>
#include <sys/types.h>
#include <thread>

namespace cubridge::runtime::worker {

/// Started with nothing of ours but a socket. Killed and waited for at its end, whatever the host does with SIGCHLD: if
/// the host took its exit status, that is no error. One thread at a time.
class Process {
public:
    /// Starts `file` and greets it. `visible`: of GPUs, for one that runs kernels. Faults: "worker" (it could not be
    /// started, is of another build, or did not answer as a worker), "no_compiler" and what else the worker found wrong
    /// with its NVRTC.
    static Outcome<std::unique_ptr<Process>> start(const std::string& file, const Hello& hello,
                                                   Clock::time_point deadline, const std::string& visible = "");
    ~Process();
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    const Ready& ready() const { return ready_; }

    /// Faults beyond those of a compile: "died" (it is gone, of its own or by somebody else), "worker" (it answered
    /// what is no answer), "deadline" and "memory" (it was killed for it). After any of these it is of no more use.
    Outcome<CompileResult> compile(const Request& request, Clock::time_point deadline);
    Outcome<Answer> verify(const Question& question, std::uint64_t memory, Clock::time_point deadline);
    bool usable() const { return usable_; }
    /// Between two compiles: whether it lives and keeps silent.
    bool idle() const;
    /// In a child that was made by fork: lets go of what is the parent's. The object can't be destroyed there.
    void disown();

private:
    Process() = default;
    bool spawn(const std::string& file, int socket, const std::vector<std::string>& variables, std::string& why);
    void keep(const std::string& file, int socket, const std::vector<std::string>& variables); ///< what the keeper does
    Outcome<void> greet(const Hello& hello, Clock::time_point deadline);
    void kill();
    std::string reap(); ///< how it ended: "by signal 9"; empty where that is not known
    /// Sends a frame and waits for its answer. `doing`: "compiling".
    Outcome<Frame> ask(Message message, const std::string& body, const char* doing, std::uint64_t memory,
                       Clock::time_point deadline);
    Fault lost(const Fault& fault, const char* doing);

    struct Meter;

    pid_t pid_ = -1;
    int socket_ = -1, handle_ = -1 /* pidfd */, sizes_ = -1 /* its statm */;
    bool usable_ = false;
    Ready ready_;

    // The system kills a worker with the thread that started it: so one thread starts it and lives as long.
    std::thread keeper_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool started_ = false, ended_ = false;
    std::string why_; ///< it could not be started
};

} // namespace cubridge::runtime::worker
