// Tables that a tile reads by the distance of its columns and rows. SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/lower/on_host.h"

namespace cubridge::ir::lower {
namespace {

using test::edited;

test::Printed printed(const std::string& expert, const std::string& value) {
    return test::printed(expert,
                         "T = alloc(workspace, (B, Hq, Sq + Sk), f32)\nN = alloc(workspace, (Hq, Sk), i32)\n\n" +
                             test::program_text(expert),
                         value);
}

bool by_distance(const std::string& region) {
    return region.find("// none is clamped") != std::string::npos;
}

TEST(DistanceTest, OneAddressAThread) {
    for (const auto& expert : {test::expert_text(), test::hopper_text()})
        EXPECT_NE(printed(expert, "S * unit + T[b, h, j + (Sq - i)]").region.find(R"(        {
            const float* const line = &T(b, h, 0);
            const int first = j[CID(0)] + (Sq - i[ROW(0)]), last = max((int)T.size[2], 1) - 1;
            if (first >= 8 * (ROWS - 1) && first + j.offset(COLS(BN) - 1) <= last) { // none is clamped
                const float* const here = line + first;
                EACH(e, x) x[e] = S[e] * unit + here[j.offset(CID(e)) - 8 * ROW(e)];
            } else {
                EACH(e, x) x[e] = S[e] * unit + line[clamp(first + (j.offset(CID(e)) - 8 * ROW(e)), 0, last)];
            }
        }
)"),
                  std::string::npos)
            << printed(expert, "S * unit + T[b, h, j + (Sq - i)]").region;
}

TEST(DistanceTest, OtherReads) {
    const auto& expert = test::hopper_text();
    for (const char* value : {"S + T[b, h, i - j + Sk]", "S + T[b, h, j + i]", "S + T[b, h, 2 * (j - i)]",
                              "S + T[b, i, j - i]", "S + T[b, h, j - i] + T[b, h, j - i + 1]",
                              "S + T[b, h, j] - f32(i)", "S + T[b, h, maximum(j - i, 0)]", "S + N[h, j]"}) {
        const auto p = printed(expert, value);
        EXPECT_NE(p.region.find("EACH"), std::string::npos) << p.region;
        EXPECT_FALSE(by_distance(p.region)) << p.region;
    }
    for (const char* value : {"S + T[b, h, j - i]", "S + N[h, Sq + j - i - 1]", "S * T[0, G, j - (i - Sk)]"})
        EXPECT_TRUE(by_distance(printed(expert, value).region)) << printed(expert, value).region;
}

// Read back, its region is what a rule prints: nothing else may stand there unmarked.
TEST(DistanceTest, AMarginThatLies) {
    const auto& expert = test::hopper_text();
    const auto p = printed(expert, "S + T[b, h, j - i]");
    const auto target = lift(p.cuda);
    ASSERT_TRUE(target);
    EXPECT_EQ(read_back(expert, p.cuda, *target), std::vector<std::string>{});
    EXPECT_NE(read_back(expert, edited(p.cuda, "- 8 * ROW(e)]", "- 8 * ROW(e) + 1]"), *target),
              std::vector<std::string>{});
}

// What is printed, run on the host for every thread: the same elements as those of the table itself, clamped or not.
TEST(DistanceTest, ReadsTheSameElements) {
    test::OnHost host("cubridge_distance_");
    const auto run = [&](const std::string& expert, const std::string& constants, const std::string& region) {
        return host.run(expert, constants, {"template <class T, int N> struct Work"}, R"(
int main() {
    long wrong = 0, seen = 0;
    for (const int Sq : {1, 20, 84, 200})
        for (const int Sk : {1, 60, 128, 300}) {
            i64 end = 0;
            std::vector<float> memory(6 * (Sq + Sk) + 64);
            const Work<float, 3> T(memory.data(), end, 2, 3, Sq + Sk);
            for (int k = 0; k < 6 * (Sq + Sk); ++k) memory[k] = k;
            const int b = 1, h = 1;
            for (int i0 = 0; i0 < Sq; i0 += R)
                for (int n = 0; n * BN < Sk + BN; ++n)
                    for (threadIdx.x = 0; threadIdx.x < 128; ++threadIdx.x) {
                        const Rows i(i0);
                        const Cols j(n * BN);
                        float S[TILE(BN)], x[TILE(BN)];
                        EACH(e, S) S[e] = 0;
)" + region + R"(
                        EACH(e, x) wrong += x[e] != T(b, h, j[CID(e)] + (Sq - i[ROW(e)]));
                        ++seen;
                    }
        }
    return wrong != 0 || seen == 0;
}
)");
    };
    for (const auto& [expert, constants] : test::both_layouts()) {
        std::string region = printed(expert, "S + T[b, h, j + (Sq - i)]").region;
        region = region.substr(region.find('{'));
        EXPECT_EQ(run(expert, constants, region), 0) << region;
        EXPECT_EQ(run(expert, constants, edited(region, "8 * (ROWS - 1)", "8 * (ROWS - 2)")), 1);
        EXPECT_EQ(run(expert, constants, edited(region, "<= last", "<= last + 1")), 1);
    }
}

} // namespace
} // namespace cubridge::ir::lower
