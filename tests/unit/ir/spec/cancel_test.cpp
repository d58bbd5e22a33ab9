// What cancels in a Variant, and what does not because it may be 0 or infinite. Certification draws numbers at random
// and sees neither. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/specification.h"
#include "ir/expr/evaluate.h"
#include "ir/expr/expr.h"
#include <cmath>
#include <gtest/gtest.h>
#include <memory>

namespace cubridge::ir {
namespace {

// The canonical text with these scores under the softmax; `s` are the plain ones, t a captured tensor, c a number.
std::string subject(const std::string& scores, const std::string& output = "o") {
    Source source;
    source.text = "import torch\n"
                  "def attention(q, k, v, t, c=2.0):\n"
                  "    n = t.size(0)\n"
                  "    s = q @ k.mT\n"
                  "    s = " +
                  scores +
                  "\n"
                  "    o = s.softmax(-1) @ v\n"
                  "    return " +
                  output + "\n";
    const auto r = Specification::parse(source, {});
    return r ? (*r)->subject() : r.error().render(source.text);
}

bool recognised(const std::string& text) {
    return text.starts_with("cubridge-variant");
}

TEST(Cancel, NotWhereAFactorMayBeZero) {
    for (const char* t : {"t[:, None]", "c", "torch.tanh(t)", "q[..., :1]"}) {
        const std::string f = t, kept = subject("s / " + f + " * " + f);
        EXPECT_TRUE(recognised(kept)) << kept;
        EXPECT_NE(kept.find("^-1"), std::string::npos) << kept;
        EXPECT_EQ(kept, subject("s * " + f + " / " + f)) << f; // no number at the same places
    }
    EXPECT_NE(subject("s / c**2 * c"), subject("s / c"));
    EXPECT_NE(subject("s * c**0.5 / c**0.5"), subject("s * c / c")); // where c is negative
    EXPECT_NE(subject("s", "o / c * c").find("^-1"), std::string::npos);
}

TEST(Cancel, WhereItIsKnownNotToBe) {
    const std::string plain = subject("s");
    for (const char* t : {"q.size(-1)", "q.size(1)", "k.size(2)", "q.size(2)", "3", "0.7", "torch.exp(s)"})
        EXPECT_EQ(subject(std::string("s / ") + t + " * " + t), plain) << t;
    EXPECT_NE(subject("s / n * n"), plain); // a captured tensor may be empty
}

TEST(Cancel, TermsAndExponentsThatMayBeInfinite) {
    const std::string plain = subject("s");
    EXPECT_EQ(subject("s + s - s"), plain);
    EXPECT_NE(subject("s + t[:, None] - t[:, None]"), plain);
    EXPECT_NE(subject("s * torch.exp(t)[:, None] * torch.exp(-t)[:, None]"), plain);
}

// The pool itself: one form whichever comes first, no number where a factor is 0 or infinite.
TEST(Cancel, InThePool) {
    ExprPool pool;
    const Expr s = pool.arg(3, Type::Real), t = pool.arg(4, Type::Real);
    const Expr after = pool.mul(pool.apply(Op::Div, s, t), t), before = pool.apply(Op::Div, pool.mul(s, t), t);
    EXPECT_EQ(after, before);
    EXPECT_NE(after, s);
    for (const double value : {0.0, HUGE_VAL, -HUGE_VAL}) {
        Environment at;
        at.inputs[3] = {{}, std::make_shared<const std::vector<double>>(1, 1.5)};
        at.inputs[4] = {{}, std::make_shared<const std::vector<double>>(1, value)};
        EXPECT_TRUE(std::isnan(Evaluator(pool, at).value(after))) << value;
    }
}

} // namespace
} // namespace cubridge::ir
