// Biases by distance: a trial visits tiles on either side of the diagonal on which they are one value, and tiles on
// which they are not, and sees edits of what tells them apart. SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/transfer/corpus.h"
#include "tests/unit/ir/transfer/questions.h"
#include "tests/unit/sample.h"
#include <gtest/gtest.h>
#include <limits>
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
        written("clipped at 400", "    s = s + bias[:, (j - i).clamp(-400, 400) + 400]\n", ", bias"),
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
        written("two tables", "    s = s + bias[:, (j - i).clamp(-m, m) + m] + more[:, (i - j).clamp(-2, 9) + 2]\n",
                ", bias: 'f32[Hq, 2*m + 1]', m: int, more: 'f32[Hq, 12]'"),
        written("capped", "    s = s + bias[:, (j - i).clamp(-m, m) + m]\n    s = 2.0 * torch.tanh(s / 2.0)\n",
                ", bias: 'f32[Hq, 2*m + 1]', m: int"),
        written("sigmoid", "    s = s + bias[:, (j - i).clamp(-m, m) + m]\n    return torch.sigmoid(s) @ v\n",
                ", bias: 'f32[Hq, 2*m + 1]', m: int"),
    };
    if (fs::exists(specifications() / "paper"))
        for (const char* name :
             {"paper_relative_position__0", "serving_t5_relative_bias__0", "serving_t5_relative_bias__decoder"})
            all.push_back(read_case(fs::path("tests/corpus/golden") / (std::string(name) + ".txt")));
    return all;
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

struct Made {
    std::shared_ptr<const Specification> specification;
    std::string text;
    cuir::Program program;
};

std::optional<Made> make(const Case& c, const cuir::Program& from) {
    const auto s = Specification::parse(c.source, c.options);
    EXPECT_TRUE(s && (*s)->has_variant()) << c.name << ": " << (s ? (*s)->no_variant_reason() : s.error().message);
    if (!s || !(*s)->has_variant()) return std::nullopt;
    const auto t = transfer::transfer(from, target_of(**s, c.request));
    EXPECT_TRUE(t) << c.name << ": " << t.error().message;
    if (!t) return std::nullopt;
    const std::string text = cuir::print(t->program);
    return Made{*s, text, *cuir::read(text)};
}

std::vector<cuir::Run> runs_of(const Made& m, std::uint64_t seed) {
    auto trial = trial_of(m.program, *m.specification, seed);
    EXPECT_TRUE(trial) << trial.error().message;
    return trial ? std::move(trial->runs) : std::vector<cuir::Run>{};
}

TEST(ConstantBiasRuleTest, WhatIsWrongIsFound) {
    const std::pair<const char*, const char*> edits[] = {
        {"(flat\\d* = .*<= )([\\w-]+)", "$1$2 + 1"},
        {"(flat\\d* = .*>= )([\\w-]+)", "$1$2 - 1"},
        {"(flat\\d* = ).*", "$1True"},
        {"(flat\\d* = .*)\\(n \\+ 1\\)", "$1n"},
        {"(flat\\d* = .*)\\(i0 \\+ R\\)", "$1i0"},
        {"where\\((flat\\d*), (\\w+), (\\w+)\\)", "where($1, $3, $2)"},
        {"(    factor\\d* = )(.*x\\d\\[.*)", "$1 1.5 * ($2)"},
        {"(x = .*bias\\[.*)\\(Sq - i\\)", "$1(Sq - i + 1)"},
        {"(else:\n *x = )(.*)", "$1 0.5 + $2"},
        {"(if not .*\n *x = )(.*)", "$1 0.5 + $2"},
    };
    cubridge::test::Sample pairs(5), sample(7);
    for (const Case& c : biases())
        for (const auto& from : {expert(), hopper()}) {
            if (pairs.skips()) continue;
            const auto m = make(c, from);
            ASSERT_TRUE(m);
            ASSERT_NE(m->text.find("flat = "), m->text.npos) << c.name << m->text;
            const Questions questions(runs_of(*m, 7), *m->specification, c.request);
            EXPECT_EQ(questions.find(m->program), "") << c.name << m->text;
            int count = 0;
            for (const auto& [pattern, to] : edits)
                for (const auto& text : edited(m->text, pattern, to)) {
                    ++count;
                    if (sample.skips()) continue;
                    const auto mutant = cuir::read(text);
                    ASSERT_TRUE(mutant) << text;
                    const bool seen = !cuir::check(*mutant).empty() || !questions.find(*mutant).empty();
                    EXPECT_TRUE(seen) << c.name << ": " << pattern;
                }
            EXPECT_GE(count, 6) << c.name;
        }
}

// Entries that are no numbers reach the pairs that read them, and no other.
TEST(ConstantBiasRuleTest, EntriesThatAreNoNumbers) {
    constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
    const Case c = biases()[0];
    for (const auto& from : {expert(), hopper()}) {
        const auto m = make(c, from);
        ASSERT_TRUE(m);
        cubridge::test::Sample sample(4);
        for (const double value : {kNaN, kInf, -kInf})
            for (const int where : {0, 1, 2, 3, 4}) { // first, second, middle, last but one, last
                if (sample.skips()) continue;
                if (value == -kInf && where == 0) continue; // rows that have no other key are 0, not NaN
                auto runs = runs_of(*m, 7);
                for (auto& r : runs) {
                    auto& x = r.inputs.at("x0");
                    const auto n = x.shape.back();
                    const std::int64_t at[] = {0, std::min<std::int64_t>(1, n - 1), n / 2,
                                               std::max<std::int64_t>(0, n - 2), n - 1};
                    for (std::size_t k = static_cast<std::size_t>(at[where]); k < x.values.size();
                         k += static_cast<std::size_t>(n))
                        x.values[k] = value;
                }
                const Questions questions(std::move(runs), *m->specification, c.request);
                EXPECT_EQ(questions.find(m->program), "") << value << " at " << where;
            }
    }
}

TEST(ConstantBiasRuleTest, OneTableAndSidesThatAreVisited) {
    for (const Case& c : biases())
        for (const auto& from : {expert(), hopper()}) {
            const auto m = make(c, from);
            ASSERT_TRUE(m);
            EXPECT_EQ(m->text.find("bias1"), m->text.npos) << m->text;
            const bool one_side = c.name == "of the past" || c.name.find("decoder") != std::string::npos;
            const bool alike = c.name == "alike on both sides" || c.name == "0 beyond 6";
            EXPECT_EQ(m->text.find("flat1") == m->text.npos, one_side || alike) << c.name << m->text;
            EXPECT_EQ(m->text.find(" or n * BN") != m->text.npos, alike) << c.name << m->text;
        }
}

// What does not settle is read for each pair.
TEST(ConstantBiasRuleTest, OtherBiasesAreReadForEachPair) {
    for (const Case& c : {written("not clipped", "    s = s + bias[:, j - i + k.size(2)]\n", ", bias: 'f32[Hq, 2*Sk]'"),
                          written("periodic", "    s = s + bias[:, (j - i) % 3]\n", ", bias: 'f32[Hq, 3]'")}) {
        const auto m = make(c, hopper());
        ASSERT_TRUE(m);
        EXPECT_EQ(m->text.find("flat"), m->text.npos) << m->text;
    }
}

} // namespace
