// What single rules print. SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/lower/expert.h"
#include <array>
#include <gtest/gtest.h>

namespace cubridge::ir::lower {
namespace {

using test::edited;
using test::expert_text;
using test::lowered;
using test::message;
using test::program_text;

std::string base() {
    return program_text(expert_text());
}

/// The region of a statement of a lowered program, without indentation.
std::string region(const Result<Lowered>& r, const std::string& statement) {
    if (!r) return message(r);
    const auto margin = take_apart(r->cuda);
    for (const auto& s : margin->segments) {
        const auto at = s.margin.find_first_not_of(' ');
        if (s.margin.compare(at, statement.size(), statement) != 0) continue;
        std::string out;
        for (const auto& l : s.cuda)
            out += (out.empty() ? "" : "\n") + l.substr(std::min(l.find_first_not_of(' '), l.size()));
        return out;
    }
    return "no such statement";
}

/// The loop that a value of the scores prints as, in the def where S is a tile, row_max a row, i, j index vectors.
std::string score(const std::string& value) {
    std::string text =
        edited(base(), "Lse: f32[B, Hq, Sq],\n",
               "Lse: f32[B, Hq, Sq],\n    x0: f32[Hq, N],\n    x1: i32[B, N],\n    x2: f32,\n    x3: bool[N, "
               "N],\n    x4: i32,\n");
    text = edited(text, "        x = S\n", "        x = " + value + "\n");
    return region(lowered(text), "x = ");
}

TEST(RulesTest, ElementwiseExpressions) {
    const std::vector<std::array<std::string, 2>> table{
        {"S * x2 + 1", "S[e] * x2 + 1.0f"},
        {"S - (x2 - 1.0)", "S[e] - (x2 - 1.0f)"},
        {"-S", "-S[e]"},
        {"S * f32(i - j)", "S[e] * j.before(CID(e), i[ROW(e)])"},
        {"S + f32(j) * x2", "S[e] + j.real(CID(e)) * x2"},
        {"S + j", "S[e] + j.real(CID(e))"},
        {"S + x0[h, j]", "S[e] + x0(h, j[CID(e)])"},
        {"S + x0[h, clamp(i - j, 0, Sk - 1)]", "S[e] + x0(h, clamp(i[ROW(e)] - j[CID(e)], 0, Sk - 1))"},
        {"where(x1[b, i] == x1[b, j], S, -inf)", "x1(b, i[ROW(e)]) == x1(b, j[CID(e)]) ? S[e] : -INF"},
        {"where(x3[j, i] | (i < j) & ~(j == 0), S, 0.0)",
         "x3(j[CID(e)], i[ROW(e)]) || (j.after(i[ROW(e)]) < j.offset(CID(e))) & !(j.offset(CID(e)) == j.after(0)) ? "
         "S[e] : 0.0f"},
        {"where(j <= i + x4, S, -inf)", "j.offset(CID(e)) <= j.after(i[ROW(e)] + bounded(x4)) ? S[e] : -INF"},
        {"where(j < 2 * x4 - x1[b, i], S, -inf)",
         "j.offset(CID(e)) < j.after(bounded((i64)2 * x4) - bounded(x1(b, i[ROW(e)]))) ? S[e] : -INF"},
        {"where(i >= -x4, S, -inf)", "i[ROW(e)] >= -bounded(x4) ? S[e] : -INF"},
        {"where((i - j) // 2 % G == 1, S, -inf)", "mod(floor_div(i[ROW(e)] - j[CID(e)], 2), G) == 1 ? S[e] : -INF"},
        {"where(i // 2 % 2 == 1, S, -inf)", "i[ROW(e)] / 2 % 2 == 1 ? S[e] : -INF"},
        {"where(0 <= i - j < BN, S, -inf)", "0 <= i[ROW(e)] - j[CID(e)] && i[ROW(e)] - j[CID(e)] < BN ? S[e] : -INF"},
        {"tanh_approx(S * x2) / x2", "tanh_fast(S[e] * x2) / x2"},
        {"tanh_small(S * x2) / x2", "tanh_small(S[e] * x2) / x2"},
        {"1.0 - tanh_small(S * x2) * (x2 + 1.0)", "1.0f - tanh_small(S[e] * x2, x2 + 1.0f)"},
        {"x2 * tanh_small(S) + S * tanh_small(x2)", "tanh_small(S[e], x2) + S[e] * tanh_small(x2)"},
        {"tanh(S) + exp2(S) + exp(S)", "tanhf(S[e]) + exp2_fast(S[e]) + expf(S[e])"},
        {"1.0 / (1.0 + S)", "rcp_fast(1.0f + S[e])"},
        {"sigmoid(S) * abs(S)", "sigmoid(S[e]) * fabsf(S[e])"},
        {"maximum(S, 0.0) + minimum(S, x2)", "fmaxf(S[e], 0.0f) + fminf(S[e], x2)"},
        {"S + abs(i - j)", "S[e] + (float)abs(i[ROW(e)] - j[CID(e)])"},
        {"S * row_max + maximum(i, j)", "S[e] * row_max[ROW(e)] + (float)max(i[ROW(e)], j[CID(e)])"},
        {"S * f32.mul(x2, f32.log(f32(i)))", "S[e] * __fmul_rn(x2, (float)(log(((double)(float)i[ROW(e)]))))"},
        {"S + (i < j)", "S[e] + (float)(j.after(i[ROW(e)]) < j.offset(CID(e)))"},
        {"S * i32(S * 2.0)", "S[e] * (float)(int)(S[e] * 2.0f)"},
        {"S * 1e-06 + x0.shape[1]", "S[e] * 1e-06f + (float)x0.size(1)"},
    };
    for (const auto& [value, printed] : table)
        EXPECT_EQ(score(value), "float x[TILE(BN)];\nEACH(e, x) x[e] = " + printed + ";") << value;
}

TEST(RulesTest, WhatHasNoTextIsRefused) {
    for (const char* value : {"S.mean(-1)", "S @ S", "S[0]", "unknown", "exp(S, S)", "S ** 2", "walk(S)", "where(S, S)",
                              "Qs", "tiles", "x0[h]", "x0[h, S]", "x0[h, 0:2]", "lambda: S", "S and S"})
        EXPECT_NE(score(value).find("no_rule: line "), std::string::npos) << value << ": " << score(value);
}

TEST(RulesTest, RowsAndReductions) {
    std::string text =
        edited(base(), "row_sum = row_sum * shrink + p.sum(-1)", "row_sum = row_sum * shrink + (p * 2.0).sum(-1)");
    EXPECT_EQ(region(lowered(text), "row_sum ="), "{\nfloat part[ROWS];\nfloat whole[TILE(BN)];\nEACH(e, whole) "
                                                  "whole[e] = p[e] * 2.0f;\nrow_sum_of(part, whole);\n"
                                                  "EACH_ROW(r) row_sum[r] = row_sum[r] * shrink[r] + part[r];\n}");
    text = edited(base(), "acc[:] = acc * inv", "acc[:] *= 1.0 / complete(row_sum)");
    EXPECT_EQ(region(lowered(text), "acc[:] *="), "{\nfloat part[ROWS];\nEACH_ROW(r) part[r] = quad_sum(row_sum[r]);\n"
                                                  "EACH(e, acc) acc[e] = acc[e] * rcp_fast(part[ROW(e)]);\n}");
}

TEST(RulesTest, NamesThatMeanSomethingElseAreRefused) {
    for (const char* name : {"register", "min", "ROWS", "a__b", "new"}) {
        const auto r = lowered(edited(base(), "    unit =", "    " + std::string(name) + " = 1.0\n    unit ="));
        EXPECT_NE(message(r).find("means something else in CUDA"), std::string::npos) << name << message(r);
    }
    EXPECT_NE(message(lowered(edited(base(), "rows(i0, R)", "rows(i0, BM)"))).find("named R"), std::string::npos);
}

TEST(RulesTest, LoopVariablesKeepOutOfTheWay) {
    const std::string text =
        edited(edited(base(), "    unit =", "    e = 1.0\n    unit ="), "        x = S\n", "        x = S * e\n");
    EXPECT_EQ(region(lowered(text), "x = S"), "float x[TILE(BN)];\nEACH(e_, x) x[e_] = S[e_] * e;");
}

TEST(RulesTest, ADefThatChangesWhatItReturnsChangesItsCallers) {
    std::string text =
        edited(base(), "        return p, new_max, row_sum, shrink\n", "        return p, new_max, row_sum\n");
    text = edited(text, "p, row_max, row_sum, shrink = attend", "p, row_max, row_sum = attend");
    text = edited(text, "                acc[:] = acc * shrink\n", "");
    const auto r = lowered(text);
    ASSERT_TRUE(r) << message(r);
    EXPECT_EQ(region(r, "def attend").find("shrink"), std::string::npos);
    EXPECT_EQ(region(r, "shrink ="),
              "float shrink[ROWS];\nEACH_ROW(r) shrink[r] = exp2_fast(row_max[r] * unit - ref[r] * unit);");
    EXPECT_TRUE(read_back(expert_text(), r->cuda, *cuir::read(text)).empty());
}

TEST(RulesTest, AKindThatChangesPrintsEqualLinesAnew) {
    // `unit` becomes a row: the lines that read it are the same, their CUDA is not.
    std::string text = edited(base(), "    unit = LOG2E / sqrt(D)", "    bare = LOG2E / sqrt(D)");
    text = edited(text, "        x = S\n", "        unit = full(R, bare)\n        x = S\n");
    text = edited(text, "lse = where(total > 0.0, (row_max * unit", "lse = where(total > 0.0, (row_max * bare");
    const auto r = lowered(text);
    ASSERT_TRUE(r) << message(r);
    EXPECT_EQ(region(r, "p = exp2"), "EACH(e, p) p[e] = exp2_fast(x[e] * unit[ROW(e)] - ref[ROW(e)] * unit[ROW(e)]);");
}

TEST(RulesTest, NamesUsedAfterABlockAreDeclaredBeforeIt) {
    std::string text =
        edited(base(), "        x = S\n        if masked:\n            x = where(j < Sk, x, -inf)\n",
               "        if masked:\n            x = where(j < Sk, S, -inf)\n        else:\n            x = S\n");
    const auto r = lowered(text);
    ASSERT_TRUE(r) << message(r);
    EXPECT_EQ(region(r, "if masked:"), "float x[TILE(BN)];\nif (masked) {");
    EXPECT_EQ(region(r, "else:"), "else {");
    EXPECT_EQ(region(r, "x = S"), "EACH(e, x) x[e] = S[e];");
    EXPECT_TRUE(read_back(expert_text(), r->cuda, *cuir::read(text)).empty())
        << read_back(expert_text(), r->cuda, *cuir::read(text))[0];
}

TEST(RulesTest, KeyRangesByClosedFormAndByClass) {
    const std::string old =
        "        whole = Sk // BN\n        return [(whole, cdiv(Sk, BN), True), (0, whole, False)]\n";
    std::string text =
        edited(base(), old,
               "        some = clamp(maximum(i1, 0), 0, Sk)\n        return [(0, cdiv(some, BN), masked_at(i0))]\n");
    text = edited(text, "    def key_tiles",
                  "    def masked_at(i):\n        return i < 2 or Sk % BN != 0\n\n    def key_tiles");
    auto r = lowered(text);
    EXPECT_EQ(region(r, "def masked_at"), "auto masked_at = [&](int i) -> bool {");
    EXPECT_EQ(region(r, "return i <"), "return i < 2 || Sk % BN != 0;");
    EXPECT_EQ(region(r, "return [(0"), "return Ranges<1>{{0}, {cdiv(some, BN)}, {masked_at(i0)}};");
    text = edited(base(), old, "        return classify(cdiv(Sk, BN), tile_class, b, h, i0, i1)\n");
    text = edited(text, "    def key_tiles",
                  "    def tile_class(b, h, i0, i1, n):\n        return n * BN < i1, (n + 1) * BN <= minimum(i0 + 1, "
                  "Sk)\n\n    def key_tiles");
    r = lowered(text);
    ASSERT_TRUE(r) << message(r);
    EXPECT_EQ(region(r, "def tile_class"),
              "auto tile_class = [&](int b, int h, int i0, int i1, int n, bool& result0, bool& result1) {");
    EXPECT_EQ(region(r, "return n * BN"), "result0 = n * BN < i1;\nresult1 = (n + 1) * BN <= min(i0 + 1, Sk);");
    EXPECT_EQ(region(r, "return classify"), "return classify(cdiv(Sk, BN), [=](int n, bool& some, bool& every) { "
                                            "tile_class(b, h, i0, i1, n, some, every); });");
    EXPECT_TRUE(read_back(expert_text(), r->cuda, *cuir::read(text)).empty());
}

TEST(RulesTest, ConstantsOfAllKinds) {
    const auto s = lowered(edited(base(), "elem=bf16", "C0=-3, cx=0.5, cy=-inf, cz=True, elem=f16"));
    EXPECT_EQ(region(s, "*, BM"),
              "constexpr int BM = 128, BN = 64, ST = 1, W = 4, D = 128, Dv = 128, C0 = -3;\n"
              "constexpr float cx = 0.5f;\nconstexpr float cy = -INF;\nconstexpr bool cz = true;\nusing elem = f16;");
}

TEST(RulesTest, MapKernelsArePrintedWhole) {
    const std::string map = R"py(T = alloc(workspace, (B, Sk), i32)
U = alloc(workspace, (cdiv(Sk, BN), 2), f32)

@map
def ids(
    x0: i32[N],
    x1: f16[B, Sk],
    x2: i64,
    *, C0=4):
    for b, j in each(B, Sk):
        count = 0
        for r in range(x0.shape[0] - 1):
            count += x0[r + 1] <= j
        if x2 < j:
            count = minimum(count, C0)
        T[b, j] = count

@map
def least(
    x1: f16[B, Sk],
    ):
    for n in each(cdiv(Sk, 2)):
        low = inf
        for r in range(2):
            low = minimum(low, x1[0, n * 2 + r])
        U[n, 0] = low
        U[n, 1] = T[0, n]

)py";
    std::string text = map + edited(base(), "    *, BM", "    x1: f16[B, Sk],\n    *, BM");
    text = edited(text, "        x = S\n", "        x = where(T[b, j] == T[b, i], S + x1[b, j], -inf)\n");
    const auto r = lowered(text);
    ASSERT_TRUE(r) << message(r);
    const std::string expected = R"cu(//| @map
//| def ids(
extern "C" __global__ void __launch_bounds__(64) ids(const __grid_constant__ cb_args args) {
    const int B = args.requests, Hq = args.heads_q, Hk = args.heads_kv, Sq = args.max_q;
    int b = 0, Sk = args.max_kv;
//|     x0: i32[N],
    const Operand<int, 1> x0(args.operand[0], b);
//|     x1: f16[B, Sk],
    const Operand<f16, 2> x1(args.operand[1], b);
//|     x2: i64,
    const int x2 = Operand<i64, 0>(args.operand[2], b)();
//|     *, C0=4):
    constexpr int C0 = 4;
    i64 workspace_end = 0;
    const Work<int, 2> T(args.workspace, workspace_end, B, Sk);
    const Work<float, 2> U(args.workspace, workspace_end, cdiv(Sk, 64), 2);
//|     for b, j in each(B, Sk):
    const int extent = B, extent_ = Sk;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < (long long)extent * extent_; at += (long long)gridDim.x * blockDim.x) {
        b = (int)(at / extent_);
        const int j = (int)(at % extent_);
        Sk = key_length(args, b);
//|         count = 0
        int count = 0;
//|         for r in range(x0.shape[0] - 1):
        _Pragma("unroll 8") for (int r = 0; r < x0.size(0) - 1; ++r) {
//|             count += x0[r + 1] <= j
            count = count + (int)(x0(r + 1) <= j);
//|             # end
        }
//|         if x2 < j:
        if (x2 < j) {
//|             count = minimum(count, C0)
            count = min(count, C0);
//|             # end
        }
//|         T[b, j] = count
        T(b, j) = count;
//|         # end
    }
//|     # end
}

//| @map
)cu";
    EXPECT_NE(r->cuda.find(expected), std::string::npos) << r->cuda.substr(r->cuda.find("//| T = "), 4000);
    EXPECT_EQ(region(r, "low = minimum"), "low = fminf(low, x1(0, n * 2 + r));");
    EXPECT_EQ(region(r, "U[n, 1]"), "U(n, 1) = (float)T(0, n);");
    EXPECT_NE(region(r, "*, BM").find("const Work<int, 2> T(args.workspace, workspace_end, B, Sk);"),
              std::string::npos);
    EXPECT_EQ(
        region(r, "x = where(T"),
        "float x[TILE(BN)];\nEACH(e, x) x[e] = T(b, j[CID(e)]) == T(b, i[ROW(e)]) ? S[e] + x1(b, j[CID(e)]) : -INF;");
    EXPECT_TRUE(read_back(expert_text(), r->cuda, *cuir::read(text)).empty());
    // What was lowered is an expert: it lowers its own lift to itself, and back to the first.
    EXPECT_EQ(lower(r->cuda, *cuir::read(text))->cuda, r->cuda);
    const auto back = lower(r->cuda, *lift(expert_text()));
    ASSERT_TRUE(back) << message(back);
    EXPECT_EQ(program_text(back->cuda), base());
}

} // namespace
} // namespace cubridge::ir::lower
