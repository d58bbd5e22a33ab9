// Where a program decides about tiles, and numbers in place of its names. SPDX-License-Identifier: Apache-2.0
#include "ir/cost/cost.h"
#include "ir/cost/tiles.h"
#include "tests/unit/ir/transfer/corpus.h"
#include <gtest/gtest.h>
#include <limits>

namespace cubridge::ir {
namespace {

/// Tiles may be decided in another role than items are drawn in.
TEST(Tiles, AreFoundWhereTheyAreDecided) {
    std::string text = transfer::test::read("tests/corpus/transfer_sm90/flex_mods_causal__0.py");
    const cost::Numbers sizes{{"B", 1}, {"Hk", 2}, {"Hq", 2}, {"Sq", 1024}, {"Sk", 1024}};
    const auto of = [&](const std::string& program) {
        const auto read = cuir::read(program);
        EXPECT_TRUE(read) << (read ? "" : read.error().message);
        const auto items = read ? cost::items_of(*read->main(), sizes) : std::nullopt;
        double tiles = 0;
        if (items)
            for (const auto& x : items->of_head[0]) tiles += x.tiles;
        return tiles;
    };
    EXPECT_EQ(of(text), 8 * 9 / 2);
    const std::string own = "            ranges = key_tiles(b, h, m * BM, minimum((m + 1) * BM, Sq))\n";
    const auto at = text.find(own);
    ASSERT_NE(at, std::string::npos);
    text.erase(at, own.size());
    EXPECT_EQ(of(text), 0);
    const auto role = text.find("        more, b, h, m, ranges = take(items)\n");
    ASSERT_NE(role, std::string::npos);
    text.insert(role, own.substr(4));
    EXPECT_EQ(of(text), 8 * 9 / 2);
}

TEST(Tiles, AProgramWithoutWorkItemsHasNone) {
    const auto program =
        cuir::read("@map\ndef twice(X: f32[B], Y: f32[B]):\n    for b in grid(B):\n        Y[b] = X[b] + X[b]\n");
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_FALSE(cost::cost_of(*program, {{"B", 1}}));
}

TEST(Tiles, IntegersAreThoseOfPython) {
    const cost::Numbers known{{"Sk", 1000},
                              {"BN", 128},
                              {"h", 5},
                              {"x0[]", 7},
                              {"least", std::numeric_limits<std::int64_t>::min()},
                              {"most", std::numeric_limits<std::int64_t>::max()}};
    const auto value = [&](const std::string& text) -> std::optional<std::int64_t> {
        const auto s = cuir::statement("y = " + text);
        EXPECT_TRUE(s) << text;
        return s ? cost::number_of(s->node->items[1], known) : std::nullopt;
    };
    EXPECT_EQ(value("cdiv(Sk, BN)"), 8);
    EXPECT_EQ(value("-7 // 2"), -4);
    EXPECT_EQ(value("-7 % 4"), 1);
    EXPECT_EQ(value("clamp(Sk - 2000, 0, Sk)"), 0);
    EXPECT_EQ(value("where(h < 3, unknown, 4)"), 4) << "what is not chosen may be unknown";
    EXPECT_EQ(value("where(h < unknown, 3, 4)"), std::nullopt);
    EXPECT_EQ(value("minimum(Sk, unknown)"), std::nullopt);
    EXPECT_EQ(value("(h < 6) & ~(h == 2)"), 1);
    EXPECT_EQ(value("0 < h < 5"), 0);
    EXPECT_EQ(value("x0[h] + 1"), 8);
    EXPECT_EQ(value("x1[h] + 1"), std::nullopt);
    EXPECT_EQ(value("Sk // (h - 5)"), std::nullopt);
    EXPECT_EQ(value("7 % -4"), -1);
    EXPECT_EQ(value("7 % -1"), 0);
    // A scalar that a text holds may be any: what leaves 64 bits is unknown, and nothing traps.
    for (const char* text :
         {"least // -1", "-least", "abs(least)", "least - 1", "most + 1", "most * 2", "cdiv(most, 2)"})
        EXPECT_EQ(value(text), std::nullopt) << text;
    EXPECT_EQ(value("least % -1"), 0);
    EXPECT_EQ(value("most // -1"), -std::numeric_limits<std::int64_t>::max());
}

TEST(Tiles, AreNotCountedBeyondABudget) {
    const auto classes = cuir::read(transfer::test::read("tests/corpus/transfer_sm90/paper_causal_blockwise__0.py"));
    ASSERT_TRUE(classes) << classes.error().message;
    // The classes of tiles of 2 heads: 8 times 8 questions, and 4000 times 4000, which nobody waits for.
    cost::Numbers sizes{{"B", 1},    {"Hk", 2}, {"Hq", 2},      {"Sq", 1024}, {"Sk", 1024},
                        {"x0[]", 1}, {"x1", 1}, {"least[]", 1}, {"most[]", 1}};
    EXPECT_TRUE(cost::items_of(*classes->main(), sizes));
    sizes["Sq"] = sizes["Sk"] = 500000;
    EXPECT_FALSE(cost::items_of(*classes->main(), sizes));
}

} // namespace
} // namespace cubridge::ir
