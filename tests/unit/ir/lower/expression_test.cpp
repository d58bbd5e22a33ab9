// Printed expressions, compiled by the host compiler and compared with their meaning. SPDX-License-Identifier:
// Apache-2.0
#include "tests/unit/ir/lower/orchestration.h"
#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <unistd.h>

namespace cubridge::ir::lower {
namespace {

/// What stands before the printed statements: a warp of one thread with 2 rows and 4 columns.
constexpr char kPrelude[] = R"cpp(
#include <algorithm>
#include <cmath>
#define ROWS 2
#define COLS(C) 4
#define TILE(C) 8
#define ROW(e) ((e) / 4)
#define CID(e) ((e) % 4)
#define EACH(e, x) for (int e = 0; e < 8; ++e)
#define INF INFINITY
using std::abs; using std::max; using std::min;
constexpr float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;
static int floor_div(int a, int b) { return (int)std::floor((double)a / b); }
static int mod(int a, int b) { return a - b * floor_div(a, b); }
static int clamp(int x, int lo, int hi) { return min(max(x, lo), hi); }
typedef long long i64;
static int bounded(int x) { return clamp(x, -(1 << 29), 1 << 29); }
static int bounded(i64 x) { return (int)max(min(x, (i64)1 << 29), -((i64)1 << 29)); }
static int cdiv(int a, int b) { return (a + b - 1) / b; }
static float exp2_fast(float x) { return std::exp2(x); }
static float rcp_fast(float x) { return 1 / x; }
static float tanh_fast(float x) { return std::tanh(x); }
static float tanh_small(float x, float by = 1) { return std::tanh(x) * by; }
static float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
static float __fmul_rn(float a, float b) { return a * b; }
static float __fadd_rn(float a, float b) { return a + b; }
static float __fsub_rn(float a, float b) { return a - b; }
static float __fdiv_rn(float a, float b) { return a / b; }
struct Rows { int first; int operator[](int r) const { return first + 3 * r; } };
struct Cols { int first; int operator[](int c) const { return first + c; } float real(int c) const { return (float)(first + c); }
              static int offset(int c) { return c; } int after(int x) const { return x - first; } float before(int c, int x) const { return (float)(x - first - c); } };
template <int N> void logistic_of(float (&x)[N]) { for (float& y : x) y = 1.0f / (1.0f + exp2f(y)); }
template <int N> void logistic_small(float (&x)[N]) { logistic_of(x); }
static float logistic_small(float x) { return 1.0f / (1.0f + exp2f(x)); }
struct Pairs { float operator()(int h, int k) const { return 0.25f * (float)h + (float)k; } int size(int k) const { return 5 + k; } };
constexpr int b = 0, h = 1, n = 2, i0 = 3, Sk = 6, Sq = 7, BN = 4, G = 2;
static const Rows i{2};
static const Cols j{1};
static const Pairs x0;
constexpr float x2 = 0.75f;
static const int x3 = 2147483647, x4 = -x3 - 1;
static const float S[8] = {-2.0f, -0.5f, 0.0f, 0.25f, 0.5f, 1.0f, 1.5f, 3.0f}, row_max[2] = {0.5f, -1.0f};
)cpp";

struct Element {
    double s, row;
    std::int64_t i, j;
};

struct Case {
    const char* value;
    std::function<double(const Element&)> meaning;
};

double floored(double a, double b) {
    return std::floor(a / b);
}

double modulo(double a, double b) {
    return a - b * std::floor(a / b);
}

const std::vector<Case>& cases() {
    constexpr double inf = HUGE_VAL;
    static const std::vector<Case> all{
        {"S - (x2 - 1.0) - row_max", [](const Element& e) { return e.s - (0.75 - 1.0) - e.row; }},
        {"S / (x2 / row_max) * 2.0", [](const Element& e) { return e.s / (0.75 / e.row) * 2; }},
        {"-(S + 1) * -x2", [](const Element& e) { return -(e.s + 1) * -0.75; }},
        {"S + f32((i - j) // 2)", [](const Element& e) { return e.s + floored(static_cast<double>(e.i - e.j), 2); }},
        {"S + (i - j * 2) % G", [](const Element& e) { return e.s + modulo(static_cast<double>(e.i - e.j * 2), 2); }},
        {"S + (i + j) // 2 % 2",
         [](const Element& e) { return e.s + modulo(floored(static_cast<double>(e.i + e.j), 2), 2); }},
        {"S * (i / j)", [](const Element& e) { return e.s * static_cast<double>(e.i) / static_cast<double>(e.j); }},
        {"where((j <= i) | (j < 2) & (i < 1), S, -inf)",
         [](const Element& e) { return e.j <= e.i || (e.j < 2 && e.i < 1) ? e.s : -inf; }},
        {"where(((j <= i) | (j < 2)) & ~(j == 1), S, 0.0)",
         [](const Element& e) { return (e.j <= e.i || e.j < 2) && e.j != 1 ? e.s : 0; }},
        {"where((j < i) == (j < 3), S, 1.0)", [](const Element& e) { return (e.j < e.i) == (e.j < 3) ? e.s : 1; }},
        {"where(where(j < 2, i < 3, i > 3), S, 2.0)",
         [](const Element& e) { return (e.j < 2 ? e.i < 3 : e.i > 3) ? e.s : 2; }},
        {"where(1 < j <= i, where(j == 2, 1.0, S), -S)",
         [](const Element& e) { return 1 < e.j && e.j <= e.i ? e.j == 2 ? 1 : e.s : -e.s; }},
        {"where((j <= i + x3) & (i - x4 > j) & (j < 2 * x3 + i) & ~(i >= j - x4), S, 1.0)",
         [](const Element& e) { return e.s; }},
        {"x0[h, clamp(i - j, -1, Sk - 1)] + S",
         [](const Element& e) {
             return 0.25 + static_cast<double>(std::min(std::max(e.i - e.j, std::int64_t{-1}), std::int64_t{5})) + e.s;
         }},
        {"S * x0.shape[1] + cdiv(j, G)",
         [](const Element& e) { return e.s * 6 + std::ceil(static_cast<double>(e.j) / 2); }},
        {"maximum(S, row_max) - minimum(S, 0.5)",
         [](const Element& e) { return std::max(e.s, e.row) - std::min(e.s, 0.5); }},
        {"tanh(S * x2) / x2 + sigmoid(S)",
         [](const Element& e) { return std::tanh(e.s * 0.75) / 0.75 + 1 / (1 + std::exp(-e.s)); }},
        {"tanh_small(S * 0.125) * x2", [](const Element& e) { return std::tanh(e.s * 0.125) * 0.75; }},
        {"logistic_small(-S * LOG2E)", [](const Element& e) { return 1 / (1 + std::exp(-e.s)); }},
        {"2.0 * logistic_small(-S * LOG2E)", [](const Element& e) { return 2 / (1 + std::exp(-e.s)); }},
        {"1.0 / (1.0 + exp2(-S * LOG2E))", [](const Element& e) { return 1 / (1 + std::exp(-e.s)); }},
        {"floor(S) + abs(S) + sqrt(abs(S) + 1.0)",
         [](const Element& e) { return std::floor(e.s) + std::fabs(e.s) + std::sqrt(std::fabs(e.s) + 1); }},
        {"f32.sub(S, f32.mul(x2, f32(j))) + i32(S * 2.0)",
         [](const Element& e) { return e.s - 0.75 * static_cast<double>(e.j) + std::trunc(e.s * 2); }},
        {"S * ((j < 2) + (i < 3)) - abs(i - j)",
         [](const Element& e) { return e.s * ((e.j < 2) + (e.i < 3)) - std::fabs(static_cast<double>(e.i - e.j)); }},
    };
    return all;
}

/// The region of the statement that replaces `x = S`.
std::string region(const std::string& value) {
    std::string text = test::edited(test::base_program(), "    *, BM",
                                    "    x0: f32[Hq, N],\n    x2: f32,\n    x3: i32,\n    x4: i32,\n    *, BM");
    const auto r = test::lowered(test::edited(text, "        x = S\n", "        x = " + value + "\n"));
    EXPECT_TRUE(r) << test::message(r);
    if (!r) return "";
    const auto at = r->cuda.find("//|         x = "), begin = r->cuda.find('\n', at) + 1;
    return r->cuda.substr(begin, r->cuda.find("//|", begin) - begin);
}

TEST(ExpressionTest, PrintedTextMeansWhatItSays) {
    const auto folder = std::filesystem::path(testing::TempDir()) / ("cubridge_lower_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    std::ofstream out(folder / "printed.cpp");
    out << kPrelude;
    for (std::size_t k = 0; k < cases().size(); ++k)
        out << "extern \"C\" void f" << k << "(float* out) {\n"
            << region(cases()[k].value) << "    EACH(e, x) out[e] = x[e];\n}\n";
    out.close();
    const char* compiler = std::getenv("CXX") != nullptr ? std::getenv("CXX") : "c++";
    const std::string library = (folder / "printed.so").string();
    ASSERT_EQ(std::system((std::string(compiler) + " -std=c++17 -w -O0 -fPIC -shared '" +
                           (folder / "printed.cpp").string() + "' -o '" + library + "'")
                              .c_str()),
              0);
    void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(opened, nullptr);
    const double s[8] = {-2, -0.5, 0, 0.25, 0.5, 1, 1.5, 3}, row[2] = {0.5, -1};
    for (std::size_t k = 0; k < cases().size(); ++k) {
        float x[8];
        reinterpret_cast<void (*)(float*)>(dlsym(opened, ("f" + std::to_string(k)).c_str()))(x);
        for (int e = 0; e < 8; ++e) {
            const double want = cases()[k].meaning({s[e], row[e / 4], 2 + 3 * (e / 4), 1 + e % 4});
            if (std::isinf(want))
                EXPECT_EQ(x[e], want) << cases()[k].value << " at " << e;
            else
                EXPECT_NEAR(x[e], want, 1e-5 * (1 + std::fabs(want))) << cases()[k].value << " at " << e;
        }
    }
    dlclose(opened);
    std::filesystem::remove_all(folder);
}

} // namespace
} // namespace cubridge::ir::lower
