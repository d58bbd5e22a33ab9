// Texts that mean different functions have different Subjects, also where they differ only beyond small sizes, for
// negative numbers or for infinite biases; usual respellings share one. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/specification.h"
#include "ir/spec/scalar.h"
#include <gtest/gtest.h>

namespace cubridge::ir {
namespace {

constexpr const char* kPlain = "p = torch.softmax(s, dim=-1); return p @ v";
constexpr const char* kGuarded = "p = torch.nan_to_num(torch.softmax(s, dim=-1), nan=0.0); return p @ v";

std::shared_ptr<const Specification> parse(const std::string& parameters, const std::string& body) {
    Source source;
    source.text = "import math\nimport torch\n\ndef attention(q, k, v" + parameters +
                  "):\n"
                  "    G = q.size(1) // k.size(1)\n"
                  "    k, v = k.repeat_interleave(G, dim=1), v.repeat_interleave(G, dim=1)\n"
                  "    s = (q @ k.transpose(-1, -2)) / math.sqrt(q.size(-1))\n"
                  "    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]\n";
    std::size_t at = 0;
    while (at != std::string::npos) { // statements stand on lines of their own
        const std::size_t end = body.find("; ", at);
        source.text += "    " + body.substr(at, end == std::string::npos ? end : end - at) + "\n";
        at = end == std::string::npos ? end : end + 2;
    }
    const auto r = Specification::parse(source);
    EXPECT_TRUE(r) << source.text << (r ? "" : r.error().message);
    return r ? *r : nullptr;
}

std::string mask(const std::string& keep) {
    return "s = s.masked_fill(~(" + keep + "), float('-inf')); ";
}

void expect(bool equal, const std::string& parameters, const std::string& a, const std::string& b) {
    const auto x = parse(parameters, a), y = parse(parameters, b);
    ASSERT_TRUE(x && y);
    EXPECT_EQ(x->subject() == y->subject(), equal) << a << "\n" << b << "\n" << x->subject() << "\n" << y->subject();
}

TEST(Meaning, BiasesThatHideKeysAreMinded) {
    const std::string biased = "s = s + bias[i, j]; ";
    expect(false, ", bias", biased + kPlain, biased + kGuarded);
    expect(false, ", bias", biased + "s = torch.where(torch.isneginf(s), torch.full_like(s, -5.0), s); " + kPlain,
           biased + kPlain);
}

TEST(Meaning, RowsWithoutKeysBeyondSmallSizes) {
    expect(false, "", mask("(i < 100) & (j <= i)") + kPlain, mask("(i < 100) & (j <= i)") + kGuarded);
    for (const char* guard : {kPlain, kGuarded}) // too far to be tried: nothing is claimed of such rows
        EXPECT_FALSE(parse("", mask("(i < 100000) & (j <= i)") + guard)->has_variant());
}

TEST(Meaning, NegativeNumbersAreMinded) {
    expect(false, ", t=1.0", std::string("s = s * math.sqrt(t * t); ") + kPlain, std::string("s = s * t; ") + kPlain);
    expect(false, ", w=4", mask("(j <= i) & (i - j < w)") + kPlain, mask("(j <= i) & (i - j < abs(w))") + kPlain);
}

TEST(Meaning, EquationsDoNotConsumeEachOther) {
    expect(false, ", x, y, z", mask("(x[j] == y[i]) & (x[j] == z[i])") + kGuarded, mask("y[i] == z[i]") + kGuarded);
}

TEST(Meaning, AnyOverACapturedTensorIsNotAboutKeys) {
    const auto s = parse(", x", mask("(x[None, :] == j.reshape(-1, 1)).any(-1)[None, :]") + kPlain);
    ASSERT_TRUE(s);
    EXPECT_NE(s->subject().find("any"), std::string::npos) << s->subject();
}

TEST(Meaning, UsualRespellingsShareASubject) {
    const std::string keep = "(j <= i) & (i < n)";
    expect(true, ", n=5", mask(keep) + kGuarded,
           mask(keep) + "p = torch.softmax(s, -1); keep = " + keep +
               "; p = torch.where((~keep).all(-1, keepdim=True), torch.zeros_like(p), p); return p @ v");
    expect(true, "", mask("i // 16 >= j // 16") + kPlain, mask("j < (i // 16 + 1) * 16") + kPlain);
    expect(true, "", mask("(j <= i) & ((i - j) % 4 == 0)") + kPlain, mask("(j <= i) & ((j - i) % 4 == 0)") + kPlain);
    expect(true, "", mask("(j <= i) & (i % 4 == j % 4)") + kPlain, mask("(j <= i) & ((j - i) % 4 == 0)") + kPlain);
    expect(true, "", std::string("s = s + (i - j).clamp(-5, 5); ") + kPlain,
           std::string("s = s + torch.maximum(torch.minimum(i - j, torch.tensor(5)), torch.tensor(-5)); ") + kPlain);
}

TEST(Meaning, AProofThatFailedDemandsNothing) {
    const auto s = parse(", w=4", mask("(j <= i) & (i - j < w)") + kPlain);
    ASSERT_TRUE(s);
    for (const Fact& f : s->scalar().facts) EXPECT_NE(f.left->kind, Kind::Arg) << f.text;
}

} // namespace
} // namespace cubridge::ir
