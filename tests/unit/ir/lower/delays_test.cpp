// Where delays stand, and that nothing else changes. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/calls.h"
#include "ir/lower/delays.h"
#include "tests/unit/ir/lower/hopper.h"
#include <gtest/gtest.h>

namespace cubridge::ir::lower {
namespace {

std::string trimmed(const std::string& line) {
    return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

bool delay(const std::string& line) {
    return trimmed(line).rfind("cb_delay(", 0) == 0;
}

/// The line after each delay that stands first in its region, without indentation; "" for one that stands last.
std::vector<std::string> delayed_lines(const std::string& cuda) {
    std::vector<std::string> out;
    const auto margin = *take_apart(cuda);
    for (const auto& s : margin.segments)
        for (std::size_t k = 0; k < s.cuda.size(); ++k)
            if (delay(s.cuda[k])) out.push_back(k + 1 < s.cuda.size() ? trimmed(s.cuda[k + 1]) : "");
    return out;
}

TEST(DelaysTest, NothingElseChanges) {
    for (const std::string& expert : {test::expert_text(), test::hopper_text()}) {
        const auto with = with_delays(expert);
        ASSERT_TRUE(with) << with.error().message;
        auto margin = *take_apart(*with);
        int number = 0;
        for (auto& s : margin.segments)
            for (std::size_t k = s.cuda.size(); k-- > 0;)
                if (delay(s.cuda[k])) s.cuda.erase(s.cuda.begin() + static_cast<std::ptrdiff_t>(k)), ++number;
        EXPECT_NE(with->find("cb_delay(" + std::to_string(number - 1) + ");"), std::string::npos) << "numbered from 0";
        EXPECT_NE(margin.preamble.find(std::string("__constant__ unsigned ") + kDelaySeed), std::string::npos);
        margin.preamble.resize(take_apart(expert)->preamble.size());
        EXPECT_EQ(join(margin), expert);
    }
}

// Where agents meet: once before each such call, and nowhere else.
TEST(DelaysTest, StandWhereAgentsMeet) {
    const auto lines = delayed_lines(*with_delays(test::expert_text()));
    const std::vector<std::string> expected{
        "", // the role
        "", // an item
        "copy_async<32 * W>(Qs, Q.rows(b, h, m * BM, (m + 1) * BM), Sq);",
        "copy_async<32 * W>(Ks[0], K.rows(b, h / G, n * BN, (n + 1) * BN), Sk);",
        "wait_copies<0>();",
        "bar_sync(everyone, 32 * W);",
        "copy_async<32 * W>(Vs[s], V.rows(b, h / G, n * BN, (n + 1) * BN), Sk);",
        "gemm(S, Qs[g], transposed(Ks[s]));",
        "wait_copies<0>();",
        "bar_sync(everyone, 32 * W);",
        "copy_async<32 * W>(Ks[(k + 1) % ST], K.rows(b, h / G, y * BN, (y + 1) * BN), Sk);",
        "gemm_add(acc, P, Vs[s]);",
        "store(Qs[g], acc);",
        "copy(Out.rows(b, h, i0, i0 + R), Sq, Qs[g]);",
        "bar_sync(everyone, 32 * W);"};
    EXPECT_EQ(lines, expected);
}

TEST(DelaysTest, RolesAreLateOnlyOnceTheyHaveTheirRegisters) {
    const std::string cuda = *with_delays(test::hopper_text());
    int roles = 0;
    const auto margin = *take_apart(cuda);
    for (const auto& s : margin.segments) {
        if (s.margin.find("with role") == std::string::npos) continue;
        ++roles;
        EXPECT_TRUE(delay(s.cuda.back())) << s.margin;
        EXPECT_EQ(std::count_if(s.cuda.begin(), s.cuda.end(), delay), 1) << s.margin;
    }
    EXPECT_EQ(roles, 4);
    for (const char* line :
         {"wait(k_full[s], u);", "sync(turn[g], 256);", "arrive(turn[(g + 1) % WG], 256);", "wait_gemm<1>(S);",
          "gemm_async(acc, P, Vs[t], !start);", "arrive(o_full[old * WG + g]);", "fence_async();",
          "items.publish(true, b, h, m, ranges);", "wait_stores<0>();", "items.take(more, b, h, m, ranges);"}) {
        const auto lines = delayed_lines(cuda);
        EXPECT_NE(std::find(lines.begin(), lines.end(), line), lines.end()) << line;
    }
    for (const char* line : {"scores(S, b, h, i0, n, masked, x);", "pack(P, p);", "while (more) {"}) {
        const auto lines = delayed_lines(cuda);
        EXPECT_EQ(std::find(lines.begin(), lines.end(), line), lines.end()) << line;
    }
}

// Threads of a map go their own ways: one that waits for its warp would wait forever. Whatever its region calls.
TEST(DelaysTest, MapsHaveNone) {
    const auto lowered =
        test::on_hopper(test::read_file("tests/corpus/transfer_sm90/serving_differential_attention__0.py"));
    ASSERT_TRUE(lowered) << test::message(lowered);
    auto margin = *take_apart(lowered->cuda);
    bool map = false, called = false;
    for (auto& s : margin.segments) {
        map = trimmed(s.margin).rfind('@', 0) == 0 ? s.margin.find("@map") != std::string::npos : map;
        if (!map || s.cuda.empty() || s.cuda.back().empty() || s.cuda.back().back() != ';') continue;
        s.cuda.insert(s.cuda.begin(), "__syncwarp();");
        called = true;
    }
    ASSERT_TRUE(called);
    const auto cuda = with_delays(join(margin));
    ASSERT_TRUE(cuda) << cuda.error().message;
    const auto with = *take_apart(*cuda);
    int delays = 0;
    for (const auto& s : with.segments) {
        map = trimmed(s.margin).rfind('@', 0) == 0 ? s.margin.find("@map") != std::string::npos : map;
        const auto here = std::count_if(s.cuda.begin(), s.cuda.end(), delay);
        EXPECT_TRUE(!map || here == 0) << s.margin;
        delays += static_cast<int>(here);
    }
    EXPECT_GT(delays, 50);
}

TEST(DelaysTest, RefusesWhatHasNoPlaceOrDelays) {
    const auto twice = with_delays(*with_delays(test::expert_text()));
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().message, "there are delays");
    EXPECT_FALSE(with_delays("int x;\n"));
    auto margin = *take_apart(test::expert_text());
    for (auto& s : margin.segments) s.cuda.clear();
    const auto none = with_delays(join(margin));
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().message, "no place where agents meet");
}

TEST(CallsTest, WhichMeetOthers) {
    for (const char* call : {"wait(k_full[s],u)", "items.take(more,b)", "copy_async<32*W>(Qs,Q.rows(b))",
                             "wait_gemm<0>(acc,P)", "fence_async()", "asm"})
        EXPECT_TRUE(meets_others(call)) << call;
    for (const char* call :
         {"pack(P,p)", "__any_sync(~0u,some)", "store_rows<float,R>(Lse.rows(b))", "begin_roles()", "waiting(x)", ""})
        EXPECT_FALSE(meets_others(call)) << call;
}

} // namespace
} // namespace cubridge::ir::lower
