// Margins that lie: the CUDA under them is another's. SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/lower/expert.h"
#include <gtest/gtest.h>

namespace cubridge::ir::lower {
namespace {

using test::edited;
using test::expert_text;

TEST(CensusTest, AnExpertIsWhatItsMarginSays) {
    const auto faults = census(expert_text());
    EXPECT_TRUE(faults.empty()) << faults[0];
}

struct Lie {
    const char *from, *to, *found;
};

class LyingMargin : public testing::TestWithParam<Lie> {};

TEST_P(LyingMargin, IsFound) {
    const Lie& lie = GetParam();
    const auto faults = census(edited(expert_text(), lie.from, lie.to));
    ASSERT_FALSE(faults.empty());
    EXPECT_NE(faults[0].find(lie.found), std::string::npos) << faults[0];
}

INSTANTIATE_TEST_SUITE_P(
    All, LyingMargin,
    testing::Values(
        Lie{"                wait_copies<0>();\n", "", "does not call wait_copies<0>()"},
        Lie{"wait_copies<0>();", "wait_copies<1>();", "does not call wait_copies<0>()"},
        Lie{"registers=255", "registers=232", "does not name 232 registers once"},
        Lie{"__launch_bounds__(kThreads)", "__launch_bounds__(64, 1)", "does not say __launch_bounds__(128, 2)"},
        Lie{"                bar_sync(everyone, 32 * W);\n", "", "does not call bar_sync(everyone,32*W)"},
        Lie{"//|                 gemm(Qs[g], Ks[s].T, out=S)\n",
            "//|                 gemm(Qs[g], Ks[s].T, out=S)\n                bar_sync(everyone, 32 * W);\n",
            "its region calls bar_sync(everyone,32*W)"},
        Lie{"bar_sync(everyone, 32 * W);", "bar_sync(everyone, 32);", "does not call bar_sync(everyone,32*W)"},
        Lie{"copy_async<32 * W>(Ks[(k + 1) % ST], K", "copy_async<32 * W>(Ks[k % ST], K",
            "does not call copy_async<32*W>(Ks[(k+1)%ST],K.rows"},
        Lie{"gemm_add(acc, P, Vs[s]);", "gemm(acc, P, Vs[s]);", "does not call gemm_add(acc,P,Vs[s])"},
        Lie{"                pack(P, p);", "                pack(P, p);\n                __syncthreads();",
            "its region calls __syncthreads()"},
        Lie{"Items items(args, BM, by_head)", "Items items(args, BM, heaviest_first)",
            "its region is not `for(Items items(args,BM,by_head)"},
        Lie{"Shared<elem, ST, BN, Dv> Vs", "Shared<elem, 2 * ST, BN, Dv> Vs", "its region is not"},
        Lie{"constexpr int everyone = 1;", "constexpr int everyone = 2;", "its region is not"},
        Lie{"BN = 64, ST = 1", "BN = 64, ST = 2", "does not declare"},
        Lie{"tiles.pick(k + 1, y, unused)", "tiles.pick(k, y, unused)", "its region is not"},
        Lie{"return Ranges<2>{{whole, 0}", "return Ranges<2>{{whole, 1}", "its region is not"},
        Lie{"        EACH(e, x) x[e] = S[e];", "        EACH(e, x) x[e] = __shfl_sync(~0u, S[e], 0);",
            "its region calls __shfl_sync"}));

TEST(ReadBackTest, WhatIsNeitherCopiedNorPrintedIsFound) {
    const auto target = *lift(expert_text());
    EXPECT_TRUE(read_back(expert_text(), expert_text(), target).empty());
    const auto faults = read_back(expert_text(), edited(expert_text(), "x[e] = S[e];", "x[e] = S[e] + 0.0f;"), target);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_NE(faults[0].find("`x = S`: its region is neither"), std::string::npos) << faults[0];
    std::string marked = edited(expert_text(), "x[e] = S[e];", "x[e] = S[e] + 0.0f;");
    marked = edited(marked, "//|         x = S\n", "//|!        x = S\n");
    EXPECT_TRUE(read_back(expert_text(), marked, target).empty());
    EXPECT_FALSE(read_back(expert_text(), edited(marked, "typedef", "//"), target).empty());
    EXPECT_FALSE(read_back(expert_text(), edited(expert_text(), "x = S\n", "x = S * 1.0\n"), target).empty());
}

} // namespace
} // namespace cubridge::ir::lower
