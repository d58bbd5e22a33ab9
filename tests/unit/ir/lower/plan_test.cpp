// What a launch of a program needs and demands. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/plan.h"
#include <gtest/gtest.h>

namespace {

using namespace cubridge::ir;

launch::Plan plan_of(const std::string& heads) {
    lower::Shape shape;
    shape.grids.push_back({"attention", {"B", heads, "cdiv(Sq, 128)"}, false, 128, 65536});
    shape.storage.emplace_back("T", std::vector<std::string>{"B", "Hq", "maximum(Sq, Sk)"});
    shape.storage_types.push_back(DType::F32);
    launch::Plan plan;
    const auto error = lower::fill_plan(plan, shape, {});
    EXPECT_FALSE(error) << error->message;
    return plan;
}

TEST(LowerPlanTest, HeadsOfAnotherNumberDemandAllOfThem) {
    EXPECT_TRUE(plan_of("Hq").conditions.empty());
    const auto plan = plan_of("(Hq // 2)");
    ASSERT_EQ(plan.conditions.size(), 1u);
    EXPECT_EQ(plan.conditions[0].text, "head_begin == 0");
    EXPECT_EQ(plan.entries.size(), 1u);
}

} // namespace
