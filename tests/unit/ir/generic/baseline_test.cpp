// The baseline that errors are measured against: where it rounds, and that nothing else changes.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/generic.h"
#include "ir/spec/state.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace cubridge::ir;

namespace {

constexpr const char* kHead = "import torch\nimport math\n\n\n";

std::shared_ptr<const Specification> parsed(const std::string& text) {
    Source source;
    source.text = kHead + text;
    auto s = Specification::parse(source);
    EXPECT_TRUE(s) << s.error().message;
    return s ? *s : nullptr;
}

double narrow(double x) {
    return info(Op::RoundBF16).real(&x);
}

struct Sizes {
    std::int64_t heads = 2, rows = 3, keys = 5, dim = 4;
};

std::vector<Argument> inputs(const Sizes& n) {
    std::vector<Argument> out;
    double seed = 0;
    for (const auto& shape : {std::vector<std::int64_t>{1, n.heads, n.rows, n.dim},
                              {1, n.heads, n.keys, n.dim},
                              {1, n.heads, n.keys, n.dim}}) {
        Array a{DType::BF16, shape, {}};
        for (std::int64_t k = shape[1] * shape[2] * shape[3]; k-- > 0;)
            a.values.push_back(narrow(std::sin(seed += 1.7)));
        out.emplace_back(std::move(a));
    }
    return out;
}

// Rows of softmax(score) v over keys `from` to the last: the sum of by(weight times gain(j)) times a value, each
// product taken by `term`, over the sum of the weights taken by it.
template <class Query, class Gain, class By, class Term>
std::vector<double> attention(const Sizes& n, const std::vector<Argument>& in, std::int64_t from, Query query,
                              Gain gain, By by, Term term) {
    std::vector<double> out;
    const auto at = [&](std::size_t x, std::int64_t h, std::int64_t row, std::int64_t c) {
        return in[x]->values[static_cast<std::size_t>((h * in[x]->shape[2] + row) * n.dim + c)];
    };
    for (std::int64_t h = 0; h < n.heads; ++h)
        for (std::int64_t i = 0; i < n.rows; ++i) {
            std::vector<double> s;
            double most = -HUGE_VAL, mass = 0;
            for (std::int64_t j = from; j < n.keys; ++j) {
                double dot = 0;
                for (std::int64_t c = 0; c < n.dim; ++c) dot += query(at(0, h, i, c)) * at(1, h, j, c);
                s.push_back(dot / 2), most = std::max(most, dot / 2);
            }
            for (double& x : s) mass += x = std::exp(x - most);
            for (std::int64_t d = 0; d < n.dim; ++d) {
                double o = 0;
                for (std::int64_t j = from; j < n.keys; ++j)
                    o += term(by(s[static_cast<std::size_t>(j - from)] * gain(j)) * at(2, h, j, d));
                out.push_back(o / term(mass));
            }
        }
    return out;
}

const auto same = [](double x) { return x; };
const auto square = [](double x) { return x * x; };
const auto one = [](std::int64_t) { return 1.0; };

/// Rounded relative to a reference at which the largest weight loses most.
double weight(double w) {
    const double largest = 1 + std::ldexp(1.001, -8);
    return narrow(w * largest) * (1 / largest);
}

/// The exact rows and the farther of two errors: of weights rounded once, and the root of the sum of all squares, with
/// what rounding the `turned` query costs.
template <class Query, class Gain>
std::vector<double> expected(const Sizes& n, const std::vector<Argument>& in, std::int64_t from, Gain gain, Query exact,
                             Query turned) {
    std::vector<double> out = attention(n, in, from, exact, gain, same, same);
    const auto kept = attention(n, in, from, turned, gain, same, same),
               once = attention(n, in, from, turned, gain, weight, same),
               squares = attention(n, in, from, turned, gain, same, square);
    for (std::size_t k = 0; k < out.size(); ++k)
        out[k] +=
            std::max(std::fabs(once[k] - out[k]), std::fabs(kept[k] - out[k]) + std::ldexp(std::sqrt(squares[k]), -8));
    return out;
}

double largest_difference(const Specification& spec, const std::vector<Argument>& in, const std::vector<double>& want) {
    const Baseline b = baseline(spec.scalar(), *spec.variant(), Op::RoundBF16);
    EXPECT_NE(b.scalar.pool, spec.scalar().pool);
    const auto got = spec::evaluate_outputs(b.scalar, b.scalar.out, in)[0].values;
    EXPECT_EQ(got.size(), want.size());
    double most = 0;
    for (std::size_t k = 0; k < std::min(got.size(), want.size()); ++k)
        most = std::max(most, std::fabs(got[k] - want[k]));
    return most;
}

TEST(Baseline, WeightsAreRoundedAndTheirSumIsNot) {
    const auto spec = parsed("def attention(q, k, v):\n"
                             "    s = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))\n"
                             "    j = torch.arange(k.size(2))\n"
                             "    s = s.masked_fill(j < 2, float('-inf'))\n"
                             "    return torch.softmax(s, dim=-1) @ v\n");
    ASSERT_TRUE(spec && spec->variant());
    const Sizes n;
    const auto in = inputs(n);
    EXPECT_LT(largest_difference(*spec, in, expected(n, in, 2, one, same, same)), 1e-14);
    EXPECT_GT(largest_difference(*spec, in, attention(n, in, 2, same, one, same, same)), 1e-5);
}

TEST(Baseline, TheGainIsInTheWeightThatIsRounded) {
    const auto spec = parsed("def attention(q, k, v):\n"
                             "    s = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))\n"
                             "    j = torch.arange(k.size(2))\n"
                             "    return (torch.softmax(s, dim=-1) * (1.0 / (1.0 + j))) @ v\n");
    ASSERT_TRUE(spec && spec->variant());
    const Sizes n;
    const auto in = inputs(n);
    const auto gain = [](std::int64_t j) { return 1.0 / (1.0 + static_cast<double>(j)); };
    EXPECT_LT(largest_difference(*spec, in, expected(n, in, 0, gain, same, same)), 1e-14);
}

TEST(Baseline, OperandsThatTheTextComputesAreRounded) {
    const auto spec = parsed("def attention(q, k, v):\n"
                             "    s = torch.sin(q) @ k.transpose(-2, -1) / math.sqrt(q.size(-1))\n"
                             "    return torch.softmax(s, dim=-1) @ v\n");
    ASSERT_TRUE(spec && spec->variant());
    const Sizes n;
    const auto in = inputs(n);
    using Query = double (*)(double);
    const Query exact = [](double x) { return std::sin(x); }, turned = [](double x) { return narrow(std::sin(x)); };
    EXPECT_LT(largest_difference(*spec, in, expected(n, in, 0, one, exact, turned)), 1e-14);
}

// What one part adds must not be taken away by another: errors of parts are independent, and none is negative.
TEST(Baseline, ErrorsOfPartsDoNotCancel) {
    const std::string scores = "    s = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))\n"
                               "    j = torch.arange(k.size(2))\n";
    const auto left = parsed("def attention(q, k, v):\n" + scores +
                             "    return torch.softmax(s.masked_fill(j < 1, float('-inf')), dim=-1) @ v\n"),
               both = parsed("def attention(q, k, v):\n" + scores +
                             "    a = torch.softmax(s.masked_fill(j < 1, float('-inf')), dim=-1)\n"
                             "    b = torch.softmax(s.masked_fill(j < 2, float('-inf')), dim=-1)\n"
                             "    return a @ v - b @ v\n");
    ASSERT_TRUE(left && left->variant() && both && both->variant());
    ASSERT_EQ(both->variant()->parts.size(), 2U);
    const Sizes n;
    const auto in = inputs(n);
    const auto exact = attention(n, in, 1, same, one, same, same), other = attention(n, in, 2, same, one, same, same),
               a = attention(n, in, 1, same, one, same, square), b = attention(n, in, 2, same, one, same, square),
               a1 = attention(n, in, 1, same, one, weight, same), b1 = attention(n, in, 2, same, one, weight, same);
    std::vector<double> want;
    for (std::size_t k = 0; k < exact.size(); ++k)
        want.push_back(
            exact[k] - other[k] +
            std::max(std::fabs(a1[k] - b1[k] - (exact[k] - other[k])), std::ldexp(std::sqrt(a[k] + b[k]), -8)));
    EXPECT_LT(largest_difference(*both, in, want), 1e-14);
}

TEST(Baseline, TheKernelReadsAndWritesFloat64) {
    const auto spec = parsed("def attention(q, k, v):\n"
                             "    return torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v\n");
    ASSERT_TRUE(spec && spec->variant());
    Request r;
    r.head_dim = r.head_dim_v = 64;
    r.lse = Request::Lse::Natural;
    const std::string before = generic_kernel(*spec, r, true)->cuda;
    const auto k = baseline_kernel(*spec, r);
    ASSERT_TRUE(k) << k.error().message;
    EXPECT_NE(k->cuda.find(" = cb_round_bf16("), std::string::npos);
    EXPECT_NE(k->cuda.find("cb_get_f64("), std::string::npos);
    EXPECT_TRUE(k->plan.writes_lse);
    r.kv_dtype = DType::F16;
    EXPECT_NE(baseline_kernel(*spec, r)->cuda.find(" = cb_round_f16("), std::string::npos);
    r.kv_dtype = DType::E4M3;
    EXPECT_EQ(baseline_kernel(*spec, r).error().kind, "unsupported");
    r.kv_dtype = DType::BF16;
    EXPECT_EQ(generic_kernel(*spec, r, true)->cuda, before) << "the text's own expressions stay";
}

TEST(Baseline, ATextThatIsNoAttentionHasNone) {
    const auto spec = parsed("def attention(q, k, v):\n"
                             "    s = q @ k.transpose(-2, -1)\n"
                             "    return torch.softmax(torch.softmax(s, dim=-1), dim=-1) @ v\n");
    ASSERT_TRUE(spec);
    ASSERT_FALSE(spec->variant());
    Request r;
    r.head_dim = r.head_dim_v = 8;
    EXPECT_EQ(baseline_kernel(*spec, r).error().kind, "unsupported");
}

} // namespace
