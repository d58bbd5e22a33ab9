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

/// Rules take operands in the subject's order, the generic kernel in its text's: both find them in either text.
TEST(Binding, OperandsAreFoundByTheirPlaceInTheSubject) {
    const auto one = parsed(text_with("slope, prefix: int"));
    const auto other = parsed(text_with("prefix: int, slope"));
    ASSERT_TRUE(one && other);
    ASSERT_TRUE(one->has_variant()) << one->no_variant_reason();
    EXPECT_EQ(one->subject(), other->subject());
    for (const auto& request : {request_for(), generic_request()})
        for (const auto& [maker, user] : {std::pair(one, other), std::pair(other, one)}) {
            EXPECT_EQ(request_key(*maker, request), request_key(*user, request));
            AdaptOptions options;
            const Folder folder;
            const auto store = folder.open();
            options.store = store.get();
            options.compiler = std::make_shared<FakeCompiler>();
            const auto made = adapt(maker, request, options);
            ASSERT_TRUE(made.artifact) << made.error->message;
            EXPECT_EQ(made.artifact->build.made_by, request.q_dtype == ir::DType::BF16 ? "rules" : "generic");
            const auto served = adapt(user, request, options);
            EXPECT_EQ(served.tier, "store");
            EXPECT_EQ(served.artifact->id, made.artifact->id);

            const auto own = binding_of(*made.artifact, *maker, request);
            const auto foreign = binding_of(*served.artifact, *user, request);
            ASSERT_TRUE(own && foreign);
            EXPECT_EQ(foreign->plan.operands[0].name, user == one ? "slope" : "prefix");
            const auto& wanted = made.artifact->plan.operands;
            ASSERT_EQ(wanted.size(), 2u);
            EXPECT_NE(wanted[0].name, wanted[1].name);
            for (std::size_t k = 0; k < 2; ++k)
                for (const auto* binding : {&*own, &*foreign})
                    EXPECT_EQ(binding->plan.operands[static_cast<std::size_t>(binding->source[k])].name,
                              wanted[k].name);
        }
}

/// The kernel's numbers of operands are those of the program's parameters.
TEST(Binding, RulesNumberOperandsAsTheSubjectDoes) {
    AdaptOptions options;
    options.compiler = std::make_shared<FakeCompiler>();
    for (const char* parameters : {"slope, prefix: int", "prefix: int, slope"}) {
        const auto text = parsed(text_with(parameters));
        const auto made = adapt(text, request_for(), options);
        ASSERT_EQ(made.status, Report::Status::Ready);
        const Artifact& a = *made.artifact;
        EXPECT_EQ(a.places, (std::vector<int>{0, 1}));
        const auto order = text->order();
        for (std::size_t k = 0; k < 2; ++k) {
            const auto& operand = a.plan.operands[k];
            EXPECT_EQ(operand.name, text->inputs()[static_cast<std::size_t>(order[k])].name);
            // The slope is a tensor over heads, the prefix a number.
            const std::string x = "x" + std::to_string(k);
            EXPECT_EQ(a.program.find(x + ": f32[") != std::string::npos, operand.name == "slope") << a.program;
        }
    }
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
    EXPECT_EQ(made.artifact->build.made_by, "rules");
    const auto generic = adapt(given, generic_request(), options);
    ASSERT_TRUE(generic.artifact);
    const auto other = binding_of(*generic.artifact, *held, generic_request());
    ASSERT_TRUE(other);
    EXPECT_EQ(other->plan.operands[1].value, 5);
}

} // namespace
} // namespace cubridge::runtime
