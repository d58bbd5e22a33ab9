// What a launch of a program needs and demands. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/plan.h"
#include <gtest/gtest.h>

namespace {

using namespace cubridge::ir;

launch::Plan plan_of(const std::string& heads, const std::string& heads_of_v = "Hk") {
    lower::Shape shape;
    shape.grids.push_back({"attention", {"B", heads, "cdiv(Sq, 128)"}, false, 128, 65536, {}, false});
    shape.storage.emplace_back("T", std::vector<std::string>{"B", "Hq", "maximum(Sq, Sk)"});
    shape.storage_types.push_back(DType::F32);
    const auto program =
        cuir::read("@kernel(arch=\"sm_80\", expert=\"e\", ctas=\"items\")\ndef attention(\n    V: elem[B, " +
                   heads_of_v + ", Sk, Dv],\n    *, Dv=128, elem=bf16):\n    R = Dv\n");
    if (!program) ADD_FAILURE() << program.error().message;
    launch::Plan plan;
    const auto error = lower::fill_plan(plan, shape, *program);
    EXPECT_FALSE(error) << error->message;
    return plan;
}

TEST(LowerPlanTest, HeadsOfAnotherNumberDemandAllOfThem) {
    EXPECT_TRUE(plan_of("Hq").conditions.empty());
    const auto plan = plan_of("(Hq // 2)");
    ASSERT_EQ(plan.conditions.size(), 1u);
    EXPECT_EQ(plan.conditions[0].text, "head_begin == 0");
    EXPECT_EQ(plan.entries.size(), 1u);
    EXPECT_EQ(plan_of("Hq", "_").conditions.size(), 1u);
    EXPECT_TRUE(plan_of("(Hq * 4)").conditions.empty()) << "classes of each head";
    EXPECT_EQ(plan_of("(Hq * Hk)").conditions.size(), 1u);
}

TEST(LowerPlanTest, KernelsShareMapsAndTheTicket) {
    using launch::Map;
    const auto program = cuir::read("@kernel(arch=\"sm_80\", expert=\"e\", ctas=\"items\")\ndef attention(\n"
                                    "    V: elem[B, Hk, Sk, Dv],\n    *, Dv=128, elem=bf16):\n    R = Dv\n");
    ASSERT_TRUE(program) << program.error().message;
    lower::Shape shape;
    shape.grids.push_back({"first", {"B"}, false, 384, 1024, {{Map::Tensor::Q, 64}, {Map::Tensor::K, 128}}, true});
    shape.grids.push_back({"second", {"B"}, false, 384, 1024, {{Map::Tensor::K, 128}, {Map::Tensor::O, 64}}, true});
    shape.storage.emplace_back("T", std::vector<std::string>{"B"});
    shape.storage_types.push_back(DType::F32);
    launch::Plan plan;
    ASSERT_FALSE(lower::fill_plan(plan, shape, *program));
    const std::vector<Map> maps = {{Map::Tensor::Q, 64}, {Map::Tensor::K, 128}, {Map::Tensor::O, 64}};
    EXPECT_EQ(plan.maps, maps);
    EXPECT_TRUE(plan.ticket);
    launch::Sizes sizes;
    sizes[launch::Size::Requests] = 65;
    EXPECT_EQ(plan.workspace.evaluate(sizes), 512 + launch::kTicketBytes);
    ASSERT_FALSE(lower::fill_plan(plan, shape, *program)) << "nothing is left of the time before";
    EXPECT_EQ(plan.maps, maps);

    shape.grids[1].maps[0].rows = 64;
    EXPECT_TRUE(lower::fill_plan(plan, shape, *program));
    shape.grids.pop_back();
    shape.grids[0].ticket = false;
    ASSERT_FALSE(lower::fill_plan(plan, shape, *program));
    EXPECT_FALSE(plan.ticket);
    EXPECT_EQ(plan.workspace.evaluate(sizes), 512);
}

TEST(LowerPlanTest, OperandsInPlaceOfKAreAligned) {
    const auto program = cuir::read("@kernel(arch=\"sm_80\", expert=\"e\", ctas=\"items\")\ndef attention(\n"
                                    "    x1: elem[_, _, _, _],\n    *, Dv=128, elem=bf16):\n    R = Dv\n");
    ASSERT_TRUE(program) << program.error().message;
    launch::Plan plan;
    plan.operands.resize(2);
    ASSERT_FALSE(lower::fill_plan(plan, {}, *program));
    EXPECT_EQ(plan.operands[0].alignment, 0);
    EXPECT_EQ(plan.operands[1].alignment, 16);
    plan.operands.resize(1);
    EXPECT_TRUE(lower::fill_plan(plan, {}, *program));
}

} // namespace
