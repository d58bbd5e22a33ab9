// Two texts of one subject that list their operands differently share a kernel, each with its own operands.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/binding.h"
#include "tests/unit/runtime/support.h"

namespace cubridge::runtime {
namespace {

using namespace testing_support;

std::string text_with(const char* parameters) {
    return std::string("import torch\ndef attention(q, k, v, ") + parameters + R"():
    group = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    i = torch.arange(q.size(2))[:, None]
    j = torch.arange(k.size(2))[None, :]
    s = s * slope[None, :, None, None]
    keep = (j <= i) | (j < prefix)
    return torch.softmax(s.masked_fill(~keep, float("-inf")), -1) @ v
)";
}

TEST(Binding, OperandsAreFoundByTheirPlaceInTheSubject) {
    const auto one = parsed(text_with("slope, prefix: int"));
    const auto other = parsed(text_with("prefix: int, slope"));
    ASSERT_TRUE(one && other);
    ASSERT_TRUE(one->has_variant()) << one->no_variant_reason();
    EXPECT_EQ(one->subject(), other->subject());
    EXPECT_EQ(request_key(*one, request_for()), request_key(*other, request_for()));

    AdaptOptions options;
    const auto store = Folder().open();
    options.store = store.get();
    options.compiler = std::make_shared<FakeCompiler>();
    const auto made = adapt(one, request_for(), options);
    ASSERT_TRUE(made.artifact) << made.error->message;
    const auto served = adapt(other, request_for(), options);
    EXPECT_EQ(served.artifact->id, made.artifact->id);

    const auto own = binding_of(*made.artifact, *one, request_for());
    const auto foreign = binding_of(*made.artifact, *other, request_for());
    ASSERT_TRUE(own && foreign);
    EXPECT_EQ(own->source, (std::vector<int>{0, 1}));
    EXPECT_EQ(foreign->source, (std::vector<int>{1, 0}));
    EXPECT_EQ(foreign->plan.operands[0].name, "prefix");
}

TEST(Binding, AValueThatOneTextHoldsAndAnotherIsGiven) {
    const auto held = parsed(text_with("slope, prefix: int = 5"));
    const auto given = parsed(text_with("slope, prefix: int"));
    ASSERT_TRUE(held && given);
    EXPECT_EQ(request_key(*held, request_for()), request_key(*given, request_for()));
    AdaptOptions options;
    options.compiler = std::make_shared<FakeCompiler>();
    const auto made = adapt(given, request_for(), options);
    ASSERT_TRUE(made.artifact) << made.error->message;
    const auto binding = binding_of(*made.artifact, *held, request_for());
    ASSERT_TRUE(binding);
    EXPECT_TRUE(binding->plan.operands[1].bound);
    EXPECT_EQ(binding->plan.operands[1].value, 5);
}

} // namespace
} // namespace cubridge::runtime
