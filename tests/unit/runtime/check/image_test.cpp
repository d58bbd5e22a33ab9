// The memory of a launch, read by the generic kernel's steps on the host: every layout gives what the text gives.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/generic.h"
#include "cubridge/runtime/builtin.h"
#include "ir/generic/run.h"
#include "runtime/check/image.h"
#include "runtime/check/inputs.h"
#include "runtime/check/judge.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace cubridge;
using namespace cubridge::runtime;

namespace {

std::shared_ptr<const ir::Specification> parse(const char* name) {
    ir::Source source;
    source.text = std::string(find_built_in(name)->text);
    auto parsed = ir::Specification::parse(source);
    if (!parsed) throw std::runtime_error(parsed.error().render(source.text));
    return *parsed;
}

Unit unit_of(int group, ir::Request::Rows rows) {
    Unit u;
    u.request.q_dtype = u.request.kv_dtype = ir::DType::F16;
    u.request.o_dtype = ir::DType::F64;
    u.request.head_dim = 8;
    u.request.head_dim_v = 16;
    u.request.group = group;
    u.request.rows = rows;
    return u;
}

// The host's run of the kernel's steps over the image, and the reference.
void compare(const ir::Specification& spec, const Unit& unit, const Case& c) {
    SCOPED_TRACE(c.text(unit));
    const auto printed = ir::generic_kernel(spec, unit.request, true);
    ASSERT_TRUE(printed) << printed.error().message;
    const auto inputs = draw_inputs(spec, unit, c, 1);
    const auto expected =
        reference(spec, unit, c, inputs, [&](const std::vector<ir::Argument>& a) { return spec.evaluate(a); });
    ASSERT_TRUE(expected) << expected.error().message;
    Image image(spec, unit, c, inputs, printed->plan, expected->o.shape);
    image.poison(std::byte{0x7B});
    const ir::abi::cb_args args = image.bind(reinterpret_cast<std::uint64_t>(image.bytes().data()), 0);
    ir::generic::Options options;
    options.f64 = true;
    const auto got = ir::generic::run(spec.scalar(), unit.request, options, args);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(judge_exact({ir::DType::F64, expected->o.shape, got->o}, expected->o, 1e-9).wrong, "");
}

TEST(Image, EveryLayoutIsReadAsItWasDrawn) {
    const auto spec = parse("alibi");
    for (int q = 0; q < static_cast<int>(Lay::Count); ++q)
        for (int kv = 0; kv < static_cast<int>(Lay::Count); ++kv) {
            Case c;
            c.B = 2, c.Hq = 4, c.Hk = 2, c.Sq = 5, c.Sk = 9;
            c.q = static_cast<Lay>(q);
            c.kv = static_cast<Lay>(kv);
            c.operands_apart = (q + kv) % 2 == 1;
            compare(*spec, unit_of(2, ir::Request::Rows::AsWritten), c);
        }
}

TEST(Image, LengthsOfRequestsHideTheNaNBehindThem) {
    const auto spec = parse("document");
    Case c;
    c.B = 3, c.Hq = 2, c.Hk = 1, c.Sq = 4, c.Sk = 9;
    c.kv_len = {9, 2, 0};
    for (const Integers style : {Integers::Edges, Integers::Sorted, Integers::Unsorted, Integers::Descent}) {
        c.integers = style;
        compare(*spec, unit_of(2, ir::Request::Rows::Tail), c);
    }
}

TEST(Image, ScalarsInMemoryAndByValue) {
    const auto spec = parse("prefix_lm");
    for (const bool apart : {false, true}) {
        Case c;
        c.Hq = c.Hk = 3, c.Sq = 7, c.Sk = 4;
        c.operands_apart = apart;
        c.contents = Contents::Needles;
        compare(*spec, unit_of(1, ir::Request::Rows::AsWritten), c);
    }
}

class Disturbed : public ::testing::Test {
protected:
    Disturbed() : spec_(parse("causal")), unit_(unit_of(1, ir::Request::Rows::AsWritten)) {
        case_.Sq = case_.Sk = 3;
        case_.q = Lay::Padded;
        const auto printed = ir::generic_kernel(*spec_, unit_.request, true);
        inputs_ = draw_inputs(*spec_, unit_, case_, 1);
        image_ = std::make_unique<Image>(*spec_, unit_, case_, inputs_, printed->plan,
                                         std::vector<std::int64_t>{1, 1, 3, 16});
    }
    std::vector<std::byte> poisoned(std::byte pattern) {
        image_->poison(pattern);
        return image_->bytes();
    }
    std::size_t at(const void* p) const {
        return static_cast<std::size_t>(static_cast<const std::byte*>(p) - image_->bytes().data());
    }
    ir::abi::cb_args args() const { return image_->bind(reinterpret_cast<std::uint64_t>(image_->bytes().data()), 0); }

    std::shared_ptr<const ir::Specification> spec_;
    Unit unit_;
    Case case_;
    std::vector<ir::Argument> inputs_;
    std::unique_ptr<Image> image_;
};

TEST_F(Disturbed, GuardsInputsAndPaddingMustStay) {
    const auto before = poisoned(std::byte{1});
    EXPECT_EQ(image_->disturbed(before), "");
    auto after = before;
    after[at(args().o.data)] = std::byte{9};
    EXPECT_EQ(image_->disturbed(after), "") << "an output may change";
    after = before;
    after[at(args().q.data)] = ~after[at(args().q.data)];
    EXPECT_EQ(image_->disturbed(after), "the launch changed byte 0 of q");
    after = before;
    after[at(args().q.data) - 1] = std::byte{0};
    EXPECT_NE(image_->disturbed(after).find("before q"), std::string::npos);
    after = before;
    after[at(args().o.data) + 16 * 8] = std::byte{9}; // behind a row of 16 doubles
    EXPECT_NE(image_->disturbed(after).find("of o"), std::string::npos);
}

TEST_F(Disturbed, ElementsNotWrittenAndBitsThatDiffer) {
    auto one = poisoned(std::byte{1}), two = poisoned(std::byte{2});
    EXPECT_EQ(image_->unequal(one, std::byte{1}, two, std::byte{2}), "element 0 of o was not written");
    const std::size_t o = at(args().o.data), row = static_cast<std::size_t>(args().o.row) * 8;
    for (std::size_t r = 0; r < 3; ++r)
        for (std::size_t k = 0; k < 16 * 8; ++k) one[o + r * row + k] = two[o + r * row + k] = std::byte{3};
    EXPECT_EQ(image_->unequal(one, std::byte{1}, two, std::byte{2}), "");
    two[o + row] = std::byte{4};
    EXPECT_EQ(image_->unequal(one, std::byte{1}, two, std::byte{2}), "element 16 of o differs between two launches");
}

} // namespace
