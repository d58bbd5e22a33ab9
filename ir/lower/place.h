// Where CUDA declares the names of a scope: blocks of CUDA are narrower than Python's functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/lower/facts.h"

namespace cubridge::ir::lower {

/// Fills `Facts::results` and `before` of the statements of a scope's body (types are not set), and
/// `Scope::variables` with their writes. `order` numbers all statements of the program in textual order.
/// Bodies of roles and defs are scopes of their own; what they read of this one counts as read where they stand.
void place(Scope& scope, const std::vector<cuir::Statement>& body, Analysis& analysis,
           const std::map<const cuir::Statement*, int>& order);

/// The names that a statement itself assigns, its block left out: targets, loop variables, `as g`.
std::vector<std::string> written_by(const cuir::Statement& s);
/// The expressions that a statement itself reads, its block left out.
std::vector<syntax::NodePtr> read_by(const cuir::Statement& s);
/// Loops whose counters live in them: `for k in range(...)`, `for w, (b, h, m) in enumerate(...)`.
bool counts(const cuir::Statement& s);
/// What gives a loop its work items: "bind", "draw"; "" of other loops.
std::string loop_over(const cuir::Statement& s);
/// Votes in a statement's own expressions, but for the one that is all that is assigned.
int unnamed_votes(const cuir::Statement& s);

} // namespace cubridge::ir::lower
