// What a launch needs. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/agents.h"
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

std::string hopper() {
    return test::read_file("tests/corpus/cuir/prefill_sm90.py");
}

TEST(ShapeTest, OfRolesOfWarpgroups) {
    using launch::Map;
    const auto p = cuir::read(hopper());
    ASSERT_TRUE(p) << p.error().message;
    const auto s = shape_of(*p);
    ASSERT_TRUE(s) << s.error().message;
    ASSERT_EQ(s->grids.size(), 1u);
    const auto& g = s->grids[0];
    EXPECT_EQ(g.items, (std::vector<std::string>{"B", "Hq", "cdiv(Sq, 128)"})); // the ticket is none
    EXPECT_TRUE(g.per_sm && g.ticket);
    EXPECT_EQ(g.threads, 128 + 2 * 128); // two roles of a warp share a warpgroup
    const std::vector<Map> maps = {
        {Map::Tensor::Q, 64}, {Map::Tensor::K, 128}, {Map::Tensor::V, 128}, {Map::Tensor::O, 64}};
    EXPECT_EQ(g.maps, maps);
    // Qs, Ks, Vs; 2 + 2 + 4 + 4 * 2 + 1 barriers and 2 for each of 5 entries, 8 bytes each, to a whole line; the
    // entries.
    EXPECT_EQ(g.shared_bytes, 2 * (2 * 2 * 64 * 128 + 2 * 128 * 128 + 2 * 128 * 128) + 256 + 5 * 512);
    // Panels of 64 columns, wherever they end.
    const auto odd = shape_of(*cuir::read(test::edited(hopper(), ", Dv=128", ", Dv=72")));
    ASSERT_TRUE(odd) << odd.error().message;
    EXPECT_EQ(odd->grids[0].shared_bytes, g.shared_bytes);
    const auto narrow = shape_of(*cuir::read(test::edited(hopper(), "BN=128", "BN=104")));
    ASSERT_TRUE(narrow) << narrow.error().message;
    EXPECT_EQ(narrow->grids[0].maps[1].rows, 104);
    EXPECT_EQ(narrow->grids[0].maps[3].rows, 64);
    const auto strided = shape_of(*cuir::read(
        test::edited(hopper(), "K[b, h // G, n * BN:(n + 1) * BN]", "K[b, h // G, n * BN * ST:(n + 1) * BN * ST:ST]")));
    ASSERT_TRUE(strided) << strided.error().message;
    EXPECT_EQ(strided->grids[0].maps[1].step, 2);
    EXPECT_EQ(strided->grids[0].maps[2].step, 1);
    const auto both = shape_of(*cuir::read(
        test::edited(hopper(), "copy_async(K[b, h // G, n * BN:(n + 1) * BN]",
                     "y = where(n < Sk, 1, ST)\n                    copy_async(K[b, h // G, n * BN:(n + 1) * BN:y]")));
    ASSERT_TRUE(both) << both.error().message;
    ASSERT_EQ(both->grids[0].maps.size(), 5u);
    EXPECT_EQ(both->grids[0].maps[2], (Map{Map::Tensor::K, 128, 2}));
    EXPECT_TRUE(has_warpgroups(p->kernels[0]));
    EXPECT_FALSE(has_warpgroups(lift(test::expert_text())->kernels[0]));
    EXPECT_TRUE(shape_of(*lift(test::expert_text()))->grids[0].maps.empty());
}

TEST(ShapeTest, WhatNoTensorMapHasIsRefused) {
    const auto refused = [](const std::string& from, const std::string& to) {
        const auto p = cuir::read(test::edited(hopper(), from, to));
        if (!p) return p.error().message;
        const auto s = shape_of(*p);
        return s ? std::string("accepted") : s.error().message;
    };
    EXPECT_NE(refused("copy_async(V[b, h // G,", "copy_async(x0[b, h // G,").find("no tensor map of `x0`"),
              std::string::npos);
    EXPECT_NE(refused("BN=128", "BN=264").find("more rows than one copy has"), std::string::npos);
    EXPECT_NE(
        refused("copy_async(V[b, h // G,", "copy_async(Q[b, h // G,").find("`Q` is copied into cells of two sizes"),
        std::string::npos);
    EXPECT_NE(refused("K[b, h // G, n * BN:(n + 1) * BN]", "K[b, h // G, n * BN:(n + 1) * BN:Sk]").find("the step of"),
              std::string::npos);
    EXPECT_NE(refused("K[b, h // G, n * BN:(n + 1) * BN]", "K[b, h // G, n * BN:(n + 1) * BN:BN * BN]").find("further"),
              std::string::npos);
    EXPECT_NE(refused("n=QB * WG", "n=Sk").find("a number of barriers is a positive constant"), std::string::npos);
}

TEST(ShapeTest, WhatHasNoShapeIsRefused) {
    const std::string text = test::program_text(test::expert_text());
    EXPECT_FALSE(shape_of(*cuir::read(test::edited(text, "(ST, BN, D)", "(Sk, BN, D)"))));
    EXPECT_FALSE(shape_of(*cuir::read(test::edited(text, "warps=W", "warps=Hq"))));
}

} // namespace
} // namespace cubridge::ir::lower
