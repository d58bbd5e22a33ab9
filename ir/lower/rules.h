// Printing rules: the CUDA of one statement from its expression and what is known of it. No rule prints a whole
// function. docs/lowering.md lists them. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/lower/expression.h"
#include "ir/lower/facts.h"
#include <string>
#include <vector>

namespace cubridge::ir::lower {

using Lines = std::vector<std::string>;

struct Region {
    std::string rule;
    Lines lines; ///< indented relative to the statement
    Lines end;   ///< of what opens a block: the line that closes it
};

/// Throws Failure ("no_rule") where no rule applies.
Region print_region(const cuir::Statement& s, const Analysis& analysis);

// --- by kind of statement
Region print_simple(const cuir::Statement& s, const Analysis& analysis);
Region print_opening(const cuir::Statement& s, const Analysis& analysis);
Region print_head(const cuir::Statement& s, const Analysis& analysis);
/// copy_async, wait, sync, gemm, copy: nothing if the call is none of them.
bool print_move(const syntax::Node& call, const cuir::Statement& s, const Analysis& analysis, Region& out);
/// A write of storage or of global memory: `x[...] = value`.
Region print_store(const syntax::Node& target, const syntax::Node& value, const Facts& facts);

/// `constexpr` lines, element types and workspace tensors of a kernel: what the region of its constants line holds.
Lines constants_block(const cuir::Kernel& kernel, const cuir::Program& program);
/// "__launch_bounds__(128, 2)".
std::string launch_bounds(const Resources& r);
/// Whether a kernel's opening has its roles' numbers in it, or a name of the preamble that bounds every program.
bool names_bounds(const Lines& region);

/// `name = value`, elementwise, where the name has `type`. Declares it if `declares`.
void print_value(Lines& out, Expressions& x, const Binding& target, const syntax::Node& value);
/// The same of a declared tile whose value reads a workspace table by the distance of columns and rows. False: it is
/// none.
bool print_by_distance(Lines& out, Expressions& x, const Type& type, const std::string& name, const syntax::Node& value,
                       const std::string& indent);
/// The same where it reads matrices: operands by what rows give, and last by columns. False: it reads none.
bool print_by_rows(Lines& out, Expressions& x, const Type& type, const std::string& name, const syntax::Node& value,
                   const std::string& indent);
/// The loop over the elements of a declared row, column or tile.
void print_elements(Lines& out, Expressions& x, const Type& type, const std::string& name, const syntax::Node& value,
                    const std::string& indent);
/// What an expression reads, an element each of a tile, of global memory of this form.
void tile_reads(const syntax::Node& node, Form form, const Expressions& x, std::vector<const syntax::Node*>& out);
/// How often column and row numbers stand in a sum, and the columns' name. Nothing: it is no such sum.
struct Slopes {
    int columns = 0, rows = 0;
    std::string name{};
};
std::optional<Slopes> slopes(const syntax::Node& node, const Expressions& x);
/// Votes in an expression, each in a scalar of its own from now on: `vote0`, ... Only for what the block declares.
void print_votes(Lines& out, Expressions& x, const syntax::Node& value, const Facts& facts);
/// `name = any(...)`.
void print_vote(Lines& out, Expressions& x, const std::string& name, const syntax::Node& vote);
/// Declarations of those bindings that this statement declares, one line: "int n; bool masked;"
void print_declarations(Lines& out, const std::vector<Binding>& bindings);
/// A name that none of `taken` has.
std::string fresh(std::string name, const std::vector<std::string>& taken);

} // namespace cubridge::ir::lower
