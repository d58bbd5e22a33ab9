// Edits of orchestration, which no variant could express: each lowers, reads back and passes the census.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/lower/expert.h"

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

TEST(OrchestrationTest, Stages) {
    contains(cuda_of(edited(base(), "ST=1", "ST=2"), 1), "constexpr int BM = 128, BN = 64, ST = 2, W = 4,");
}

TEST(OrchestrationTest, TileWidth) {
    contains(cuda_of(edited(base(), "BN=64", "BN=128"), 1), "BN = 128");
}

TEST(OrchestrationTest, Warps) {
    contains(cuda_of(edited(base(), "W=4", "W=8"), 2), "__launch_bounds__(256, 1)");
}

TEST(OrchestrationTest, KeysOneTileAhead) {
    std::string p = edited(base(), "ST=1", "ST=2");
    p = edited(p, "                if k + 1 < length(tiles):\n", "");
    p = edited(p, "                    y, unused = pick(tiles, k + 1)\n", "");
    p = edited(p, "                    copy_async(K[b, h // G, y * BN:(y + 1) * BN], Ks[(k + 1) % ST])\n", "");
    p = edited(p, "                wait(Ks[s]) ",
               "                y, unused = pick(tiles, minimum(k + 1, length(tiles) - 1))\n"
               "                copy_async(K[b, h // G, y * BN:(y + 1) * BN], Ks[(k + 1) % ST])\n"
               "                wait(Ks[s]) ");
    const std::string cuda = cuda_of(p, 4);
    contains(cuda, "                tiles.pick(min(k + 1, tiles.length() - 1), y, unused);\n");
    contains(cuda, "                copy_async(Ks[(k + 1) % ST], K.rows(b, h / G, y * BN, (y + 1) * BN), Sk);\n");
    contains(cuda, "                wait_copies<1>();\n");
}

TEST(OrchestrationTest, ValuesWaitedForFirst) {
    std::string p = edited(base(), "                gemm(Qs[g], Ks[s].T, out=S)\n", "");
    const std::string v_whole = "# V is whole; and all have read this K\n";
    p = edited(p, v_whole, v_whole + "                gemm(Qs[g], Ks[s].T, out=S)\n");
    const std::string cuda = cuda_of(p, 1);
    contains(
        cuda,
        "//|                 gemm(Qs[g], Ks[s].T, out=S)\n                gemm(S, Qs[g], transposed(Ks[s]));\n//|   "
        "              if k + 1");
}

TEST(OrchestrationTest, QueriesInRegisters) {
    std::string p =
        edited(base(), "        P = alloc", "        Qf = alloc(register, (R, D), elem)\n        P = alloc");
    p = edited(
        p, "                gemm(Qs[g], Ks[s].T, out=S)\n",
        "                if k == 0:\n                    Qf[:] = Qs[g]\n                gemm(Qf, Ks[s].T, out=S)\n");
    const std::string cuda = cuda_of(p, 4);
    contains(cuda, "        Fragment Qf[FRAGMENTS(D)];\n");
    contains(cuda, "                if (k == 0) {\n");
    contains(cuda, "                    load(Qf, Qs[g]);\n");
    contains(cuda, "                gemm(S, Qf, transposed(Ks[s]));\n");
}

TEST(OrchestrationTest, ColumnVectorStagedWithKeys) {
    std::string p = edited(base(), "    *, BM", "    x0: f32[Hq, Sk],\n    *, BM");
    p = edited(p, "    everyone =", "    Bs = alloc(shared, (ST, BN), f32)\n    everyone =");
    p = edited(p, "i0, n, masked):", "i0, n, masked, s):");
    p = edited(p, "i0, n, masked)\n", "i0, n, masked, s)\n");
    p = edited(p, "x = S\n", "x = S + Bs[s] * LOG2E\n");
    const std::string k0 = "            copy_async(K[b, h // G, n * BN:(n + 1) * BN], Ks[0])\n";
    const std::string k1 = "                    copy_async(K[b, h // G, y * BN:(y + 1) * BN], Ks[(k + 1) % ST])\n";
    p = edited(p, k0, "            copy_async(x0[h, n * BN:(n + 1) * BN], Bs[0])\n" + k0);
    p = edited(p, k1, "                    copy_async(x0[h, y * BN:(y + 1) * BN], Bs[(k + 1) % ST])\n" + k1);
    const std::string cuda = cuda_of(p, 9);
    contains(cuda, "    const Operand<float, 2> x0(args.operand[0]);\n");
    contains(cuda, "    const SharedColumn<float> Bs(smem.take<float>(ST, BN), BN);\n");
    contains(cuda, "        EACH(e, x) x[e] = S[e] + Bs[s](CID(e)) * LOG2E;\n");
    contains(cuda, "                    copy_async(Bs[(k + 1) % ST], x0.span(h, y * BN, (y + 1) * BN));\n");
    contains(cuda, "bool masked, int s, float (&p)[TILE(BN)]");
}

TEST(OrchestrationTest, OrderOfItems) {
    const std::string cuda = cuda_of(edited(base(), "\"by_head\"", "\"heaviest_first\""), 1);
    contains(cuda, "for (Items items(args, BM, heaviest_first); items.next(b, h, m, Sq, Sk);) {\n");
}

TEST(OrchestrationTest, OutputStraight) {
    std::string p = edited(base(), "            Qs[g][:] = acc\n", "");
    p = edited(p, "copy(Qs[g], Out[b, h, i0:i0 + R])", "Out[b, h, i0:i0 + R] = acc");
    contains(cuda_of(p, 1), "            store_rows(Out.rows(b, h, i0, i0 + R), Sq, acc);\n");
}

TEST(OrchestrationTest, NoLse) {
    std::string p = edited(base(), "    Lse: f32[B, Hq, Sq],\n", "");
    p = edited(p, "            Lse[b, h, i0:i0 + R] = lse\n", "");
    p = edited(p, "            lse = where(total > 0.0, (row_max * unit + log2(total)) * LN2, -inf)\n", "");
    const auto r = test::lowered(p);
    ASSERT_TRUE(r) << message(r);
    EXPECT_TRUE(r->printed.empty());
    EXPECT_EQ(r->cuda.find("store_rows"), std::string::npos);
    EXPECT_TRUE(read_back(expert_text(), r->cuda, *cuir::read(p)).empty());
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
