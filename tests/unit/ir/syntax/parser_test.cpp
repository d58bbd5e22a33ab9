// The tree that a text gives: fields, spans.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/ast.h"
#include <gtest/gtest.h>

namespace cubridge::ir::syntax {
namespace {

NodePtr read(std::string_view text) {
    const auto tree = parse(text);
    EXPECT_TRUE(tree) << text;
    return tree ? *tree : std::make_shared<Node>();
}

NodePtr expression(std::string_view text) {
    return read(text)->body.at(0)->items.at(0);
}

std::string place(const Node& node) {
    const Span& s = node.span;
    return std::to_string(s.line) + ":" + std::to_string(s.column) + "-" + std::to_string(s.end_line) + ":" +
           std::to_string(s.end_column);
}

TEST(Parser, ComparisonChain) {
    const NodePtr node = expression("a < b not in c is not d");
    EXPECT_EQ(node->kind, Kind::Compare);
    EXPECT_EQ(node->items.size(), 4u);
    EXPECT_EQ(node->names, (std::vector<std::string>{"<", "not in", "is not"}));
}

TEST(Parser, CallKeepsPositionalAndNamedApart) {
    const NodePtr node = expression("f(a, *b, c=d, **e)");
    EXPECT_EQ(node->kind, Kind::Call);
    ASSERT_EQ(node->items.size(), 3u);
    EXPECT_EQ(node->items[2]->kind, Kind::Starred);
    ASSERT_EQ(node->keywords.size(), 2u);
    EXPECT_EQ(node->keywords[0].name, "c");
    EXPECT_EQ(node->keywords[0].span.column, 10);
    EXPECT_EQ(node->keywords[0].span.end_column, 13);
    EXPECT_EQ(node->keywords[1].name, "");
}

TEST(Parser, SliceHasThreePlaces) {
    const NodePtr index = expression("x[a:, ::b]")->items[1];
    EXPECT_EQ(index->kind, Kind::Tuple);
    const Node& first = *index->items[0];
    ASSERT_EQ(first.items.size(), 3u);
    EXPECT_TRUE(first.items[0] && !first.items[1] && !first.items[2]);
    const Node& second = *index->items[1];
    EXPECT_TRUE(!second.items[0] && !second.items[1] && second.items[2]);
}

TEST(Parser, ParametersInAllForms) {
    using Form = Param::Form;
    const NodePtr node = read("def f(a, /, b: T = 1, *, c=2, **d) -> R: pass")->body[0];
    EXPECT_EQ(node->kind, Kind::FunctionDef);
    EXPECT_EQ(node->text, "f");
    std::vector<Form> forms;
    for (const Param& param : node->params) forms.push_back(param.form);
    EXPECT_EQ(forms,
              (std::vector<Form>{Form::Normal, Form::Slash, Form::Normal, Form::Bar, Form::Normal, Form::StarStar}));
    EXPECT_TRUE(node->params[2].annotation && node->params[2].fallback);
    EXPECT_EQ(node->items[0]->text, "R");
    EXPECT_EQ(read("def f(*a): pass")->body[0]->params[0].form, Form::Star);
    EXPECT_EQ(read("def f(*a): pass")->body[0]->items[0], nullptr);
}

TEST(Parser, ComprehensionClauses) {
    const NodePtr node = expression("[a for b, c in d if e if f for g in h]");
    ASSERT_EQ(node->clauses.size(), 2u);
    EXPECT_EQ(node->clauses[0].target->kind, Kind::Tuple);
    EXPECT_EQ(node->clauses[0].conditions.size(), 2u);
    EXPECT_EQ(node->clauses[1].iterable->text, "h");
}

TEST(Parser, ElifIsAnIfAloneInOrelse) {
    const NodePtr node = read("if a: b\nelif c: d\nelse: e")->body[0];
    ASSERT_EQ(node->orelse.size(), 1u);
    EXPECT_EQ(node->orelse[0]->kind, Kind::If);
    EXPECT_EQ(node->orelse[0]->orelse[0]->kind, Kind::ExprStmt);
}

TEST(Parser, FieldsOfStatements) {
    EXPECT_EQ(read("a = b = c")->body[0]->items.size(), 3u);
    EXPECT_EQ(read("a **= c")->body[0]->text, "**");
    EXPECT_EQ(read("a: b")->body[0]->items[2], nullptr);
    EXPECT_EQ(read("return")->body[0]->items[0], nullptr);
    EXPECT_EQ(read("assert a")->body[0]->items[1], nullptr);
    EXPECT_EQ(read("with a as b, c: pass")->body[0]->names, (std::vector<std::string>{"b", ""}));
    EXPECT_EQ(read("import a.b as c, d")->body[0]->aliases, (std::vector<std::string>{"c", ""}));
    EXPECT_EQ(read("from a.b import *")->body[0]->names, (std::vector<std::string>{"*"}));
    EXPECT_EQ(read("for a in b: c\nelse: d")->body[0]->orelse.size(), 1u);
    EXPECT_EQ(expression("'a' 'b'")->text, "ab");
    EXPECT_EQ(expression("{a: b, c: d}")->items.size(), 4u);
}

TEST(Parser, Spans) {
    EXPECT_EQ(place(*expression("(a + bc) * d")), "1:1-1:13");
    EXPECT_EQ(place(*expression("(a + bc) * d")->items[0]), "1:2-1:8");
    EXPECT_EQ(place(*expression("f(a,\n  b)[1]")), "1:1-2:8");
    EXPECT_EQ(place(*expression("'\xC3\xA9' + x")->items[1]), "1:7-1:8");
    EXPECT_EQ(place(*expression("'''a\nbc''' + x")->items[0]), "1:1-2:6");
    const NodePtr module = read("if a:\n    b\n\n\nc = 1 # d\n");
    EXPECT_EQ(place(*module->body[0]), "1:1-2:6");
    EXPECT_EQ(place(*module->body[1]), "5:1-5:6");
    EXPECT_EQ(place(*module), "1:1-5:6");
    EXPECT_EQ(place(*read("@d\ndef f():\n  pass\n")->body[0]), "1:1-3:7");
}

} // namespace
} // namespace cubridge::ir::syntax
