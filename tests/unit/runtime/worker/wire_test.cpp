// Frames and messages: as written, and anything else.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/runtime/worker/support.h"
#include <random>
#include <sys/socket.h>
#include <thread>

namespace cubridge::runtime::worker {
namespace {

using namespace std::chrono_literals;

struct Pair {
    Pair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0); }
    ~Pair() { drop(0), drop(1); }
    void drop(int k) {
        if (ends[k] >= 0) close(ends[k]);
        ends[k] = -1;
    }
    int ends[2] = {-1, -1};
};

Outcome<CompileResult> a_result() {
    CompileResult r;
    r.cubin = {std::byte{1}, std::byte{0}, std::byte{255}};
    r.log = "kernel.cu(1): warning";
    r.entries = {{"a", 1, 2, 3, 4, 5, 6}, {"b", 7, 8, 9, 10, 11, 12}};
    r.remarks = {"(C7510) x", ""};
    r.milliseconds = 1.25;
    r.compiler = "nvrtc";
    return r;
}

TEST(WorkerWire, BigFramesBothWays) {
    Pair pair;
    const std::string big(5 << 20, 'x');
    std::thread other([&] {
        const auto frame = receive_frame(pair.ends[1], Clock::now() + 10s);
        ASSERT_TRUE(frame);
        EXPECT_TRUE(send_frame(pair.ends[1], Message::Compiled, frame->body, Clock::now() + 10s));
    });
    ASSERT_TRUE(send_frame(pair.ends[0], Message::Compile, big, Clock::now() + 10s));
    const auto frame = receive_frame(pair.ends[0], Clock::now() + 10s);
    other.join();
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->message, Message::Compiled);
    EXPECT_EQ(frame->body, big);
}

TEST(WorkerWire, EndsOfAWait) {
    Pair pair;
    EXPECT_EQ(receive_frame(pair.ends[0], Clock::now() + 50ms).fault().kind, "deadline");
    // Nobody reads: a frame that no buffer holds is given up too.
    EXPECT_EQ(send_frame(pair.ends[0], Message::Hello, std::string(8 << 20, 'x'), Clock::now() + 50ms).fault().kind,
              "deadline");
    struct Twice final : Watch {
        bool look() override { return ++looks < 2; }
        int looks = 0;
    } watch;
    EXPECT_EQ(receive_frame(pair.ends[0], Clock::now() + 10s, &watch).fault().kind, "watch");
    EXPECT_EQ(watch.looks, 2);
    pair.drop(1);
    EXPECT_EQ(receive_frame(pair.ends[0], Clock::now() + 10s).fault().kind, "closed");
    EXPECT_EQ(send_frame(pair.ends[0], Message::Hello, "x", Clock::now() + 10s).fault().kind, "closed"); // no SIGPIPE
}

TEST(WorkerWire, HeadsThatAreNone) {
    for (int k = 0; k < 3; ++k) {
        Pair pair;
        Head head;
        if (k == 0) head.magic ^= 1;
        if (k == 1) head.version = 99;
        if (k == 2) head.bytes = kMostBytes + 1;
        ASSERT_EQ(::write(pair.ends[1], &head, sizeof head), static_cast<ssize_t>(sizeof head));
        EXPECT_EQ(receive_frame(pair.ends[0], Clock::now() + 1s).fault().kind, "garbage") << k;
    }
    Pair pair; // a frame that ends in the middle
    Head head;
    head.bytes = 100;
    ASSERT_EQ(::write(pair.ends[1], &head, sizeof head), static_cast<ssize_t>(sizeof head));
    pair.drop(1);
    EXPECT_EQ(receive_frame(pair.ends[0], Clock::now() + 1s).fault().kind, "closed");
}

TEST(WorkerMessages, AreReadAsWritten) {
    Request request;
    request.job = {"text", "a.cu", "sm_90a", {"-G", ""}, {{"h.h", "t"}, {"", ""}}, 1234ms};
    request.memory = 1ull << 40;
    request.gated = false;
    Request read_back;
    ASSERT_TRUE(read(write(request), read_back));
    EXPECT_EQ(write(read_back), write(request));
    EXPECT_EQ(read_back.job.headers.at(0).name, "h.h");
    EXPECT_EQ(read_back.job.deadline, 1234ms);
    EXPECT_FALSE(read_back.gated);

    Outcome<CompileResult> answer{Fault{}};
    ASSERT_TRUE(read(write(a_result()), answer));
    EXPECT_EQ(write(answer), write(a_result()));
    EXPECT_EQ(answer->entries.at(1).barriers, 12);
    EXPECT_EQ(answer->milliseconds, 1.25);
    ASSERT_TRUE(read(write(Outcome<CompileResult>(Fault{"compile", "m", "h", 6, "d"})), answer));
    EXPECT_EQ(answer.fault().kind + answer.fault().message + answer.fault().hint + answer.fault().detail, "compilemhd");
    EXPECT_EQ(answer.fault().code, 6);

    Ready ready, ready_back;
    ready.build = "b";
    ready.pid = 77;
    ready.confinement = {true, 7, false, {"memory limit"}};
    ASSERT_TRUE(read(write(ready), ready_back));
    EXPECT_EQ(write(ready_back), write(ready));
    EXPECT_EQ(ready_back.confinement.text(), "seccomp yes, landlock ABI 7, memory limit no; missing: memory limit");
}

/// Cut, lengthened or changed, an answer is refused or read as something: nothing is read beyond it.
TEST(WorkerMessages, AnythingElseIsRefused) {
    const auto body = write(a_result());
    Outcome<CompileResult> answer{Fault{}};
    for (std::size_t length = 0; length < body.size(); ++length)
        EXPECT_FALSE(read(std::string_view(body).substr(0, length), answer)) << length;
    EXPECT_FALSE(read(body + '\0', answer));
    std::mt19937 random(1);
    for (int k = 0; k < 20000; ++k) {
        auto changed = body;
        for (int n = 0; n < 3; ++n) changed[random() % changed.size()] = static_cast<char>(random());
        (void)read(changed, answer);
    }
    Writer lie; // a list of 2^61 texts, of which none is there
    lie.number(1).bytes({std::byte{1}}).text("").number(0).number(std::uint64_t{1} << 61);
    EXPECT_FALSE(read(lie.body, answer));
}

} // namespace
} // namespace cubridge::runtime::worker
