// What is said of a tile, against all of its pairs. SPDX-License-Identifier: Apache-2.0
#include "random_mask.h"
#include "tests/unit/sample.h"
#include <gtest/gtest.h>

namespace {

using namespace cubridge::ir;
using namespace cubridge::ir::mask;
using namespace cubridge::ir::mask::test;

struct Truth {
    bool any = false, every = true;
};

Truth by_enumeration(const World& w, const std::vector<double>& kept, const Tile& t) {
    Truth r;
    for (auto i = t.i0; i < t.i1; ++i)
        for (auto j = t.j0; j < t.j1; ++j) (kept[w.at(t.b, t.h, i, j)] != 0 ? r.any = true : r.every = false);
    return r;
}

bool reads_a_table(Expr e) {
    return (e->kind == Kind::Load && e->number >= kTable) || std::any_of(e->args.begin(), e->args.end(), reads_a_table);
}

// No key is lost, and none called kept that is not.
void check_ranges(const World& w, const std::vector<double>& kept, const Analysis& a, OnTile& on, const Tile& t,
                  const std::string& text) {
    struct Numbers {
        double begin, end, all_begin, all_end;
    };
    if (a.ranges.empty()) return;
    std::vector<Numbers> ranges;
    double upto = -1e18;
    for (const auto& r : a.ranges) {
        EXPECT_FALSE(reads_a_table(r.begin) || reads_a_table(r.end)) << text;
        Numbers n{on.value(r.begin), on.value(r.end), 0, 0};
        if (r.all_begin) n.all_begin = on.value(r.all_begin), n.all_end = on.value(r.all_end);
        if (n.begin < n.end) {
            EXPECT_GE(std::max(0.0, n.begin), upto) << text;
            upto = n.end;
        }
        if (n.all_begin < n.all_end) {
            EXPECT_GE(std::max(0.0, n.all_begin), n.begin) << text;
            EXPECT_LE(n.all_end, n.end) << text;
        }
        ranges.push_back(n);
    }
    for (std::int64_t j = 0; j < w.Sk; ++j) {
        const auto key = static_cast<double>(j);
        bool some = false, all = false;
        for (const Numbers& n : ranges) {
            some = some || (n.begin <= key && key < n.end);
            all = all || (n.all_begin <= key && key < n.all_end);
        }
        Tile column = t;
        column.j0 = j, column.j1 = j + 1;
        const Truth is = by_enumeration(w, kept, column);
        EXPECT_TRUE(some || !is.any) << text << " loses key " << j;
        EXPECT_TRUE(!all || is.every) << text << " calls key " << j << " kept";
    }
}

TEST(AnalyseTest, SoundOnRandomMasks) {
    std::mt19937 random(3);
    int tiles = 0, closed = 0, none = 0, none_found = 0, all = 0, all_found = 0;
    for (int trial = 0; trial < cubridge::test::some(20000); ++trial) {
        ExprPool pool;
        const World w(random);
        const Expr keep = Masks(pool, random).mask(3);
        const auto kept = w.over(pool, keep);
        const Analysis a = analyse(pool, keep);
        closed += a.ranges.empty() ? 0 : 1;
        const Tile t = random_tile(w, random);
        OnTile on(pool, w, a.tables, t);
        const Truth is = by_enumeration(w, kept, t);
        const std::string text = debug_text(keep) + " at " + std::to_string(t.i0) + ":" + std::to_string(t.i1) + ", " +
                                 std::to_string(t.j0) + ":" + std::to_string(t.j1);
        const bool any = on.value(a.any) != 0, every = on.value(a.every) != 0;
        EXPECT_TRUE(any || !is.any) << text << "\nany: " << debug_text(a.any);
        EXPECT_TRUE(!every || is.every) << text << "\nevery: " << debug_text(a.every);
        const Class c =
            classify(keep, t.b, t.h, {t.i0, t.i1 - 1}, {t.j0, t.j1 - 1}, [&](Expr e) { return on.bounds(e); });
        EXPECT_TRUE(c != Class::None || !is.any) << text;
        EXPECT_TRUE(c != Class::All || is.every) << text;
        const Class blind =
            classify(keep, t.b, t.h, {t.i0, t.i1 - 1}, {t.j0, t.j1 - 1}, [](Expr) { return std::optional<Bounds>(); });
        EXPECT_TRUE(blind == Class::Some || blind == c) << text;
        check_ranges(w, kept, a, on, t, text);
        ++tiles;
        none += is.any ? 0 : 1;
        none_found += any ? 0 : 1;
        all += is.every ? 1 : 0;
        all_found += every ? 1 : 0;
        if (HasFailure()) break;
    }
    std::printf("%d tiles: %d of %d empty ones found, %d of %d full ones; %d masks with a closed form\n", tiles,
                none_found, none, all_found, all, closed);
    EXPECT_GT(none_found * 10, none * 7);
    EXPECT_GT(all_found * 10, all * 7);
    EXPECT_GT(closed, cubridge::test::some(4000) / 2);
}

TEST(AnalyseTest, AffineAtomsAreExact) {
    std::mt19937 random(4);
    for (int trial = 0; trial < 4000; ++trial) {
        ExprPool pool;
        const World w(random);
        const Expr keep = Masks(pool, random).affine();
        const auto kept = w.over(pool, keep);
        const Analysis a = analyse(pool, keep);
        const Tile t = random_tile(w, random);
        OnTile on(pool, w, a.tables, t);
        const Truth is = by_enumeration(w, kept, t);
        ASSERT_EQ(on.value(a.any) != 0, is.any) << debug_text(keep);
        ASSERT_EQ(on.value(a.every) != 0, is.every) << debug_text(keep);
        const Class c =
            classify(keep, t.b, t.h, {t.i0, t.i1 - 1}, {t.j0, t.j1 - 1}, [&](Expr e) { return on.bounds(e); });
        ASSERT_EQ(c, is.every ? Class::All : is.any ? Class::Some : Class::None) << debug_text(keep);
        ASSERT_EQ(a.ranges.size(), 1u) << debug_text(keep);
        EXPECT_TRUE(a.tables.empty());
        const auto& r = a.ranges[0]; // one inequality: the ends are those of the rows
        for (std::int64_t j = 0; j < w.Sk; ++j) {
            Tile column = t;
            column.j0 = j, column.j1 = j + 1;
            const Truth key = by_enumeration(w, kept, column);
            const auto inside = [&](Expr from, Expr to) {
                return on.value(from) <= static_cast<double>(j) && static_cast<double>(j) < on.value(to);
            };
            EXPECT_EQ(inside(r.begin, r.end), key.any) << debug_text(keep);
            EXPECT_EQ(inside(r.all_begin, r.all_end), key.every) << debug_text(keep);
        }
        if (HasFailure()) break;
    }
}

// Unions that need an order of their ranges.
TEST(AnalyseTest, ClosedFormsAreSound) {
    std::mt19937 random(5);
    int several = 0, closed = 0;
    for (int trial = 0; trial < cubridge::test::some(6000); ++trial) {
        ExprPool pool;
        const World w(random);
        const Expr keep = Masks(pool, random).intervals(1 + trial % 3);
        const auto kept = w.over(pool, keep);
        const Analysis a = analyse(pool, keep);
        closed += a.ranges.empty() ? 0 : 1;
        several += a.ranges.size() > 1 ? 1 : 0;
        const Tile t = random_tile(w, random);
        OnTile on(pool, w, a.tables, t);
        check_ranges(w, kept, a, on, t, debug_text(keep));
        if (HasFailure()) break;
    }
    std::printf("%d have a closed form, %d of several ranges\n", closed, several);
    EXPECT_GT(closed, cubridge::test::some(3000) / 2);
    EXPECT_GT(several, cubridge::test::some(1500) / 2);
}

// The forms that transfer prints for the masks of the paper.
TEST(AnalyseTest, KnownForms) {
    ExprPool p;
    const Expr i = p.index(axis::i), j = p.index(axis::j), x = p.arg(3, Type::Int), zero = p.integer(0);
    const Expr i0 = p.index(tile::i0), i1 = p.index(tile::i1), Sk = p.dim(dims::Sk);
    const Expr causal = p.apply(Op::Le, j, i), next = p.isum(1, {{1, i0}}), last = p.isum(-1, {{1, i1}});
    const auto most = [&](std::vector<Expr> e) { return p.extremum(Kind::Max, std::move(e)); };
    const auto one = [&](Expr keep) {
        const Analysis a = analyse(p, keep);
        EXPECT_EQ(a.ranges.size(), 1u);
        return a.ranges.empty() ? Analysis::Range{} : a.ranges[0];
    };
    const auto prefix = one(p.logical_or(causal, p.apply(Op::Lt, j, x)));
    EXPECT_EQ(prefix.begin, zero);
    EXPECT_EQ(prefix.end, most({x, i1}));
    EXPECT_EQ(prefix.all_begin, zero);
    EXPECT_EQ(prefix.all_end, most({x, next}));
    const auto window = one(p.logical_and(causal, p.apply(Op::Le, p.sub(i, j), x)));
    EXPECT_EQ(window.begin, p.sub(i0, x));
    EXPECT_EQ(window.end, i1);
    EXPECT_EQ(window.all_begin, p.sub(last, x));
    EXPECT_EQ(window.all_end, next);
    const auto dilated = one(p.logical_and(causal, p.apply(Op::Eq, p.apply(Op::Mod, p.sub(i, j), p.integer(4)), zero)));
    EXPECT_EQ(dilated.end, i1);
    EXPECT_EQ(dilated.all_begin, nullptr);

    const Expr twice = p.mul(p.integer(2), x), early = p.apply(Op::Lt, i, twice);
    const Expr near = p.apply(Op::Le, p.apply(Op::Abs, p.sub(i, j)), x);
    const Analysis global = analyse(p, p.logical_or({near, early, p.apply(Op::Lt, j, twice)}));
    ASSERT_EQ(global.ranges.size(), 2u);
    const Expr head = most({twice, p.select(p.apply(Op::Lt, i0, twice), Sk, zero)});
    EXPECT_EQ(global.ranges[0].begin, zero);
    EXPECT_EQ(global.ranges[0].end, head);
    EXPECT_EQ(global.ranges[1].begin, most({head, p.sub(i0, x)}));
    EXPECT_EQ(global.ranges[1].end, p.add(i1, x));
}

TEST(AnalyseTest, OneTableForEqualLoads) {
    ExprPool p;
    const Expr i = p.index(axis::i), j = p.index(axis::j);
    const auto ids = [&](Expr at) { return p.load(4, Type::Int, {at}); };
    const Expr same = p.apply(Op::Eq, ids(i), ids(j)), marked = p.apply(Op::Eq, ids(j), p.integer(0));
    const Analysis a = analyse(p, p.logical_or(same, marked));
    ASSERT_EQ(a.tables.size(), 2u);
    EXPECT_NE(a.tables[0].axis, a.tables[1].axis);
    EXPECT_TRUE(a.ranges.empty());
}

TEST(AnalyseTest, DenseMasksAreUnknown) {
    ExprPool p;
    const Analysis a = analyse(p, p.load(8, Type::Bool, {p.index(axis::i), p.index(axis::j)}));
    EXPECT_TRUE(is_true(a.any));
    EXPECT_TRUE(is_false(a.every));
    EXPECT_TRUE(a.tables.empty());
    EXPECT_TRUE(a.ranges.empty());
}

// All keys, no key, and another number of keys.
TEST(AnalyseTest, ConstantMasks) {
    ExprPool p;
    const Analysis all = analyse(p, p.boolean(true), p.dim(dims::of(3, 2)));
    ASSERT_EQ(all.ranges.size(), 1u);
    EXPECT_EQ(all.ranges[0].all_end, p.dim(dims::of(3, 2)));
    const Analysis none = analyse(p, p.boolean(false));
    ASSERT_EQ(none.ranges.size(), 1u);
    EXPECT_EQ(none.ranges[0].end, p.integer(0));
}

// The largest constants that expressions may have: no exception, and no wrong answer beyond 64 bits.
TEST(AnalyseTest, HugeConstants) {
    ExprPool p;
    const std::int64_t huge = std::int64_t{1} << 52;
    const Expr i = p.index(axis::i), j = p.index(axis::j);
    const Expr e = p.isum(3, {{huge, i}, {1 - huge, j}});
    const Expr keep = p.apply(Op::Le, e, p.integer(0));
    const auto nothing = [](Expr) { return std::optional<Bounds>(); };
    EXPECT_EQ(classify(keep, 0, 0, {0, 4000}, {0, 4000}, nothing), Class::Some);
    EXPECT_EQ(classify(keep, 0, 0, {4000, 4000}, {0, 0}, nothing), Class::None);
    EXPECT_EQ(classify(keep, 0, 0, {0, 0}, {4000, 4000}, nothing), Class::All);
    for (const Expr k : {keep, p.apply(Op::Lt, p.product(Type::Int, {{e, 3, 1}}, false), p.isum(huge, {{huge, j}}))}) {
        const Analysis a = analyse(p, k);
        EXPECT_EQ(a.any->type, Type::Bool);
        EXPECT_EQ(a.every->type, Type::Bool);
    }
}

} // namespace
