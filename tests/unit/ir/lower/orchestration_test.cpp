// Edits of orchestration, which no variant could express: each lowers, reads back and passes the census.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/lower/orchestration.h"
#include <gtest/gtest.h>

namespace cubridge::ir::lower {
namespace {

using test::edited;
using test::expert_text;
using test::message;

/// Lowers a program's text, reads it back, and gives the CUDA.
std::string cuda_of(const std::string& program, int most_printed) {
    const auto r = test::lowered(program);
    EXPECT_TRUE(r) << message(r);
    if (!r) return "";
    EXPECT_GT(r->printed.size(), 0u);
    EXPECT_LE(r->printed.size(), static_cast<std::size_t>(most_printed));
    const auto faults = read_back(expert_text(), r->cuda, *cuir::read(program));
    EXPECT_TRUE(faults.empty()) << faults[0];
    return r->cuda;
}

void contains(const std::string& cuda, const std::string& text) {
    EXPECT_NE(cuda.find(text), std::string::npos) << text << "\n" << cuda;
}

std::string base() {
    return test::program_text(expert_text());
}

TEST(OrchestrationTest, EveryEditLowersAndReadsBack) {
    for (const auto& [name, program] : test::orchestrations()) {
        SCOPED_TRACE(name);
        const auto r = test::lowered(program);
        ASSERT_TRUE(r) << message(r);
        EXPECT_NE(r->cuda, expert_text());
        const auto faults = read_back(expert_text(), r->cuda, *cuir::read(program));
        EXPECT_TRUE(faults.empty()) << faults[0];
    }
}

TEST(OrchestrationTest, Constants) {
    contains(cuda_of(edited(base(), "ST=1", "ST=2"), 1), "constexpr int BM = 128, BN = 64, ST = 2, W = 4,");
    contains(cuda_of(edited(base(), "W=4", "W=8"), 1), "W = 8");
}

TEST(OrchestrationTest, KeysOneTileAhead) {
    const std::string cuda = cuda_of(test::keys_one_tile_ahead(), 4);
    contains(cuda, "                tiles.pick(min(k + 1, tiles.length() - 1), y, unused);\n");
    contains(cuda,
             "                copy_async<32 * W>(Ks[(k + 1) % ST], K.rows(b, h / G, y * BN, (y + 1) * BN), Sk);\n");
    contains(cuda, "                wait_copies<1>();\n");
}

TEST(OrchestrationTest, ValuesWaitedForFirst) {
    contains(
        cuda_of(test::values_waited_for_first(), 1),
        "//|                 gemm(Qs[g], Ks[s].T, out=S)\n                gemm(S, Qs[g], transposed(Ks[s]));\n//|   "
        "              if k + 1");
}

TEST(OrchestrationTest, QueriesInRegisters) {
    const std::string cuda = cuda_of(test::queries_in_registers(), 4);
    contains(cuda, "        Fragment<elem> Qf[FRAGMENTS(D)];\n");
    contains(cuda, "                if (k == 0) {\n");
    contains(cuda, "                    load(Qf, Qs[g]);\n");
    contains(cuda, "                gemm(S, Qf, transposed(Ks[s]));\n");
}

TEST(OrchestrationTest, ColumnVectorStagedWithKeys) {
    const std::string cuda = cuda_of(test::column_vector_staged(), 8);
    contains(cuda, "    const Operand<float, 2> x0(args.operand[0], b);\n");
    contains(cuda, "    const SharedColumn<float, ST, BN> Bs(smem);\n");
    contains(cuda, "        EACH(e, x) x[e] = S[e] + Bs[s](CID(e)) * LOG2E;\n");
    contains(cuda, "                    copy_async<32 * W>(Bs[(k + 1) % ST], x0.span(h, y * BN, (y + 1) * BN));\n");
    contains(cuda, "bool masked, int s, float (&p)[TILE(BN)]");
}

TEST(OrchestrationTest, OrderOfItems) {
    const std::string cuda = cuda_of(edited(base(), "\"by_head\"", "\"heaviest_first\""), 1);
    contains(cuda, "for (Items items(args, BM, heaviest_first); items.next(b, h, m, Sq, Sk);) {\n");
}

TEST(OrchestrationTest, OutputStraight) {
    contains(cuda_of(test::output_straight(), 1),
             "            store_tile<elem, R, Dv>(Out.rows(b, h, i0, i0 + R), Sq, acc);\n");
}

TEST(OrchestrationTest, NoLse) {
    const auto r = test::lowered(test::no_lse());
    ASSERT_TRUE(r) << message(r);
    EXPECT_TRUE(r->printed.empty());
    EXPECT_EQ(r->cuda.find("store_rows<float"), std::string::npos);
}

TEST(OrchestrationTest, WhatDependsOnThePathIsRefused) {
    std::string p = edited(base(), "                wait(Ks[s]) ",
                           "                if masked:\n                    copy_async(K[b, h // G, n * BN:(n + 1) * "
                           "BN], Ks[0])\n                wait(Ks[s]) ");
    EXPECT_TRUE(test::lowered(p)) << message(test::lowered(p)); // the youngest copy of it either way
    p = edited(base(), "                wait(Vs[s])\n",
               "                if masked:\n                    copy_async(K[b, h // G, n * BN:(n + 1) * BN], Ks[0])\n"
               "                wait(Vs[s])\n");
    const auto r = test::lowered(p);
    ASSERT_FALSE(r);
    EXPECT_NE(r.error().message.find("depends on the path: 0 or 1"), std::string::npos) << r.error().message;
}

TEST(OrchestrationTest, ANewRoleIsRefused) {
    const auto r =
        test::lowered(base() + "\n    with role(\"store\", warps=1, registers=40):\n        sync(everyone)\n");
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().kind, "no_rule");
    EXPECT_NE(r.error().message.find("a role is not made by a rule"), std::string::npos) << r.error().message;
}

} // namespace
} // namespace cubridge::ir::lower
