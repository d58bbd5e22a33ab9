// Starting a worker: what the process is given, and programs that are none.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/runtime/worker/support.h"
#include <fcntl.h>
#include <sys/resource.h>

namespace cubridge::runtime {
namespace {

using namespace testing_worker;

using WorkerProcess = WorkerTest;

Fault fault_of(const Script& script, std::chrono::milliseconds deadline = 5s) {
    auto s = settings();
    s.file = script.file();
    s.longest = deadline;
    const auto result = Workers(s).compile(good_job());
    EXPECT_FALSE(result);
    return result ? Fault{} : result.fault();
}

std::string frame(worker::Message message, const std::string& body) {
    worker::Head head;
    head.message = static_cast<std::uint32_t>(message);
    head.bytes = static_cast<std::uint32_t>(body.size());
    return std::string(reinterpret_cast<const char*>(&head), sizeof head) + body;
}

TEST_F(WorkerProcess, HoldsNothingOfTheHost) {
    const int secret = open("/etc/passwd", O_RDONLY); // without O_CLOEXEC
    Workers workers(settings());
    ASSERT_TRUE(workers.compile(good_job()));
    const auto place = "/proc/" + std::to_string(workers.pids().at(0));
    std::set<std::string> targets;
    for (const auto& entry : std::filesystem::directory_iterator(place + "/fd"))
        targets.insert(std::filesystem::read_symlink(entry.path()).string());
    EXPECT_EQ(targets.size(), 2u);
    EXPECT_EQ(*targets.begin(), "/dev/null");
    EXPECT_EQ(targets.rbegin()->rfind("socket:", 0), 0u) << *targets.rbegin();
    close(secret);

    const auto line = [&](const std::string& file, const std::string& key) {
        std::ifstream stream(place + file);
        for (std::string text; std::getline(stream, text);)
            if (text.rfind(key, 0) == 0) return text.substr(key.size());
        return std::string("none");
    };
    EXPECT_EQ(line("/oom_score_adj", ""), "1000");
    EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(workers.pids().at(0))),
              std::min(19, getpriority(PRIO_PROCESS, 0) + 10));
    EXPECT_EQ(getpgid(workers.pids().at(0)), workers.pids().at(0));
    std::ifstream variables(place + "/environ");
    for (std::string row; std::getline(variables, row, '\0');)
        EXPECT_TRUE(row.rfind("LC_ALL=", 0) == 0 || row.rfind("LD_LIBRARY_PATH=", 0) == 0 ||
                    row.find("SAN_OPTIONS=") != std::string::npos)
            << row;
    if (workers.confinement()->seccomp) {
        EXPECT_EQ(line("/status", "Seccomp:"), "\t2");
        EXPECT_EQ(line("/status", "NoNewPrivs:"), "\t1");
    }
}

TEST_F(WorkerProcess, ThatCantBeStarted) {
    auto s = settings();
    s.file = "/nonexistent/cubridge";
    Workers none(s);
    const auto result = none.compile(good_job());
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "worker");
    EXPECT_EQ(result.fault().message, "/nonexistent/cubridge can't be started as a worker: No such file or directory");
    EXPECT_EQ(none.identity().fault().kind, "worker");

    s.otherwise = *open_nvrtc();
    Workers otherwise(s);
    const auto here = otherwise.compile(good_job());
    ASSERT_TRUE(here);
    EXPECT_EQ(here->where, "process");
    EXPECT_NE(here->note.find("compiled in this process: /nonexistent/cubridge can't be started"), std::string::npos);
    EXPECT_TRUE(otherwise.identity());

    auto foreign = good_job(); // what a model wrote is not compiled in the host, whatever happens
    foreign.foreign = true;
    EXPECT_FALSE(otherwise.compile(foreign));
}

TEST_F(WorkerProcess, ThatIsNone) {
    EXPECT_NE(fault_of(Script("exit 5")).message.find("ended before it was ready; it ended with status 5"),
              std::string::npos);
    EXPECT_NE(fault_of(Script("kill -SEGV $$")).message.find("by signal 11"), std::string::npos);
    EXPECT_NE(
        fault_of(Script("echo hello, here is some text >&3; sleep 60")).message.find("does not begin as a message"),
        std::string::npos);
    EXPECT_EQ(fault_of(Script("sleep 60"), 500ms).kind, "deadline");
    const Script silent("sleep 60");
    const auto met = worker::Process::start(silent.file(), {build_id(), {}, 0}, Clock::now() + 300ms);
    ASSERT_FALSE(met);
    EXPECT_NE(met.fault().message.find("did not get ready in time"), std::string::npos);
    EXPECT_NE(fault_of(Script("cat $bytes >&3; sleep 60", frame(worker::Message::Ready, "what?")))
                  .message.find("its greeting is not one"),
              std::string::npos);
    worker::Head later;
    later.version = 7;
    EXPECT_NE(
        fault_of(Script("cat $bytes >&3; sleep 60", std::string(reinterpret_cast<const char*>(&later), sizeof later)))
            .message.find("version 7"),
        std::string::npos);
}

TEST_F(WorkerProcess, OfAnotherBuild) {
    worker::Ready ready;
    ready.build = "0.0.1-0123456789abcdef";
    const auto fault =
        fault_of(Script("cat $bytes >&3; sleep 60", frame(worker::Message::Ready, worker::write(ready))));
    EXPECT_EQ(fault.kind, "worker");
    EXPECT_EQ(fault.message.find("the worker is of another build, 0.0.1-0123456789abcdef and not "), 0u)
        << fault.message;
    EXPECT_NE(fault.hint, "");

    // And the worker does not serve a library of another build.
    auto met = worker::Process::start(CUBRIDGE_CLI, {"0.0.1-other", {}, 0}, Clock::now() + 5s);
    ASSERT_FALSE(met);
    EXPECT_EQ(met.fault().kind, "worker");
    EXPECT_NE(met.fault().message.find(build_id()), std::string::npos) << met.fault().message;
}

TEST_F(WorkerProcess, AnswersGarbage) {
    worker::Ready ready;
    ready.build = build_id();
    ready.identity = "nvrtc 13.0 0123456789abcdef";
    auto hello = frame(worker::Message::Ready, worker::write(ready));
    // Its number is one that the file can't know: the script writes it into the frame.
    const auto at = sizeof(worker::Head) + 8 + ready.build.size();
    const std::string head = "head -c " + std::to_string(at) +
                             " $bytes >&3; n=$$; for i in 1 2 3 4; do printf "
                             "\"\\\\$(printf %03o $((n % 256)))\" >&3; n=$((n / 256)); done; tail -c +" +
                             std::to_string(at + 5) + " $bytes >&3; ";
    const Script garbage(head + "sleep 60", hello + frame(worker::Message::Compiled, "no answer at all"));
    const auto fault = fault_of(garbage);
    EXPECT_EQ(fault.kind, "worker");
    EXPECT_EQ(fault.message, "the worker gave no proper answer: what came is no answer");

    CompileResult forged; // an answer of another compiler than the one that was greeted
    forged.cubin.resize(8);
    forged.compiler = "nvrtc 1.0";
    const Script other(head + "sleep 60", hello + frame(worker::Message::Compiled, worker::write(forged)));
    EXPECT_EQ(fault_of(other).message, "the worker gave no proper answer: another compiler answered");
}

TEST_F(WorkerProcess, ThatDoesNotStartIsNotTriedAgainAtOnce) {
    const Script script("echo x >>$bytes; exit 1");
    auto s = settings();
    s.file = script.file();
    Workers workers(s);
    for (int k = 0; k < 20; ++k) EXPECT_EQ(workers.compile(good_job()).fault().kind, "worker");
    std::ifstream file(std::filesystem::path(script.file()).parent_path() / "bytes");
    int starts = 0;
    for (std::string line; std::getline(file, line);) ++starts;
    EXPECT_EQ(starts, 1);
}

} // namespace
} // namespace cubridge::runtime
