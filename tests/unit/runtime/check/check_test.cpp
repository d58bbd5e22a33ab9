// check() where there is no GPU: the scalarised text against the text, for all that comes with the library.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/builtin.h"
#include "cubridge/runtime/check.h"
#include <gtest/gtest.h>

using namespace cubridge;
using namespace cubridge::runtime;

namespace {

TEST(NumbersCheck, EveryBuiltInSpecificationPasses) {
    ASSERT_GE(built_in_specifications().size(), 5U);
    for (const BuiltIn& b : built_in_specifications()) {
        SCOPED_TRACE(b.name);
        EXPECT_FALSE(b.title.empty());
        ir::Source source;
        source.text = std::string(b.text);
        const auto spec = ir::Specification::parse(source);
        ASSERT_TRUE(spec) << spec.error().render(source.text);
        ir::Request request;
        request.head_dim = request.head_dim_v = 64;
        request.group = 4;
        CheckOptions options;
        options.cases = 12;
        std::vector<std::string> said;
        options.progress = [&](const std::string& line) { said.push_back(line); };
        const CheckReport r = check(*spec, request, options);
        EXPECT_EQ(r.verdict, CheckReport::Verdict::Passed) << (r.failures.empty() ? "" : r.failures.front());
        EXPECT_GE(r.against_text, 8);
        EXPECT_EQ(r.against_f64, 0);
        EXPECT_FALSE(r.not_done.empty()) << "it says that nothing ran";
        ASSERT_FALSE(said.empty());
        EXPECT_NE(said.front().find("seed 1"), std::string::npos);
    }
}

TEST(NumbersCheck, SizesThatTheTextForbidsAreNotRun) {
    ir::Source source;
    source.text = "import torch\n\n\ndef attention(q, k, v):\n    s = torch.softmax(q @ k.transpose(-2, -1), dim=-1)\n "
                  "   w = torch.cat([s[..., :, :3], s[..., :, 3:]], dim=-1)\n    return w @ v\n";
    const auto spec = ir::Specification::parse(source);
    ASSERT_TRUE(spec) << spec.error().message;
    ir::Request request;
    request.head_dim = request.head_dim_v = 8;
    request.group = 4;
    CheckOptions options;
    options.cases = 6;
    // Query heads must equal KV heads here, so a group of 4 has no case; others have.
    const CheckReport r = check(*spec, request, options);
    EXPECT_EQ(r.verdict, CheckReport::Verdict::Passed) << (r.error              ? r.error->message
                                                           : r.failures.empty() ? ""
                                                                                : r.failures.front());
}

} // namespace
