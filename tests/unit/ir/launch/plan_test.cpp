// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/launch.h"
#include <gtest/gtest.h>
#include <limits>

using namespace cubridge::ir;
using namespace cubridge::ir::launch;

namespace {

Plan example() {
    Plan p;
    Entry e;
    e.name = "cubridge_generic";
    e.grid = {Code::size(Size::SmCount), Code::constant(1), Code::constant(1)};
    e.block = {128, 1, 1};
    e.shared_bytes = 512;
    p.entries = {e, e};
    p.workspace = Code::binary(Code::Do::Mul, Code::size(Size::MaxKv), Code::constant(4));
    Operand doc;
    doc.name = "doc";
    doc.dtype = DType::I32;
    doc.rank = 2;
    doc.least = {Code::size(Size::Requests), Code::size(Size::MaxKv)};
    Operand prefix;
    prefix.name = "prefix";
    prefix.dtype = DType::BF16;
    prefix.rank = 1;
    prefix.least = {Code::constant(8)};
    prefix.alignment = 16;
    Operand cap;
    cap.name = "cap";
    cap.bound = true;
    cap.value = 0.1;
    Operand inf = cap;
    inf.value = -std::numeric_limits<double>::infinity();
    p.operands = {doc, prefix, cap, inf};
    Condition c{};
    c.kind = Condition::Kind::AtLeast;
    c.left = Code::size(Size::MaxKv);
    c.right = Code::constant(3);
    c.text = "Sk >= 3\nand a \\n";
    p.conditions = {c};
    p.writes_lse = true;
    p.ticket = true;
    p.maps = {{Map::Tensor::Q, 64}, {Map::Tensor::K, 128}, {Map::Tensor::V, 256, 8}, {Map::Tensor::O, 1}};
    return p;
}

TEST(LaunchPlan, TextRoundTrip) {
    const Plan p = example();
    const auto back = Plan::parse(p.text());
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, p);
    EXPECT_EQ(back->text(), p.text());
}

TEST(LaunchPlan, EveryTruncationAndEveryForeignLineIsAnError) {
    const std::string text = example().text();
    for (std::size_t n = 0; n < text.size(); ++n) EXPECT_FALSE(Plan::parse(text.substr(0, n))) << n;
    EXPECT_FALSE(Plan::parse(text + "\n"));
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
        std::string spoilt = text;
        spoilt.insert(at, "surprise 1\n");
        EXPECT_FALSE(Plan::parse(spoilt)) << at;
    }
}

TEST(LaunchPlan, MapsAndTicketAreLinesOnlyWhereTheyAre) {
    Plan p = example();
    const auto with = p.text();
    EXPECT_NE(with.find("\nticket\nmap q 64\nmap k 128\nmap v 256 8\nmap o 1\nentry "), std::string::npos) << with;
    p.ticket = false;
    p.maps.clear();
    const auto without = p.text();
    EXPECT_EQ(without.find("ticket"), std::string::npos);
    EXPECT_EQ(without.find("map"), std::string::npos);
    EXPECT_EQ(*Plan::parse(without), p);
    for (const char* wrong : {"map q 0", "map q 257", "map lse 8", "map q", "map q 64 1", "map q 64 0", "map q 64 1025",
                              "map q 64 4 4", "map q 64\nmap q 64", "map q 64\nmap q 64 4", "ticket 2", "ticket"}) {
        std::string spoilt = with;
        spoilt.replace(spoilt.find("map q 64"), 8, wrong);
        EXPECT_FALSE(Plan::parse(spoilt)) << wrong;
    }
}

TEST(LaunchPlan, ErrorsNameTheLine) {
    const auto r = Plan::parse("cubridge-plan 1\nabi one\n");
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().message, "launch plan, line 2: 'one' is no number");
}

} // namespace
