// Programs are read and printed without loss. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/program.h"
#include <gtest/gtest.h>

namespace cubridge::ir::cuir {
namespace {

constexpr char kText[] = R"py(T = alloc(workspace, (B, Sk), i32)

@map
def make(
    x0: i32[N],
    ):
    for b, j in each(B, Sk):
        T[b, j] = x0[j]

@kernel(arch="sm_80", expert="e", ctas="items")
def attention(
    Q: elem[B, Hq, Sq, D],                                  # queries
    *, BM=128, elem=bf16):
    R = BM // 2

    with role("math", warps=2) as g:
        for b, h, m in bind(B, Hq, cdiv(Sq, BM), order="by_head"):
            if g == 1:
                sync(all)                                   # one
            else:
                x = 1.0
)py";

TEST(ProgramTest, PrintGivesTheTextBack) {
    auto p = read(kText);
    ASSERT_TRUE(p) << p.error().render(kText);
    EXPECT_EQ(print(*p), kText);
    EXPECT_EQ(p->kernels[0].name(), "make");
    EXPECT_TRUE(p->kernels[0].is_map());
    EXPECT_EQ(p->main()->attribute("expert"), "e");
    ASSERT_NE(p->main()->constant("BM"), nullptr);
    EXPECT_EQ(p->main()->constant("BM")->integer, 128);
    EXPECT_EQ(p->main()->constant("BN"), nullptr);
    EXPECT_NE(p->main()->param("Q"), nullptr);
    EXPECT_EQ(p->main()->head[2].line, 12);
    const auto& loop = p->main()->body[1].body[0];
    EXPECT_EQ(line_of(loop.body[0]), "if g == 1:");
    EXPECT_EQ(line_of(loop.body[1]), "else:");
    EXPECT_EQ(loop.body[0].body[0].comment, "one");
}

TEST(ProgramTest, WhatIsNoProgramIsRefusedWithItsPlace) {
    EXPECT_EQ(read("x = 1\n").error().kind, "cuir");
    EXPECT_EQ(read("def f(a):\n    pass\n").error().span.line, 1);
    EXPECT_EQ(read("@kernel\ndef f(Q):\n    pass\n").error().kind, "cuir");
    EXPECT_EQ(read("@kernel\ndef f(Q: elem[B]):\n    import os\n").error().span.line, 3);
}

TEST(ProgramTest, StatementsAreMadeFromLines) {
    auto s = statement("if masked:");
    ASSERT_TRUE(s);
    EXPECT_EQ(s->kind, Statement::Kind::If);
    EXPECT_TRUE(s->body.empty());
    EXPECT_EQ(line_of(*statement("acc[:] = acc * shrink")), "acc[:] = acc * shrink");
    EXPECT_FALSE(statement("a = 1\nb = 2"));
}

} // namespace
} // namespace cubridge::ir::cuir
