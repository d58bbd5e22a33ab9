// JSON: what is written is read back, what is not JSON is refused.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/json.h"
#include <gtest/gtest.h>
#include <limits>

namespace cubridge::runtime {
namespace {

TEST(Json, WritesOneLine) {
    auto j = Json::object();
    j.add("a", 1).add("b", Json::array().push("x\n\"\\\x01").push(true).push(Json())).add("c", 0.1);
    EXPECT_EQ(j.text(), R"({"a":1,"b":["x\n\"\\\u0001",true,null],"c":0.1})");
    EXPECT_EQ(*Json::parse(j.text()), j);
}

TEST(Json, KeepsWholeNumbersAndPrecision) {
    for (const std::int64_t v : {std::numeric_limits<std::int64_t>::min(), std::int64_t{0}, std::int64_t{-7},
                                 std::numeric_limits<std::int64_t>::max()})
        EXPECT_EQ(*Json::parse(Json(v).text())->integer(), v);
    EXPECT_EQ(*Json::parse(Json(1.0 / 3).text())->number(), 1.0 / 3);
    EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).text(), "null");
    EXPECT_EQ(*Json::parse("12345678901234567890")->number(), 12345678901234567890.0);
}

TEST(Json, ReadsEscapes) {
    EXPECT_EQ(*Json::parse(R"("\u00e9\ud83d\ude00\/\t")")->string(), "\xc3\xa9\xf0\x9f\x98\x80/\t");
}

TEST(Json, WritesOnlyUtf8) {
    EXPECT_EQ(Json("a\xff"
                   "b")
                  .text(),
              "\"a\xef\xbf\xbd"
              "b\"");
    EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Json, RefusesWhatIsNone) {
    for (const char* text : {"",
                             " ",
                             "{",
                             "}",
                             "[1,]",
                             "{\"a\":1,}",
                             "{\"a\" 1}",
                             "{a:1}",
                             "{\"a\":1,\"a\":2}",
                             "01",
                             "1.",
                             ".5",
                             "+1",
                             "1e",
                             "nul",
                             "\"",
                             "\"\\x\"",
                             "\"\\ud800\"",
                             "\"\\udc00\"",
                             "\"\n\"",
                             "\"\xff\"",
                             "1 2",
                             "NaN",
                             "'a'",
                             "[1 2]",
                             "-"})
        EXPECT_FALSE(Json::parse(text)) << text;
    EXPECT_TRUE(Json::parse(std::string(30, '[') + std::string(30, ']')));
    EXPECT_FALSE(Json::parse(std::string(100000, '[')));
}

} // namespace
} // namespace cubridge::runtime
