// A CuIR program: kernels that run one after the other, each a tree of statements. Read from text or from the margin of
// an expert, edited by transfer, executed, lowered. See docs/cuir.md for the language.
// A Program is a value: copies share syntax nodes, which are immutable. Any thread may read one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/syntax/ast.h"
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cubridge::ir::cuir {

/// One line of a program: what alignment compares, what a region of CUDA belongs to, what a finding names. A kernel's
/// head is several: its decorator, its name, each parameter, its constants.
struct Statement {
    enum class Kind : std::uint8_t {
        Decorator, ///< @kernel(...), @map; node: the expression after the @
        Kernel,    ///< `def NAME(`; node: the FunctionDef, of which only the name counts
        Param,     ///< `Q: elem[B, Hq, Sq, D],`; node: the annotation; name
        Constants, ///< `*, BM=128, ST=2):`; node: the FunctionDef, of which only the keyword-only parameters count
        Def,       ///< `def NAME(a, b):`; node: the FunctionDef; body
        With,      ///< a role; node; body
        For,       ///< node; body
        While,     ///< node; body
        If,        ///< node; body
        Else,      ///< follows an If as its sibling; node: null; body
        Simple,    ///< everything else; node
    };
    Kind kind = Kind::Simple;
    syntax::NodePtr node;
    std::string name;            ///< of a Kernel, Param or Def
    std::vector<Statement> body; ///< of what opens a block. A Kernel's body follows its head
    std::string comment;         ///< without the #
    int line = 0;                ///< in the text that it was read from; 0: made by a rule

    bool opens_block() const { return kind >= Kind::Def && kind <= Kind::Else; }
};

struct Kernel {
    std::vector<Statement> head; ///< Decorator, Kernel, Params, Constants (always there, perhaps without constants)
    std::vector<Statement> body;

    const std::string& name() const;
    bool is_map() const; ///< @map: elementwise, no roles (docs/cuir.md)
    /// A keyword of the decorator, "" where it is not there: "arch", "expert", "ctas".
    std::string attribute(std::string_view keyword) const;
    /// The value of a constant, null where it is not there.
    syntax::NodePtr constant(std::string_view name) const;
    const Statement* param(std::string_view name) const;
};

struct Program {
    std::vector<Statement> storage; ///< global memory of this launch: `T = alloc(workspace, (B, Hq, Sq), f32)`
    std::vector<Kernel> kernels;

    /// The one kernel that is no map and carries an expert's name; null where there is none.
    const Kernel* main() const;
};

/// Errors are of kind "syntax" and its kin, or "cuir" where the text is no program; spans are places in `text`.
Result<Program> read(std::string_view text);

/// The program in its one layout, comments included; read(print(p)) is equal to p.
std::string print(const Program& program);

/// The statement's own line without indentation and comment: "for k in range(length(tiles)):". Two statements are the
/// same if their kinds and lines are.
std::string line_of(const Statement& statement);
bool same_line(const Statement& a, const Statement& b);
/// The same program, but for comments and places.
bool equal(const Program& a, const Program& b);

/// A statement from its line, as rules write them: statement("acc[:] = acc * shrink"). An opening line gets an empty
/// body ("if masked:"); "else:" too. Kinds Simple, Def, With, For, While, If, Else only.
Result<Statement> statement(std::string_view line);

} // namespace cubridge::ir::cuir
