// What all parts of the parser share: tokens, nodes, limits, messages; and the entry point.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/parser.h"
#include "ir/syntax/utf8.h"
#include <algorithm>
#include <fmt/format.h>
#include <new>

namespace cubridge::ir::syntax {

Parser::Parser(std::string_view source, const Limits& limits) : limits_(limits), lexer_(source) {
    token_ = lexer_.next();
}

Token Parser::take() {
    Token taken = std::move(token_);
    if (!taken.text.empty()) { // not of line ends and indentation
        previous_ = taken.span;
        earlier_ = before_;
        before_ = taken.text;
    }
    if (ahead_) {
        token_ = std::move(*ahead_);
        ahead_.reset();
    } else {
        token_ = lexer_.next();
    }
    return taken;
}

const Token& Parser::peek() {
    if (!ahead_) ahead_ = lexer_.next();
    return *ahead_;
}

bool Parser::accept(std::string_view spelling) {
    if (!op(spelling) && !word(spelling)) return false;
    take();
    return true;
}

void Parser::expect(std::string_view spelling, std::string_view where) {
    if (!accept(spelling)) unexpected(fmt::format("'{}' {}", spelling, where));
}

std::string Parser::name(std::string_view what) {
    if (token_.kind != Token::Kind::Name) unexpected(what);
    return std::string(take().text);
}

std::string Parser::found() const {
    switch (token_.kind) {
    case Token::Kind::Newline: return "the end of the line";
    case Token::Kind::Indent: return "a deeper indentation";
    case Token::Kind::Dedent: return "the end of the block";
    case Token::Kind::End: return "the end of the text";
    case Token::Kind::String:
    case Token::Kind::FString: return "a string";
    default: break;
    }
    constexpr std::size_t shown = 40;
    if (token_.text.size() <= shown) return fmt::format("'{}'", token_.text);
    return fmt::format("'{}...'", token_.text.substr(0, shown));
}

/// The obvious repair, as far as the token that does not fit and those before it tell.
std::string Parser::hint_for_found() const {
    if (op("=")) return "'==' compares; '=' names an argument only after a plain name, and assigns only in a statement";
    if (op("{")) return "blocks begin with ':' and are indented, without braces";
    if (token_.text == "then") return "write ':' in its place";
    if (before_ == "else" && word("if")) return "write 'elif'";
    if (word("elif") || word("else")) return "it must stand under the 'if', 'for' or 'while' that it belongs to";
    if (token_.kind == Token::Kind::Newline && (before_ == "+" || before_ == "-") && earlier_ == before_) {
        return fmt::format("there is no '{0}{0}': write 'x {0}= 1'", before_);
    }
    if (token_.kind == Token::Kind::Name || token_.kind == Token::Kind::String) {
        struct Habit {
            std::string_view word, hint;
        };
        static constexpr std::string_view declared = "a name needs no declaration: write 'name = value'";
        static constexpr std::string_view function = "write 'def'";
        static constexpr Habit habits[] = {
            {"print", "print is a function: write 'print(...)'"},
            {"elseif", "write 'elif'"},
            {"elsif", "write 'elif'"},
            {"switch", "write 'if' and 'elif'"},
            {"let", declared},
            {"var", declared},
            {"const", declared},
            {"auto", declared},
            {"int", declared},
            {"float", declared},
            {"function", function},
            {"func", function},
            {"fn", function},
            {"new", "leave out 'new'"},
        };
        for (const Habit& habit : habits) {
            if (habit.word == before_) return std::string(habit.hint);
        }
    }
    if (const Bracket* bracket = lexer_.open(); bracket && (bracket->span.line < token_.span.line || op(":"))) {
        return fmt::format("'{}', opened at line {}, column {}, is not closed", bracket->shape, bracket->span.line,
                           bracket->span.column);
    }
    return {};
}

void Parser::unexpected(std::string_view wanted) {
    refuse_unsupported();
    fail("syntax", fmt::format("expected {}, found {}", wanted, found()), token_.span, hint_for_found());
}

/// Fails if the token begins a construct of Python that is not in the subset.
void Parser::refuse_unsupported() const {
    struct Construct {
        std::string_view word, name, hint;
    };
    static constexpr Construct constructs[] = {
        {":=", "an assignment expression (':=')", "assign in a statement of its own"},
        {"class", "a class", "write functions; constants can stand at module level"},
        {"try", "a 'try' statement", "nothing here throws: write the plain code"},
        {"nonlocal", "a 'nonlocal' statement", "return the value instead"},
        {"async", "'async'", "write a plain function or loop"},
        {"await", "'await'", "write a plain call"},
        {"yield", "'yield'", "return a list or a tuple"},
    };
    if (token_.kind != Token::Kind::Op && token_.kind != Token::Kind::Keyword) return;
    for (const Construct& construct : constructs) {
        if (token_.text != construct.word) continue;
        unsupported(construct.name, token_.span, std::string(construct.hint));
    }
}

void Parser::count(const Span& span) {
    if (++nodes_ > limits_.nodes) {
        fail("limit", fmt::format("the text makes more than {} nodes", limits_.nodes), span,
             "shorten it, or use a loop");
    }
}

Tree Parser::make(Kind kind, Span start) {
    count(start);
    Tree node = std::make_shared<Grown>();
    node->kind = kind;
    node->span = start;
    return node;
}

Tree Parser::make(Kind kind, Span start, std::initializer_list<Tree> items) {
    Tree node = make(kind, start);
    node->items.reserve(items.size());
    for (const Tree& item : items) add(*node, &Node::items, item);
    return finish(std::move(node));
}

/// The node ends where the last token that was taken ends.
Tree Parser::finish(Tree node) const {
    node->span.end_line = previous_.end_line;
    node->span.end_column = previous_.end_column;
    return node;
}

/// `child` as a child of `parent`; null stays null.
NodePtr Parser::keep(Grown& parent, const Tree& child) {
    if (!child) return nullptr;
    parent.height = std::max(parent.height, child->height + 1);
    if (parent.height > limits_.height) {
        Span here = parent.span;
        here.end_line = here.line;
        here.end_column = here.column + 1;
        fail("limit", fmt::format("a chain or nest of more than {} operations, calls or branches", limits_.height),
             here, "give intermediate results names, or use a loop or a table");
    }
    return child;
}

Parser::Nest::Nest(Parser& parser) : parser_(parser) {
    if (parser_.depth_ >= parser_.limits_.depth) {
        fail("limit", fmt::format("expressions and blocks are nested more than {} deep", parser_.limits_.depth),
             parser_.token_.span, "give intermediate results names, or move inner blocks to functions");
    }
    ++parser_.depth_;
}

/// Takes the bracket that closes `bracket`.
void Parser::close(const Token& bracket) {
    const std::string_view closing = bracket.text == "(" ? ")" : bracket.text == "[" ? "]" : "}";
    if (!accept(closing)) unexpected(fmt::format("',' or '{}'", closing));
}

Result<NodePtr> parse(std::string_view source, const Limits& limits) {
    try {
        if (source.size() > limits.bytes) {
            fail("limit", fmt::format("the text has {} bytes, more than {}", source.size(), limits.bytes));
        }
        constexpr std::string_view mark = "\xEF\xBB\xBF";
        if (source.substr(0, mark.size()) == mark) source.remove_prefix(mark.size());
        check_encoding(source);
        return NodePtr(Parser(source, limits).module());
    } catch (Failure& failure) {
        return std::move(failure.error);
    } catch (const std::bad_alloc&) {
        return Error{"limit", "there is not enough memory to parse the text", {}, {}};
    }
}

} // namespace cubridge::ir::syntax
