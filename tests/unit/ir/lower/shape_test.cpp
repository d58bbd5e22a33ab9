// What a launch needs. SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/lower/expert.h"
#include <gtest/gtest.h>

namespace cubridge::ir::lower {
namespace {

TEST(ShapeTest, OfAnExpert) {
    const auto s = shape_of(*lift(test::expert_text()));
    ASSERT_TRUE(s) << s.error().message;
    ASSERT_EQ(s->grids.size(), 1u);
    EXPECT_EQ(s->grids[0].kernel, "attention");
    EXPECT_EQ(s->grids[0].items, (std::vector<std::string>{"B", "Hq", "cdiv(Sq, 128)"}));
    EXPECT_FALSE(s->grids[0].per_sm);
    EXPECT_EQ(s->grids[0].threads, 128);
    EXPECT_EQ(s->grids[0].shared_bytes, 2 * (128 * 128 + 2 * 64 * 128));
    const auto odd = shape_of(*cuir::read(test::edited(test::program_text(test::expert_text()), ", D=128", ", D=96")));
    EXPECT_EQ(odd->grids[0].shared_bytes, s->grids[0].shared_bytes); // rows are whole lines
    EXPECT_TRUE(s->storage.empty());
}

TEST(ShapeTest, OfWorkspaceAndMaps) {
    std::string text = test::program_text(test::expert_text());
    text = test::edited(text, "ctas=\"items\"", "ctas=\"sms\"");
    text = "T = alloc(workspace, (B, cdiv(Sk, BN)), i32)\n\n@map\ndef fill(\n    x0: i32[N],\n    ):\n    for b, n in "
           "each(B, x0.shape[0] + 1):\n        T[b, n] = 0\n\n" +
           text;
    const auto p = cuir::read(text);
    ASSERT_TRUE(p) << p.error().message;
    const auto s = shape_of(*p);
    ASSERT_TRUE(s) << s.error().message;
    ASSERT_EQ(s->grids.size(), 2u);
    EXPECT_EQ(s->grids[0].items, (std::vector<std::string>{"B", "(x0.shape[0] + 1)"}));
    EXPECT_EQ(s->grids[0].threads, 256);
    EXPECT_TRUE(s->grids[1].per_sm);
    ASSERT_EQ(s->storage.size(), 1u);
    EXPECT_EQ(s->storage[0].first, "T");
    EXPECT_EQ(s->storage[0].second, (std::vector<std::string>{"B", "cdiv(Sk, 64)"}));
    EXPECT_EQ(s->storage_types[0], DType::I32);
}

TEST(ShapeTest, WhatHasNoShapeIsRefused) {
    const std::string text = test::program_text(test::expert_text());
    EXPECT_FALSE(shape_of(*cuir::read(test::edited(text, "(ST, BN, D)", "(Sk, BN, D)"))));
    EXPECT_FALSE(shape_of(*cuir::read(test::edited(text, "warps=W", "warps=Hq"))));
}

} // namespace
} // namespace cubridge::ir::lower
