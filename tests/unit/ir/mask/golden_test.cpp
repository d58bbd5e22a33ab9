// What analysis makes of the masks of the visible specifications: form, and tiles visited and masked at one shape,
// beside the fewest possible. CUBRIDGE_SPECIFICATIONS as in spec/variant_test.cpp. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/evaluate.h"
#include "ir/mask/mask.h"
#include "tests/unit/ir/spec/visible.h"
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace {

namespace fs = std::filesystem;
using namespace cubridge::ir;
using namespace cubridge::ir::mask;
using namespace cubridge::ir::test;

// Rows and keys, and the size of a tile, at which tiles are counted.
constexpr std::int64_t kSize = 96, kTile = 8, kBatch = 2, kHeads = 2;
// name | form | visited/fewest masked/fewest. CUBRIDGE_WRITE_GOLDEN=1 writes it anew.
const fs::path kExpected = "tests/unit/ir/mask/golden_table.txt";

// Documents of 24 tokens (0, 10, 20, 30) for what is indexed by position; lengths and offsets that rise for the rest;
// scalars are 10. `free` is the extent of axes that nothing else says.
Environment world(const Scalar& scalar, std::int64_t free) {
    Environment e;
    e.dims = {{dims::B, kBatch},  {dims::Hq, kHeads}, {dims::Hk, kHeads}, {dims::Sq, kSize},
              {dims::Sk, kSize},  {dims::D, 8},       {dims::Dv, 8},      {dims::Hv, 2},
              {dims::kB, kBatch}, {dims::kD, 8},      {dims::vB, kBatch}, {dims::vS, kSize}};
    for (std::size_t k = 3; k < scalar.inputs.size(); ++k) {
        const auto n = static_cast<int>(k);
        for (int a = 0; a < scalar.inputs[k].rank; ++a) e.dims[dims::of(n, a)] = free;
    }
    for (std::size_t k = 3; k < scalar.inputs.size(); ++k) {
        std::vector<std::int64_t> shape;
        std::int64_t count = 1;
        for (const Expr s : scalar.shapes[k]) {
            ExprPool pool;
            shape.push_back(static_cast<std::int64_t>(Evaluator(pool, e).value(s)));
            count *= shape.back();
        }
        std::vector<double> v;
        const std::int64_t last = shape.empty() ? 1 : shape.back();
        for (std::int64_t m = 0; m < count; ++m) {
            const std::int64_t at = m % last;
            v.push_back(static_cast<double>(shape.empty()   ? 10
                                            : last == kSize ? at * 4 / kSize * 10
                                                            : (at + 1) * kSize / (last + 1)));
        }
        e.inputs[static_cast<int>(k)] = {shape, std::make_shared<const std::vector<double>>(std::move(v))};
    }
    return e;
}

std::string form_of(const Analysis& a) {
    if (!a.ranges.empty()) return std::to_string(a.ranges.size()) + (a.ranges.size() == 1 ? " range" : " ranges");
    if (!a.tables.empty()) return std::to_string(a.tables.size()) + (a.tables.size() == 1 ? " table" : " tables");
    return is_true(a.any) ? "nothing" : "classified";
}

struct Count {
    int visited = 0, masked = 0;
};

// Tiles of head 0 of both requests: by ranges or by class, and by enumeration.
std::pair<Count, Count> count(ExprPool& pool, const Environment& env, Expr keep, const Analysis& a) {
    Count mine, least;
    const auto kept = Evaluator(pool, env).over(keep, {kBatch, 1, kSize, kSize});
    std::vector<std::vector<double>> tables;
    for (const Table& t : a.tables) tables.push_back(Evaluator(pool, env).over(t.value, {kBatch, 1, kSize, kSize}));
    const auto at = [](std::int64_t b, std::int64_t i, std::int64_t j) {
        return static_cast<std::size_t>((b * kSize + i) * kSize + j);
    };
    for (std::int64_t b = 0; b < kBatch; ++b)
        for (std::int64_t i0 = 0; i0 < kSize; i0 += kTile)
            for (std::int64_t j0 = 0; j0 < kSize; j0 += kTile) {
                bool any = false, every = true;
                Environment here = env;
                for (std::size_t t = 0; t < tables.size(); ++t) {
                    double low = 1e18, high = -1e18;
                    for (auto i = i0; i < i0 + kTile; ++i)
                        for (auto j = j0; j < j0 + kTile; ++j) {
                            low = std::min(low, tables[t][at(b, i, j)]);
                            high = std::max(high, tables[t][at(b, i, j)]);
                        }
                    std::vector<std::int64_t> shape{1};
                    for (const int x : {axis::b, axis::h})
                        if ((a.tables[t].value->free & index_bit(x)) != 0) shape.push_back(1);
                    const int n = kTable + 2 * static_cast<int>(t);
                    here.inputs[n] = {shape, std::make_shared<const std::vector<double>>(1, low)};
                    here.inputs[n + 1] = {shape, std::make_shared<const std::vector<double>>(1, high)};
                }
                for (auto i = i0; i < i0 + kTile; ++i)
                    for (auto j = j0; j < j0 + kTile; ++j) (kept[at(b, i, j)] != 0 ? any = true : every = false);
                least.visited += any ? 1 : 0;
                least.masked += any && !every ? 1 : 0;
                std::vector<Expr> map(tile::j1 + 1, nullptr);
                const std::pair<int, std::int64_t> known[] = {{axis::b, b},           {axis::h, 0},
                                                              {tile::i0, i0},         {tile::j0, j0},
                                                              {tile::i1, i0 + kTile}, {tile::j1, j0 + kTile}};
                for (const auto& [k, v] : known) map[static_cast<std::size_t>(k)] = pool.integer(v);
                const auto value = [&](Expr e) { return Evaluator(pool, here).value(pool.substitute(e, map)); };
                bool some = value(a.any) != 0, all = value(a.every) != 0;
                if (!a.ranges.empty()) {
                    some = all = false;
                    for (const auto& r : a.ranges) {
                        const double from = static_cast<double>(j0), to = from + kTile;
                        const double begin = value(r.begin), end = value(r.end);
                        some = some || (begin < end && begin < to && end > from);
                        all = all || (r.all_begin && value(r.all_begin) <= from && value(r.all_end) >= to);
                    }
                }
                EXPECT_TRUE(some || !any);
                EXPECT_TRUE(!all || every);
                mine.visited += some ? 1 : 0;
                mine.masked += some && !all ? 1 : 0;
            }
    return {mine, least};
}

TEST(MaskGoldenTest, VisibleSpecifications) {
    if (!fs::exists(specifications() / "paper")) GTEST_SKIP() << "no folder of specifications here";
    std::vector<fs::path> files;
    for (const auto& e : fs::directory_iterator("tests/corpus/golden")) files.push_back(e.path());
    std::sort(files.begin(), files.end());
    std::string table;
    int masks = 0;
    for (const fs::path& file : files) {
        const std::string all = read(file);
        const auto first = all.find('\n'), second = all.find('\n', first + 1);
        const std::string path = all.substr(2, first - 2);
        Source s = source_of(specifications(), path);
        ParseOptions o = apply_options(words(all.substr(first + 2, second - first - 2)), s);
        o.certify = false;
        const auto r = Specification::parse(s, o);
        ASSERT_TRUE(r) << file;
        const Variant* v = (*r)->variant();
        if (!v) continue;
        const Environment env = world((*r)->scalar(), path.rfind("flex", 0) == 0 ? kSize : 5);
        for (const Part& part : v->parts) {
            const Analysis a = analyse(*v->pool, part.keep, part.keys);
            Environment sized = env;
            if (part.keys != v->pool->dim(dims::Sk)) sized.dims[part.keys->number] = kSize;
            const auto [mine, least] = count(*v->pool, sized, part.keep, a);
            std::ostringstream line;
            line << file.stem().string() << " | " << form_of(a) << " | " << mine.visited << "/" << least.visited << " "
                 << mine.masked << "/" << least.masked << "\n";
            table += line.str();
            ++masks;
            if (std::getenv("CUBRIDGE_SHOW")) {
                std::printf("%s\n  keep  %s\n  any   %s\n  every %s\n", file.stem().c_str(),
                            debug_text(part.keep).c_str(), debug_text(a.any).c_str(), debug_text(a.every).c_str());
                for (const auto& t : a.tables) std::printf("  table %s\n", debug_text(t.value).c_str());
                for (const auto& x : a.ranges)
                    std::printf("  some  [%s, %s)\n  all   [%s, %s)\n", debug_text(x.begin).c_str(),
                                debug_text(x.end).c_str(), x.all_begin ? debug_text(x.all_begin).c_str() : "-",
                                x.all_end ? debug_text(x.all_end).c_str() : "-");
            }
        }
    }
    if (std::getenv("CUBRIDGE_WRITE_GOLDEN")) std::ofstream(kExpected, std::ios::binary) << table;
    EXPECT_EQ(table, read(kExpected));
    EXPECT_GE(masks, 50);
}

} // namespace
