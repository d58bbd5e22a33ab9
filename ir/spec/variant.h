// Variant: a specification recognised as attention, in one canonical form. See docs/variant.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/spec/scalar.h"
#include <optional>

namespace cubridge::ir {

/// Index variables of every expression of a Variant.
namespace axis {
enum : int { b = 0, h = 1, i = 2, j = 3, c = 4, d = 5, s = 6 /* the score, a Real */, Count };
}

/// What the weights of the keys are made of.
struct Weights {
    enum class Kind { Softmax, Pointwise, Ratio };
    Kind kind = Kind::Softmax;
    std::vector<Expr> extra; ///< Softmax: scores of keys without a value, Real over b, h, i (sinks; off-by-one: 0)
    Expr value = nullptr;    ///< Pointwise, Ratio: the weight, Real over `score`, b, h, i, j
    Expr rest = nullptr;     ///< Ratio: what is added to the sum of the weights; null: nothing
};

struct Part {
    Expr q = nullptr, k = nullptr, v = nullptr; ///< Real over (b, h, i, c), (b, h, j, c), (b, h, j, d)
    Expr inner = nullptr;                       ///< extent of c
    Expr keys = nullptr;                        ///< extent of j
    Expr score = nullptr;                       ///< Real over b, h, i, j; the dot product is the Load of input kScore
    Expr keep = nullptr;                        ///< Bool over b, h, i, j
    Weights weights;
    Expr gain = nullptr; ///< Real over b, h, i, j, multiplies the weights after the normaliser; null: 1
    enum class Empty { Never, Zero, NaN, Uniform, Other } empty = Empty::Never; ///< what a row without keys gives
};

struct Variant {
    std::shared_ptr<ExprPool> pool;
    std::vector<Part> parts;
    Expr out = nullptr;                      ///< Real over b, h, i, d; part n's output is the Load of input kOutput + n
    Expr heads = nullptr, columns = nullptr; ///< of the output, over Dims
    Expr lse = nullptr;          ///< natural log; null: the text returns none. Part n's LSE is the Load of kLse + n
    std::vector<int> order;      ///< canonical number -> input number
    std::string text;            ///< "cubridge-variant 1\n..."
    Expr row_is_empty = nullptr; ///< Bool over b, h, i: the row keeps no key and has no sink
    Expr row_lse = nullptr;      ///< Real over b, h, i: the LSE of a text that returns none; null: no single softmax
    std::vector<Fact> facts;     ///< beyond the Scalar's: what recognising it took
};

/// Input numbers that stand for values of the Variant itself.
enum : int { kScore = 1000, kOutput = 1100, kLse = 1200 };

/// Bool over b, h, i: the row keeps no key and has no sink.
Expr empty_row(const Variant& v);
/// Bool over b, h, i: some part has no key in this row, where that matters.
Expr some_empty_row(const Variant& v);
/// Real over b, h, i: the natural LSE of a text that returns none; null where there is no single softmax.
Expr natural_lse(const Variant& v);

/// What a kernel on tensor cores may make of the output when all else is exact: q, k and v that the text computes, and
/// the weights of the keys, each times its gain, are rounded once by `round` (Op::RoundF16, Op::RoundBF16) before a
/// product takes them; normalisers sum weights that are not rounded; outputs of parts are not rounded either.
/// Of a softmax no one knows relative to what a kernel rounds: its output is as far from the exact one as the farther
/// of two, weights that are rounded relative to a reference at which the largest loses most, and 2^-11 or 2^-8 times
/// the root of the sum of the squares of all weights times their values, what losses that are independent add up to. So
/// the distance is no matter of luck, and only the distance means anything. In a pool of its own, whatever thread asks.
struct Baseline {
    Scalar scalar;
    Expr row_is_empty = nullptr, row_lse = nullptr; ///< as in the Variant
};
Baseline baseline(const Scalar& scalar, const Variant& variant, Op round);

} // namespace cubridge::ir
