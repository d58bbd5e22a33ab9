// Files in margin form. SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/lower/expert.h"
#include <gtest/gtest.h>

namespace cubridge::ir::lower {
namespace {

TEST(MarginTest, JoiningGivesTheFileBack) {
    const auto m = take_apart(test::expert_text());
    ASSERT_TRUE(m);
    EXPECT_EQ(join(*m), test::expert_text());
    const std::string marked = "a\n//| x\nb\n//|!    y\n\n";
    const auto e = take_apart(marked);
    ASSERT_TRUE(e);
    EXPECT_EQ(join(*e), marked);
    EXPECT_TRUE(e->segments[1].edited);
    EXPECT_EQ(e->segments[1].margin, "    y");
    EXPECT_EQ(e->segments[1].line, 4);
}

TEST(MarginTest, LiftIsTheProgramWithLinesOfTheFile) {
    const auto p = lift(test::expert_text());
    ASSERT_TRUE(p) << p.error().message;
    const auto again = cuir::read(cuir::print(*p));
    ASSERT_TRUE(again);
    EXPECT_TRUE(cuir::equal(*p, *again));
    EXPECT_EQ(cuir::print(*p), cuir::print(*again)); // comments stay with their statements
    std::istringstream file(test::expert_text());
    std::string line;
    for (int n = 1; std::getline(file, line); ++n) {
        if (n != p->main()->body[0].line) continue;
        EXPECT_EQ(line.rfind("//|     R = BM // W", 0), 0u) << line;
    }
}

TEST(MarginTest, ElseKnowsItsLine) {
    const std::string text =
        "//| @map\n//| def f(\n//|     x0: i32[N],\n//|     ):\n//|     if True:\nif (true) {\n//|   "
        "      x = 1\n//|         # end\n}\n//|     else:                  # other\nelse {\n\n//|  "
        "       x = 2\n//|         # end\n}\n//|     # end\n";
    const auto p = lift(text);
    ASSERT_TRUE(p) << p.error().message;
    EXPECT_EQ(p->kernels[0].body[1].line, 10);
    EXPECT_EQ(p->kernels[0].body[1].comment, "other");
    EXPECT_EQ(p->kernels[0].head[3].line, 4);
}

TEST(MarginTest, WhatIsNoMarginIsRefusedWithItsLine) {
    EXPECT_EQ(take_apart("int x;\n").error().kind, "margin");
    EXPECT_EQ(take_apart("//| x").error().kind, "margin");
    EXPECT_EQ(take_apart("//| x\n  //| y\n").error().span.line, 2);
    EXPECT_EQ(take_apart("//|x\n").error().span.line, 1);
    EXPECT_EQ(take_apart("//| x\r\n").error().span.line, 1);
}

} // namespace
} // namespace cubridge::ir::lower
