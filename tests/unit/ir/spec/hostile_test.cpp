// Texts made to take more than a parse is given: loops, doublings, chains, nests, huge numbers. Each ends in an Error
// or in a Specification, within its work, on a thread with a small stack. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/specification.h"
#include "tests/unit/ir/small_stack.h"
#include <chrono>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace cubridge::ir {
namespace {

namespace fs = std::filesystem;

// What docs/specification.md promises to callers.
constexpr std::size_t stack = kSanitized ? 8u << 20 : 1u << 20;

std::string repeat(const std::string& part, std::size_t times) {
    std::string text;
    for (std::size_t i = 0; i < times; ++i) text += part;
    return text;
}

/// "{n}" in `part` is the number of the repetition.
std::string numbered(const std::string& part, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) {
        std::string p = part;
        for (std::size_t at; (at = p.find("{n}")) != std::string::npos;) p.replace(at, 3, std::to_string(i));
        text += p;
    }
    return text;
}

/// The statements between scores and output.
std::string attention(const std::string& parameters, const std::string& body) {
    return "import torch\nimport math\ndef attention(q, k, v" + parameters + "):\n    s = q @ k.transpose(-2, -1)\n" +
           body + "    return s.softmax(-1) @ v\n";
}

struct Hostile {
    const char* name;
    std::string text;
};

std::vector<Hostile> hostile() {
    return {
        {"doubles", attention("", "    for i in range(40):\n        s = s + torch.tanh(s)\n")},
        {"doubles by product", attention("", "    for i in range(1000):\n        s = s * s + 1\n")},
        {"long loop", attention("", "    for i in range(100000):\n        s = s + i\n")},
        {"loop over tanh", attention("", "    for i in range(100000):\n        s = torch.tanh(s)\n")},
        {"nested loops",
         attention("", "    for i in range(1000):\n        for j in range(1000):\n            x = i + j\n")},
        {"while", attention("", "    x = 0\n    while True:\n        x = x + 1\n")},
        {"comprehension", attention("", "    x = [i + j for i in range(3000) for j in range(3000)]\n")},
        {"chain of where", attention("", numbered("    s = torch.where(s > {n}, s * {n}.5, s - {n})\n", 300))},
        {"chain of positions",
         attention("", "    i = torch.arange(q.size(2))[:, None]\n    j = torch.arange(k.size(2))[None, :]\n" +
                           numbered("    s = torch.where((i - j > {n}) & (i + j < 3 * {n}), s, s * 2)\n", 200))},
        {"or of ands",
         attention(
             "",
             "    i = torch.arange(q.size(2))[:, None]\n    j = torch.arange(k.size(2))[None, :]\n    m = i >= j\n" +
                 numbered("    m = (m | (i * {n} > j)) & (m | (i + {n} < j * 3))\n", 60) +
                 "    s = torch.where(m, s, -math.inf)\n")},
        {"max and min",
         attention(", a: int, b: int", "    n = k.size(2)\n" + numbered("    n = max(min(n - a, {n}), b - n)\n", 60) +
                                           "    s = s[..., :n]\n")},
        {"nest of max",
         attention(", a: int, b: int",
                   "    i = torch.arange(q.size(2))[:, None]\n    j = torch.arange(k.size(2))[None, :]\n    x = i\n" +
                       numbered("    x = torch.maximum(torch.minimum(x - a, j - {n}), b - x)\n", 40) +
                       "    s = torch.where(x > 0, s, -math.inf)\n")},
        {"unknown ranks",
         [] {
             std::string parameters, use;
             for (int i = 0; i < 36; ++i)
                 parameters += ", p" + std::to_string(i), use += "    s = s + p" + std::to_string(i) + "[:, None]\n";
             return attention(parameters, use);
         }()},
        {"too many parameters", attention(numbered(", p{n}", 60), numbered("    s = s + p{n}\n", 60))},
        {"branches on sizes", attention("", numbered("    if q.size(2) > {n}:\n        s = s * 2\n", 40))},
        {"branches in a loop",
         attention("", "    for i in range(1000):\n        if k.size(2) % (i + 2) == 1:\n            s = s + i\n")},
        {"views", attention("", "    for i in range(2000):\n        s = s.view(s.size(0), -1, "
                                "s.size(-1)).view(q.size(0), q.size(1), q.size(2), -1)\n")},
        {"division chain",
         attention("", numbered("    n = (k.size(2) + {n}) // 3 * 2 % (q.size(2) + {n})\n    s = s + n\n", 200))},
        {"powers", attention("", "    n = k.size(2)\n    for i in range(60):\n        n = n ** 16\n    s = s * n\n")},
        {"powers of one",
         attention("", "    n = k.size(2)\n    for i in range(60):\n        n = (n * n) % 7\n    s = s * n\n")},
        {"large constants",
         attention("",
                   "    s = s * (9223372036854775807 - k.size(2)) + (k.size(2) * -9223372036854775807 - 1) // -1\n")},
        {"huge range",
         attention("", "    for i in range(-9223372036854775807 - 1, 9223372036854775807, 3):\n        s = s + i\n")},
        {"huge step", attention("", "    for i in range(9223372036854775807, -9223372036854775807 - 1, "
                                    "-9223372036854775807 - 1):\n        s = s + i % 2\n")},
        {"huge slice step", attention("", "    x = [1, 2, 3][1::9223372036854775807]\n    s = s + x[0]\n")},
        {"huge arange", attention("", "    s = s + torch.arange(1 << 30 if False else 1000000000)[0]\n")},
        {"huge tensors",
         attention("",
                   "    s = s + torch.ones(2000, 2000, dtype=torch.float32).matmul(torch.ones(2000, 2000))[0, 0]\n")},
        {"table by table",
         attention("", "    x = torch.arange(1500)\n    y = (x[:, None] * x[None, :]).sum()\n    s = s + y % 2\n")},
        {"list repeated", attention("", "    x = [1, 2, 3, 4] * 4611686018427387904\n    s = s + len(x)\n")},
        {"list doubled",
         attention("", "    x = [1]\n    for i in range(60):\n        x = x + x\n    s = s + len(x)\n")},
        {"list nested", attention("", "    x = []\n    for i in range(90000):\n        x = [x]\n    s = s + len(x)\n")},
        {"list of lists",
         attention("", "    x = [1]\n    for i in range(60):\n        x = [x, x]\n    s = s + (1 if x == x else 2)\n")},
        {"list in itself", attention("", "    x = []\n    x.append(x)\n    s = s + len(x)\n")},
        {"list in its function", attention("", "    x = []\n    x.append(lambda y=x: y)\n    s = s + len(x)\n")},
        {"defaults nested",
         attention("", "    f = lambda: 1\n    for i in range(90000):\n        f = lambda g=f: 1\n    s = s + f()\n")},
        {"methods nested",
         attention("", "    x = []\n    for i in range(90000):\n        x = [x.append]\n    s = s + len(x)\n")},
        {"slices nested", attention("", "    x = 1\n    for i in range(90000):\n        x = slice(x)\n")},
        {"table of tables",
         attention("",
                   "    x = [1, 2]\n    for i in range(30):\n        x = [x, x]\n    s = s + torch.tensor(x).sum()\n")},
        {"recursion",
         "def f(x, n):\n    return x if n == 0 else f(x + 1, n - 1)\n" + attention("", "    s = f(s, 1000)\n")},
        {"calls in calls",
         "def g0(x): return x\n" + numbered("def g1{n}(x): return x\n", 1) +
             attention("", "    f = lambda x: x\n" + repeat("    f = (lambda g: lambda x: g(g(x)))(f)\n", 40) +
                               "    s = f(s)\n")},
        {"deep calls", attention("", "    f = lambda n, x: x if n == 0 else (((((((((((((((((((f(n - 1, "
                                     "x))))))))))))))))))))\n    s = f(60, s)\n")},
        {"deep expression", attention("", "    s = " + repeat("torch.tanh(", 60) + "s" + repeat(")", 60) + "\n")},
        {"deep integers", attention("", "    i = torch.arange(q.size(2))[:, None]\n    x = i\n    for n in "
                                        "range(1900):\n        x = (x // 3 + 1) % (n + 5)\n    s = s + x\n")},
        {"reductions",
         attention("",
                   "    for i in range(40):\n        s = s + s.sum(-1, keepdim=True) * s.amax(-1, keepdim=True)\n")},
        {"cumsum", attention("", "    for i in range(30):\n        s = s.cumsum(-1)\n")},
        {"cat",
         attention("", "    for i in range(12):\n        s = torch.cat([s, s * 2], -1)\n    s = s[..., :k.size(2)]\n")},
        {"sorts", attention("", "    for i in range(20):\n        s = s + s.argsort(-1).argsort(-1)\n")},
        {"masks of masks",
         attention("", "    for i in range(30):\n        s = s.masked_fill(s.softmax(-1) > 0.5, -math.inf)\n")},
        {"softmax of softmax", attention("", "    for i in range(40):\n        s = s.softmax(-1)\n")},
        {"tall", attention("", "    for i in range(700):\n        s = torch.tanh(s)\n")},
        {"tall integers", attention("", "    x = torch.arange(q.size(2))[:, None]\n    for n in range(260):\n        x "
                                        "= (x // 3 + 1) % (n + 5)\n    s = s + x\n")},
        {"tall where", attention("", "    for i in range(230):\n        s = torch.where(s > i, torch.tanh(s), i)\n")},
        {"calls by depth", attention("", "    f = lambda n, x: x if n == 0 else " + repeat("-(", 40) + "f(n - 1, x)" +
                                             repeat(")", 40) + "\n    s = f(12, s)\n")},
        {"calls by blocks", "def f(n, x):\n" +
                                [] {
                                    std::string s, in = "    ";
                                    for (int i = 0; i < 18; ++i) s += in + "if n > -1:\n", in += "    ";
                                    return s + in + "return x if n == 0 else f(n - 1, x) * 1.5\n";
                                }() +
                                attention("", "    s = f(26, s)\n")},
        {"calls by calls", attention("", "    f = lambda n, x: x if n == 0 else " + repeat("max(0, ", 40) +
                                             "f(n - 1, x)" + repeat(")", 40) + "\n    s = s + f(13, 1)\n")},
        {"products of sums", attention("", "    n = k.size(2)\n    m = q.size(2)\n    for i in range(60):\n        n, "
                                           "m = (n + 1) * (m + 2), (n + 3) * (m + i)\n    s = s * n\n")},
    };
}

struct Outcome {
    std::string kind; ///< of the Error; empty: a Specification
    std::string message;
    double seconds = 0;
    std::uint64_t work = 0;
};

Outcome parse(const std::string& text) {
    Outcome o;
    on_small_stack(stack, [&] {
        const auto begin = std::chrono::steady_clock::now();
        const auto s = Specification::parse({text, "attention", "", {}});
        o.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (s)
            o.work = (*s)->work();
        else
            o.kind = s.error().kind, o.message = s.error().message;
    });
    return o;
}

TEST(Hostile, EndsWithinItsWork) {
    for (const Hostile& h : hostile()) {
        const Outcome o = parse(h.text);
        SCOPED_TRACE(h.name);
        EXPECT_NE(o.kind, "internal") << o.message;
        EXPECT_LE(o.work, ParseOptions::kParseWork);
        if (std::getenv("CUBRIDGE_HOSTILE_TIMES"))
            std::printf("%6.3f s %8llu %-8s %s: %s\n", o.seconds, static_cast<unsigned long long>(o.work),
                        o.kind.c_str(), h.name, o.message.c_str());
    }
}

TEST(Hostile, LittleWorkIsRefusedAsALimit) {
    ParseOptions little;
    little.work = 100;
    const auto s = Specification::parse({attention("", ""), "attention", "", {}}, little);
    ASSERT_FALSE(s);
    EXPECT_EQ(s.error().kind, "limit");
}

// Texts as people write them stay far from the limit.
TEST(Hostile, CorpusTakesLittleWork) {
    std::uint64_t most = 0;
    std::string which;
    for (const char* folder : {"tests/corpus/respell", "tests/corpus/near"})
        for (const auto& f : fs::recursive_directory_iterator(folder)) {
            if (f.path().extension() != ".py") continue;
            std::ostringstream text;
            text << std::ifstream(f.path()).rdbuf();
            for (const char* function : {"attention", "score_mod", "mask_mod"}) {
                const auto s = Specification::parse({text.str(), function, "", {}});
                if (s && (*s)->work() > most) most = (*s)->work(), which = f.path().string();
            }
        }
    EXPECT_GT(most, 0u);
    EXPECT_LT(most, ParseOptions::kParseWork / 5) << which;
    RecordProperty("most", std::to_string(most));
    if (std::getenv("CUBRIDGE_HOSTILE_TIMES"))
        std::printf("most work of the corpus: %llu, %s\n", static_cast<unsigned long long>(most), which.c_str());
}

// What fuzzing found once.
TEST(Hostile, Findings) {
    for (const auto& f : fs::directory_iterator("tests/fuzz/findings")) {
        std::ostringstream text;
        text << std::ifstream(f.path()).rdbuf();
        SCOPED_TRACE(f.path().string());
        const Outcome o = parse(text.str());
        EXPECT_NE(o.kind, "internal") << o.message;
    }
}

} // namespace
} // namespace cubridge::ir
