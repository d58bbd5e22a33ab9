// Single rules of the language, each in a program of its own; and the example of docs/cuir.md.
// SPDX-License-Identifier: Apache-2.0
#include "programs.h"
#include <algorithm>
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>

namespace cubridge::ir::cuir::testing {
namespace {

Memory ints(std::vector<std::int64_t> shape, std::vector<double> values) {
    return {std::move(shape), std::move(values), true};
}

/// A kernel of one warp that runs `body` once for B = 1, and stores what it likes to Out[B, N].
std::string one_warp(const std::string& body, const std::string& prelude = "") {
    std::string text = "@kernel(arch=\"sm_80\", expert=\"t\", ctas=\"items\")\n"
                       "def t(\n    x0: f32[B, N],\n    Out: f32[B, Sq],\n    *, W=1, FOUR=4, elem=f16):\n";
    const auto add = [&](const std::string& lines, const std::string& indent) {
        std::string line;
        for (const char c : lines + "\n") {
            if (c != '\n') {
                line += c;
            } else if (!line.empty()) {
                text += indent + line + "\n";
                line.clear();
            }
        }
    };
    add(prelude.empty() ? "one = 1" : prelude, "    ");
    text +=
        "    with role(\"r\", warps=W, registers=64) as g:\n        for b, h, m in bind(B, 1, 1, order=\"by_head\"):\n";
    add(body, "            ");
    return text;
}

Run single(int sq = 4) {
    Run run;
    run.ctas = 1;
    run.sizes = {{"B", 1}, {"Sq", sq}};
    run.inputs["x0"] = {{1, 5}, {1, 2, 3, 4, 5}, false};
    return run;
}

std::vector<double> out_of(const std::string& text, const Run& run) {
    const auto out = execute(parse(text), run);
    if (!out.findings.empty()) {
        ADD_FAILURE() << out.findings[0].kind << ": " << out.findings[0].text() << "\n" << text;
        return {};
    }
    return out.outputs.at("Out").values;
}

Finding finding_of(const std::string& text, const Run& run) {
    const auto out = execute(parse(text), run);
    return out.findings.empty() ? Finding{"none", "", 0, 0, ""} : out.findings[0];
}

Result<std::map<std::string, Memory>> without_lse(const Run& run) {
    auto all = reference(run);
    all->erase("Lse");
    return all;
}

using Doubles = std::vector<double>;

TEST(LanguageTest, IntegersFollowPythonsSignRule) {
    EXPECT_EQ(out_of(one_warp("q, r = divmod(-1, FOUR)\nOut[b, 0] = q\nOut[b, 1] = r\nOut[b, 2] = cdiv(-1, 2)\n"
                              "Out[b, 2 + 1] = clamp(FOUR, 0, 2) + minimum(1, 2)"),
                     single()),
              (Doubles{-1, 3, 0, 3}));
}

TEST(LanguageTest, GathersClampAndSlicesClip) {
    EXPECT_EQ(out_of(one_warp("i = rows(2, FOUR)\nOut[b, 0:FOUR] = x0[b, i]"), single()), (Doubles{3, 4, 5, 5}));
    EXPECT_EQ(out_of(one_warp("copy(x0[b, 2:2 + FOUR], X)\nv = X + 0.0\nOut[b, 0:1] = v.sum(-1)",
                              "X = alloc(shared, (1, FOUR), f32)"),
                     single(1)),
              (Doubles{12}));
}

TEST(LanguageTest, SlicesStep) {
    const std::string cell = "X = alloc(shared, (1, FOUR), f32)";
    const auto loaded = [&](const std::string& slice) { // sum of 1 2 3 4 5 at some places
        return out_of(one_warp("copy(x0[b, " + slice + "], X)\nv = X + 0.0\nOut[b, 0:1] = v.sum(-1)", cell), single(1));
    };
    EXPECT_EQ(loaded("0:1 + FOUR:2"), (Doubles{1 + 3 + 5}));
    EXPECT_EQ(loaded("0:FOUR:2"), (Doubles{1 + 3})) << "its end is none of its rows";
    EXPECT_EQ(loaded("0:2 * FOUR:2"), (Doubles{1 + 3 + 5})) << "beyond the tensor there are zeros";
    EXPECT_EQ(loaded("1:FOUR * FOUR + 1:FOUR"), (Doubles{2}));
    EXPECT_EQ(loaded("FOUR:2:2"), (Doubles{0})) << "no rows";
    const std::string stores = "Out[b, 0:FOUR:2] = full(2, 1.0)\nOut[b, 1:FOUR + 1:2] = full(2, 2.0)";
    EXPECT_EQ(out_of(one_warp(stores), single()), (Doubles{1, 2, 1, 2}));
    EXPECT_EQ(out_of(one_warp(stores), single(3)), (Doubles{1, 2, 1})) << "stores vanish beyond the tensor";
    EXPECT_EQ(out_of(one_warp("X[:] = 5.0\nfence(X[0])\ncopy_async(X[0], Out[b, 0:2 * FOUR:2])\nwait(X[0])\n"
                              "copy(X[0], Out[b, 1:2 * FOUR:2])",
                              "X = alloc(shared, (1, FOUR, 1), f32)"),
                     single()),
              (Doubles{5, 5, 5, 5}));
}

TEST(LanguageTest, WrongStepsAreFound) {
    const auto kind = [](const std::string& body) { return finding_of(one_warp(body), single()).kind; };
    EXPECT_EQ(kind("Out[b, 0:FOUR:2] = full(2, 1.0)\nOut[b, 0:FOUR:2] = full(2, 2.0)"), "output") << "twice";
    EXPECT_EQ(kind("Out[b, 0:FOUR:2] = full(2, 1.0)\nOut[b, 1:2:2] = full(1, 2.0)"), "output") << "never";
    EXPECT_EQ(kind("Out[b, 0:FOUR:2] = full(FOUR, 1.0)"), "shape");
    EXPECT_EQ(kind("Out[b, 0:FOUR:0] = full(FOUR, 1.0)"), "bounds");
    EXPECT_EQ(kind("Out[b, 0:FOUR:-1] = full(FOUR, 1.0)"), "bounds");
    EXPECT_EQ(kind("X = alloc(register, (1, 1), f32)\nX[::2] = 1.0\nOut[b, 0:FOUR] = 1.0"), "type");
}

TEST(LanguageTest, BooleansCountAndFloat32Rounds) {
    const auto v = out_of(
        one_warp(
            "n = 0\nfor r in range(FOUR):\n    n += x0[b, r] <= 2.0\nOut[b, 0] = n\n"
            "Out[b, 1] = f32.div(x0[b, 0], x0[b, 2])\nOut[b, 2] = i32(2.9)\nOut[b, 2 + 1] = where(n == 2, 1.0, 0.0)"),
        single());
    EXPECT_EQ(v, (Doubles{2, static_cast<double>(1.0f / 3.0f), 2, 1}));
}

TEST(LanguageTest, LoopsBreakAndDefsReturn) {
    EXPECT_EQ(out_of(one_warp("k = 0\nwhile True:\n    k += 1\n    if twice(k) > FOUR:\n        break\nOut[b, 0] = k",
                              "def twice(x):\n        if x == 0:\n            return 0\n        return 2 * x"),
                     single(1)),
              (Doubles{3}));
}

TEST(LanguageTest, KeyRangesAreNeverEmpty) {
    EXPECT_EQ(
        out_of(
            one_warp(
                "r = [(1, FOUR, True), (0, 1, False)]\nn, masked = pick(r, 0)\nOut[b, 0] = n\nn, masked = pick(r, 1 + "
                "2)\n"
                "Out[b, 1] = n + masked\ns = [(0, 0, False)]\nn, masked = pick(s, 0)\nOut[b, 2] = length(s) + masked\n"
                "t = classify(FOUR, odd, 0)\ny, m = pick(t, 1)\nOut[b, 2 + 1] = y * 2 + m",
                "def odd(z, n):\n        return n % 2 == 1, n == 1"),
            single()),
        (Doubles{3, 0, 2, 2}));
}

TEST(LanguageTest, AMapKernelFillsTheWorkspaceForTheNext) {
    const std::string text = "T = alloc(workspace, (B, Sk), i32)\n\n@map\ndef count(\n    x1: i32[B, Sk],\n    ):\n"
                             "    for b, j in each(B, Sk):\n        n = 0\n        for r in range(Sk):\n"
                             "            n += x1[b, r] <= x1[b, j]\n        T[b, j] = n\n\n" +
                             one_warp("Out[b, 0:FOUR] = T[b, rows(0, FOUR)]");
    auto run = single();
    run.sizes["Sk"] = 4;
    run.inputs["x1"] = ints({1, 4}, {7, 3, 9, 3});
    EXPECT_EQ(out_of(text, run), (Doubles{3, 2, 4, 2}));
}

TEST(LanguageTest, WhatAKernelWritesItDoesNotRead) {
    const std::string text = "T = alloc(workspace, (B, Sk), i32)\n\n" + one_warp("T[b, 0] = 1\nOut[b, 0] = T[b, 0]");
    auto run = single(1);
    run.sizes["Sk"] = 1;
    const auto f = finding_of(text, run);
    EXPECT_EQ(f.kind, "race");
    EXPECT_EQ(f.line, line_of(text, "Out[b, 0] = T"));
    EXPECT_EQ(f.other, line_of(text, "T[b, 0] = 1"));
}

TEST(LanguageTest, ANameDoesNotOutliveItsStorage) {
    const auto f = finding_of(
        one_warp("S = alloc(register, (1, 1), f32)\nS[:] = 1.0\nx = S\nS[:] = 2.0\nOut[b, 0:1] = x"), single(1));
    EXPECT_EQ(f.kind, "stale");
}

TEST(LanguageTest, OperationsEndWithTheirRole) {
    const auto f =
        finding_of(one_warp("copy_async(x0[b, 0:1], X)\nOut[b, 0] = 0.0", "X = alloc(shared, (1, 1), f32)"), single(1));
    EXPECT_EQ(f.kind, "flight");
}

TEST(LanguageTest, FiniteValuesBeyondTheTypeAreFound) {
    EXPECT_EQ(
        finding_of(one_warp("P = alloc(register, (1, 1), elem)\nP[:] = 65505.0\nOut[b, 0:1] = P"), single(1)).kind,
        "range");
    EXPECT_EQ(finding_of(one_warp("Out[b, 0] = inf"), single(1)).kind, "none");
}

TEST(LanguageTest, MistakesAreNamedNotThrown) {
    const std::pair<const char*, const char*> wrong[] = {
        {"Out[b, 0] = y", "static"},
        {"Out[b, 0] = nothing(1)", "static"},
        {"Out[b, FOUR] = 1.0", "bounds"},
        {"if g == 1:\n    y = 1\nOut[b, 0] = y", "name"},
        {"Out[b, 0] = divmod(1, 0)", "value"},
        {"q, r = (1, 2, 1)", "type"},
        {"x = rows(0, 2) + rows(0, FOUR)", "shape"},
        {"x = x0[b, 0:2]\nif x:\n    pass", "type"},
        {"while True:\n    pass", "limit"},
        {"wait(one, 0)", "static"},
        {"take(one)", "static"},
        {"x = any", "static"},
        {"assert b == 1", "assert"},
    };
    for (const auto& [body, kind] : wrong) {
        auto run = single();
        run.steps = 1000;
        EXPECT_EQ(finding_of(one_warp(body), run).kind, kind) << body;
    }
}

TEST(LanguageTest, ATextWithoutLinesIsNumberedAsItPrints) {
    auto p = parse(load("portable.py"));
    auto s = statement("acc[:] = acc * 2.0 * shrink");
    ASSERT_TRUE(s);
    auto& loop = p.kernels[0].body.back().body.back().body.back(); // whatever it is: one line is made by a rule
    loop = *s;
    auto run = small({9, 7});
    const auto out = execute(p, run);
    ASSERT_FALSE(out.findings.empty());
    EXPECT_GT(out.findings[0].line, 0);
}

std::string the_page() {
    std::ifstream in("docs/cuir.md");
    return {std::istreambuf_iterator<char>(in), {}};
}

/// The nth block of Python of the page.
std::string example(const std::string& page, int nth) {
    std::size_t begin = 0, end = 0;
    for (; nth >= 0; --nth) {
        begin = page.find("```python\n", end);
        if (begin == std::string::npos) return "";
        begin += std::string("```python\n").size();
        end = page.find("```\n", begin);
    }
    return page.substr(begin, end - begin);
}

TEST(LanguageTest, TheExampleOfThePage) {
    const auto page = the_page();
    const auto text = example(page, 0);
    const auto found = check(parse(text));
    ASSERT_TRUE(found.empty()) << found[0].text();
    Trial trial;
    for (const auto& shape : {Shape{9, 14, 4, 2}, Shape{13, 7}, Shape{5, 0}})
        for (const auto& run : schedules(small(shape), {"math"}, 3)) trial.runs.push_back(run);
    const auto wrong = verify(parse(text), trial, without_lse);
    EXPECT_TRUE(wrong.empty()) << wrong[0].text();
    // And what the page says of it without its last sync.
    const auto broken = replace_line(text, "sync(everyone)", 1, "");
    const auto f = execute(parse(broken), friendly(small({9, 14}))).findings;
    ASSERT_EQ(f.size(), 1u);
    EXPECT_EQ(f[0].kind, "race");
    EXPECT_NE(page.find(f[0].text()), std::string::npos) << f[0].text();
}

Result<std::map<std::string, Memory>> doubled(const cuir::Run& run) {
    auto out = run.inputs.at("V");
    for (auto& x : out.values) x *= 2;
    return std::map<std::string, Memory>{{"Out", out}};
}

TEST(LanguageTest, TheProducerOfThePage) {
    const auto page = the_page(), text = example(page, 1);
    const auto found = check(parse(text));
    ASSERT_TRUE(found.empty()) << found[0].text();
    Trial trial;
    for (const auto& shape : {Shape{1, 14, 2, 2}, Shape{1, 41, 2, 2, 2}, Shape{1, 7}, Shape{1, 0}}) {
        auto run = small(shape);
        run.constants = {{"BN", 8}};
        run.inputs = {{"V", run.inputs.at("V")}};
        for (const auto& r : schedules(run, {"load", "math"}, 3)) trial.runs.push_back(r);
    }
    const auto wrong = verify(parse(text), trial, doubled);
    EXPECT_TRUE(wrong.empty()) << wrong[0].whole();
    const auto broken = verify(parse(replace_line(text, "wait(free[s]", 0, "")), trial, doubled);
    ASSERT_FALSE(broken.empty());
    EXPECT_TRUE(std::any_of(broken.begin(), broken.end(),
                            [&](const Finding& f) { return page.find(f.kind + ": " + f.text()) != std::string::npos; }))
        << broken[0].kind << ": " << broken[0].text();
    // A stage that is freed before it is read.
    const auto early =
        replace_line(replace_line(text, "arrive(free[s])", 0, ""), "wait(filled[s], u)", 0, "arrive(free[s])");
    EXPECT_FALSE(verify(parse(early), trial, doubled).empty());
}

} // namespace
} // namespace cubridge::ir::cuir::testing
