// Matrices that a tile reads by its rows and columns. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/kernel_abi.h"
#include "tests/unit/ir/lower/on_host.h"
#include <array>

namespace cubridge::ir::lower {
namespace {

using test::edited;

test::Printed printed(const std::string& expert, const std::string& value) {
    return test::printed(expert,
                         "T = alloc(workspace, (B, Hq, Sq + Sk), f32)\n\n" +
                             edited(test::program_text(expert), "    Lse: f32[B, Hq, Sq],\n",
                                    "    Lse: f32[B, Hq, Sq],\n    x0: f32[B, Hq, Sq, Sk],\n    x1: bf16[Sq, Sk],\n"
                                    "    x2: bool[B, Sq, Sk],\n    x3: i32,\n    x4: elem[Hq, Sq, Sk],\n"),
                         value);
}

std::size_t times(const std::string& text, const std::string& what) {
    std::size_t n = 0;
    for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
    return n;
}

TEST(MatrixTest, OneAddressARow) {
    for (const auto& expert : {test::expert_text(), test::hopper_text()})
        EXPECT_NE(printed(expert, "S + x0[b, h, i, j]").region.find(R"(        {
            const float* x0_at[ROWS];
            EACH_ROW(r) x0_at[r] = x0.o.size[3] > 0 ? (const float*)x0.o.data + (x0.begin() + x0.axis(0, b) + x0.axis(1, h) + x0.axis(2, i[r])) : (const float*)args.q.data;
            const int x0_first = j[CID(0)], x0_last = (int)(max((i64)1, min(x0.o.size[3], (i64)1 << 31)) - 1);
            const i64 x0_step = x0.o.stride[3];
            const auto plain = [&](int e) { return x0_step == 1 && x0_first >= 0 && x0_first + j.offset(CID(e)) <= x0_last; }; // columns up to that element's
            if (plain(TILE(BN) - 1)) { // side by side, and none is clamped
                EACH(e, x) x[e] = S[e] + widen(x0_at[ROW(e)][x0_first + j.offset(CID(e))]);
            } else UNROLL for (int part = 0; part < TILE(BN); part += 16) { // few at a time: their addresses take registers
                const int end = min(part + 16, TILE(BN));
                if (plain(end - 1)) {
                    UNROLL for (int e = part; e < end; ++e) x[e] = S[e] + widen(x0_at[ROW(e)][x0_first + j.offset(CID(e))]);
                } else {
                    UNROLL for (int e = part; e < end; ++e) x[e] = S[e] + widen(x0_at[ROW(e)][clamp(x0_first + j.offset(CID(e)), 0, x0_last) * x0_step]);
                }
            }
        }
)"),
                  std::string::npos)
            << printed(expert, "S + x0[b, h, i, j]").region;
}

TEST(MatrixTest, OtherReads) {
    const auto& expert = test::hopper_text();
    for (const char* value :
         {"S + x0[b, h, j, i]", "S + x0[b, h, i, 2 * j]", "S + x0[b, h, i, i - j]", "S + x0[b, j, i, j]",
          "S + x0[b, h, i, j - i]", "S + x1[j, 0]", "S + x1[i, 0]", "S + x1[i, minimum(j, Sq)]"}) {
        const auto p = printed(expert, value);
        EXPECT_NE(p.region.find("EACH"), std::string::npos) << p.region;
        EXPECT_EQ(p.region.find("plain"), std::string::npos) << p.region;
    }
    for (const char* value :
         {"S + x1[i, j]", "S + x1[i + (Sk - Sq), j + x3 - 1]", "S + x0[b, h // G, x3 * i, j]", "S + x4[h, i, j]",
          "where((j < Sk) & x2[0, i, j], S, -inf)", "1.0 / (exp2(S + x1[i, j]) + 1.0)"})
        EXPECT_NE(printed(expert, value).region.find("none is clamped"), std::string::npos)
            << printed(expert, value).region;
}

// Conditions that read a matrix have no branch an element: all addresses may be read.
TEST(MatrixTest, MasksHaveNoBranches) {
    const auto region = printed(test::hopper_text(), "where((j < Sk) & x2[b, i, j], S, -inf)").region;
    EXPECT_EQ(times(region, "(j.offset(CID(e)) < j.after(Sk)) & widen(x2_at"), 3u) << region;
    const auto other = printed(test::hopper_text(), "where((j < Sk) & x2[b, i, j] & (x1[j, i] > 0.0), S, -inf)").region;
    EXPECT_EQ(times(other, "&& x1(j[CID(e)], i[ROW(e)]) > 0.0f"), 3u) << other;
}

TEST(MatrixTest, SeveralInOneValue) {
    const auto& expert = test::hopper_text();
    const auto two = printed(expert, "where(x2[b, i, j], S + x1[i, j], x1[i, j])").region;
    EXPECT_EQ(times(two, "[ROWS];"), 2u) << two; // of those alike one
    EXPECT_NE(two.find("x2_step == 1 && x2_first >= 0 && x2_first + j.offset(CID(e)) <= x2_last && x1_step == 1"),
              std::string::npos)
        << two;
    const auto shifted = printed(expert, "S + x1[i, j] * x1[i, j + 1]").region;
    EXPECT_EQ(times(shifted, "[ROWS];"), 2u) << shifted;
    EXPECT_NE(shifted.find("x1_first_ = j[CID(0)] + 1"), std::string::npos) << shifted;
    // beside a table by distance: that is read its own way where rows are
    const auto table = printed(expert, "S + x1[i, j] + T[b, h, j - i + Sq]").region;
    EXPECT_EQ(times(table, "const float* const line"), 1u) << table;
    EXPECT_EQ(times(table, "widen(x1_at[ROW(e)][x1_first + j.offset(CID(e))]) + here["), 1u) << table;
    EXPECT_EQ(times(table, "T(b, h, j[CID(e)] - i[ROW(e)] + Sq)"), 2u) << table;
}

// Read back, its region is what a rule prints: nothing else may stand there unmarked.
TEST(MatrixTest, AMarginThatLies) {
    const auto& expert = test::hopper_text();
    const auto p = printed(expert, "S + x1[i, j]");
    const auto target = lift(p.cuda);
    ASSERT_TRUE(target);
    EXPECT_EQ(read_back(expert, p.cuda, *target), std::vector<std::string>{});
    EXPECT_NE(read_back(expert, edited(p.cuda, "x1.axis(0, i[r])", "x1.axis(0, i[r] + 1)"), *target),
              std::vector<std::string>{});
}

// What is printed, run on the host for every thread: the same elements as the operand gives one by one, whatever its
// strides and sizes, and where it has none, nothing of it.
TEST(MatrixTest, ReadsTheSameElements) {
    test::OnHost host("cubridge_matrix_");
    const auto run = [&](const std::string& expert, const std::string& constants, const std::string& region,
                         const std::string& same) {
        return host.run(expert,
                        std::string(abi::kernel_abi_text()) + "struct bf16 { unsigned short bits; };\n" + constants,
                        {"FN float widen(float", "FN float widen(bf16", "FN bool widen(bool",
                         "template <class T, int N> struct Operand", "FN int bounded(int"},
                        R"(
struct Layout { int heads, rows, columns; bool turned; int step; };
int main() {
    long wrong = 0, seen = 0;
    const int b = 1, h = 2, x3 = 7, Sq = 70;
    const float far = 1e30f;
    for (const int Sk : {0, 1, 64, 148, 260})
        for (const Layout& l : {Layout{4, Sq, Sk, false, 1}, Layout{4, Sq, Sk, false, 2}, Layout{4, Sq, Sk, true, 1}, Layout{1, Sq, Sk, false, 1},
                                Layout{4, 1, Sk, false, 1}, Layout{4, Sq + Sk, Sk + 20, false, 1}, Layout{4, Sq, max(Sk - 1, 0), false, 1}, Layout{4, Sq, 1, false, 0}}) {
            cb_args args = {};
            const i64 heads = l.heads, rows = l.rows, columns = l.columns, one = rows * columns * 2 + 8;
            std::vector<float> f(2 * heads * one, far);
            std::vector<bf16> m(2 * one, bf16{0x7fc0});
            std::vector<char> c(2 * one);
            for (int k = 0; k < 2 * heads * one; ++k) f[k] = k;
            for (int k = 0; k < 2 * one; ++k) m[k].bits = k & 0x7fff % 0x7f80, c[k] = k * 2654435761u >> 31;
            const i64 down = l.turned ? 1 : columns * 2, across = l.turned ? rows : l.step;
            args.q.data = f.data();
            args.operand[0] = {columns > 0 ? f.data() : nullptr, 0, {2, heads, rows, columns}, {heads * one, l.heads == 1 ? 0 : one, down, across}};
            args.operand[1] = {columns > 0 ? m.data() : nullptr, 0, {rows, columns}, {down, across}, one};
            args.operand[2] = {columns > 0 ? c.data() : nullptr, 0, {2, rows, columns}, {one, down, across}};
            const Operand<float, 4> x0(args.operand[0], b);
            const Operand<bf16, 2> x1(args.operand[1], b);
            const Operand<bool, 3> x2(args.operand[2], b);
            for (int i0 = 0; i0 < Sq; i0 += R)
                for (int n = 0; n * BN < Sk + BN; ++n)
                    for (threadIdx.x = 0; threadIdx.x < 128; ++threadIdx.x) {
                        const Rows i(i0);
                        const Cols j(n * BN);
                        float S[TILE(BN)], x[TILE(BN)];
                        EACH(e, S) S[e] = e;
)" + region + R"(
                        if (columns > 0) EACH(e, x) wrong += x[e] != ()" +
                            same + R"();
                        ++seen;
                    }
        }
    return wrong != 0 || seen == 0;
}
)");
    };
    const std::array<std::string, 2> values[] = {
        {"S + x0[b, h, i, j]", "S[e] + x0(b, h, i[ROW(e)], j[CID(e)])"},
        {"S + x0[b, h // 2, i + (Sk - Sq), j - 9]", "S[e] + x0(b, h / 2, i[ROW(e)] + (Sk - Sq), j[CID(e)] - 9)"},
        {"where(x2[0, i, j], S + x1[i, j + x3], x1[i, j + x3])",
         "x2(0, i[ROW(e)], j[CID(e)]) ? S[e] + x1(i[ROW(e)], j[CID(e)] + x3) : x1(i[ROW(e)], j[CID(e)] + x3)"}};
    for (const auto& [expert, constants] : test::both_layouts()) {
        const auto region_of = [&, &file = expert](const std::string& value) {
            const std::string region = printed(file, value).region;
            return region.substr(region.find('{'));
        };
        for (const auto& [value, same] : values)
            EXPECT_EQ(run(expert, constants, region_of(value), same), 0) << region_of(value);
        if (expert != test::hopper_text()) continue;
        const auto& [value, same] = values[1];
        const std::string region = region_of(value);
        for (const auto& [from, to] : {std::pair("x0_step == 1 &&", ""), std::pair(">= 0 &&", ">= -9 &&"),
                                       std::pair("<= x0_last", "<= x0_last + 1"), std::pair("* x0_step", ""),
                                       std::pair(", 0, x0_last)", ", 1, x0_last)"),
                                       std::pair("part += 16", "part += 24"), std::pair("x0.o.size[3] > 0", "true")})
            EXPECT_EQ(run(expert, constants, edited(region, from, to), same), 1) << from;
    }
}

} // namespace
} // namespace cubridge::ir::lower
