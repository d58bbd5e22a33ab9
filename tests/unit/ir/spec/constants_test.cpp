// Constants that float64 or an integer type does not hold, and divisors that may be 0: read as PyTorch reads them, or
// refused with a place and a hint. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/specification.h"
#include <gtest/gtest.h>

namespace cubridge::ir {
namespace {

// `statement` stands between scores and output, in line 7.
Result<std::shared_ptr<const Specification>> parse(const std::string& statement) {
    Source source;
    source.text = "import torch\n"
                  "def attention(q, k, v, x, w=3):\n"
                  "    h = torch.arange(q.size(1))[:, None, None]\n"
                  "    i = torch.arange(q.size(2))[:, None]\n"
                  "    j = torch.arange(k.size(2))[None, :]\n"
                  "    s = q @ k.mT\n"
                  "    " +
                  statement +
                  "\n"
                  "    return s.softmax(-1) @ v\n";
    return Specification::parse(source, {});
}

std::string kind(const std::string& statement) {
    const auto r = parse(statement);
    if (r) return "";
    EXPECT_GT(r.error().span.line, 6) << r.error().message;
    EXPECT_GT(r.error().span.column, 0) << r.error().message;
    EXPECT_FALSE(r.error().hint.empty()) << r.error().message;
    return r.error().kind;
}

TEST(Constants, IntegersBeyondWhatIsExact) {
    EXPECT_EQ(kind("s = s * 2**62"), "limit");                               // beside a tensor
    EXPECT_EQ(kind("s = s + (q.size(2) + 2**62) % 7"), "limit");             // beside a size
    EXPECT_EQ(kind("s = s + 12345678901234567 % k.size(2)"), "limit");       // in a division
    EXPECT_EQ(kind("s = s + (2**63 - 1 + 1)"), "limit");                     // beyond 64 bits
    EXPECT_EQ(kind("s = s + (-(2**63 - 1) - 1) // -1"), "limit");            // the one quotient that overflows
    EXPECT_EQ(kind("s = torch.where(i.int() == 2**40, s, 0.0)"), "limit");   // fits no int32
    EXPECT_EQ(kind("s = torch.where(x[j].int() < 2**31, s, 0.0)"), "limit"); // by one
    EXPECT_EQ(kind("s = torch.where(x[j].int() < 2**31 - 1, s, 0.0)"), "");
    EXPECT_EQ(kind("s = torch.where(i - j < 2**52, s, 0.0)"), "");
    EXPECT_EQ(kind("s = s + (2**62 if 2**53 in (2**53 + 1, 1) else 1)"), ""); // compared as integers
}

TEST(Constants, WhatHangsOnRoundingIsRefusedAsThat) {
    for (const char* statement : {"s = s + 1e18", "s = s + 2.0**53", "s = s + 1e18 - 1e18",
                                  "s = s + ((q.size(2) - j) - s)\n    s = torch.floor(s * s)"}) {
        const auto r = parse(statement);
        ASSERT_FALSE(r) << statement;
        EXPECT_EQ(r.error().kind, "unsupported") << statement;
        EXPECT_NE(r.error().message.find("hangs on how float64 rounds"), std::string::npos) << r.error().message;
    }
}

TEST(Constants, FactorsThatOverflowTogetherStayApart) {
    EXPECT_EQ(kind("s = s + 1e300 * (1e20 * (i - j))"), ""); // 0 where i is j
    EXPECT_EQ(kind("s = s + 1e300 * ((-1e18 / (j + 1)) + 1e16)"), "");
}

TEST(Constants, DivisorsThatMayBeZeroCancelNothing) {
    for (const char* statement :
         {"s = s + (h * (i + 1)) // h", "s = s + (i * w) // w", "s = s + (i - j) // (i - j)",
          "s = s + (x[j].long() * 2) % x[j].long()",
          "s = torch.where(x[j] // (h * ((j - w) // q.size(2))) < 3, s, s * 2)"}) // an integer 0 has no sign
        EXPECT_EQ(kind(statement), "") << statement;
}

TEST(Constants, FloorDivisionOfFloatsIsInFloat32) {
    EXPECT_EQ(kind("s = s + (i - i) // (1e-300 % (7 - (i - j)))"), ""); // 1e-300 is 0 there
}

} // namespace
} // namespace cubridge::ir
