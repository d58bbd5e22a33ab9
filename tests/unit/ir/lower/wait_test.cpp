// Wait counts, derived from the copy-in queue. SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/lower/orchestration.h"
#include <gtest/gtest.h>

namespace cubridge::ir::lower {
namespace {

using test::edited;
using test::message;

constexpr char kLoop[] =
    "                wait(Ks[s])                                 # this warp's share of K, and of Q\n";
constexpr char kNextValues[] = "copy_async(V[b, h // G, n * BN:(n + 1) * BN], ";

/// The counts of the waits of a program, in order, or why there are none.
std::string counts(const std::string& program) {
    const auto r = test::lowered(program);
    if (!r) return message(r);
    std::string out;
    for (auto at = r->cuda.find("wait_copies<", r->cuda.find("//| @kernel")); at != std::string::npos;
         at = r->cuda.find("wait_copies<", at + 1))
        out += r->cuda.substr(at + 12, r->cuda.find('>', at) - at - 12) + " ";
    return out;
}

TEST(WaitTest, WhatIsCopiedLaterMayStayInFlight) {
    const std::string base = test::base_program();
    EXPECT_EQ(counts(base), "0 0 ");
    EXPECT_EQ(counts(test::keys_one_tile_ahead()), "1 0 ");
    // The values of this tile are asked for before its keys are waited for.
    std::string p = edited(base, "                copy_async(V[b, h // G, n * BN:(n + 1) * BN], Vs[s])\n", "");
    p = edited(p, kLoop, std::string("                ") + kNextValues + "Vs[s])\n" + kLoop);
    EXPECT_EQ(counts(p), "1 0 ");
    // Three copies between: two of them of other storage.
    p = edited(p, kLoop,
               std::string("                ") + kNextValues + "Vs[s])\n                " + kNextValues + "Vs[s])\n" +
                   kLoop);
    EXPECT_EQ(counts(p), "3 0 ");
}

TEST(WaitTest, StagesTellCopiesApart) {
    // With two stages, keys of the next tile are another cell; with one they are the same, which a wait has to cover.
    const std::string ahead = test::keys_one_tile_ahead();
    EXPECT_EQ(counts(ahead), "1 0 ");
    EXPECT_EQ(counts(edited(ahead, "ST=2", "ST=3")), "1 0 ");
    EXPECT_EQ(counts(edited(ahead, "ST=2", "ST=1")), "0 0 ");
}

TEST(WaitTest, AnUnknownStageMayBeAnyOfThem) {
    const std::string p = edited(test::keys_one_tile_ahead(), kLoop, edited(kLoop, "Ks[s]", "Ks[n % ST]"));
    EXPECT_EQ(counts(p), "0 0 ");
}

TEST(WaitTest, CountersOfTheirOwnAreFollowed) {
    std::string p =
        edited(test::keys_one_tile_ahead(), "        for b, h, m in", "        it = 0\n        for b, h, m in");
    p = edited(p, "Ks[0])\n", "Ks[it % ST])\n");
    p = edited(p, "                s = k % ST\n", "                u, s = divmod(it, ST)\n                it += 1\n");
    p = edited(p, "Ks[(k + 1) % ST])", "Ks[it % ST])");
    EXPECT_EQ(counts(p), "1 0 ");
}

TEST(WaitTest, APathThatDecidesIsRefused) {
    const std::string base = test::base_program();
    const std::string copy = std::string("                    ") + kNextValues + "Vs[s])\n";
    EXPECT_NE(
        counts(edited(base, kLoop, "                if masked:\n" + copy + kLoop)).find("depends on the path: 0 or 1"),
        std::string::npos);
    EXPECT_EQ(counts(edited(base, kLoop,
                            "                if masked:\n" + copy + "                    wait(Vs[s])\n" + kLoop)),
              "0 0 0 ");
    EXPECT_NE(counts(edited(base, kLoop, "                while masked:\n" + copy + kLoop)).find("depends on the path"),
              std::string::npos);
}

TEST(WaitTest, NothingInFlightIsRefused) {
    const std::string p =
        edited(test::base_program(), "            acc[:] = 0.0\n", "            wait(Vs)\n            acc[:] = 0.0\n");
    EXPECT_NE(counts(p).find("no copy of this is in flight"), std::string::npos) << counts(p);
}

} // namespace
} // namespace cubridge::ir::lower
