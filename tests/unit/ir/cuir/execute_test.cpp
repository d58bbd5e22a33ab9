// Correct programs pass every schedule and equal the reference. SPDX-License-Identifier: Apache-2.0
#include "programs.h"
#include "tests/unit/sample.h"
#include <gtest/gtest.h>

namespace cubridge::ir::cuir::testing {
namespace {

struct Case {
    const char* file;
    int agents;
    bool scaled;
    std::vector<std::string> roles;
};

const Case kCases[] = {
    {"portable.py", 4, false, {"math"}},
    {"pingpong.py", 2, true, {"load", "math"}},
    {"stream.py", 2, true, {"load", "store", "math"}},
    {"strided.py", 4, false, {"math"}},
};

Run run_of(const Case& c, const Shape& shape, int st, Data data = Data::Plain) {
    auto run = small(shape, data, c.agents);
    run.constants["ST"] = st;
    if (c.scaled) run.constants["scaled"] = 1;
    return run;
}

void expect_clean(const Case& c, const Runs& runs) {
    Trial trial;
    trial.runs = runs;
    const auto findings = verify(parse(load(c.file)), trial, reference);
    if (!findings.empty()) ADD_FAILURE() << c.file << ", " << findings[0].kind << ": " << findings[0].text();
}

void add(Runs& to, const Runs& from) {
    to.insert(to.end(), from.begin(), from.end());
}

TEST(ExecuteTest, EveryScheduleAndNumberOfKeyTilesGivesTheReference) {
    for (const auto& c : kCases)
        for (const int st : {1, 2, 3}) {
            if (st == 1 && c.scaled) continue; // a stream of one stage is a deadlock by design
            Runs runs;
            for (const int tiles : {0, 1, st - 1, st, st + 1, 2 * st + 1})
                for (const int rest : {0, 1}) // whole tiles, or one key more
                    add(runs, schedules(run_of(c, {13, 3 * tiles + rest}, st), c.roles, 2));
            expect_clean(c, runs);
        }
}

TEST(ExecuteTest, LengthsGroupsAndBatches) {
    const Shape shapes[] = {{1, 1}, {4, 3}, {9, 14}, {13, 7}, {5, 0}, {17, 17, 4, 2}, {7, 10, 3, 1, 2}, {25, 8, 7, 1}};
    cubridge::test::Sample sample(7);
    for (const auto& c : kCases) {
        Runs runs;
        for (const auto& shape : shapes)
            for (const int ctas : {1, 2, 3}) {
                if (sample.skips()) continue;
                auto run = run_of(c, shape, 2);
                run.ctas = ctas;
                add(runs, schedules(run, c.roles, 3));
            }
        expect_clean(c, runs);
    }
}

TEST(ExecuteTest, AHeadOfNaNStaysWhereItIs) {
    for (const auto& c : kCases)
        for (const int ctas : {1, 2}) {
            auto run = run_of(c, {9, 7}, 2, Data::OneHeadNaN);
            run.ctas = ctas;
            const auto got = execute(parse(load(c.file)), run);
            ASSERT_TRUE(got.findings.empty()) << got.findings[0].text();
            const auto want = *reference(run);
            const auto& out = got.outputs.at("Out").values;
            for (std::size_t k = out.size() / 2; k < out.size(); ++k) // of the other head
                EXPECT_NEAR(out[k], want.at("Out").values[k], 1e-9);
        }
}

TEST(ExecuteTest, ScoresThatRiseBeyondTheRangeOfAPower) {
    for (const auto& c : kCases) expect_clean(c, schedules(run_of(c, {9, 17}, 2, Data::Rising), c.roles, 4));
}

TEST(ExecuteTest, RealConstants) {
    for (const auto& c : kCases) {
        auto run = run_of(c, {130, 150}, 2);
        run.constants.erase("BM");
        run.constants.erase("BN");
        expect_clean(c, {run});
    }
}

/// Edits as transfer makes them: the checker takes them for what they are.
TEST(ExecuteTest, VariantsPassTheCheckerAndRun) {
    const auto text = load("pingpong.py");
    auto capped = replace_line(text, "unit =", 0, "unit = 1.0");
    capped = replace_line(capped, "G = ", 0, "G, squeeze, stretch = Hq // Hk, scale / scale, scale * LOG2E");
    capped = replace_line(capped, "x = S", 0, "x = tanh_approx(S * squeeze) * stretch");
    auto biased = replace_line(text, "x = S", 0, "x = S + f32(j - i) * exp2(-2.0 * f32(h + 1) / f32(Hq)) / scale");
    auto causal = replace_line(text, "x = where(", 0, "x = where((j < Sk) & (j <= i), x, -inf)");
    causal = replace_line(causal, "whole = ", 0, "whole = clamp(i0 + 1, 0, Sk) // BN");
    auto base_two = replace_line(text, "unit =", 0, "unit = scale * 0.6931471805599453 * LOG2E");
    base_two = replace_line(base_two, "lse = ", 0, "lse = where(total > 0.0, row_max * unit + log2(total), -inf)");
    auto sunk = replace_line(text, "total = ", 0, "total = complete(row_sum) + exp2(scale * LOG2E - row_max * unit)");
    for (const auto& program : {capped, biased, causal, base_two, sunk}) {
        const auto found = check(parse(program));
        EXPECT_TRUE(found.empty()) << found[0].text();
        for (const auto& run : schedules(run_of(kCases[1], {9, 14, 4, 2}, 2), kCases[1].roles, 1)) {
            const auto out = execute(parse(program), run);
            EXPECT_TRUE(out.findings.empty()) << out.findings[0].text();
        }
    }
}

TEST(ExecuteTest, TheStepLimitEndsARun) {
    auto run = run_of(kCases[0], {17, 17}, 1);
    run.steps = 100;
    const auto out = execute(parse(load("portable.py")), run);
    ASSERT_EQ(out.findings.size(), 1u);
    EXPECT_EQ(out.findings[0].kind, "limit");
}

} // namespace
} // namespace cubridge::ir::cuir::testing
