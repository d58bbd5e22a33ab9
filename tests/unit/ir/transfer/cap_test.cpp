// Scores that a tanh caps: a trial runs both ways of computing them, and sees what is wrong with either.
// SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/execute.h"
#include "ir/transfer/reference.h"
#include "tests/unit/ir/transfer/corpus.h"
#include "tests/unit/sample.h"
#include <cmath>
#include <gtest/gtest.h>

namespace {

using namespace cubridge::ir;
using namespace cubridge::ir::transfer;
using namespace cubridge::ir::transfer::test;

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return at == text.npos ? text : text.substr(0, at) + to + text.substr(at + from.size());
}

/// Whether the checks or a trial find something.
bool found(const std::string& text, const Specification& s, const Request& request) {
    const auto program = cuir::read(text);
    EXPECT_TRUE(program) << (program ? "" : program.error().message);
    if (!program) return true;
    if (!cuir::check(*program).empty()) return true;
    const auto trial = trial_of(*program, s, 7);
    EXPECT_TRUE(trial) << (trial ? "" : trial.error().message);
    return !trial || !cuir::verify(*program, *trial, reference_of(s, request)).empty();
}

/// The statement that begins so, with another factor in front of its value.
std::string off_by(const std::string& text, const std::string& block) {
    const auto branch = text.find(block), value = text.find(" = ", text.find("x = ", branch) - 1) + 3;
    const auto end = text.find('\n', value);
    EXPECT_NE(branch, text.npos) << block;
    return text.substr(0, value) + "1.01 * (" + text.substr(value, end - value) + ")" + text.substr(end);
}

Case written(const std::string& name, const std::string& cap) {
    Case c;
    c.name = name;
    c.source.text = "import torch\n\n\ndef attention(q, k, v):\n"
                    "    g = q.size(1) // k.size(1)\n"
                    "    k = k.repeat_interleave(g, 1)\n    v = v.repeat_interleave(g, 1)\n"
                    "    s = q @ k.transpose(-1, -2) * q.size(-1) ** -0.5\n"
                    "    s = " +
                    cap + " * torch.tanh(s / " + cap + ")\n    return torch.softmax(s, -1) @ v\n";
    c.request.head_dim = c.request.head_dim_v = 128;
    return c;
}

TEST(CapTest, WhatIsWrongWithEitherBranchIsFound) {
    std::vector<Case> all{written("a low cap", "0.5"), written("a high one", "50.0"), written("a higher one", "100.0")};
    if (fs::exists(specifications() / "paper"))
        for (const char* name :
             {"paper_comb__0", "flex_mods_tanh_softcap__0", "flex_mods_causal_and_softcap_as_score__0"})
            all.push_back(read_case(fs::path("tests/corpus/golden") / (std::string(name) + ".txt")));
    cubridge::test::Sample sample(5);
    for (const Case& c : all)
        for (const auto& from : {expert(), hopper()}) {
            if (sample.skips()) continue;
            const auto s = Specification::parse(c.source, c.options);
            ASSERT_TRUE(s) << c.name << ": " << s.error().message;
            ASSERT_TRUE((*s)->has_variant()) << c.name << ": " << (*s)->no_variant_reason();
            const auto t = transfer::transfer(from, target_of(**s, c.request));
            ASSERT_TRUE(t) << c.name << ": " << t.error().message;
            const std::string text = cuir::print(t->program);
            const auto sees = [&](const std::string& mutant) { return found(mutant, **s, c.request); };
            EXPECT_FALSE(sees(text)) << text;
            const auto vote = text.find("far = any("), end = text.find('\n', vote);
            ASSERT_NE(vote, text.npos) << text;
            const std::string line = text.substr(vote, end - vote);
            EXPECT_TRUE(sees(replaced(text, line, "far = False"))) << c.name;
            EXPECT_TRUE(sees(replaced(text, line, "far = not " + line.substr(6)))) << c.name;
            EXPECT_TRUE(sees(replaced(text, line, replaced(line, " <= ", " <= 10.0 * ")))) << c.name;
            EXPECT_TRUE(sees(replaced(text, "tanh_small(", "tanh_small(0.5 * "))) << c.name;
            EXPECT_TRUE(sees(off_by(text, "if far:"))) << c.name;
            EXPECT_TRUE(sees(off_by(text, "else:"))) << c.name;
        }
}

// Weights that are logistic functions of a cap: within its bounds without a clip, and the bounds are part of the vote.
TEST(CapTest, LogisticWeightsOfACap) {
    for (const std::string cap : {"2.0", "200.0"}) {
        Case c = written("logistic", cap);
        c.source.text = replaced(c.source.text, "torch.softmax(s, -1)", "torch.sigmoid(s - 1.5)");
        const auto s = Specification::parse(c.source, c.options);
        ASSERT_TRUE(s) << s.error().message;
        for (const auto& from : {expert(), hopper()}) {
            const auto t = transfer::transfer(from, target_of(**s, c.request));
            ASSERT_TRUE(t) << t.error().message;
            const std::string text = cuir::print(t->program);
            EXPECT_FALSE(found(text, **s, c.request)) << text;
            EXPECT_NE(text.find("x = logistic_small("), text.npos) << text;
            EXPECT_TRUE(found(replaced(text, "logistic_small(", "logistic_small(0.5 * "), **s, c.request));
        }
    }
    // With a high cap exponents would leave the bounds before the cap's own polynomial does.
    Case c = written("logistic", "200.0");
    c.source.text = replaced(c.source.text, "torch.softmax(s, -1)", "torch.sigmoid(s - 1.5)");
    const auto s = Specification::parse(c.source, c.options);
    ASSERT_TRUE(s) << s.error().message;
    const auto t = transfer::transfer(hopper(), target_of(**s, c.request));
    ASSERT_TRUE(t) << t.error().message;
    std::string text = cuir::print(t->program);
    const auto vote = text.find("far = any("), from = text.find("<= ", vote) + 3, end = text.find("))", from);
    ASSERT_NE(vote, text.npos) << text;
    text = text.substr(0, from) + "4.0 * (" + text.substr(from, end - from) + ")" + text.substr(end);
    EXPECT_TRUE(found(text, **s, c.request)) << text;
}

// A power of what is capped, or two caps: as one statement.
TEST(CapTest, OneCapAtATime) {
    for (const char* cap :
         {"torch.tanh(s) ** 2", "(torch.tanh(s) + torch.tanh(s * 0.5))", "torch.tanh(torch.tanh(s))"}) {
        Case c = written(cap, "1.0");
        c.source.text = replaced(c.source.text, "1.0 * torch.tanh(s / 1.0)", cap);
        const auto s = Specification::parse(c.source, c.options);
        ASSERT_TRUE(s) << s.error().message;
        const auto t = transfer::transfer(hopper(), target_of(**s, c.request));
        ASSERT_TRUE(t) << t.error().message;
        const std::string text = cuir::print(t->program);
        EXPECT_EQ(text.find("tanh_small"), text.npos) << text;
        EXPECT_FALSE(found(text, **s, c.request)) << text;
    }
}

} // namespace
