// Which texts are the same tree.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/ast.h"
#include <gtest/gtest.h>

namespace cubridge::ir::syntax {
namespace {

bool same(std::string_view a, std::string_view b) {
    const auto left = parse(a), right = parse(b);
    EXPECT_TRUE(left) << a;
    EXPECT_TRUE(right) << b;
    return left && right && equal(**left, **right);
}

TEST(Equal, LayoutDoesNotCount) {
    EXPECT_TRUE(same("def f(a):\n  return (a)  # why\n", "def f(a):\n\n\treturn a\n"));
    EXPECT_TRUE(same("x = 'a' 'b'\n", "x = \"\"\"ab\"\"\";\n"));
    EXPECT_TRUE(same("x = 0x10\n", "x = 16\n"));
}

TEST(Equal, EveryFieldCounts) {
    const std::pair<const char*, const char*> different[] = {
        {"a", "b"},
        {"1", "2"},
        {"1", "1.0"},
        {"0.0", "0"},
        {"1.0", "2.0"},
        {"'a'", "a"},
        {"'a'", "f'a'"},
        {"a + b", "a - b"},
        {"a + b", "b + a"},
        {"a < b", "a > b"},
        {"a and b", "a or b"},
        {"(a, b)", "[a, b]"},
        {"f(a)", "f(a, b)"},
        {"f(a=b)", "f(c=b)"},
        {"f(a=b)", "f(a=c)"},
        {"f(a=b)", "f(**b)"},
        {"x[a:]", "x[:a]"},
        {"x[a]", "x[a,]"},
        {"lambda a: b", "lambda c: b"},
        {"lambda a: b", "lambda *a: b"},
        {"lambda a: b", "lambda a=1: b"},
        {"[a for b in c]", "[a for b in d]"},
        {"[a for b in c]", "[a for b in c if d]"},
        {"[a for b in c]", "(a for b in c)"},
        {"import a", "import a as b"},
        {"import a", "import b"},
        {"from a import b", "from c import b"},
        {"def f(): pass", "def g(): pass"},
        {"def f(): pass", "def f() -> a: pass"},
        {"def f(): pass", "@a\ndef f(): pass"},
        {"def f(a: b): pass", "def f(a): pass"},
        {"def f(a, /): pass", "def f(a, *, b): pass"},
        {"return", "return None"},
        {"while a: b", "while a: c"},
        {"while a: b", "while a: b\nelse: c"},
        {"with a: b", "with a as c: b"},
        {"a += b", "a -= b"},
        {"a", "a\na"},
        {"global a", "global b"},
    };
    for (const auto& [a, b] : different) {
        EXPECT_TRUE(same(a, a));
        EXPECT_FALSE(same(a, b)) << a << " / " << b;
        EXPECT_FALSE(same(b, a)) << b << " / " << a;
    }
}

} // namespace
} // namespace cubridge::ir::syntax
