// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/launch.h"
#include <gtest/gtest.h>
#include <limits>

using namespace cubridge::ir;
using namespace cubridge::ir::launch;
using Do = Code::Do;

namespace {

Sizes sizes() {
    Sizes s;
    s[Size::Requests] = 3;
    s[Size::MaxKv] = 517;
    s[Size::HeadBegin] = 8;
    s.operand = {{5, 6, 7, 8}};
    return s;
}

std::optional<std::int64_t> value(const std::string& text) {
    const auto code = Code::parse(text);
    EXPECT_TRUE(code) << text;
    if (code) {
        EXPECT_EQ(code->text(), text);
    }
    return code ? code->evaluate(sizes()) : std::nullopt;
}

TEST(LaunchCode, EvaluatesPostfix) {
    EXPECT_EQ(value("max_kv 4 *"), 2068);
    EXPECT_EQ(value("requests x0.2 + head_begin -"), 2);
    EXPECT_EQ(value("-7 2 /"), -4);
    EXPECT_EQ(value("-7 2 /^"), -3);
    EXPECT_EQ(value("-7 2 %"), 1);
    EXPECT_EQ(value("7 -2 %"), -1);
    EXPECT_EQ(value("max_kv 256 round_up"), 768);
    EXPECT_EQ(value("512 256 round_up"), 512);
    EXPECT_EQ(value("3 4 min 2 max"), 3);
}

TEST(LaunchCode, NothingWhereNoNumberIs) {
    EXPECT_EQ(value("1 0 /"), std::nullopt);
    EXPECT_EQ(value("1 0 %"), std::nullopt);
    EXPECT_EQ(value("1 0 round_up"), std::nullopt);
    EXPECT_EQ(value("9223372036854775807 1 +"), std::nullopt);
    EXPECT_EQ(value("-9223372036854775808 1 -"), std::nullopt);
    EXPECT_EQ(value("-9223372036854775808 -1 /"), std::nullopt);
    EXPECT_EQ(value("9223372036854775807 max_kv *"), std::nullopt);
    EXPECT_EQ(value("9223372036854775807 2 round_up"), std::nullopt);
    EXPECT_EQ(value("x1.0"), std::nullopt);
    EXPECT_EQ(Code{}.evaluate(sizes()), std::nullopt);
}

TEST(LaunchCode, RefusesWhatIsNoCode) {
    for (const char* text :
         {"", " ", "1 2", "+", "1 +", "max_k", "x.0", "x0.4", "x-1.0", "1  2 +", "1.5", "99999999999999999999"})
        EXPECT_FALSE(Code::parse(text)) << text;
}

TEST(LaunchCode, ConstantsFold) {
    EXPECT_EQ(Code::binary(Do::Mul, Code::constant(6), Code::constant(7)), Code::constant(42));
    const auto kept = Code::binary(Do::FloorDiv, Code::constant(6), Code::constant(0));
    EXPECT_EQ(kept.text(), "6 0 /");
    EXPECT_EQ(Code::binary(Do::Add, Code::size(Size::SmCount), Code::operand(2, 3)).text(), "sm_count x2.3 +");
}

} // namespace
