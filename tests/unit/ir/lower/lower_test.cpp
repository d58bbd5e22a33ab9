// Lowering: identity, no dead statement, edits that only orchestration can express. SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/lower/hopper.h"
#include "tests/unit/sample.h"
#include <functional>
#include <gtest/gtest.h>
#include <tuple>

namespace cubridge::ir::lower {
namespace {

using cuir::Program;
using cuir::Statement;
using test::edited;
using test::expert_text;
using test::lowered;
using test::message;
using test::program_text;

TEST(LowerTest, AnExpertWithItsOwnLiftIsByteIdentical) {
    const auto r = lower(expert_text(), *lift(expert_text()));
    ASSERT_TRUE(r) << message(r);
    EXPECT_EQ(r->cuda, expert_text());
    EXPECT_TRUE(r->printed.empty());
    EXPECT_EQ(r->difference, "");
    const auto again = lowered(program_text(expert_text()));
    ASSERT_TRUE(again) << message(again);
    EXPECT_EQ(again->cuda, expert_text());
}

/// Visits every statement with the list it stands in.
void each(std::vector<Statement>& body, const std::function<void(std::vector<Statement>&, std::size_t)>& f) {
    for (std::size_t k = 0; k < body.size(); ++k) {
        f(body, k);
        each(body[k].body, f);
    }
}

std::string without_margin(const std::string& cuda) {
    const auto m = take_apart(cuda);
    std::string out;
    for (const auto& s : m->segments)
        for (const auto& l : s.cuda) out += l + "\n";
    return out;
}

/// Deletes each statement in turn: the CUDA changes, or lowering refuses.
void no_statement_is_dead(const std::string& expert, int at_least_changed, int at_least_refused) {
    const Program whole = *lift(expert);
    const std::string cuda = without_margin(expert);
    int changed = 0, refused = 0;
    cubridge::test::Sample sample;
    for (int number = 0;; ++number) {
        Program p = whole;
        std::string gone;
        int at = 0;
        std::vector<Statement>* from = nullptr;
        std::size_t index = 0;
        each(p.kernels[0].body, [&](auto& body, std::size_t k) {
            if (at++ == number) from = &body, index = k;
        });
        if (from == nullptr) break;
        if (sample.skips()) continue;
        gone = cuir::line_of((*from)[index]);
        from->erase(from->begin() + static_cast<std::ptrdiff_t>(index));
        const auto r = lower(expert, p);
        if (!r) {
            ++refused;
            continue;
        }
        ++changed;
        EXPECT_NE(without_margin(r->cuda), cuda) << gone;
    }
    EXPECT_GE(changed, cubridge::test::at_least(at_least_changed));
    EXPECT_GE(refused, cubridge::test::at_least(at_least_refused));
}

TEST(LowerTest, NoStatementIsDead) {
    no_statement_is_dead(expert_text(), 20, 10);
    no_statement_is_dead(test::hopper_text(), 70, 20);
}

TEST(LowerTest, NoConstantOfHopperIsDead) {
    const std::string text = test::hopper_program();
    for (const auto& [from, to, most] :
         std::vector<std::tuple<std::string, std::string, std::size_t>>{{"BM=128", "BM=192", 1},
                                                                        {"BN=128", "BN=64", 1},
                                                                        {"ST=2", "ST=3", 1},
                                                                        {"QB=2", "QB=1", 1},
                                                                        {" D=128", " D=64", 1},
                                                                        {"Dv=128", "Dv=64", 1},
                                                                        {"SLACK=8.0", "SLACK=4.0", 1},
                                                                        {"LIMIT=1.1529215e+18", "LIMIT=65536.0", 1},
                                                                        {"elem=bf16", "elem=f16", 1},
                                                                        {"WG=2", "WG=3", 2},
                                                                        {"registers=232", "registers=240", 1},
                                                                        {"by_head", "heaviest_first", 1},
                                                                        {"channel(4", "channel(8", 1}}) {
        SCOPED_TRACE(from);
        const auto r = test::on_hopper(edited(text, from, to));
        ASSERT_TRUE(r) << message(r);
        EXPECT_NE(without_margin(r->cuda), without_margin(test::hopper_text()));
        EXPECT_LE(r->printed.size(), most);
        const auto faults = read_back(test::hopper_text(), r->cuda, *cuir::read(edited(text, from, to)));
        EXPECT_TRUE(faults.empty()) << faults[0];
    }
}

TEST(LowerTest, NoConstantIsDead) {
    for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"BM=128", "BM=64"},
                                                                                   {"BN=64", "BN=32"},
                                                                                   {"ST=1", "ST=2"},
                                                                                   {"W=4", "W=8"},
                                                                                   {", D=128", ", D=64"},
                                                                                   {"Dv=128", "Dv=64"},
                                                                                   {"elem=bf16", "elem=f16"}}) {
        const auto r = lowered(edited(program_text(expert_text()), from, to));
        ASSERT_TRUE(r) << message(r);
        EXPECT_NE(without_margin(r->cuda), without_margin(expert_text())) << from;
        EXPECT_LE(r->printed.size(), 2u) << from;
    }
    // The portable expert's registers are the launch bounds of its preamble: nothing in the role's region says them.
    const auto r = lowered(edited(program_text(expert_text()), "registers=255", "registers=232"));
    EXPECT_NE(message(r).find("does not name `255` once"), std::string::npos) << message(r);
}

TEST(LowerTest, OnlyWhatDiffersIsPrinted) {
    const std::string text =
        edited(program_text(expert_text()), "x = where(j < Sk, x, -inf)", "x = where((j < Sk) & (j <= i), x, -inf)");
    const auto r = lowered(text);
    ASSERT_TRUE(r) << message(r);
    ASSERT_EQ(r->printed.size(), 1u);
    EXPECT_EQ(r->printed[0].rule, "elementwise");
    EXPECT_NE(
        r->cuda.find("EACH(e, x) x[e] = (j.offset(CID(e)) < j.after(Sk)) & (j.offset(CID(e)) <= j.after(i[ROW(e)])) "
                     "? x[e] : -INF;\n"),
        std::string::npos);
    EXPECT_EQ(program_text(r->cuda), text);
    EXPECT_NE(r->difference.find("-            x = where(j < Sk, x, -inf)\n"), std::string::npos) << r->difference;
    EXPECT_EQ(std::count(r->difference.begin(), r->difference.end(), '\n'), 7) << r->difference;
}

TEST(LowerTest, ARefusalNamesLineAndStatement) {
    const auto r =
        lowered(edited(program_text(expert_text()), "total = complete(row_sum)", "total = completed(row_sum)"));
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().kind, "no_rule");
    EXPECT_NE(r.error().message.find("`total = completed(row_sum)`"), std::string::npos) << r.error().message;
    EXPECT_GT(r.error().span.line, 10);
    EXPECT_GT(r.error().span.column, 1);
}

} // namespace
} // namespace cubridge::ir::lower
