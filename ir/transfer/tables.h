// Values that depend on less than a pair of positions, computed once a launch by map kernels. Private to ir/transfer.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/transfer/work.h"

namespace cubridge::ir::transfer {

/// A map kernel while it is written: scalar statements, loops for reductions.
class Map {
public:
    Map(Launch& launch, const std::string& stem);

    Uses uses;
    Writer writer;
    std::vector<cuir::Statement>* block; ///< where statements go
    std::vector<cuir::Statement> body;
    std::function<NodePtr(Expr)> leaf; ///< beside tables of the workspace

    void add(const std::string& text);
    /// The expression; what it uses more than once becomes a statement.
    NodePtr write(Expr e);
    /// Runs `inside` with statements going into a block that this line opens.
    void open(const std::string& text, const std::function<void()>& inside);
    /// `for b, h in each(B, Hq):` around the body; appends the kernel to the program.
    void finish(const std::vector<std::string>& variables, const Nodes& extents,
                const std::vector<cuir::Statement>& parameters = {});
    const std::string& name() const { return kernel_.name(); }
    cuir::Kernel& kernel() { return kernel_; }

private:
    NodePtr reduce(Expr e);
    Launch& launch_;
    cuir::Kernel kernel_;
    std::set<Expr> shared_;
    std::map<std::pair<Expr, const void*>, std::string> names_; ///< by block
};

/// A Load of a new table that holds `body` for every position of the axes that it depends on: any of b, h and at most
/// one of i, j, place::distance (j - i). With `shared`, what it holds over j is asked for over i as well.
Expr tabulate(Launch& launch, Expr body, Expr keys, const std::string& stem, bool shared = false);

/// The expression with one position in place of another: a value of queries as that of keys.
Expr moved(ExprPool& pool, Expr e, int from, int to);

/// The expression with what needs a table replaced by Loads of tables: reductions of one position, constant tables,
/// and functions of the distance j - i that cost more than a Load.
Expr derive(Work& work, Expr e);

} // namespace cubridge::ir::transfer
