// Expressions as CUDA statements: each node once, in the outermost block in which all that it depends on is known.
// Private to ir/generic. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/generic/steps.h"
#include <functional>
#include <string>

namespace cubridge::ir::generic {

const char* type_name(Type t); ///< "cb_real"
std::string
code_text(const launch::Code& code);      ///< over `a`, the argument block; Failure where a code has no such text
std::string initial(ReduceOp op, Type t); ///< of an accumulator
std::string combined(ReduceOp op, const std::string& a, const std::string& b);
const char* combiner(ReduceOp op); ///< of cb_block

class Emitter {
public:
    explicit Emitter(const Program& program) : program_(program) {}

    /// A block that knows the variables in `bits` beyond those of the blocks around it. It ends with `close`.
    void open(std::uint64_t bits, const std::string& head);
    void close();
    void line(const std::string& text);
    /// What variable v is called and its extent (null: not known), until the block that is open is closed.
    void variable(int v, const std::string& name, Expr extent);
    /// `for (name = from; name < extent; name += by)` over a variable, as a block.
    void loop(int v, Expr extent, const std::string& from, const std::string& by);
    std::string fresh(const char* prefix) { return prefix + std::to_string(count_++); }

    /// Identifier or literal with the value of e; writes what it needs.
    std::string value(Expr e);
    std::string q_offset();                                  ///< element of o's, q's first row of request b
    void head_divisor(std::int64_t d) { head_divisor_ = d; } ///< of the table being computed
    /// How a step's value at `at` is spelt once computed: pointer, or the row's scalar.
    std::string element_of(const Step& s, int number, const std::vector<std::string>& at);
    std::string take(); ///< all text; every block is closed

private:
    struct Block {
        std::uint64_t known = 0;
        std::string head, text;
        std::unordered_map<Expr, std::string> names;
        std::unordered_map<std::string, std::string> named;
        std::array<std::string, kMaxIndex> variable;
        std::array<Expr, kMaxIndex> extent{};
    };
    std::size_t block_of(std::uint64_t rate) const;
    std::string indent(std::size_t block) const { return std::string(4 * (block + 1), ' '); }
    std::string declare(Expr e, const std::string& text);
    std::string named(const std::string& key, std::uint64_t rate, const char* type,
                      const std::function<std::string()>& text);
    std::string index(int v) const;
    std::string compute(Expr e);
    std::string integer_sum(Expr e);
    std::string real_sum(Expr e);
    std::string product(Expr e);
    std::string function(Expr e);
    std::string cast(Expr e);
    std::string inner_loop(Expr e);
    std::string constant_table(Expr e);
    std::string argument(Expr e);
    std::string operand(Expr e);
    std::string tensor(Expr e);
    std::string step(Expr e);
    std::string request_of_operand(int slot);
    bool head_in_range(Expr index, std::int64_t heads) const;
    Expr extent_of(Expr index) const;

    const Program& program_;
    std::vector<Block> blocks_{Block{}};
    std::int64_t head_divisor_ = 1;
    int count_ = 0;
};

} // namespace cubridge::ir::generic
