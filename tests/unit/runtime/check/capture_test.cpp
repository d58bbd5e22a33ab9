// Programs that are run to their end, or to ours. SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/capture.h"
#include <fstream>
#include <gtest/gtest.h>
#include <thread>

namespace cubridge::runtime {
namespace {

using namespace std::chrono_literals;

Outcome<Captured> shell(const std::string& text, std::chrono::milliseconds longest = {}) {
    return capture({"/bin/sh", "-c", text}, longest);
}

TEST(Capture, BothStreamsAndTheStatus) {
    const auto ran = shell("echo one; echo two >&2; cat; exit 9");
    ASSERT_TRUE(ran) << ran.fault().text();
    EXPECT_EQ(ran->output, "one\ntwo\n");
    EXPECT_EQ(ran->status, 9);
    EXPECT_FALSE(ran->ended);
    const auto killed = shell("kill -9 $$");
    ASSERT_TRUE(killed);
    EXPECT_EQ(killed->status, 128 + 9);
}

TEST(Capture, WhatTakesTooLongIsEndedWithItsChildren) {
    const auto begin = std::chrono::steady_clock::now();
    const auto ran = shell("sleep 100 & echo $!; sleep 100", 300ms);
    ASSERT_TRUE(ran);
    EXPECT_TRUE(ran->ended);
    const std::string child = "/proc/" + ran->output.substr(0, ran->output.find('\n')) + "/cmdline";
    const auto lives = [&] { return std::ifstream(child).peek() != std::ifstream::traits_type::eof(); };
    while (lives() && std::chrono::steady_clock::now() - begin < 20s) std::this_thread::sleep_for(10ms);
    EXPECT_FALSE(lives());
}

TEST(Capture, MuchOutputAndNoSuchProgram) {
    const auto much = shell("head -c 1000000 /dev/zero", 30s);
    ASSERT_TRUE(much);
    EXPECT_EQ(much->output.size(), 1000000U);
    const auto none = capture({"/no/such/program"});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.fault().kind, "environment");
}

} // namespace
} // namespace cubridge::runtime
