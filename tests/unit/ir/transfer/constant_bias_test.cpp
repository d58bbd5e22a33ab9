// Biases by distance: a trial visits tiles on either side of the diagonal on which they are one value, and tiles on
// which they are not, and sees edits of what tells them apart. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/execute.h"
#include "ir/transfer/reference.h"
#include "tests/unit/ir/transfer/corpus.h"
#include <cstdio>
#include <gtest/gtest.h>
#include <regex>

namespace {

using namespace cubridge::ir;
using namespace cubridge::ir::transfer;
using namespace cubridge::ir::transfer::test;

Case written(const std::string& name, const std::string& body, const std::string& parameters) {
    Case c;
    c.name = name;
    c.source.text = "import torch\n\n\ndef attention(q, k, v" + parameters + "):\n" +
                    "    g = q.size(1) // k.size(1)\n"
                    "    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)\n"
                    "    s = q @ k.transpose(-1, -2) * q.size(-1) ** -0.5\n"
                    "    i = torch.arange(q.size(2))[:, None]\n    j = torch.arange(k.size(2))[None, :]\n" +
                    body + "    return torch.softmax(s, -1) @ v\n";
    c.request.head_dim = c.request.head_dim_v = 128;
    return c;
}

std::vector<Case> biases() {
    const std::string causal = "    s = s.masked_fill(j > i, float('-inf'))\n";
    std::vector<Case> all{
        written("clipped", "    s = s + bias[:, (j - i).clamp(-m, m) + m]\n", ", bias: 'f32[Hq, 2*m + 1]', m: int"),
        written("clipped at 5", "    s = s + bias[:, (j - i).clamp(-5, 5) + 5]\n", ", bias: 'f32[Hq, 11]'"),
        written("clipped at 100", "    s = s + bias[:, (j - i).clamp(-100, 100) + 100]\n", ", bias: 'f32[Hq, 201]'"),
        written("clipped at 3 and 40", "    s = s + bias[:, (j - i).clamp(-3, 40) + 3]\n", ", bias: 'f32[Hq, 44]'"),
        written("alike on both sides", "    s = s + bias[:, (j - i).abs().clamp(max=m)]\n",
                ", bias: 'f32[Hq, m + 1]', m: int"),
        written("0 beyond 6", "    s = s + torch.where((j - i).abs() < 6, bias[:, (j - i).clamp(-6, 6) + 6], 0.0)\n",
                ", bias: 'f32[Hq, 13]'"),
        written("of the past", "    s = s + bias[:, (i - j).clamp(0, m)]\n" + causal,
                ", bias: 'f32[Hq, m + 1]', m: int"),
        written("with a slope",
                "    s = s + bias[:, (j - i).clamp(-m, m) + m] + slope[:, None, None] * (j - i) + of[None, :, None, "
                "None]\n",
                ", bias: 'f32[Hq, 2*m + 1]', m: int, slope: 'f32[Hq]', of: 'f32[Hq]'"),
        written("every other distance", "    s = s + bias[:, ((j - i) // 2).clamp(-4, 4) + 4]\n",
                ", bias: 'f32[Hq, 9]'"),
        written("sigmoid", "    s = s + bias[:, (j - i).clamp(-m, m) + m]\n    return torch.sigmoid(s) @ v\n",
                ", bias: 'f32[Hq, 2*m + 1]', m: int"),
    };
    if (fs::exists(specifications() / "paper"))
        for (const char* name :
             {"paper_relative_position__0", "serving_t5_relative_bias__0", "serving_t5_relative_bias__decoder"})
            all.push_back(read_case(fs::path("tests/corpus/golden") / (std::string(name) + ".txt")));
    return all;
}

/// The first finding of the checks or of a trial; empty: none.
std::string found(const std::string& text, const Specification& s, const Request& request) {
    const auto program = cuir::read(text);
    EXPECT_TRUE(program) << (program ? "" : program.error().message);
    if (!program) return "unreadable";
    if (const auto f = cuir::check(*program); !f.empty()) return f[0].text();
    const auto trial = trial_of(*program, s, 7);
    EXPECT_TRUE(trial) << (trial ? "" : trial.error().message);
    if (!trial) return "no trial";
    const auto f = cuir::verify(*program, *trial, reference_of(s, request));
    return f.empty() ? "" : f[0].text();
}

/// Wherever `from` matches, once each: the text with `to` there.
std::vector<std::string> edited(const std::string& text, const std::string& from, const std::string& to) {
    std::vector<std::string> out;
    const std::regex pattern(from);
    for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it)
        out.push_back(text.substr(0, static_cast<std::size_t>(it->position())) + it->format(to) +
                      text.substr(static_cast<std::size_t>(it->position() + it->length())));
    return out;
}

TEST(ConstantBiasRuleTest, WhatIsWrongIsFound) {
    const std::pair<const char*, const char*> edits[] = {
        {"(flat\\d* = .*<= )([\\w-]+)", "$1$2 + 1"},
        {"(flat\\d* = .*>= )([\\w-]+)", "$1$2 - 1"},
        {"(flat\\d* = ).*", "$1True"},
        {"(flat\\d* = .*)\\(n \\+ 1\\)", "$1n"},
        {"(flat\\d* = .*)\\(i0 \\+ R\\)", "$1i0"},
        {"where\\((flat\\d*), (\\w+), (\\w+)\\)", "where($1, $3, $2)"},
        {"(    factor\\d* = )(.*)", "$1 1.5 * ($2)"},
        {"(x = .*bias\\[.*)\\(Sq - i\\)", "$1(Sq - i + 1)"},
        {"(else:\n *x = )(.*)", "$1 0.5 + $2"},
        {"(if not .*\n *x = )(.*)", "$1 0.5 + $2"},
    };
    for (const Case& c : biases())
        for (const auto& from : {expert(), hopper()}) {
            const auto s = Specification::parse(c.source, c.options);
            ASSERT_TRUE(s) << c.name << ": " << s.error().message;
            ASSERT_TRUE((*s)->has_variant()) << c.name << ": " << (*s)->no_variant_reason();
            const auto t = transfer::transfer(from, target_of(**s, c.request));
            ASSERT_TRUE(t) << c.name << ": " << t.error().message;
            const std::string text = cuir::print(t->program);
            EXPECT_EQ(found(text, **s, c.request), "") << text;
            ASSERT_NE(text.find("flat = "), text.npos) << text;
            for (const auto& [pattern, to] : edits)
                for (const auto& mutant : edited(text, pattern, to)) {
                    if (mutant == text) continue;
                    const auto f = found(mutant, **s, c.request);
                    if (f.empty()) std::printf("%s: survives %s\n", c.name.c_str(), pattern);
                }
        }
}

} // namespace
