// Texts made to overflow a stack, or to take more than linear time or memory. Each ends in a tree within the limits or
// in a clean error; all of it on a thread with a small stack. SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/ast.h"
#include "tests/unit/ir/small_stack.h"
#include <gtest/gtest.h>

namespace cubridge::ir::syntax {
namespace {

// Frames are larger without optimisation, too.
#ifdef NDEBUG
constexpr std::size_t stack = kSanitized ? 4u << 20 : 512u << 10;
#else
constexpr std::size_t stack = 4u << 20;
#endif

std::string repeat(std::string_view part, std::size_t times) {
    std::string text;
    text.reserve(part.size() * times);
    for (std::size_t i = 0; i < times; ++i) text += part;
    return text;
}

/// A part that is repeated up to the limit of bytes, after a beginning and before an end.
struct Hostile {
    const char *begin, *part, *end, *kind;
};

const Hostile hostile[] = {
    {"x = ", "(", "", "limit"},
    {"x = ", "[", "", "limit"},
    {"x = ", "{a: ", "", "limit"},
    {"x = ", "f(", "", "limit"},
    {"x = ", "a[", "", "limit"},
    {"x = ", "-", "1", "limit"},
    {"x = ", "~ ", "1", "limit"},
    {"x = ", "not ", "1", "limit"},
    {"x = ", "2**", "1", "limit"},
    {"x = ", "-2**", "1", "limit"},
    {"x = ", "lambda: ", "1", "limit"},
    {"x = ", "lambda a=lambda: 1: ", "1", "limit"},
    {"x = ", "x if x else ", "x", "limit"},
    {"x = a", ".b", "", "limit"},
    {"x = a", "()", "", "limit"},
    {"x = a", "[0]", "", "limit"},
    {"x = a", "+a", "", "limit"},
    {"x = a", "*a", "", "limit"},
    {"x = a", "<a", "", "limit"},    // nodes
    {"x = a", " or a", "", "limit"}, // nodes
    {"x = a", ",a", "", "limit"},    // nodes
    {"", "a=", "a", "limit"},        // nodes
    {"f(a", ",a", ")", "limit"},     // nodes
    {"global a", ",a", "", "limit"}, // nodes
    {"import a", ",a", "", "limit"}, // nodes
    {"", "a;", "", "limit"},         // nodes
    {"", "a\n", "", "limit"},        // nodes
    {"if a: b\n", "elif a: b\n", "", "limit"},
    {"", "if a:\n", "", "syntax"},
    {"for a in ", "b,", ": c", "limit"},
    {"", "[a for a in ", "", "limit"},
    {"", "[a for [", "", "limit"},
    {"", "(*", "", "limit"},
    {"", "[*", "", "limit"},
    {"del ", "(", "", "limit"},
    {"for ", "(*", "", "limit"},
    {"", "[a for a in b if ", "", "limit"},
    {"", "f(*", "", "limit"},
    {"", "f(**", "", "limit"},
    {"def f(a=", "f(a=", "", "limit"},
    {"@", "a(", "", "limit"},
    {"a: ", "a[", "", "limit"},
    {"[a ", "for a in b ", "]", "limit"}, // nodes
    {"[a for a in b ", "if a ", "]", "limit"},
    {"x = f(", "a=b,", "", "syntax"},      // given twice
    {"def f(", "a,", "): pass", "syntax"}, // stands twice
    {"def f(", "*,", "): pass", "syntax"},
    {"", "@a\n", "def f(): pass", "limit"},
    {"x = ", "'' ", "", ""},
    {"x = ", "f'' ", "", ""},
    {"x = ", "f'\\1' ", "", ""},
    {"x = '", "\\\\", "'", ""},
    {"x = '", "a", "'", ""},
    {"x = f'", "\\\"", "'", ""},
    {"x = '''", "\n", "'''", ""},
    {"x = '''", "''a", "'''", ""},
    {"x = '''", "\"\"a", "", "syntax"},
    {"", "a", "", ""},
    {"", "9", "", "limit"},
    {"", "9", ".", ""},
    {"", "0", "", ""},
    {"0.", "0", "1", ""},
    {"1e", "9", "", ""},
    {"0x", "_1", "", "limit"},
    {"", " ", "", ""},
    {"", "\t", "x", "syntax"},
    {"", "\n", "", ""},
    {"", "\r", "", ""},
    {"", "#", "", ""},
    {"", "#\n", "", ""},
    {"", "\\\n", "x", ""},
    {"x = ", ")", "", "syntax"},
    {"", "\f", "", ""},
    {"# ", "\xF0\x9F\x98\x80", "", ""},
    {"", "...", "", "syntax"},
    {"", "not in ", "", "syntax"},
};

TEST(Hostile, EndsCleanlyAtTheLimitOfBytes) {
    on_small_stack(stack, [] {
        const Limits limits;
        for (const Hostile& row : hostile) {
            SCOPED_TRACE(std::string(row.begin) + row.part + "...");
            const std::string_view begin(row.begin), part(row.part), end(row.end);
            const std::size_t times = (limits.bytes - begin.size() - end.size()) / part.size();
            const std::string text = std::string(begin) + repeat(part, times) + std::string(end);
            const auto result = parse(text, limits);
            EXPECT_EQ(result ? "" : result.error().kind, row.kind) << (result ? "" : result.error().message);
            if (!result) continue;
            const auto again =
                parse(print(**result), Limits{limits.bytes * 8, limits.nodes, limits.depth, limits.height});
            ASSERT_TRUE(again);
            EXPECT_TRUE(equal(**result, **again));
        }
    });
}

TEST(Hostile, IndentationDeeperLineByLine) {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += std::string(static_cast<std::size_t>(i), ' ') + "if a:\n";
    const auto result = parse(text);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, "limit");
}

/// The same shapes just inside the limits: the tree is parsed, printed, compared and destroyed on the small stack.
TEST(Hostile, TheHighestTreesThatPassAreSafe) {
    on_small_stack(stack, [] {
        const Limits limits;
        const auto height = static_cast<std::size_t>(limits.height), depth = static_cast<std::size_t>(limits.depth);
        const std::string texts[] = {
            "x = a" + repeat("+a", height - 4) + "\n",
            "x = a" + repeat(".b", height - 4) + "\n",
            "x = a" + repeat("()", height - 4) + "\n",
            "if a: b\n" + repeat("elif a: b\n", height - 4),
            "x = " + repeat("(", depth - 1) + "a" + repeat(")", depth - 1) + "\n",
            "x = " + repeat("-", depth - 1) + "a\n",
            "x = " + repeat("not ", depth - 1) + "a\n",
            "x = " + repeat("2**", depth - 1) + "a\n",
            "x = " + repeat("lambda: ", depth - 1) + "a\n",
            "x = " + repeat("a if a else ", depth - 1) + "a\n",
            "x = " + repeat("[f(*a[b:lambda c=", depth / 4) + "1" + repeat(": d])]", depth / 4) + "\n",
        };
        for (const std::string& text : texts) {
            SCOPED_TRACE(text.substr(0, 40));
            const auto result = parse(text);
            ASSERT_TRUE(result) << result.error().message;
            const auto again = parse(print(**result));
            ASSERT_TRUE(again) << again.error().message;
            EXPECT_TRUE(equal(**result, **again));
        }
    });
}

TEST(Hostile, ChainsUnderChainsCountTogether) {
    const std::string chain = "(a" + repeat("+a", 900) + ")";
    const auto result = parse("x = " + chain + repeat(".b", 900) + "\n");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, "limit");
}

TEST(Hostile, LimitsAreTheCallers) {
    Limits limits;
    limits.bytes = 4;
    EXPECT_TRUE(parse("x=1\n", limits));
    EXPECT_EQ(parse("x=10\n", limits).error().kind, "limit");
    limits = {};
    limits.nodes = 4;
    EXPECT_TRUE(parse("x=1\n", limits));
    EXPECT_EQ(parse("x=1\ny", limits).error().kind, "limit");
    limits = {};
    limits.depth = 2;
    EXPECT_TRUE(parse("((x))\n", limits));
    EXPECT_EQ(parse("(((x)))\n", limits).error().kind, "limit");
    limits = {};
    limits.height = 4;
    EXPECT_TRUE(parse("a+b\n", limits));
    EXPECT_EQ(parse("a+b+c\n", limits).error().kind, "limit");
}

} // namespace
} // namespace cubridge::ir::syntax
