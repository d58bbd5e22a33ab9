// Compiling in a worker: it is a Compiler, and whatever becomes of the worker is an answer.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/runtime/compiler/compiler_conformance.h"
#include "tests/unit/runtime/worker/support.h"
#include <csignal>
#include <thread>

namespace cubridge::runtime {
namespace {

using namespace testing_worker;

using WorkerCompiles = WorkerTest;
using WorkerDies = WorkerTest;

TEST_F(WorkerCompiles, Conforms) {
    auto s = settings();
    s.processes = 2;
    conforms(*open_worker(s));
}

TEST_F(WorkerCompiles, TheSameCubinAsInThisProcess) {
    const auto here = *open_nvrtc();
    Workers workers(settings());
    const auto a = here->compile(good_job()), b = workers.compile(good_job());
    ASSERT_TRUE(a && b) << (b ? "" : b.fault().text());
    EXPECT_EQ(a->cubin, b->cubin);
    EXPECT_EQ(a->compiler, b->compiler);
    EXPECT_EQ(a->where, "process");
    EXPECT_EQ(b->where, "worker");
    EXPECT_EQ(b->note, "");
    EXPECT_EQ(here->location(), workers.location());
}

TEST_F(WorkerCompiles, KeepsItsProcess) {
    Workers workers(settings());
    EXPECT_TRUE(workers.pids().empty()); // nothing is started before it is needed
    ASSERT_TRUE(workers.compile(good_job()));
    const auto pids = workers.pids();
    auto broken = good_job();
    broken.source += "int x = ;\n";
    EXPECT_EQ(workers.compile(broken).fault().message, "kernel.cu(5): error: expected an expression");
    ASSERT_TRUE(workers.compile(good_job()));
    EXPECT_EQ(workers.pids(), pids);
}

TEST_F(WorkerCompiles, TwentyCallersAtOnce) {
    auto s = settings();
    s.processes = 2;
    Workers workers(s);
    const auto expected = workers.compile(good_job());
    ASSERT_TRUE(expected);
    std::vector<std::thread> callers;
    std::atomic<int> right{0};
    for (int k = 0; k < 20; ++k)
        callers.emplace_back([&, k] {
            auto job = good_job();
            if (k % 2 == 1) job.source += "int x = ;\n";
            const auto result = workers.compile(job);
            right +=
                k % 2 == 1 ? !result && result.fault().kind == "compile" : result && result->cubin == expected->cubin;
        });
    for (auto& caller : callers) caller.join();
    EXPECT_EQ(right, 20);
    EXPECT_EQ(workers.pids().size(), 2u);
}

TEST_F(WorkerDies, AtTheDeadline) {
    Workers workers(settings());
    ASSERT_TRUE(workers.compile(good_job()));
    auto job = endless_job();
    job.deadline = 1500ms;
    const auto begin = Clock::now();
    const auto result = workers.compile(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "deadline") << result.fault().text();
    EXPECT_GE(since(begin), 1500ms);
    EXPECT_LT(since(begin), 3500ms);
    EXPECT_TRUE(workers.pids().empty());
    EXPECT_TRUE(workers.compile(good_job()));
}

TEST_F(WorkerDies, WaitingForItsTurnCounts) {
    Workers workers(settings());
    ASSERT_TRUE(workers.compile(good_job()));
    std::thread other([&] {
        auto job = endless_job();
        job.deadline = 2500ms;
        EXPECT_EQ(workers.compile(job).fault().kind, "deadline");
    });
    std::this_thread::sleep_for(300ms);
    auto job = good_job();
    job.deadline = 500ms;
    const auto result = workers.compile(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "deadline");
    EXPECT_NE(result.fault().message.find("other compiles"), std::string::npos);
    other.join();
}

/// Kills the first worker that is seen other than `last`; its number.
int kill_next(const Workers& workers, int last) {
    for (const auto begin = Clock::now(); since(begin) < 30s;) {
        for (const int pid : workers.pids())
            if (pid != last) {
                std::this_thread::sleep_for(300ms); // in the middle of its compile
                kill(pid, SIGKILL);
                return pid;
            }
        std::this_thread::sleep_for(5ms);
    }
    return 0;
}

TEST_F(WorkerDies, OnceIsTriedAgainTwiceIsRefused) {
    Workers workers(settings());
    auto job = endless_job();
    job.deadline = 60s;
    std::thread killer([&] {
        const int first = kill_next(workers, 0);
        kill_next(workers, first);
    });
    const auto result = workers.compile(job);
    killer.join();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "worker");
    EXPECT_EQ(result.fault().message, "the worker died by signal 9 (Killed), 2 times while it compiled this text");
    EXPECT_TRUE(workers.pids().empty());

    const auto again = workers.compile(job); // at once, without a worker
    ASSERT_FALSE(again);
    EXPECT_EQ(again.fault().message, "2 workers died while they compiled this text: it is refused");
    EXPECT_TRUE(workers.pids().empty());
    EXPECT_TRUE(workers.compile(good_job()));
}

/// Until it is dead; it is still there to be waited for.
void kill_and_see(int pid) {
    siginfo_t info{};
    kill(pid, SIGKILL);
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
}

TEST_F(WorkerDies, BetweenTwoCompiles) {
    Workers workers(settings());
    ASSERT_TRUE(workers.compile(good_job()));
    const int pid = workers.pids().at(0);
    kill_and_see(pid);
    ASSERT_TRUE(workers.compile(good_job()));
    EXPECT_NE(workers.pids().at(0), pid);

    // The next text is not blamed: it may still kill one.
    const int last = workers.pids().at(0);
    kill_and_see(last);
    std::thread killer([&] { kill_next(workers, last); });
    auto job = endless_job();
    job.deadline = 3s;
    EXPECT_EQ(workers.compile(job).fault().kind, "deadline");
    killer.join();
}

TEST_F(WorkerDies, OfMemory) {
    auto s = settings();
    s.memory = std::uint64_t{1} << 30;
    Workers workers(s);
    auto job = good_job();
    job.source += "template <int N, long M> struct F { static constexpr long v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + "
                  "1>::v; };\n"
                  "template <long M> struct F<0, M> { static constexpr long v = M; };\n"
                  "static_assert(F<28, 1>::v != 0, \"\");\n";
    job.deadline = 60s;
    const auto result = workers.compile(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "memory") << result.fault().text() << result.fault().detail;
    EXPECT_TRUE(workers.compile(good_job()));
}

// ---- What the host does with SIGCHLD ------------------------------------------------------------------------------

/// For the time of a test.
class OnChild {
public:
    explicit OnChild(void (*handler)(int)) {
        struct sigaction action {};
        action.sa_handler = handler;
        sigaction(SIGCHLD, &action, &before_);
    }
    ~OnChild() { sigaction(SIGCHLD, &before_, nullptr); }
    OnChild(const OnChild&) = delete;
    OnChild& operator=(const OnChild&) = delete;

private:
    struct sigaction before_ {};
};

void reap_all(int) {
    const int error = errno;
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    errno = error;
}

void kill_and_go_on() {
    Workers workers(settings());
    ASSERT_TRUE(workers.compile(good_job()));
    kill(workers.pids().at(0), SIGKILL);
    std::this_thread::sleep_for(50ms);
    ASSERT_TRUE(workers.compile(good_job()));
    auto job = endless_job();
    job.deadline = 700ms;
    EXPECT_EQ(workers.compile(job).fault().kind, "deadline");
    ASSERT_TRUE(workers.compile(good_job()));
}

TEST_F(WorkerDies, WhereSigchldIsIgnored) {
    const OnChild scope(SIG_IGN);
    kill_and_go_on();
}

TEST_F(WorkerDies, WhereOthersTakeItsStatus) {
    const OnChild scope(reap_all);
    kill_and_go_on();
}

TEST_F(WorkerDies, WithTheHost) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t host = fork();
    if (host == 0) {
        auto* workers = new Workers(settings());
        const bool fine = static_cast<bool>(workers->compile(good_job()));
        const int pid = fine ? workers->pids().at(0) : 0;
        [[maybe_unused]] const auto written = write(ends[1], &pid, sizeof pid);
        raise(SIGKILL);
    }
    int pid = 0;
    ASSERT_EQ(read(ends[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
    EXPECT_GT(pid, 0);
    waitpid(host, nullptr, 0);
    const auto state = [&] { // of a process that is nobody's child any more: dead, or waiting for init
        std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
        std::string line;
        return std::getline(file, line) ? line.substr(line.rfind(')') + 2, 1) : "gone";
    };
    for (int k = 0; k < 200 && state() != "gone" && state() != "Z"; ++k) std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(state() == "gone" || state() == "Z") << state();
    close(ends[0]);
    close(ends[1]);
}

TEST_F(WorkerDies, NotWithAForkOfTheHost) {
    Workers workers(settings());
    ASSERT_TRUE(workers.compile(good_job()));
    const auto pids = workers.pids();
    const pid_t child = fork();
    if (child == 0) {
        const auto result = workers.compile(good_job());
        workers.~Workers();
        _exit(!result && result.fault().kind == "worker" ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(workers.compile(good_job()));
    EXPECT_EQ(workers.pids(), pids);
}

} // namespace
} // namespace cubridge::runtime
