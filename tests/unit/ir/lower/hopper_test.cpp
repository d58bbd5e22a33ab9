// The Hopper expert: what it says and what its statements print. SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/lower/hopper.h"
#include <gtest/gtest.h>

namespace cubridge::ir::lower {
namespace {

using test::edited;
using test::hopper_program;
using test::hopper_text;
using test::message;
using test::on_hopper;

TEST(HopperTest, TheExpertIsWhatItsMarginSays) {
    for (const auto& f : census(hopper_text())) ADD_FAILURE() << f;
}

TEST(HopperTest, ItsMarginIsTheProgram) {
    const auto p = cuir::read(test::read_file("tests/corpus/cuir/prefill_sm90.py"));
    EXPECT_TRUE(cuir::equal(*p, *lift(hopper_text())));
}

TEST(HopperTest, WithItsOwnLiftItIsByteIdentical) {
    const auto r = lower(hopper_text(), *lift(hopper_text()));
    ASSERT_TRUE(r) << message(r);
    EXPECT_EQ(r->cuda, hopper_text());
    EXPECT_TRUE(r->printed.empty());
    for (const auto& f : read_back(hopper_text(), r->cuda, *lift(hopper_text()))) ADD_FAILURE() << f;
    const auto again = on_hopper(hopper_program());
    ASSERT_TRUE(again) << message(again);
    EXPECT_EQ(again->cuda, hopper_text());
}

} // namespace
} // namespace cubridge::ir::lower
