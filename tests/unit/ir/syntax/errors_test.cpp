// Malformed texts: which kind of error, where, in which words.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/ast.h"
#include <gtest/gtest.h>

namespace cubridge::ir::syntax {
namespace {

struct Malformed {
    std::string_view text;
    const char* kind;
    int line, column;
    const char* message;
};

// clang-format off
const Malformed malformed[] = {
    {"if x\n    y\n", "syntax", 1, 5, "expected ':' after the condition of 'if', found the end of the line"},
    {"if x = 3:\n    y\n", "syntax", 1, 6, "expected ':' after the condition of 'if', found '='"},
    {"while x {\n}\n", "syntax", 1, 9, "expected ':' after the condition of 'while', found '{'"},
    {"f(1, 2\nz = 4\n", "syntax", 2, 1, "expected ',' or ')', found 'z'"},
    {"x = f(1, [2, 3)\n", "syntax", 1, 15, "')' does not close '[', which was opened at line 1, column 10"},
    {"x = (1, 2\n", "syntax", 1, 5, "'(' is never closed"},
    {"x = 1)\n", "syntax", 1, 6, "')' closes nothing"},
    {"if x:\n    a\n  b\n", "syntax", 3, 3, "unindent does not match any outer indentation"},
    {"if x:\n\ta\n        b\n", "syntax", 3, 9, "tabs and spaces are mixed in the indentation"},
    {"x = \xE2\x80\x9Chello\xE2\x80\x9D\n", "syntax", 1, 5, "a typographic quote (U+201C) outside a string"},
    {"a && b\n", "syntax", 1, 3, "'&&' is not an operator"},
    {"a || b\n", "syntax", 1, 3, "'||' is not an operator"},
    {"!a\n", "syntax", 1, 1, "'!' is not an operator"},
    {"x++\n", "syntax", 1, 4, "expected an expression, found the end of the line"},
    {"x--\n", "syntax", 1, 4, "expected an expression, found the end of the line"},
    {"if a:\n    b\nelse if c:\n    d\n", "syntax", 3, 6, "expected ':' after 'else', found 'if'"},
    {"def f(x) {\n    return x\n}\n", "syntax", 1, 10, "expected ':' after the head of a function, found '{'"},
    {"x = {1, 2}\n", "unsupported", 1, 5, "a set at line 1 is not supported"},
    {"x = {a: b for a in c}\n", "unsupported", 1, 5, "a dictionary comprehension at line 1 is not supported"},
    {"(x := 3)\n", "unsupported", 1, 4, "an assignment expression (':=') at line 1 is not supported"},
    {"class A:\n    pass\n", "unsupported", 1, 1, "a class at line 1 is not supported"},
    {"try:\n    x\nexcept E:\n    y\n", "unsupported", 1, 1, "a 'try' statement at line 1 is not supported"},
    {"async def f():\n    pass\n", "unsupported", 1, 1, "'async' at line 1 is not supported"},
    {"await x\n", "unsupported", 1, 1, "'await' at line 1 is not supported"},
    {"def f():\n    yield 1\n", "unsupported", 2, 5, "'yield' at line 2 is not supported"},
    {"def f():\n    nonlocal x\n", "unsupported", 2, 5, "a 'nonlocal' statement at line 2 is not supported"},
    {"match x:\n    case 1: pass\n", "unsupported", 1, 1, "a 'match' statement at line 1 is not supported"},
    {"x[*a]\n", "unsupported", 1, 3, "a starred expression in an index at line 1 is not supported"},
    {"b'abc'\n", "unsupported", 1, 1, "a bytes literal at line 1 is not supported"},
    {"1j\n", "unsupported", 1, 1, "an imaginary number at line 1 is not supported"},
    {"9223372036854775808\n", "limit", 1, 1, "an integer does not fit into 64 bits"},
    {"0x10000000000000000\n", "limit", 1, 1, "an integer does not fit into 64 bits"},
    {"007\n", "syntax", 1, 1, "a decimal integer begins with 0"},
    {"1__0\n", "syntax", 1, 2, "'_' directly after a number"},
    {"1_\n", "syntax", 1, 2, "'_' directly after a number"},
    {"0b12\n", "syntax", 1, 1, "'2' is not a digit of base 2"},
    {"0xg\n", "syntax", 1, 3, "a digit of base 16 is missing"},
    {"1abc\n", "syntax", 1, 2, "'a' directly after a number"},
    {"'abc\n", "syntax", 1, 1, "a string is not closed on its line"},
    {"\"\"\"abc\n", "syntax", 1, 1, "a triple-quoted string is never closed"},
    {"'\\xZZ'\n", "syntax", 1, 2, "an escape needs 2 hexadecimal digits"},
    {"'\\N{DASH}'\n", "unsupported", 1, 2, "an escape by character name at line 1 is not supported"},
    {"'\\ud800'\n", "unsupported", 1, 2, "an escape that makes half a character at line 1 is not supported"},
    {"x = \xC3\xA9\n", "unsupported", 1, 5, "'é' (U+00E9) outside a string at line 1 is not supported"},
    {"\xC3\xA9t\xC3\xA9 = 1\n", "unsupported", 1, 1, "'é' (U+00E9) outside a string at line 1 is not supported"},
    {"x = \xFF\n", "encoding", 1, 5, "byte 0xff is not UTF-8"},
    {"x = \xC0\x80\n", "encoding", 1, 5, "byte 0xc0 is not UTF-8"},
    {"x = 1 \\ \ny\n", "syntax", 1, 7, "a backslash is not at the end of its line"},
    {"x = 1 \\", "syntax", 1, 7, "a backslash is not at the end of its line"},
    {"x = ?\n", "syntax", 1, 5, "'?' is not part of the language"},
    {"x $ y\n", "syntax", 1, 3, "'$' is not part of the language"},
    {"x = `a`\n", "syntax", 1, 5, "'`' is not part of the language"},
    {"a <> b\n", "syntax", 1, 3, "'<>' is not an operator"},
    {"a === b\n", "syntax", 1, 3, "'===' is not an operator"},
    {"print \"x\"\n", "syntax", 1, 7, "expected the end of the statement, found a string"},
    {"return x y\n", "syntax", 1, 10, "expected the end of the statement, found 'y'"},
    {"def f(a=1, b):\n    pass\n", "syntax", 1, 12, "parameter 'b' without a default after one with a default"},
    {"def f(a, a):\n    pass\n", "syntax", 1, 10, "parameter 'a' stands twice"},
    {"def f(*, **k):\n    pass\n", "syntax", 1, 7, "no named parameter follows '*'"},
    {"def f(**k, a):\n    pass\n", "syntax", 1, 12, "expected ')' after '**', which comes last, found 'a'"},
    {"def f(*a, *b):\n    pass\n", "syntax", 1, 11, "a second '*' among the parameters"},
    {"def f(/, a):\n    pass\n", "syntax", 1, 7, "'/' among the parameters stands once, after a parameter and before '*'"},
    {"f(a=1, 2)\n", "syntax", 1, 8, "a positional argument after a named one"},
    {"f(a=1, a=2)\n", "syntax", 1, 8, "argument 'a' is given twice"},
    {"f(x for x in y, 1)\n", "syntax", 1, 3, "a generator that is not the only argument needs parentheses"},
    {"f(**k, *a)\n", "syntax", 1, 8, "a '*' argument after a '**' argument"},
    {"1 = x\n", "syntax", 1, 1, "only a name, x.attribute or x[index] can be assigned to or deleted"},
    {"f(x) = 1\n", "syntax", 1, 1, "only a name, x.attribute or x[index] can be assigned to or deleted"},
    {"a + b = c\n", "syntax", 1, 1, "only a name, x.attribute or x[index] can be assigned to or deleted"},
    {"*a = b\n", "syntax", 1, 1, "a starred target outside a tuple or list"},
    {"*a, *b = c\n", "syntax", 1, 5, "two starred targets"},
    {"(a, b) += 1\n", "syntax", 1, 1, "'+=' needs a single target"},
    {"(a, b): int\n", "syntax", 1, 1, "an annotation needs a single target"},
    {"x = *a\n", "syntax", 1, 5, "a starred expression outside a tuple, list or call"},
    {"for x y:\n    pass\n", "syntax", 1, 7, "expected 'in' after the target of 'for', found 'y'"},
    {"for 1 in y:\n    pass\n", "syntax", 1, 5, "only a name, x.attribute or x[index] can be assigned to or deleted"},
    {"for x in y\n    pass\n", "syntax", 1, 11, "expected ':' after what 'for' walks over, found the end of the line"},
    {"if x:\npass\n", "syntax", 2, 1, "expected an indented block under the condition of 'if' at line 1, found 'pass'"},
    {"  x\n", "syntax", 1, 3, "this line is indented deeper than the block it stands in"},
    {"x\n  y\n", "syntax", 2, 3, "this line is indented deeper than the block it stands in"},
    {"elif x:\n    y\n", "syntax", 1, 1, "expected a statement, found 'elif'"},
    {"else:\n    y\n", "syntax", 1, 1, "expected a statement, found 'else'"},
    {"except:\n    y\n", "syntax", 1, 1, "expected a statement, found 'except'"},
    {"with (a as b):\n    pass\n", "unsupported", 1, 9, "'as' in parentheses at line 1 is not supported"},
    {"with a as b.c:\n    pass\n", "unsupported", 1, 11, "'as' with anything but a name at line 1 is not supported"},
    {"from . import x\n", "unsupported", 1, 6, "a relative import at line 1 is not supported"},
    {"import 3\n", "syntax", 1, 8, "expected a module's name, found '3'"},
    {"raise E from x\n", "unsupported", 1, 9, "'raise ... from' at line 1 is not supported"},
    {"x if y\n", "syntax", 1, 7, "expected 'else' and the other value of a conditional expression, found the end of the line"},
    {"lambda x y: z\n", "syntax", 1, 10, "expected ',' or ':', found 'y'"},
    {"lambda x: y z\n", "syntax", 1, 13, "expected the end of the statement, found 'z'"},
    {"x = [1, 2\n", "syntax", 1, 5, "'[' is never closed"},
    {"x = a[1:2\n", "syntax", 1, 6, "'[' is never closed"},
    {"a[]\n", "syntax", 1, 3, "expected an index, found ']'"},
    {"x.\n", "syntax", 1, 3, "expected a name after '.', found the end of the line"},
    {"x.1\n", "syntax", 1, 2, "expected the end of the statement, found '.1'"},
    {"@d\nx = 1\n", "syntax", 2, 1, "expected 'def' after a decorator, found 'x'"},
    {"@d\nclass A:\n    pass\n", "unsupported", 2, 1, "a class at line 2 is not supported"},
    {"def f:\n    pass\n", "syntax", 1, 6, "expected '(' after a function's name, found ':'"},
    {"def (x):\n    pass\n", "syntax", 1, 5, "expected a function's name after 'def', found '('"},
    {"if a: if b: c\n", "syntax", 1, 7, "'if' on the line of another block's ':'"},
    {"del f(x)\n", "syntax", 1, 5, "only a name, x.attribute or x[index] can be assigned to or deleted"},
    {"assert x = 3\n", "syntax", 1, 10, "expected the end of the statement, found '='"},
    {"f(a.b = 3)\n", "syntax", 1, 7, "expected ',' or ')', found '='"},
    {"x = a not b\n", "syntax", 1, 7, "expected the end of the statement, found 'not'"},
    {"type X = int\n", "unsupported", 1, 1, "a 'type' statement at line 1 is not supported"},
    {"{**a}\n", "unsupported", 1, 2, "'**' in a dictionary at line 1 is not supported"},
    {"rf'abc'\n", "unsupported", 1, 1, "a raw f-string at line 1 is not supported"},
    {"x \xC2\xA0= 1\n", "syntax", 1, 3, "a no-break space (U+00A0) outside a string"},
    {"x = 3 \xE2\x88\x92 1\n", "syntax", 1, 7, "a minus sign (U+2212) outside a string"},
    {"if true then\n    y\n", "syntax", 1, 9, "expected ':' after the condition of 'if', found 'then'"},
    {"if (a and b:\n    y\n", "syntax", 1, 12, "expected ',' or ')', found ':'"},
    {"x = {\n", "syntax", 1, 5, "'{' is never closed"},
    {"return [\n\n\n  1,\n", "syntax", 1, 8, "'[' is never closed"},
    {"def f():\n    x = 1\n\ty = 2\n", "syntax", 3, 2, "tabs and spaces are mixed in the indentation"},
    {"global\n", "syntax", 1, 7, "expected a name, found the end of the line"},
    {"x =\n", "syntax", 1, 4, "expected an expression, found the end of the line"},
    {"x = = 1\n", "syntax", 1, 5, "expected an expression, found '='"},
    {"x +\n", "syntax", 1, 4, "expected an expression, found the end of the line"},
    {"not\n", "syntax", 1, 4, "expected an expression, found the end of the line"},
    {"a not\n", "syntax", 1, 3, "expected the end of the statement, found 'not'"},
    {"a is\n", "syntax", 1, 5, "expected an expression, found the end of the line"},
    {"import a.\n", "syntax", 1, 10, "expected a name after '.', found the end of the line"},
    {"[*a for a in b]\n", "syntax", 1, 2, "a starred expression in a comprehension"},
    {"f(async)\n", "unsupported", 1, 3, "'async' at line 1 is not supported"},
    {"[x async for x in y]\n", "unsupported", 1, 4, "'async' at line 1 is not supported"},
    {"x: \n", "syntax", 1, 4, "expected an expression, found the end of the line"},
    {"x;;y\n", "syntax", 1, 3, "expected an expression, found ';'"},
    {",\n", "syntax", 1, 1, "expected an expression, found ','"},
    {"\x01\n", "syntax", 1, 1, "control character U+0001"},
    {"def f[T](x):\n    pass\n", "unsupported", 1, 6, "type parameters at line 1 is not supported"},
    {"def f(x, ", "syntax", 1, 6, "'(' is never closed"},
    {"elsif x:\n   y\n", "syntax", 1, 7, "expected the end of the statement, found 'x'"},
    {"None = 1\n", "syntax", 1, 1, "only a name, x.attribute or x[index] can be assigned to or deleted"},
    {"for x in y: for z in x: pass\n", "syntax", 1, 13, "'for' on the line of another block's ':'"},
    {"lambda *: x\n", "syntax", 1, 9, "expected a parameter's name, found ':'"},
    {"def f(*a=1): pass\n", "syntax", 1, 9, "a default of a starred parameter"},
    {"from a import (b, c\n", "syntax", 1, 15, "'(' is never closed"},
    {"from a import\n", "syntax", 1, 14, "expected a name to import, found the end of the line"},
    {"from a b\n", "syntax", 1, 8, "expected 'import' after the module's name, found 'b'"},
    {"if x:\n", "syntax", 2, 1, "expected an indented block under the condition of 'if' at line 1, found the end of the text"},
    {"if x:\n    # only\ny\n", "syntax", 3, 1, "expected an indented block under the condition of 'if' at line 1, found 'y'"},
    {"while True:\n  x\n    y\n", "syntax", 3, 5, "this line is indented deeper than the block it stands in"},
    {"\tif x:\n", "syntax", 1, 2, "this line is indented deeper than the block it stands in"},
    {"'a' f'{b}' b'c'\n", "unsupported", 1, 12, "a bytes literal at line 1 is not supported"},
    {"x = 'a\\\n", "syntax", 1, 5, "a string is not closed on its line"},
    {"print x\n", "syntax", 1, 7, "expected the end of the statement, found 'x'"},
    {"print(x", "syntax", 1, 6, "'(' is never closed"},
    {"a = b;\n  c", "syntax", 2, 3, "this line is indented deeper than the block it stands in"},
    {"def f(x: int, y):", "syntax", 1, 18, "expected an indented block under the head of a function at line 1, found the end of the text"},
    {"switch x:\n    y", "syntax", 1, 8, "expected the end of the statement, found 'x'"},
    {"x = new Foo()\n", "syntax", 1, 9, "expected the end of the statement, found 'Foo'"},
    {"int x = 3\n", "syntax", 1, 5, "expected the end of the statement, found 'x'"},
    {"function f(x):\n    y\n", "syntax", 1, 10, "expected the end of the statement, found 'f'"},
    {"let x = 3\n", "syntax", 1, 5, "expected the end of the statement, found 'x'"},
    {"x = a ? b : c\n", "syntax", 1, 7, "'?' is not part of the language"},
    {"x = -> y\n", "syntax", 1, 5, "expected an expression, found '->'"},
    {"def f():\n    \\\n\n", "syntax", 4, 1, "expected an expression, found the end of the block"},
};
// clang-format on

TEST(SyntaxErrors, SayKindPlaceAndReason) {
    for (const Malformed& row : malformed) {
        SCOPED_TRACE(std::string(row.text));
        const auto result = parse(row.text);
        ASSERT_FALSE(result);
        const Error& error = result.error();
        EXPECT_EQ(error.kind, row.kind);
        EXPECT_EQ(error.span.line, row.line);
        EXPECT_EQ(error.span.column, row.column);
        EXPECT_EQ(error.message, row.message);
        EXPECT_GE(std::pair(error.span.end_line, error.span.end_column), std::pair(error.span.line, error.span.column));
    }
}

struct Hinted {
    std::string_view text;
    const char* hint; ///< a part of it
};

const Hinted hinted[] = {
    {"if x\n    y\n", "add ':'"},
    {"if x = 3:\n    y\n", "'==' compares"},
    {"f(x) = 3\n", "'==' compares"},
    {"f(1, 2\nz = 4\n", "'(', opened at line 1, column 2"},
    {"if (a and b:\n    y\n", "'(', opened at line 1, column 4"},
    {"x = f(1, [2, 3)\n", "']'"},
    {"if x:\n        a\n    b\n", "indent by 0 columns"},
    {"if x:\n    if y:\n        a\n      b\n", "indent by 4 columns"},
    {"if x:\n\ta\n        b\n", "spaces only"},
    {"x = \xE2\x80\x9Chello\xE2\x80\x9D\n", "'\"'"},
    {"x = \xE2\x80\x98hello\xE2\x80\x99\n", "\"'\""},
    {"a && b\n", "'and'"},
    {"a || b\n", "'or'"},
    {"!a\n", "'not'"},
    {"x++\n", "'x += 1'"},
    {"x--\n", "'x -= 1'"},
    {"x +\n", ""},
    {"if a:\n    b\nelse if c:\n    d\n", "'elif'"},
    {"elsif a:\n    b\n", "'elif'"},
    {"while x {\n", "without braces"},
    {"}\n", "not by braces"},
    {"a <> b\n", "'!='"},
    {"print x\n", "print(...)"},
    {"print 'x'\n", "print(...)"},
    {"let x = 3\n", "no declaration"},
    {"function f(x):\n    y\n", "'def'"},
    {"switch x:\n    y\n", "'elif'"},
    {"if a then\n    b\n", "':'"},
    {"x = a ? b : c\n", "a if condition else b"},
    {"with (a as b):\n    pass\n", "without parentheses"},
    {"x = 3 \xE2\x88\x92 1\n", "'-'"},
    {"class A:\n    pass\n", "functions"},
    {"match x:\n    case 1: pass\n", "'elif'"},
};

TEST(SyntaxErrors, HintAtTheRepair) {
    for (const Hinted& row : hinted) {
        SCOPED_TRACE(std::string(row.text));
        const auto result = parse(row.text);
        ASSERT_FALSE(result);
        const std::string& hint = result.error().hint;
        EXPECT_NE(hint.find(row.hint), hint.npos) << hint;
        if (*row.hint == '\0') {
            EXPECT_EQ(hint, "");
        }
    }
}

TEST(SyntaxErrors, TheFirstInReadingOrderIsReported) {
    const auto result = parse("x y\n'unclosed\n");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().span.line, 1);
}

TEST(SyntaxErrors, ColumnsCountCodePointsAndIgnoreTheByteOrderMark) {
    const auto accented = parse("x = '\xC3\xA9\xF0\x9F\x98\x80' y\n");
    ASSERT_FALSE(accented);
    EXPECT_EQ(accented.error().span.column, 10);
    const auto marked = parse("\xEF\xBB\xBFx y\n");
    ASSERT_FALSE(marked);
    EXPECT_EQ(marked.error().span.column, 3);
}

TEST(SyntaxErrors, BytesThatAreNotText) {
    struct Row {
        std::string_view text;
        int line, column;
    };
    const Row rows[] = {
        {std::string_view("x = 1\n\0", 7), 2, 1},
        {"a\n'\xC3\xA9' + '\xC3'\n", 2, 8},
        {"a\r\nb\r\xED\xA0\x80", 3, 1},
        {"\xF4\x90\x80\x80", 1, 1},
        {"# \xE2\x82", 1, 3},
        {"\xF0\x8F\xBF\xBF", 1, 1},
        {"\xEF\xBB\xBF\xFF", 1, 1},
    };
    for (const Row& row : rows) {
        const auto result = parse(row.text);
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().kind, "encoding");
        EXPECT_EQ(result.error().span.line, row.line);
        EXPECT_EQ(result.error().span.column, row.column);
    }
}

} // namespace
} // namespace cubridge::ir::syntax
