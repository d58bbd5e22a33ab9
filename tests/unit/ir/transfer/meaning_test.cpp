// Programs of the visible specifications, executed: what they compute is what the specification says.
// SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/execute.h"
#include "ir/transfer/reference.h"
#include "tests/unit/ir/transfer/corpus.h"
#include "tests/unit/sample.h"
#include <cmath>
#include <cstdio>
#include <ctime>
#include <gtest/gtest.h>

namespace {

using namespace cubridge::ir;
using namespace cubridge::ir::transfer;
using namespace cubridge::ir::transfer::test;

/// What a text reads through where(j < x0[b], v, 0) may be anything beyond the length.
void forget_unused_rows(cuir::Run& r) {
    const auto& lengths = r.inputs.at("x0");
    for (const char* tensor : {"K", "V"}) {
        auto& t = r.inputs.at(tensor);
        for (std::size_t k = 0; k < t.values.size(); ++k) {
            const auto row = static_cast<std::int64_t>(k) / t.shape[3] % t.shape[2];
            const auto b = k / static_cast<std::size_t>(t.shape[1] * t.shape[2] * t.shape[3]);
            if (static_cast<double>(row) >= lengths.values[b]) t.values[k] = std::nan("");
        }
    }
}

bool run(const Case& c, const Request& request, bool unused_rows_are_nan = false,
         const cuir::Program& from = expert()) {
    const auto s = Specification::parse(c.source, c.options);
    if (!s) ADD_FAILURE() << c.name << ": " << s.error().message;
    if (!s || !(*s)->has_variant()) return false;
    const auto t = transfer::transfer(from, target_of(**s, request));
    if (!t) return false; // the golden text says why
    const std::string text = cuir::print(t->program);
    const auto program = cuir::read(text);
    if (!program) ADD_FAILURE() << program.error().message;
    if (!program) return false;
    for (const auto& f : cuir::check(*program)) {
        ADD_FAILURE() << "static";
        std::printf("%s: static %s\n%s\n", c.name.c_str(), f.text().c_str(), text.c_str());
    }
    for (const auto& e : experts::all())
        if (program->main() && program->main()->attribute("expert") == e.name) {
            const auto cuda = lower::lower(e.text, *program);
            EXPECT_TRUE(cuda) << c.name << ": " << cuda.error().message;
            if (cuda) {
                EXPECT_EQ(lower::read_back(e.text, cuda->cuda, *program), std::vector<std::string>{}) << c.name;
            }
        }
    auto trial = trial_of(*program, **s, 7);
    if (!trial) ADD_FAILURE() << c.name << ": " << trial.error().message;
    if (!trial) return false;
    if (unused_rows_are_nan)
        for (auto& r : trial->runs) forget_unused_rows(r);
    const auto start = std::clock();
    const auto findings = cuir::verify(*program, *trial, reference_of(**s, request));
    const double took = 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    for (const auto& f : findings) ADD_FAILURE() << c.name << ": " << f.kind << ": " << f.text();
    if (!findings.empty()) std::printf("%s\n", text.c_str());
    std::printf("%-60s %zu runs, %.0f ms\n", c.name.c_str(), trial->runs.size(), took);
    return findings.empty();
}

Case written(const std::string& name, const std::string& body, const std::string& parameters = "") {
    Case c;
    c.name = name;
    c.source.text = "import torch\n\n\ndef attention(q, k, v" + parameters + "):\n" +
                    "    g = q.size(1) // k.size(1)\n"
                    "    k = k.repeat_interleave(g, 1)\n    v = v.repeat_interleave(g, 1)\n"
                    "    s = q @ k.transpose(-1, -2) * q.size(-1) ** -0.5\n"
                    "    n, m = q.size(2), k.size(2)\n"
                    "    i = torch.arange(n)[:, None]\n    j = torch.arange(m)[None, :]\n" +
                    body;
    c.request.head_dim = c.request.head_dim_v = 128;
    return c;
}

TEST(TransferMeaningTest, AsWritten) {
    if (!fs::exists(specifications() / "paper")) GTEST_SKIP() << "no folder of specifications here";
    cubridge::test::Sample sample;
    for (const Case& c : cases()) {
        const char* only = std::getenv("CUBRIDGE_ONLY");
        if (only ? c.name.find(only) != std::string::npos : !sample.skips()) run(c, c.request);
    }
}

TEST(TransferMeaningTest, AsWrittenForHopper) {
    if (!fs::exists(specifications() / "paper")) GTEST_SKIP() << "no folder of specifications here";
    int made = 0;
    cubridge::test::Sample sample;
    for (const Case& c : cases()) {
        const char* only = std::getenv("CUBRIDGE_ONLY");
        if (only ? c.name.find(only) != std::string::npos : !sample.skips())
            made += run(c, c.request, false, hopper()) ? 1 : 0;
    }
    EXPECT_GE(made, std::getenv("CUBRIDGE_ONLY") != nullptr ? 1 : cubridge::test::at_least(54));
}

TEST(TransferMeaningTest, WithLse) {
    if (!fs::exists(specifications() / "paper")) GTEST_SKIP() << "no folder of specifications here";
    int made = 0, on_hopper = 0;
    bool hoppers = false; // turns: each case is tried on both experts, with one base on each
    cubridge::test::Sample sample;
    for (const Case& c : cases()) {
        if (sample.skips()) continue;
        hoppers = !hoppers;
        for (const auto base : {Request::Lse::Natural, Request::Lse::Log2}) {
            Request r = c.request;
            r.lse = base;
            r.empty_rows = base == Request::Lse::Log2 ? Request::EmptyRows::Zero : Request::EmptyRows::AsWritten;
            if ((base == Request::Lse::Log2) == hoppers)
                on_hopper += run(c, r, false, hopper()) ? 1 : 0;
            else
                made += run(c, r) ? 1 : 0;
        }
    }
    EXPECT_GE(made, cubridge::test::at_least(40));
    EXPECT_GE(on_hopper, cubridge::test::at_least(40));
}

TEST(TransferMeaningTest, OtherSizesAndTypes) {
    if (!fs::exists(specifications() / "paper")) GTEST_SKIP() << "no folder of specifications here";
    cubridge::test::Sample sample;
    for (const Case& c : cases()) {
        if (c.name.find("causal_gqa__0") == std::string::npos && c.name.find("sigmoid__0") == std::string::npos &&
            c.name.find("differential_attention__0") == std::string::npos)
            continue;
        for (const auto& [d, dv] : {std::pair{64, 64}, {256, 256}, {192, 128}, {72, 72}, {8, 24}, {64, 256}}) {
            Request r = c.request;
            r.head_dim = d, r.head_dim_v = dv;
            r.q_dtype = r.kv_dtype = r.o_dtype = DType::F16;
            if (sample.skips()) continue;
            EXPECT_TRUE(run(c, r)) << c.name << " " << d << " " << dv;
            EXPECT_TRUE(run(c, r, false, hopper())) << c.name << " " << d << " " << dv;
        }
    }
}

TEST(TransferMeaningTest, RowsBeyondALengthMayBeNaN) {
    if (!fs::exists(specifications() / "paper")) GTEST_SKIP() << "no folder of specifications here";
    for (const Case& c : cases())
        if (c.name.find("encoder") != std::string::npos) {
            EXPECT_TRUE(run(c, c.request, true)) << c.name;
            EXPECT_TRUE(run(c, c.request, true, hopper())) << c.name;
        }
}

// A limit that lets fp16 weights overflow before their tile is tried again: bf16's.
TEST(TransferMeaningTest, LimitsFitTheType) {
    Case c = written("causal", "    s = s.masked_fill(j > i, float('-inf'))\n    return torch.softmax(s, -1) @ v\n");
    c.request.q_dtype = c.request.kv_dtype = c.request.o_dtype = DType::F16;
    const auto s = Specification::parse(c.source, c.options);
    ASSERT_TRUE(s);
    const auto t = transfer::transfer(hopper(), target_of(**s, c.request));
    ASSERT_TRUE(t) << t.error().message;
    std::string text = cuir::print(t->program);
    const std::string limit = "LIMIT=32768.0";
    const auto at = text.find(limit);
    ASSERT_NE(at, text.npos) << text;
    const auto findings = [&] {
        const auto program = *cuir::read(text);
        return cuir::verify(program, *trial_of(program, **s, 7), reference_of(**s, c.request));
    };
    EXPECT_TRUE(findings().empty());
    text.replace(at, limit.size(), "LIMIT=1.1529215e+18");
    const auto wrong = findings();
    ASSERT_FALSE(wrong.empty());
    EXPECT_EQ(wrong[0].kind, "range") << wrong[0].text();
    EXPECT_NE(wrong[0].message.find("in P"), std::string::npos) << wrong[0].text();
}

// Places are found by dataflow: another schedule, with a load role, two calls of attend and a scale of its own.
TEST(TransferMeaningTest, AnotherExpert) {
    if (!fs::exists(specifications() / "paper")) GTEST_SKIP() << "no folder of specifications here";
    const auto pingpong = expert("tests/corpus/cuir/pingpong.py");
    cubridge::test::Sample sample;
    for (const Case& c : cases()) {
        if (sample.skips()) continue;
        if (c.name.find("dqk") != std::string::npos) continue;
        const auto s = Specification::parse(c.source, c.options);
        const auto t = transfer::transfer(pingpong, target_of(**s, c.request));
        if (!t) {
            std::printf("%s: %s\n", c.name.c_str(), t.error().message.c_str());
            continue;
        }
        EXPECT_TRUE(run(c, c.request, false, pingpong)) << c.name;
    }
}

std::string made_of(const Case& c, const Request& request) {
    const auto s = Specification::parse(c.source, c.options);
    if (!s || !(*s)->has_variant()) return s ? (*s)->no_variant_reason() : s.error().message;
    const auto t = transfer::transfer(expert(), target_of(**s, request));
    return t ? cuir::print(t->program) : t.error().message;
}

TEST(TransferMeaningTest, AnLseIsStoredWhereItIsAskedFor) {
    const Case c = written("an LSE", "    return torch.softmax(s, -1) @ v, torch.logsumexp(s, -1)\n");
    Request request = c.request;
    EXPECT_EQ(made_of(c, request).find("Lse"), std::string::npos);
    EXPECT_TRUE(run(c, request));
    request.lse = Request::Lse::Natural;
    EXPECT_NE(made_of(c, request).find("Lse[b, h, i0:i0 + R]"), std::string::npos);
    EXPECT_TRUE(run(c, request));
}

TEST(TransferMeaningTest, NothingIsRoundedTwice) {
    const Case c = written("weighted k", "    s = q @ (k * w).transpose(-1, -2)\n    return torch.softmax(s, -1) @ v\n",
                           ", w: 'f32[D]'");
    EXPECT_NE(made_of(c, c.request).find("round it a second time"), std::string::npos) << made_of(c, c.request);
}

// Tables for rows that keys have as well are those of keys; the last key that a mask keeps ends the classes.
TEST(TransferMeaningTest, ClassesReadATilesEntriesAlone) {
    const Case c = written("documents",
                           "    s = s.masked_fill((doc[i] != doc[j]) | (j > i), float('-inf'))\n"
                           "    return torch.softmax(s, -1).nan_to_num(0.0) @ v\n",
                           ", doc: 'i32[S]'");
    const std::string program = made_of(c, c.request);
    EXPECT_EQ(program.find("least1"), std::string::npos) << program;
    EXPECT_NE(program.find("for t in range(i0 // BN + 1, cdiv(i1, BN)):"), std::string::npos);
    EXPECT_NE(program.find("classify(cdiv(clamp(i1, 0, Sk), BN)"), std::string::npos);
    EXPECT_NE(program.find("row = x0[i2]"), std::string::npos);
}

TEST(TransferMeaningTest, WeightsAndOutputs) {
    const std::string causal = "    s = s.masked_fill(j > i + m - n, float('-inf'))\n";
    const std::string unit = "    p = torch.softmax(s, -1)\n";
    const std::pair<const char*, Case> all[] = {
        {"off by one", written("off by one", causal + "    e = torch.exp(s - s.amax(-1, keepdim=True).clamp(min=0))\n"
                                                      "    z = torch.exp(-s.amax(-1, keepdim=True).clamp(min=0))\n"
                                                      "    return (e / (e.sum(-1, keepdim=True) + z)) @ v\n")},
        {"sink of a row",
         written("sink of a row",
                 causal + "    x = torch.cat([s, sink[None, :, :, None].expand(s.size(0), -1, -1, 1)], -1)\n"
                          "    return torch.softmax(x, -1)[..., :-1] @ v\n",
                 ", sink: 'f32[Hq, Sq]'")},
        {"relu over its sum", written("relu over its sum", "    w = torch.relu(s).masked_fill(j > i, 0.0)\n"
                                                           "    return (w / (w.sum(-1, keepdim=True) + 1.0)) @ v\n")},
        {"relu of a mean over its sum",
         written("relu of a mean over its sum", "    w = (torch.relu(s) / m).masked_fill(j > i, 0.0)\n"
                                                "    return (w / (w.sum(-1, keepdim=True) + 1e-6)) @ v\n")},
        {"squared relu",
         written("squared relu", "    w = (torch.relu(s) ** 2).masked_fill(j > i, 0.0)\n    return w @ v\n")},
        {"norm of the output",
         written("norm of the output", unit + "    o = p @ v\n"
                                              "    return o * torch.rsqrt((o * o).mean(-1, keepdim=True) + 0.001)\n")},
        {"gate of a row",
         written("gate of a row", causal + unit + "    return (p.nan_to_num(0.0) @ v) * torch.sigmoid(g2)[..., None]\n",
                 ", g2: 'f32[B, Hq, Sq]'")},
        {"bias of columns and rows",
         written("bias of columns and rows",
                 "    s = s + a[:, None, None, :] + c[:, None, :, None]\n" + unit + "    return p @ v\n",
                 ", a: 'f32[B, Sk]', c: 'f32[B, Sq]'")},
        {"chunks", written("chunks", "    s = s.masked_fill((i // 3) != (j // 3), float('-inf'))\n" + unit +
                                         "    return p @ v\n")},
        {"a mask tensor",
         written("a mask tensor",
                 "    s = s.masked_fill(~keep[:, None], float('-inf'))\n" + unit + "    return p @ v\n",
                 ", keep: 'bool[B, Sq, Sk]'")},
        {"a bias tensor",
         written("a bias tensor", "    s = s + bias\n" + unit + "    return p @ v\n", ", bias: 'f32[B, Hq, Sq, Sk]'")},
        {"keys scaled", written("keys scaled", "    s = s * w[:, None, None, :]\n" + unit + "    return p @ v\n",
                                ", w: 'f32[B, Sk]'")},
        {"columns of v exchanged",
         written("columns of v exchanged", "    v = torch.cat([v[..., 1:], v[..., :1]], -1)\n" + causal + unit +
                                               "    return p.nan_to_num(0.0) @ v\n")},
        {"documents in a window",
         written("documents in a window",
                 "    s = s.masked_fill((doc[i] != doc[j]) | (j > i) | (i - j > 2), float('-inf'))\n" + unit +
                     "    return p.nan_to_num(0.0) @ v\n",
                 ", doc: 'i32[S]'")},
        {"documents of queries and keys", written("documents of queries and keys",
                                                  "    d = a[:, :, None] != c[:, None, :]\n"
                                                  "    s = s.masked_fill(d[:, None], float('-inf'))\n" +
                                                      unit + "    return p.nan_to_num(0.0) @ v\n",
                                                  ", a: 'i32[B, Sq]', c: 'i32[B, Sk]'")},
        {"gate of an element",
         written("gate of an element", causal + unit + "    return (p.nan_to_num(0.0) @ v) * torch.sigmoid(g2)\n",
                 ", g2: 'f32[B, Hq, Sq, D]'")},
        {"norm and weights of columns",
         written("norm and weights of columns",
                 unit + "    o = p @ v\n"
                        "    return o * torch.rsqrt((o * o).mean(-1, keepdim=True) + 0.001) * w * f[:, None, None]\n",
                 ", w: 'f32[D]', f: 'f32[Hq]'")},
        {"gain of weights", written("gain of weights",
                                    causal + "    p = torch.softmax(s, -1).nan_to_num(0.0)\n"
                                             "    return (p * w[:, None, None, :]) @ v\n",
                                    ", w: 'f32[B, Sk]'")},
        {"gain of relu", written("gain of relu",
                                 "    w2 = torch.relu(s).masked_fill(j > i, 0.0)\n"
                                 "    return (w2 * w[:, None, None, :]) @ v\n",
                                 ", w: 'f32[B, Sk]'")},
        {"output over keys", written("output over keys", unit + "    return (p @ v) / m\n")},
        {"tanh of a bias", written("tanh of a bias", "    s = 5.0 * torch.tanh((s + (j - i) * 0.25) / 5.0)\n" + causal +
                                                         unit + "    return p @ v\n")},
    };
    cubridge::test::Sample sample(7);
    for (const auto& [name, c] : all) {
        const auto s = Specification::parse(c.source, c.options);
        if (!s || !(*s)->has_variant()) {
            ADD_FAILURE() << name << ": " << (s ? (*s)->no_variant_reason() : s.error().message);
            continue;
        }
        for (const auto& from : {expert(), hopper()}) {
            if (sample.skips()) continue;
            const auto t = transfer::transfer(from, target_of(**s, c.request));
            const bool made = t || t.error().message.find("no slice of q, k or v") != std::string::npos ||
                              t.error().message.find("for each element of the output") != std::string::npos;
            EXPECT_TRUE(made) << name << ": " << t.error().message;
            if (t) {
                EXPECT_TRUE(run(c, c.request, false, from)) << name;
            }
        }
    }
}

} // namespace
