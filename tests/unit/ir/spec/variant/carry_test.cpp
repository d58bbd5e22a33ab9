// Variants carried into pools of their own: a copy means the same, and a tail means the last rows of a square text,
// element by element. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/evaluate.h"
#include "ir/spec/variant/carry.h"
#include <cmath>
#include <gtest/gtest.h>

namespace {

using namespace cubridge::ir;

constexpr std::int64_t kBatch = 2, kHeads = 2, kDim = 4, kRoom = 24; // every operand's axes have room for all indices

struct Sizes {
    std::int64_t rows, keys;
};

/// A number in [-1, 1) that hangs on where it stands and on nothing else.
double number(int input, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    std::uint64_t x = 0x9e3779b97f4a7c15u;
    for (const std::int64_t part : {std::int64_t{input}, a, b, c, d})
        x = (x ^ static_cast<std::uint64_t>(part + 77)) * 0xbf58476d1ce4e5b9u, x ^= x >> 29;
    return static_cast<double>(x >> 12) / static_cast<double>(std::uint64_t{1} << 51) - 1;
}

/// A tensor of rank 4 whose axis 2 counts rows from `first`.
Environment::Data tensor(int input, std::vector<std::int64_t> shape, std::int64_t first = 0, int levels = 0) {
    std::vector<std::int64_t> n = shape;
    n.resize(4, 1);
    std::vector<double> values;
    for (std::int64_t a = 0; a < n[0]; ++a)
        for (std::int64_t b = 0; b < n[1]; ++b)
            for (std::int64_t c = 0; c < n[2]; ++c)
                for (std::int64_t d = 0; d < n[3]; ++d) {
                    const double v = number(input, a, b, c + first, d);
                    values.push_back(levels == 0 ? v : std::floor((v + 1) / 2 * levels));
                }
    return {std::move(shape), std::make_shared<const std::vector<double>>(std::move(values))};
}

/// What the kernel's rows see: row r of `rows` is row r + keys - rows of the text.
Environment environment(const Specification& s, Sizes size) {
    const std::int64_t first = size.keys - size.rows;
    Environment env;
    for (const auto& [dim, value] : {std::pair<int, std::int64_t>{dims::B, kBatch},
                                     {dims::Hq, kHeads},
                                     {dims::Hk, kHeads},
                                     {dims::Hv, kHeads},
                                     {dims::Sq, size.rows},
                                     {dims::Sk, size.keys},
                                     {dims::D, kDim},
                                     {dims::Dv, kDim},
                                     {dims::kB, kBatch},
                                     {dims::kD, kDim},
                                     {dims::vB, kBatch},
                                     {dims::vS, size.keys}})
        env.dims[dim] = value;
    env.inputs[0] = tensor(0, {kBatch, kHeads, size.rows, kDim}, first);
    env.inputs[1] = tensor(1, {kBatch, kHeads, size.keys, kDim});
    env.inputs[2] = tensor(2, {kBatch, kHeads, size.keys, kDim});
    for (int n = 3; n < static_cast<int>(s.inputs().size()); ++n) {
        const Input& x = s.inputs()[static_cast<std::size_t>(n)];
        const std::vector<std::int64_t> shape(static_cast<std::size_t>(x.rank), kRoom);
        for (int k = 0; k < x.rank; ++k) env.dims[dims::of(n, k)] = kRoom;
        env.inputs[n] = tensor(n, shape, 0, is_float(x.dtype) ? 0 : 5);
    }
    env.inputs[kScore] = tensor(kScore, {kBatch, kHeads, size.rows, size.keys}, first);
    for (int n = 0; n < static_cast<int>(s.variant()->parts.size()); ++n) {
        env.inputs[kOutput + n] = tensor(kOutput + n, {kBatch, kHeads, size.rows, kDim}, first);
        env.inputs[kLse + n] = tensor(kLse + n, {kBatch, kHeads, size.rows}, first);
    }
    return env;
}

struct Named {
    std::string name;
    Expr expr;
};

std::vector<Named> expressions(const Variant& v) {
    std::vector<Named> out;
    const auto add = [&](std::string name, Expr e) { out.push_back({std::move(name), e}); };
    int n = 0;
    for (const Part& p : v.parts) {
        const std::string at = "part " + std::to_string(n++) + " ";
        add(at + "q", p.q), add(at + "k", p.k), add(at + "v", p.v), add(at + "score", p.score),
            add(at + "keep", p.keep);
        add(at + "weight", p.weights.value), add(at + "rest", p.weights.rest), add(at + "gain", p.gain);
        for (const Expr e : p.weights.extra) add(at + "extra", e);
    }
    add("out", v.out), add("lse", v.lse), add("row is empty", v.row_is_empty), add("row lse", v.row_lse);
    return out;
}

bool same(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(a));
}

bool holds(const std::string& text, const char* part) {
    return text.find(part) != text.npos;
}

/// Axes b, h, i, j, c, d, s: enough for any expression of a Variant.
std::vector<std::int64_t> extents(Sizes size, const std::string& name) {
    const bool keys = !holds(name, " q") && name != "out" && name != "lse";
    return {kBatch,
            kHeads,
            size.rows,
            keys ? size.keys : 1,
            holds(name, "out") ? 1 : kDim,
            holds(name, " v") || name == "out" ? kDim : 1,
            holds(name, "weight") ? 3 : 1};
}

constexpr char kHead[] = "import torch\n"
                         "def attention(q, k, v%s):\n"
                         "    n, m = q.size(2), k.size(2)\n"
                         "    i, j = torch.arange(n)[:, None], torch.arange(m)[None, :]\n"
                         "    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5\n";

struct Text {
    const char *parameters, *body;
};

const Text kTexts[] = {
    {"", "    return torch.softmax(s.masked_fill(j > i, float('-inf')), -1) @ v\n"},
    {"", "    return torch.softmax(s.masked_fill(j > i + (m - n), float('-inf')), -1) @ v\n"},
    {"", "    return torch.softmax((s - 0.25 * (i - j).abs()).masked_fill((j > i) | (i - j >= 4), float('-inf')), -1) "
         "@ v\n"},
    {"", "    return torch.sigmoid(s - 0.1 * i).masked_fill(j > i, 0.0) @ v\n"},
    {", doc", "    return torch.softmax(s.masked_fill((doc[i] != doc[j]) | (j > i), float('-inf')), -1) @ v\n"},
    {", doc", "    return torch.softmax(s.masked_fill(j > doc[n - 1], float('-inf')), -1) @ v * torch.sigmoid(q)\n"},
    {", gate", "    g = torch.sigmoid(gate[i])[None, None]\n"
               "    return torch.softmax(s.masked_fill(j > i, float('-inf')), -1) @ v * g\n"},
    {"", "    a = torch.softmax(s.masked_fill(j > i, float('-inf')), -1) @ v\n"
         "    b = torch.softmax((2 * s).masked_fill(j > i, float('-inf')), -1) @ v\n"
         "    return a - 0.5 * b\n"},
    {"", "    s = s.masked_fill(j > i, float('-inf'))\n"
         "    return torch.softmax(s, -1) @ v, torch.logsumexp(s, -1)\n"},
};

std::shared_ptr<const Specification> parsed(const Text& text) {
    Source source;
    source.text = kHead;
    source.text.replace(source.text.find("%s"), 2, text.parameters);
    source.text += text.body;
    if (holds(text.parameters, "doc")) source.settings["doc"] = Setting{Setting::Kind::Operand, 0, DType::I32, 1, {}};
    if (holds(text.parameters, "gate")) source.settings["gate"] = Setting{Setting::Kind::Operand, 0, DType::F32, 1, {}};
    auto result = Specification::parse(source);
    EXPECT_TRUE(result) << (result ? "" : result.error().render(source.text));
    if (!result || !(*result)->has_variant()) {
        ADD_FAILURE() << text.body << (result ? (*result)->no_variant_reason() : "");
        return nullptr;
    }
    return *result;
}

TEST(Carry, ACopyMeansTheSameInAPoolOfItsOwn) {
    for (const Text& text : kTexts) {
        SCOPED_TRACE(text.body);
        const auto s = parsed(text);
        ASSERT_NE(s, nullptr);
        const Variant copy = carry(*s->variant(), false);
        EXPECT_NE(copy.pool, s->variant()->pool);
        EXPECT_EQ(copy.text, s->variant()->text);
        EXPECT_EQ(copy.facts.size(), s->variant()->facts.size());
        const Sizes size{5, 7};
        const Environment env = environment(*s, size);
        const auto theirs = expressions(*s->variant()), own = expressions(copy);
        ASSERT_EQ(own.size(), theirs.size());
        for (std::size_t k = 0; k < own.size(); ++k) {
            ASSERT_EQ(own[k].expr == nullptr, theirs[k].expr == nullptr) << own[k].name;
            if (own[k].expr == nullptr) continue;
            EXPECT_NE(own[k].expr, theirs[k].expr);
            const auto shape = extents(size, own[k].name);
            EXPECT_EQ(Evaluator(*copy.pool, env).over(own[k].expr, shape),
                      Evaluator(*s->variant()->pool, env).over(theirs[k].expr, shape))
                << own[k].name;
        }
    }
}

/// Every value of the tail, against the same row of the square text; rows before its first keep no key.
TEST(Carry, ATailIsTheLastRowsOfASquareText) {
    int compared = 0;
    for (const Text& text : kTexts)
        for (const Sizes size : {Sizes{1, 9}, {4, 9}, {9, 9}, {7, 3}}) {
            SCOPED_TRACE(std::string(text.body) + std::to_string(size.rows) + " rows, " + std::to_string(size.keys));
            const auto s = parsed(text);
            ASSERT_NE(s, nullptr);
            const Variant tail = carry(*s->variant(), true);
            const Sizes square{size.keys, size.keys};
            const Environment here = environment(*s, size), there = environment(*s, square);
            const auto own = expressions(tail), theirs = expressions(*s->variant());
            for (std::size_t k = 0; k < own.size(); ++k) {
                if (own[k].expr == nullptr) continue;
                const auto shape = extents(size, own[k].name), all = extents(square, own[k].name);
                const auto a = Evaluator(*tail.pool, here).over(own[k].expr, shape);
                const auto b = Evaluator(*s->variant()->pool, there).over(theirs[k].expr, all);
                const std::int64_t width = shape[3] * shape[4] * shape[5] * shape[6];
                for (std::int64_t bh = 0; bh < kBatch * kHeads; ++bh)
                    for (std::int64_t i = 0; i < size.rows; ++i)
                        for (std::int64_t w = 0; w < width; ++w) {
                            const double value = a[static_cast<std::size_t>((bh * size.rows + i) * width + w)];
                            const std::int64_t row = i + size.keys - size.rows;
                            if (row < 0) {
                                ASSERT_TRUE(value == 0 || !holds(own[k].name, "keep")) << "row " << i;
                                continue;
                            }
                            const double wanted = b[static_cast<std::size_t>((bh * size.keys + row) * width + w)];
                            ASSERT_TRUE(same(value, wanted))
                                << own[k].name << ", row " << i << ": " << value << " and not " << wanted;
                            ++compared;
                        }
            }
        }
    EXPECT_GT(compared, 10000);
}

TEST(Carry, APartThatIsNeverEmptyCanBeInATail) {
    int never = 0;
    for (const Text& text : kTexts) {
        const auto s = parsed(text);
        ASSERT_NE(s, nullptr);
        for (const Part& p : s->variant()->parts) never += p.empty == Part::Empty::Never;
        for (const Part& p : carry(*s->variant(), true).parts) EXPECT_NE(p.empty, Part::Empty::Never);
    }
    EXPECT_GT(never, 0);
}

} // namespace
