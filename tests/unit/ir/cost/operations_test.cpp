// Operations an element, of programs of the corpus. SPDX-License-Identifier: Apache-2.0
#include "ir/cost/operations.h"
#include "tests/unit/ir/transfer/corpus.h"
#include <gtest/gtest.h>

namespace cubridge::ir {
namespace {

TEST(Operations, OfAnElement) {
    const auto of = [](const char* name) {
        const auto program = transfer::test::expert(std::string("tests/corpus/transfer_sm90/") + name + ".py");
        return cost::work_of(*program.main());
    };
    const auto causal = of("flex_mods_causal__0"), alibi = of("serving_alibi__0"),
               table = of("serving_t5_relative_bias__decoder"), sigmoid = of("paper_sigmoid__0"),
               relu = of("paper_relu__0");
    // A multiply-add, exp2, the sum, half a conversion.
    EXPECT_EQ(causal.every.plain, 2.5);
    EXPECT_EQ(causal.every.special, 1);
    EXPECT_EQ(causal.masked.plain, 2) << "a comparison and a choice";
    EXPECT_EQ(alibi.every.plain, causal.every.plain + 1);
    EXPECT_EQ(table.every.gathers, 0) << "far from the diagonal, as most tiles are";
    EXPECT_EQ(table.every.plain, alibi.every.plain);
    EXPECT_EQ(causal.every.gathers, 0);
    EXPECT_EQ(sigmoid.every.special, 1.25) << "the branch that most tiles take";
    EXPECT_EQ(relu.every.special, 0);
}

} // namespace
} // namespace cubridge::ir
