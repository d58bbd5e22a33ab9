// Carries expressions of a Scalar into another pool, replacing sizes and addressing on the way. A pool is used by one
// thread at a time and Scalars are shared, so the printer never builds in a Scalar's own. Private to ir/generic.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/generic/prepare.h"
#include <unordered_map>
#include <unordered_set>

namespace cubridge::ir::generic {

/// What the text's Hq and Hk become. Units: this rank's numbers, by units. Given: the whole model's, of the request.
/// FromZero: up to this rank's last head, for sizes of operands.
enum class HeadsAre { Units, Given, FromZero };

class Import {
public:
    /// Facts that tie a size of an operand to other sizes are taken as its definition.
    Import(ExprPool& to, const Scalar& scalar, const Request& request, const Heads& heads, HeadsAre mode);
    Expr operator()(Expr e);

private:
    Expr node(Expr e);
    Expr dim(int number);
    Expr load(Expr e, std::vector<Expr> at);
    Expr reduce(Expr e);
    Expr units() const; ///< as `mode` counts them
    ExprPool& to_;
    const Scalar& scalar_;
    const Request& request_;
    Heads heads_;
    HeadsAre mode_;
    std::unordered_map<int, Expr> defined_;
    std::unordered_set<int> busy_;
    std::unordered_map<int, int> tables_;
    std::unordered_map<Expr, Expr> done_;
};

} // namespace cubridge::ir::generic
