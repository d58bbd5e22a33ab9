// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/builtin.h"
#include "runtime/check/plan.h"
#include <gtest/gtest.h>
#include <set>

using namespace cubridge;
using namespace cubridge::runtime;

namespace {

class CasePlan : public ::testing::TestWithParam<const char*> {
protected:
    CheckPlan make(std::uint64_t seed) const {
        ir::Source source;
        source.text = std::string(find_built_in(GetParam())->text);
        const auto spec = ir::Specification::parse(source);
        EXPECT_TRUE(spec);
        ir::Request request;
        request.head_dim = request.head_dim_v = 128;
        request.group = 4;
        CheckOptions options;
        options.seed = seed;
        options.driver = nullptr;
        auto plan = make_check_plan(**spec, request, options);
        EXPECT_TRUE(plan);
        return *plan;
    }
};

TEST_P(CasePlan, HasAtMost40CasesOverEveryGroup) {
    const CheckPlan plan = make(1);
    EXPECT_LE(plan.cases.size(), 40U);
    EXPECT_GE(plan.cases.size(), 30U);
    std::set<int> groups, batches;
    std::set<Lay> lays;
    int real = 0, unlike = 0;
    for (const Case& c : plan.cases) {
        const Unit& u = plan.units[static_cast<std::size_t>(c.unit)];
        groups.insert(u.request.group);
        batches.insert(static_cast<int>(c.B));
        lays.insert(c.kv);
        real += u.real ? 1 : 0;
        unlike += c.Sq != c.Sk ? 1 : 0;
        EXPECT_EQ(c.Hq, c.Hk * u.request.group);
    }
    EXPECT_EQ(groups, (std::set<int>{1, 4, 5, 7, 8}));
    EXPECT_EQ(batches.size(), 3U);
    EXPECT_EQ(lays.size(), static_cast<std::size_t>(Lay::Count));
    EXPECT_GE(real, 1);
    EXPECT_LE(real, 4);
    EXPECT_GE(unlike, 5) << "a square text too, with the rows as the tail";
}

TEST_P(CasePlan, IsTheSameForASeed) {
    const CheckPlan one = make(7), two = make(7), other = make(8);
    const auto texts = [](const CheckPlan& p) {
        std::vector<std::string> out;
        for (const Case& c : p.cases) out.push_back(c.text(p.units[static_cast<std::size_t>(c.unit)]));
        return out;
    };
    EXPECT_EQ(texts(one), texts(two));
    EXPECT_NE(texts(one), texts(other));
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, CasePlan, ::testing::Values("causal", "document", "alibi", "sliding_window"));

} // namespace
