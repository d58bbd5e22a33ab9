// The syntax tree of the Python subset in which specifications and CuIR are written. One tree for both dialects; what a
// dialect does not allow is refused by its own checker, with the node's span.
// A Module owns its nodes (shared, immutable after parsing); nodes may be read from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/error.h"
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cubridge::ir::syntax {

struct Node;
using NodePtr = std::shared_ptr<const Node>;

/// What a node is. The comment gives the fields in use; a field that is not named is empty.
enum class Kind : std::uint8_t {
    // expressions
    Name,   ///< text
    Int,    ///< integer
    Float,  ///< real; `1e3`, `.5`
    String, ///< text: the decoded value; adjacent literals are joined
    True,
    False,
    None,
    Ellipsis,
    Tuple,   ///< items (also without parentheses)
    List,    ///< items
    Unary,   ///< text: "-", "+", "~", "not"; items[0]
    Binary,  ///< text: + - * / // % ** @ & | ^ << >>; items[0], items[1]
    BoolOp,  ///< text: "and" or "or"; items, two or more
    Compare, ///< operands: items; operators: names ("<", "<=", ">", ">=", "==", "!=", "is", "is not", "in", "not in")
    Conditional, ///< items: value, condition, other
    Call,        ///< items[0] callee, then positional arguments; keywords
    Attribute,   ///< items[0]; text
    Subscript,   ///< items[0] object, items[1] index (a Tuple for x[a, b]; elements may be Slice, Ellipsis)
    Slice,       ///< items: lower, upper, step, each null where not written
    Lambda,      ///< params; items[0] body
    Starred,     ///< items[0]; in calls, tuples and assignment targets
    ListComp,    ///< items[0] element; clauses
    Generator,   ///< the same, in parentheses or as a call's only argument
    Dict,        ///< items: key, value, key, value, ...
    FString,     ///< text as written, without quotes; only in `raise`, `assert` and docstrings it means anything
    // statements
    ExprStmt,  ///< items[0]
    Assign,    ///< items: targets..., value (a = b = value has three)
    AugAssign, ///< text: the operator without "="; items: target, value
    AnnAssign, ///< items: target, annotation, value or null
    Return,    ///< items[0], or null
    If,        ///< items[0] condition; body; orelse (an elif is an If alone in orelse)
    For,       ///< items: target, iterable; body; orelse
    While,     ///< items[0]; body; orelse
    With,      ///< items: context expressions; names: what each is bound to by `as` ("" for none); body
    Assert,    ///< items: condition, message or null
    Raise,     ///< items[0], or null
    Pass,
    Break,
    Continue,
    Import,      ///< names: module paths; aliases: `as` names ("" for none)
    ImportFrom,  ///< text: module; names; aliases. `*` is the name "*"
    FunctionDef, ///< text: name; params; body; decorators; items[0]: return annotation or null
    Global,      ///< names
    Delete,      ///< items
    Module,      ///< body
};

struct Keyword {
    std::string name; ///< empty: **value
    NodePtr value;
    Span span;
};

struct Param {
    enum class Form : std::uint8_t { Normal, Star, StarStar, Bar, Slash }; ///< Bar: a lone `*`; Slash: a lone `/`
    Form form = Form::Normal;
    std::string name;
    NodePtr annotation, fallback; ///< null where not written; fallback is the default
    Span span;
};

struct Clause { ///< for target in iterable if conditions...
    NodePtr target, iterable;
    std::vector<NodePtr> conditions;
};

struct Node {
    Kind kind{};
    Span span;
    std::string text;
    std::int64_t integer = 0;
    double real = 0;
    std::vector<NodePtr> items;
    std::vector<NodePtr> body, orelse, decorators;
    std::vector<Keyword> keywords;
    std::vector<Param> params;
    std::vector<Clause> clauses;
    std::vector<std::string> names, aliases;
};

/// Bounds on hostile text. Nothing deeper or longer is ever built.
struct Limits {
    std::size_t bytes = 1u << 20; ///< of source
    std::size_t nodes = 200000;
    int depth = 100;   ///< nesting of expressions and blocks together
    int height = 1000; ///< of the tree, which a + b + ..., a.b.c... and elif chains grow as well: what a recursive
                       ///< visitor, the destructor included, has to expect
};

/// Parses a whole module. Time and memory are linear in the text; errors are of kind "syntax", "limit" or "encoding".
/// Tabs or spaces indent, a mix that Python would refuse is refused. Comments vanish.
Result<NodePtr> parse(std::string_view source, const Limits& limits = {});

/// Prints a module or one node in one canonical layout; parse(print(x)) gives an equal tree.
std::string print(const Node& node);

/// Equality of everything but spans.
bool equal(const Node& a, const Node& b);

} // namespace cubridge::ir::syntax
