// The canonical layout, and that printing keeps the tree.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/ast.h"
#include <gtest/gtest.h>
#include <limits>

namespace cubridge::ir::syntax {
namespace {

std::string canonical(std::string_view text) {
    const auto tree = parse(text);
    if (!tree) return tree.error().render(std::string(text));
    const std::string printed = print(**tree);
    const auto again = parse(printed);
    if (!again) return "not read back: " + again.error().render(printed);
    if (!equal(**tree, **again)) return "another tree: " + printed;
    if (print(**again) != printed) return "another text: " + print(**again);
    return printed;
}

struct Row {
    std::string_view text, printed; ///< without the line end
};

// Parentheses that change nothing vanish, the others stay.
const Row expressions[] = {
    {"((a))", "a"},
    {"(a+b)*c", "(a + b) * c"},
    {"a+(b*c)", "a + b * c"},
    {"(a+b)+c", "a + b + c"},
    {"a+(b+c)", "a + (b + c)"},
    {"a-(b-c)-d", "a - (b - c) - d"},
    {"-a**b", "-a ** b"},
    {"(-a)**b", "(-a) ** b"},
    {"-(a**b)", "-a ** b"},
    {"a**-b", "a ** -b"},
    {"a**b**c", "a ** b ** c"},
    {"(a**b)**c", "(a ** b) ** c"},
    {"a**(b**c)", "a ** b ** c"},
    {"a ** (not b)", "a ** (not b)"},
    {"- - ~+a", "--~+a"},
    {"-(a*b)", "-(a * b)"},
    {"(-a)*b", "-a * b"},
    {"(-a).b", "(-a).b"},
    {"-a.b[c](d)", "-a.b[c](d)"},
    {"not a == b", "not a == b"},
    {"(not a) == b", "(not a) == b"},
    {"not (not a)", "not not a"},
    {"not (a and b)", "not (a and b)"},
    {"a or b and c", "a or b and c"},
    {"(a or b) and c", "(a or b) and c"},
    {"(a and b) and c", "(a and b) and c"},
    {"a and b and c", "a and b and c"},
    {"a<b<c", "a < b < c"},
    {"(a<b)<c", "(a < b) < c"},
    {"a<(b<c)", "a < (b < c)"},
    {"a not in b is not c in d is e", "a not in b is not c in d is e"},
    {"a is (not b)", "a is (not b)"},
    {"(j<=i)&(i-j<w)|m", "(j <= i) & (i - j < w) | m"},
    {"a&b==c", "a & b == c"},
    {"a|b^c&d<<e+f*g", "a | b ^ c & d << e + f * g"},
    {"((((((a|b)^c)&d)<<e)+f)*g)", "(((((a | b) ^ c) & d) << e) + f) * g"},
    {"a@b//c%d", "a @ b // c % d"},
    {"a if b else c if d else e", "a if b else c if d else e"},
    {"(a if b else c) if d else e", "(a if b else c) if d else e"},
    {"a if (b if c else d) else e", "a if (b if c else d) else e"},
    {"lambda: lambda x, *y: z", "lambda: lambda x, *y: z"},
    {"(lambda: a)()", "(lambda: a)()"},
    {"a if b else (lambda: c)", "a if b else lambda: c"},
    {"(lambda: a) if b else c", "(lambda: a) if b else c"},
    {"lambda: (a, b)", "lambda: (a, b)"},
    {"lambda x=(lambda: 1), *, y: x", "lambda x=lambda: 1, *, y: x"},
    {"f(  )", "f()"},
    {"f(a,b,*c,d=e,**g,)", "f(a, b, *c, d=e, **g)"},
    {"f(*a if b else c)", "f(*(a if b else c))"},
    {"f((a, b))", "f((a, b))"},
    {"f((x for x in y))", "f(x for x in y)"},
    {"f((x for x in y), 1)", "f((x for x in y), 1)"},
    {"f(k=(x for x in y))", "f(k=(x for x in y))"},
    {"[a for a,b in c if d if e for f in g]", "[a for a, b in c if d if e for f in g]"},
    {"[(a, b) for (a,) in (c, d)]", "[(a, b) for (a,) in (c, d)]"},
    {"[a for a in (b if c else d) if (lambda: e)]", "[a for a in (b if c else d) if (lambda: e)]"},
    {"[a for a in b or c]", "[a for a in b or c]"},
    {"a[b,c]", "a[b, c]"},
    {"a[(b,c)]", "a[b, c]"},
    {"a[b,]", "a[b,]"},
    {"a[()]", "a[()]"},
    {"a[(b,c),d]", "a[(b, c), d]"},
    {"a[(*b,c)]", "a[(*b, c)]"},
    {"a[:]", "a[:]"},
    {"a[::]", "a[:]"},
    {"a[1::-1,...,None,:b]", "a[1::-1, ..., None, :b]"},
    {"a[b+1:c*2:d if e else f]", "a[b + 1:c * 2:d if e else f]"},
    {"a[:,]", "a[:,]"},
    {"()", "()"},
    {"(a,)", "(a,)"},
    {"a,", "(a,)"},
    {"(a,b)", "a, b"},
    {"a,(b,c)", "a, (b, c)"},
    {"*a,b", "*a, b"},
    {"[*a,*b|c]", "[*a, *b | c]"},
    {"[]", "[]"},
    {"{}", "{}"},
    {"{a:b,'c':(d,e),}", "{a: b, \"c\": (d, e)}"},
    {"1 .real", "(1).real"},
    {"1.5 .real", "(1.5).real"},
    {"...", "..."},
    {"[True,False,None]", "[True, False, None]"},
    {"a\\\n+b", "a + b"},
    {"(a # comment\n\n +\tb)", "a + b"},
};

TEST(Print, Expressions) {
    for (const Row& row : expressions) {
        SCOPED_TRACE(std::string(row.text));
        EXPECT_EQ(canonical(row.text), std::string(row.printed) + "\n");
    }
}

const Row literals[] = {
    {"0", "0"},
    {"00", "0"},
    {"1_000", "1000"},
    {"0xFf", "255"},
    {"0o17", "15"},
    {"0b1_01", "5"},
    {"9223372036854775807", "9223372036854775807"},
    {"1.", "1.0"},
    {".5", "0.5"},
    {"0.1", "0.1"},
    {"1e5", "100000.0"},
    {"1E+30", "1e+30"},
    {"1e15", "1000000000000000.0"},
    {"1e16", "1e+16"},
    {"1e-4", "0.0001"},
    {"0.00001", "1e-05"},
    {"1_0.0_1e1_0", "100100000000.0"},
    {"0777.5", "777.5"},
    {"1.7976931348623157e308", "1.7976931348623157e+308"},
    {"5e-324", "5e-324"},
    {"1e999", "1e999"},
    {"1e-999", "0.0"},
    {"0e999", "0.0"},
    {"1e99999999999999999999", "1e999"},
    {"'a'", "\"a\""},
    {"\"it's\"", "\"it's\""},
    {"'say \"x\"'", "\"say \\\"x\\\"\""},
    {"'a' \"b\" r'\\c'", "\"ab\\\\c\""},
    {"'\\a\\b\\f\\n\\r\\t\\v\\\\\\''", "\"\\x07\\x08\\x0c\\n\\r\\t\\x0b\\\\'\""},
    {"'\\q'", "\"\\\\q\""},
    {"'\\101\\0'", "\"A\\x00\""},
    {"'\\x41\\u00e9\\U0001F600'", "\"A\xC3\xA9\xF0\x9F\x98\x80\""},
    {"'''a\nb'''", "\"a\\nb\""},
    {"'''a\r\nb\rc'''", "\"a\\nb\\nc\""},
    {"'''a'b''c'''", "\"a'b''c\""},
    {"'a\\\nb'", "\"ab\""},
    {"r'a\\\nb'", "\"a\\\\\\nb\""},
    {"r'\\''", "\"\\\\'\""},
    {"u'a' ''", "\"a\""},
    {"f'{a}'", "f\"{a}\""},
    {"f'{a[\"b\"]}'", "f'{a[\"b\"]}'"},
    {"f'it\\'s \"x\"'", "f'it\\'s \"x\"'"},
    {"f'''a\n\"b'''", "f\"\"\"a\n\"b\"\"\""},
    {"f'''a\nb\"'''", "f'''a\nb\"'''"},
    {"'{' f'{a}' '}\"'", "f\"{{{a}}}\\\"\""},
    {"f'\\1' '2'", "f\"\\1\\x32\""},
};

TEST(Print, Literals) {
    for (const Row& row : literals) {
        SCOPED_TRACE(std::string(row.text));
        EXPECT_EQ(canonical(row.text), std::string(row.printed) + "\n");
    }
}

const Row statements[] = {
    {"a=b=c,d", "a = b = c, d"},
    {"(a,b)=c", "a, b = c"},
    {"a,*b=*c,d", "a, *b = *c, d"},
    {"[a,(b,c)]=d", "[a, (b, c)] = d"},
    {"a.b[c]=d", "a.b[c] = d"},
    {"a//=b;c**=d,e", "a //= b\nc **= d, e"},
    {"a:int", "a: int"},
    {"a:int=b,c", "a: int = b, c"},
    {"def f():return", "def f():\n    return"},
    {"def f():return a,*b", "def f():\n    return a, *b"},
    {"if a:b;c", "if a:\n    b\n    c"},
    {"if a:\n b\nelif c:\n d\nelse:\n e", "if a:\n    b\nelif c:\n    d\nelse:\n    e"},
    {"if a:\n b\nelse:\n if c:\n  d", "if a:\n    b\nelif c:\n    d"},
    {"if a:\n b\nelse:\n if c:\n  d\n e", "if a:\n    b\nelse:\n    if c:\n        d\n    e"},
    {"for a,b in c,d:\n e\nelse:\n f", "for a, b in c, d:\n    e\nelse:\n    f"},
    {"for a, in b: pass", "for (a,) in b:\n    pass"},
    {"while a:\n break\nelse: continue", "while a:\n    break\nelse:\n    continue"},
    {"with a as b,c,d() as e:f", "with a as b, c, d() as e:\n    f"},
    {"assert a,b", "assert a, b"},
    {"assert (a,b)", "assert (a, b)"},
    {"raise", "raise"},
    {"raise E('x')", "raise E(\"x\")"},
    {"global a,b", "global a, b"},
    {"del a,b[c],(d,e)", "del a, b[c], (d, e)"},
    {"import a.b as c,d", "import a.b as c, d"},
    {"from a.b import (c as d,e,)", "from a.b import c as d, e"},
    {"from a import *", "from a import *"},
    {"def f(a,b:int=1,/,c=2,*,d,e:T=3,**g)->R:\n\tpass",
     "def f(a, b: int = 1, /, c=2, *, d, e: T = 3, **g) -> R:\n    pass"},
    {"def f(*a:T,b): pass", "def f(*a: T, b):\n    pass"},
    {"x\n@d\n@e.f(1)\ndef f():\n  'doc'\n  def g(): pass\n  def h(): pass\n  return g\ny",
     "x\n\n@d\n@e.f(1)\ndef f():\n    \"doc\"\n\n    def g():\n        pass\n\n    def h():\n        pass\n\n    "
     "return g\n\ny"},
    {"match=1;type=match;print(type)", "match = 1\ntype = match\nprint(type)"},
    {"\n\n  # only\n\na\n    # odd\n", "a"},
    {"\xEF\xBB\xBF"
     "a\r\nb\rc",
     "a\nb\nc"},
    {"if a:\n\tb\n\tif c:\n\t        d\n", "if a:\n    b\n    if c:\n        d"},
    {"\fa\n\fb", "a\nb"},
    {"\\\n\na", "a"},
};

TEST(Print, Statements) {
    for (const Row& row : statements) {
        SCOPED_TRACE(std::string(row.text));
        EXPECT_EQ(canonical(row.text), std::string(row.printed) + "\n");
    }
}

TEST(Print, NothingIsNothing) {
    EXPECT_EQ(canonical(""), "");
    EXPECT_EQ(canonical("# a comment"), "");
}

TEST(Print, ANodeOfItsOwn) {
    const auto tree = parse("if a:\n    b = (c, d)\n");
    ASSERT_TRUE(tree);
    const Node& branch = *(*tree)->body[0];
    EXPECT_EQ(print(*branch.items[0]), "a");
    EXPECT_EQ(print(*branch.body[0]), "b = c, d\n");
    EXPECT_EQ(print(*branch.body[0]->items[1]), "c, d");
}

TEST(Print, NumbersThatOnlyAProgramMakes) {
    auto power = [](Node number) {
        auto exponent = std::make_shared<Node>();
        exponent->kind = Kind::Int;
        exponent->integer = 2;
        Node node;
        node.kind = Kind::Binary;
        node.text = "**";
        node.items = {std::make_shared<Node>(std::move(number)), exponent};
        return print(node);
    };
    Node number;
    number.kind = Kind::Int;
    number.integer = -3;
    EXPECT_EQ(power(number), "(-3) ** 2");
    number.integer = std::numeric_limits<std::int64_t>::min();
    EXPECT_TRUE(parse(power(number)));
    number.kind = Kind::Float;
    number.real = -0.0;
    EXPECT_EQ(power(number), "(-0.0) ** 2");
    number.real = -std::numeric_limits<double>::infinity();
    EXPECT_EQ(power(number), "(-1e999) ** 2");
}

} // namespace
} // namespace cubridge::ir::syntax
