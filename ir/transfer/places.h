// Where an expert's program does what, found by dataflow: who writes, who reads. Private to ir/transfer.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/transfer/make.h"
#include <functional>
#include <map>

namespace cubridge::ir::transfer {

/// A statement in its block. Good until the block changes.
struct Spot {
    std::vector<cuir::Statement>* block = nullptr;
    std::size_t at = 0;
    explicit operator bool() const { return block != nullptr; }
    cuir::Statement& operator*() const { return (*block)[at]; }
    cuir::Statement* operator->() const { return &(*block)[at]; }
};

using Matches = std::function<bool(const cuir::Statement&)>;
Spot first(std::vector<cuir::Statement>& block, const Matches& matches);
Spot last(std::vector<cuir::Statement>& block, const Matches& matches);

/// What a Simple statement does. Null or empty where it does not.
NodePtr value_of(const cuir::Statement& s);                      ///< of `x = value`, `x[:] = value`
NodePtr target_of(const cuir::Statement& s);                     ///< x, x[:], a tuple
std::vector<std::string> results_of(const cuir::Statement& s);   ///< plain names that it assigns
NodePtr call_of(const cuir::Statement& s);                       ///< the call that is its whole value
bool calls(const cuir::Statement& s, std::string_view function); ///< anywhere in it
bool assigns(const cuir::Statement& s, const std::string& name);
bool is_call(const NodePtr& x, std::string_view function);
NodePtr inner_call(const NodePtr& x, std::string_view function); ///< the first in a node; null where there is none
const NodePtr* keyword(const NodePtr& call, std::string_view name);

/// Names of the program. Statements are looked up by them after each edit. A name may be assigned in several places: an
/// expert that streams over work items begins one before its loop and in it, and ends one in the loop and behind it.
struct Places {
    std::string unit;                           ///< prelude: a score times unit is a power of two
    std::string q_cells, k_cells, v_cells;      ///< shared storage
    std::string scores, weights, acc;           ///< registers
    std::string attend, key_tiles;              ///< defs: what is made of scores; which tiles are visited
    std::string row_count;                      ///< rows of an agent, as an expression: R
    std::string rows, cols, x, masked;          ///< in attend: i, j, the modified score, "needs a mask"
    std::string max, ref, p;                    ///< in attend, where it makes weights of them
    std::string max_before, sum_before, shrink; ///< in the role: running maximum and sum, the rescale
    std::string p_result;                       ///< in the role
    std::string total, inv, lse;                ///< in the epilogue
    std::string b, h, m, first_row;             ///< in the role: the work item, its agent's first row
    std::string load_b, load_h;                 ///< the work item where K is loaded
    std::vector<std::string> attend_params;     ///< b, h, i0, n of attend, by meaning
    std::vector<std::string> tile_params;       ///< b, h, i0, i1 of key_tiles

    // an expert whose reference stays until scores rise above it (max_before: in units of log2, always finite)
    std::string refer;                 ///< the def that moves it; empty: attend follows the maximum
    std::string x_result;              ///< in the role: what attend returns
    std::string limit, slack;          ///< what scores may rise to: the reference and this constant
    std::string overflow;              ///< the constant that shares of sums are compared with; empty: nothing is
    std::vector<std::string> referred; ///< what the def returns, in the role

    bool mapped = false; ///< a tensor map describes what copies bring: they complete phases of barriers
    bool late = false;   ///< an item's output is written when the role has taken the next item
};

/// Failure "no_rule" names what of an attention kernel was not found.
Places find(cuir::Kernel& kernel);

} // namespace cubridge::ir::transfer
