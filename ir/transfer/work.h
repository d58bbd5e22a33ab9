// What rules work on: the program that is being made, and the kernel of one part of the Variant in it. Private to
// ir/transfer. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/transfer/places.h"
#include "ir/transfer/writer.h"
#include <memory>
#include <optional>

namespace cubridge::ir::transfer {

/// The launch as a whole: a pool of its own (Variants are shared between threads), the workspace, the map kernels.
struct Launch {
    explicit Launch(const Target& given);

    const Target& target;
    Variant v; ///< in a pool of its own
    ExprPool& pool;
    cuir::Program program; ///< storage, and kernels in their order
    std::vector<std::string> rules;
    std::set<std::string> names;        ///< taken
    std::vector<std::string> workspace; ///< names of tables; Load(kWorkspace + n)
    std::map<Expr, Expr> tables;        ///< what is tabulated already
    int head_dim, head_dim_v;
    bool stores_lse;
    std::vector<std::pair<std::int64_t, std::string>> constants; ///< of the same name in all kernels

    std::string fresh(const std::string& stem);
    void applied(const std::string& rule); ///< once each
    /// Workspace of these extents; its Loads have input number kWorkspace + the result.
    int allocate(const std::string& stem, const std::vector<NodePtr>& extents, DType dtype);
};

/// Heads of the parameters that expressions of a kernel need.
cuir::Statement param(const std::string& name, const NodePtr& type);
NodePtr operand_type(const Launch& launch, int operand);
/// Adds what `uses` names to a kernel's head.
void complete_head(const Launch& launch, cuir::Kernel& kernel, const Uses& uses);
void set_constant(cuir::Kernel& kernel, const std::string& name, const NodePtr& value);
cuir::Kernel make_map(const std::string& name);

/// One kernel with its part.
struct Work {
    Work(Launch& l, std::size_t part_number, const cuir::Kernel& expert);

    Launch& launch;
    std::size_t number;
    Part& part;
    cuir::Kernel kernel;
    Places at;
    Uses uses;
    std::string out = "Out", lse = "Lse"; ///< what it writes
    bool elem_out = true;                 ///< false: float32 workspace
    NodePtr keys, rows;                   ///< extents of j and i in the role; rows: those of an item's class
    NodePtr every_key;                    ///< keys of all classes
    Expr own_head = nullptr;              ///< the head of q: h, or what a class head is of
    Expr row_extent = nullptr;            ///< what `rows` is
    Expr most_keys = nullptr;             ///< at least those of any class
    NodePtr key_step, row_step;           ///< classes of keys, of rows; null: all are one
    /// Keys in tiles of two kinds: all of some places, every step-th of the others. Those tiles follow the dense ones.
    struct Strided {
        Expr dense = nullptr, sparse = nullptr; ///< what keeps keys in either, the second over numbers of its own keys
        Expr keys = nullptr;                    ///< extent of j in `sparse`
        NodePtr step, first_key, count;         ///< first_key null: 0; count is `keys`
        NodePtr dense_tiles;
    };
    std::optional<Strided> strided;
    NodePtr kv;               ///< h // G in the role
    Expr row_shift = nullptr; ///< Real over b, h, i in units of log2: left out of the scores, owed to the LSE
    std::map<Expr, std::string> prelude;     ///< names of values that the kernel's constants decide
    std::map<Expr, std::string> items;       ///< of values of a work item: statements of the role; i is its rows
    std::map<std::string, std::string> kept; ///< what the role keeps of an item when it takes the next: by its name
    std::set<Expr> passed;                   ///< those of them that are parameters of attend

    std::vector<cuir::Statement>& attend();
    std::vector<cuir::Statement>& key_tiles();
    std::vector<cuir::Statement>& role();
    Spot in(std::vector<cuir::Statement>& block, const std::string& name); ///< last assignment of it
    Spot def(const std::string& name);
    void insert(const Spot& before, const std::string& text);
    void insert_after(const Spot& spot, const std::string& text);
    void replace(const Spot& spot, const std::string& text);
    void erase(const Spot& spot);
    void add_to_prelude(const std::string& text);
    /// After the work item's first row is known, wherever the role begins one.
    void add_to_item(const std::string& text);
    /// Every place in a block for which that holds: the edit sees each once, and may replace or insert there.
    static void each(std::vector<cuir::Statement>& block, const Matches& matches,
                     const std::function<void(const Spot&)>& edit);
    static void erase_all(std::vector<cuir::Statement>& block, const Matches& matches);
    /// Those names go, and with them what assigns or reads them, and what then nobody reads. Of a tuple only they go.
    void erase_with(std::vector<cuir::Statement>& block, std::set<std::string> names);
    void erase_def(const std::string& name); ///< and its calls
    static void rename(std::vector<cuir::Statement>& block, const std::string& from, const NodePtr& by);
    /// Statements in front of each of those places.
    void insert_before(std::vector<cuir::Statement>& block, const Matches& matches,
                       const std::vector<std::string>& texts);
    /// Name of the agent's rows in the role.
    std::string item_rows();
    /// A value of the role becomes a parameter of attend.
    void pass(const std::string& name);
    void applied(const std::string& rule) { launch.applied(rule); }
    /// Extent of j in a def whose head is `h`.
    NodePtr keys_for(const std::string& h) const { return transfer::replace(keys, at.load_h, name(h)); }
};

/// A writer of expressions inside a block of a kernel. Statements for rows, columns and tiles are collected; what the
/// kernel's constants or the work item decide goes to the prelude or the role at once: Spots are found after writing.
class Local {
public:
    enum class Where { Attend, Tiles, Load, Role, Late };
    Local(Work& work, Where where);

    Writer writer;
    std::vector<std::string> made; ///< statements to stand before the one that was asked for
    std::set<std::string> columns; ///< what those of columns assign

    /// `leaf` is a scalar of the tile that `made` assigns to that name.
    void of_tile(Expr leaf, const std::string& name);
    /// What `write` has made, for a block of its own: nothing outside knows the names.
    std::vector<std::string> in_block(const std::function<void()>& write);
    /// Where the role takes the next item before it writes the output of the last: the item's rows, kept.
    std::string late_rows();
    /// Puts in front of the take what has to be kept or is of the last item alone, a row's values too. Returns what
    /// has to stand where the output is written, in front of a statement with that value.
    std::vector<std::string> before_next(std::string& value);

private:
    std::string kept(const std::string& name);
    NodePtr hoist(Expr e, Level level);
    NodePtr of_item(Expr e);
    Work& work_;
    Where where_;
    std::map<Expr, std::string> names_;
    std::set<Expr> of_tile_;
    std::map<std::string, std::string> kept_; ///< of the last item, by what is the next one's
    std::string rows_;
};

/// Statements that store to that tensor.
Matches stores_to(const std::string& tensor);
void erase_param(Work& work, const std::string& name);
/// The barrier that is waited for before those cells are filled; "" where none is.
std::string freed_by_load(Work& work, const std::string& cells);
/// Statements that take the accumulator to where the output is stored from.
Matches writes_output(const Work& work);

[[noreturn]] void refuse(const std::string& what, const std::string& hint = "");

} // namespace cubridge::ir::transfer
