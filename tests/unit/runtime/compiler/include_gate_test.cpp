// Every way found so far to make a compiler read a file, and the text that must go on passing.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler/include_gate.h"
#include <gtest/gtest.h>

namespace cubridge::runtime {
namespace {

const std::vector<std::string> allowed = {"cubridge_kernel.h", "cuda_fp16.h"};

/// "" where it passes, else the message.
std::string verdict(std::string_view source) {
    const auto outcome = include_gate(source, allowed);
    if (outcome) return {};
    EXPECT_EQ(outcome.fault().kind, "gate");
    return outcome.fault().message;
}

struct Case {
    const char* what;
    std::string_view source;
    const char* starts; ///< the message; empty: it passes
};

template <std::size_t n> constexpr std::string_view whole(const char (&text)[n]) {
    return {text, n - 1};
} // with its NULs

class Refused : public testing::TestWithParam<Case> {};
TEST_P(Refused, NamesTheLine) {
    const auto message = verdict(GetParam().source);
    EXPECT_EQ(message.substr(0, std::string_view(GetParam().starts).size()), GetParam().starts)
        << GetParam().what << " gave: " << message;
    EXPECT_FALSE(message.empty()) << GetParam().what;
}

const Case refused[] = {
    {"absolute name", "int a;\n#include \"/etc/passwd\"\n", "line 2: the header \"/etc/passwd\""},
    {"angle brackets", "#include </etc/passwd>\n", "line 1: the header"},
    {"relative name", "#include \"../../etc/passwd\"\n", "line 1: the header"},
    {"a path to an allowed name", "#include \"/tmp/cubridge_kernel.h\"\n", "line 1: the header"},
    {"no newline at the end", "#include \"/etc/passwd\"", "line 1: the header"},
    {"blanks and tabs", " \t # \t include \t \"/etc/passwd\"\n", "line 1: the header"},
    {"comment before", "/* x */ #include \"/etc/passwd\"\n", "line 1: the header"},
    {"comment over lines before", "/* x\n */ #include \"/etc/passwd\"\n", "line 2: the header"},
    {"comment over lines after code", "int a; /* x\n */ #include \"/etc/passwd\"\n", "line 2: the header"},
    {"comments inside", "#/**/include/**/\"/etc/passwd\"\n", "line 1: the header"},
    {"splice in the word", "#inc\\\nlude \"/etc/passwd\"\n", "line 1: the header"},
    {"splice with CR LF", "#inc\\\r\nlude \"/etc/passwd\"\r\n", "line 1: the header"},
    {"splice after the hash", "#\\\n\\\ninclude \"/etc/passwd\"\n", "line 3: the header"},
    {"splice before the hash", "\\\n#include \"/etc/passwd\"\n", "line 2: the header"},
    {"splice in the name", "#include <cuda_fp16\\\n.h/../passwd>\n", "line 1: the header"},
    {"splice ends a line comment", "// x \\\\\n\n#include \"/etc/passwd\"\n", "line 3: the header"},
    {"splice and blank", "#inc\\ \nlude \"/etc/passwd\"\n", "line 1: a backslash"},
    {"digraph", "%:include \"/etc/passwd\"\n", "line 1: the header"},
    {"digraph spliced", "%\\\n:include \"/etc/passwd\"\n", "line 2: the header"},
    {"trigraph", "?\?=include \"/etc/passwd\"\n", "line 1: a trigraph"},
    {"trigraph splice", "#inc?\?/\nlude \"/etc/passwd\"\n", "line 1: a trigraph"},
    {"macro", "#define H \"/etc/passwd\"\n#include H\n", "line 2: #include needs a name"},
    {"macro call", "#define H(x) <x>\n#include H(/etc/passwd)\n", "line 2: #include needs a name"},
    {"the word by macro", "#define I include\n#I \"/etc/passwd\"\n", "line 2: the directive #I"},
    {"nothing after it", "#include\n", "line 1: #include needs a name"},
    {"unclosed name", "#include <cuda_fp16.h\n>", "line 1: #include needs a name"},
    {"junk after the name", "#include <cuda_fp16.h> \"/etc/passwd\"\n", "line 1: nothing may follow"},
    {"a second include by comment", "#include <cuda_fp16.h> /*\n*/ #include \"/etc/passwd\"\n", "line 1: a comment"},
    {"inside a macro's definition", "#define X /*\n*/ #include \"/etc/passwd\"\n", "line 2: a comment over"},
    {"inside a call", "f(\n#include \"/etc/passwd\"\n)\n", "line 2: the header"},
    {"in a dead region", "#if 0\n#include \"/etc/passwd\"\n#endif\n", "line 2: the header"},
    {"include_next", "#include_next <cuda_fp16.h>\n", "line 1: the directive #include_next"},
    {"import", "#import \"/etc/passwd\"\n", "line 1: the directive #import"},
    {"embed", "const char x[] = {\n#embed \"/etc/passwd\"\n};\n", "line 2: the directive #embed"},
    {"embed by digraph", "%:embed \"/etc/passwd\"\n", "line 1: the directive #embed"},
    {"ident, assert", "#assert machine(x)\n", "line 1: the directive #assert"},
    {"line with a name", "#line 1 \"kernel.cu\"\n", "line 1: the directive #line"},
    {"line marker", "# 1 \"kernel.cu\"\n", "line 1: a line marker"},
    {"line by macro", "#define L line\n#L 7\n", "line 2: the directive #L"},
    {"has_include", "#if __has_include(\"/etc/passwd\")\n#endif\n", "line 1: the header"},
    {"has_include angled", "#if 1 && __has_include ( </etc/passwd> )\n#endif\n", "line 1: the header"},
    {"has_include of a macro", "#define H \"/etc/passwd\"\n#if __has_include(H)\n#endif\n",
     "line 2: __has_include needs"},
    {"has_include under a name", "#define H __has_include\n", "line 1: __has_include is not allowed"},
    {"has_include spliced", "#if __has_\\\ninclude(\"/etc/passwd\")\n#endif\n", "line 2: the header"},
    {"has_include pasted",
     "#define C(a, b) a##b\n#define D(a, b) C(a, b)\n#if D(__ha, s_include)(\"/etc/passwd\")\n#endif\n",
     "line 3: #if may not use the macro D"},
    {"has_include pasted under a name",
     "#define C(a, b) a%:%:b\n#define Q C(__ha, s_include)(\"/etc/passwd\")\n#if 1\n#elif Q\n#endif\n",
     "line 4: #if may not use the macro Q"},
    {"has_include pasted by a header's macro", "#if PASTE(__ha, s_include)(\"/etc/passwd\")\n#endif\n",
     "line 1: #if may not call PASTE"},
    {"has_embed", "#if __has_embed(\"/etc/passwd\")\n#endif\n", "line 1: __has_embed"},
    {"defined of it", "#if defined(__has_include)\n#endif\n", "line 1: defined needs"},
    {"pragma include_alias", "#pragma include_alias(<a.h>, </etc/passwd>)\n", "line 1: the pragma \"include_alias\""},
    {"pragma dependency", "#pragma GCC dependency \"/etc/passwd\"\n", "line 1: the pragma \"GCC\""},
    {"pragma operator", "_Pragma(\"GCC dependency \\\"/etc/passwd\\\"\") int a;\n", "line 1: this _Pragma"},
    {"pragma operator by macro", "#define P(x) _Pragma(#x)\n", "line 1: this _Pragma"},
    {"assembler include", "void f() { asm(\".include \\\"/etc/passwd\\\"\"); }\n", "line 1: .include"},
    {"assembler incbin", "void f() { asm(\"x;\\n.incbin \\\"/etc/passwd\\\"\"); }\n", "line 1: .incbin"},
    {"assembler, escaped", "void f() { asm(\"\\x2e\\151nclude 'x'\"); }\n", "line 1: .include"},
    {"assembler, escaped by name", "void f() { asm(\"\\u002einclude 'x'\"); }\n", "line 1: .include"},
    {"assembler, escaped for another compiler", "void f() { asm(\"\\N{FULL STOP}include 'x'\"); }\n",
     "line 1: an escape"},
    {"assembler, joined", "void f() { asm(\".incl\"\n  /* */ \"ude 'x'\"); }\n", "line 2: .include"},
    {"assembler, joined over a directive", "void f() { asm(\".incl\"\n#if 1\n\"ude 'x'\"\n#endif\n); }\n",
     "line 2: a directive may not follow"},
    {"assembler, raw", "void f() { asm(R\"x(.include \"/etc/passwd\")x\"); }\n", "line 1: .include"},
    {"assembler, in a macro", "#define L \".include 'x'\"\n", "line 1: .include"},
    {"assembler, stringised", "#define S(x) #x\nvoid f() { asm(S(.include \"/etc/passwd\")); }\n",
     "line 2: the text of an asm"},
    {"assembler, argument of a macro", "#define A(x) asm(x)\n", "line 1: the text of an asm"},
    {"assembler, partly a macro", "void f() { asm volatile(\"a\" B \"c\"); }\n", "line 1: the text of an asm may"},
    {"assembler, tokens", "X(.include \"/etc/passwd\")\n", "line 1: .include"},
    {"hidden behind a raw string", "R\"(\n)\" ;\n#include \"/etc/passwd\"\n", "line 3: the header"},
    {"raw string that only looks like one", "fooR\"(\"\n#include \"/etc/passwd\"\n//)\"\n", "line 2:"},
    {"spliced raw prefix", "R\\\n\"(\" \n#include \"/etc/passwd\"\n)\"\n", "line 2: a raw string over"},
    {"raw string over a directive", "#if 0\nR\"(\n#endif\n#include \"/etc/passwd\"\n)\"\n#endif\n",
     "line 2: a raw string"},
    {"raw string over a digraph", "R\"(\n%:include \"/etc/passwd\"\n)\"\n", "line 1: a raw string"},
    {"raw delimiter", "R\"a b(\n)a b\"", "line 1: a raw string has no"},
    {"raw string without end", "R\"(x", "line 1: a raw string does not end"},
    {"quotes in a dead region", "#if 0\n\" /*\n#endif\n#include \"/etc/passwd\"\n/* \"\n#endif\n", "line 2: a literal"},
    {"apostrophe in a dead region", "#if 0\nit's /*\n#endif\n#include \"/etc/passwd\"\n// */\n#endif\n",
     "line 2: a literal"},
    {"comment mark in a literal", "const char* a = \"/*\";\n#include \"/etc/passwd\"\n// */\n", "line 2: the header"},
    {"quote in a character", "char a = '\"';\n#include \"/etc/passwd\"\nchar b = '\"';\n", "line 2: the header"},
    {"escaped quote", "const char* a = \"\\\\\";\n#include \"/etc/passwd\"\n//\"\n", "line 2: the header"},
    {"digit separator", "int a = 1'0;\n#include \"/etc/passwd\"\nint b = 1'0;\n", "line 2: the header"},
    {"comment without end", "int a; /* x\n", "line 1: a comment does not end"},
    {"universal name", "#\\u0069nclude \"/etc/passwd\"\n", "line 1: a backslash outside"},
    {"universal name of the hash", "\\u0023include \"/etc/passwd\"\n", "line 1: a backslash outside"},
    {"full-width hash", "int a;\n\xef\xbc\x83include \"/etc/passwd\"\n", "line 2: only comments"},
    {"byte order mark", "\xef\xbb\xbf#include \"/etc/passwd\"\n", "line 1: only comments"},
    {"letter that looks like i", "#\xd1\x96nclude \"/etc/passwd\"\n", "line 1: only comments"},
    {"lone CR", "// x\r#include \"/etc/passwd\"\n", "line 1: a carriage return"},
    {"CR at the end", "int a;\r", "line 1: a carriage return"},
    {"vertical tab", "\x0b#include \"/etc/passwd\"\n", "line 1: a control character"},
    {"form feed", "\x0c#include \"/etc/passwd\"\n", "line 1: a control character"},
    {"NUL", whole("int a;\n\0#include \"/etc/passwd\"\n"), "line 2: a control character"},
    {"NUL in a comment", whole("/* \0 */"), "line 1: a control character"},
    {"not UTF-8", "// \xff\n", "line 1: the text is not UTF-8"},
    {"cut UTF-8", "// \xe2\x82", "line 1: the text is not UTF-8"},
    {"overlong", "// \xc0\xa3include\n", "line 1: the text is not UTF-8"},
};
INSTANTIATE_TEST_SUITE_P(Gate, Refused, testing::ValuesIn(refused));

TEST(IncludeGate, LetsKernelsPass) {
    EXPECT_EQ(verdict(""), "");
    EXPECT_EQ(verdict("#include <cuda_fp16.h>\n#include \"cubridge_kernel.h\"\n"), "");
    EXPECT_EQ(verdict("  #  include <cuda_fp16.h> // why\r\n"), "");
    EXPECT_EQ(verdict("#include <cuda_fp\\\n16.h> /* why */\n"), "");
    EXPECT_EQ(verdict("#if __has_include(<cuda_fp16.h>)\n#endif\n"), "");
    EXPECT_EQ(verdict("#define N 64\n#define M (N)\n#if N > 32 && defined(M) && __CUDA_ARCH__ >= 900\n#endif\n"), "");
    EXPECT_EQ(verdict("#define CAT(a, b) a##b\nint CAT(x, y);\n#ifdef CAT\n#else\n#endif\n#undef CAT\n"), "");
    EXPECT_EQ(verdict("#pragma unroll\n#pragma unroll 4\n#pragma nv_diag_suppress 177\n"), "");
    EXPECT_EQ(verdict("#define UNROLL _Pragma(\"unroll 4\")\nUNROLL for (;;) {}\n"), "");
    EXPECT_EQ(
        verdict(
            "asm volatile(\"{ add.u32 %0, %1, 1; }\\n\"\n  \"// #include\\n\" : \"=r\"(x) : \"r\"(y) : \"memory\");\n"),
        "");
    EXPECT_EQ(verdict("asm volatile(\"bar.sync 0;\" ::: \"memory\");\n"), "");
    EXPECT_EQ(verdict("const char* a = \"#include \\\"/etc/passwd\\\"\"; // #include \"/etc/passwd\"\n"), "");
    EXPECT_EQ(verdict("/*\n#include \"/etc/passwd\"\n*/\n//| #include of a margin\n"), "");
    EXPECT_EQ(verdict("const char* a = R\"x(plain\nlines)x\"; // \xc3\xa9\xe2\x82\xac\n"), "");
    EXPECT_EQ(verdict("float a = 1e+3f, b = .5f, c = 0x1p-3f; int d = 1'000'000; char e = '\\'', f = '\\\\';\n"), "");
    EXPECT_EQ(verdict("s.x = t.includes; int include = s . y; // names are no directives\n"), "");
    EXPECT_EQ(verdict("#\n#error \"no\"\n"), "");
}

TEST(IncludeGate, AllowsNothingWithoutAList) {
    EXPECT_FALSE(include_gate("#include <cuda_fp16.h>\n", {}));
}

TEST(IncludeGate, TakesLinearTime) {
    std::string text;
    for (int i = 0; i < 100000; ++i) text += "\"a\" \\\n\"b\"\n";
    EXPECT_EQ(verdict(text), "");
    EXPECT_NE(verdict(std::string(9u << 20u, ' ')), "");
    std::string comments;
    for (int i = 0; i < 100000; ++i) comments += "/*\\ x/*'\" R\"( */ '/' ";
    EXPECT_EQ(verdict(comments), "");
}

} // namespace
} // namespace cubridge::runtime
