// Simplifying under the assumption of the *interior*: the row keeps a key, scores and row statistics are finite. What
// holds only there is certified afterwards, rows without keys apart (`Part::empty`). Private to ir/spec/variant.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/expr.h"
#include <map>

namespace cubridge::ir::variant {

/// By position in the pool, so that what is built does not hang on addresses.
struct ById {
    bool operator()(Expr a, Expr b) const { return (a ? a->id : -1) < (b ? b->id : -1); }
};

/// A product taken apart: coefficient * exp(exponent) * factors.
struct Factors {
    double coefficient = 1;
    std::map<Expr, double, ById> exponent; ///< terms of the argument of exp; the key null is the constant
    struct Power {
        std::int64_t num = 1, den = 1;
    };
    std::map<Expr, Power, ById> factors;
};

class Interior {
public:
    explicit Interior(ExprPool& pool) : pool_(pool) {}

    /// Rewrites to a fixed point: masks (a Select with a constant branch) move outward, tests of row statistics are
    /// decided, exp, log and sigmoid find one form, what cancels for finite values cancels.
    Expr simplify(Expr e);

    /// Of a Real expression, everything combined.
    Factors factors(Expr e);
    Expr build(const Factors& f);
    /// Greater than 0 in the interior.
    bool positive(Expr e) const;

private:
    Expr step(Expr e);
    Expr lift(Expr e);
    Expr sum(Expr e);
    Expr product(Expr e);
    Expr comparison(Expr e);
    bool opens(Expr product, double num, double den) const;
    void collect(Expr e, double num, double den, Factors& out);
    Expr common(Expr sum, Factors& out); ///< the sum without its common factors, which go to out

    ExprPool& pool_;
};

bool is_minus_infinity(Expr e);
bool is_zero(Expr e);

} // namespace cubridge::ir::variant
