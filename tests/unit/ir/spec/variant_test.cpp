// Canonical texts: golden ones for the visible specifications, equal ones for respellings, unequal ones for near
// misses. CUBRIDGE_SPECIFICATIONS names the folder of the specifications; without it and without ../shared/specs the
// golden texts are compared with the respellings only, and the test says so. CUBRIDGE_WRITE_GOLDEN=1 writes them anew:
// a change of one is a change of the format. SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/spec/visible.h"
#include "tests/unit/sample.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace {

namespace fs = std::filesystem;
using namespace cubridge::ir;
using namespace cubridge::ir::test;

const fs::path kCorpus = "tests/corpus";

struct Golden {
    fs::path file;
    std::string specification, text;
    std::vector<std::string> args;
};

std::vector<Golden> goldens() {
    std::vector<Golden> out;
    for (const auto& e : fs::directory_iterator(kCorpus / "golden")) {
        const std::string all = read(e.path());
        Golden g{e.path(), {}, {}, {}};
        const auto first = all.find('\n'), second = all.find('\n', first + 1);
        g.specification = all.substr(2, first - 2);
        g.args = words(all.substr(first + 2, second - first - 2));
        g.text = all.substr(second + 1);
        out.push_back(std::move(g));
    }
    std::sort(out.begin(), out.end(), [](const Golden& a, const Golden& b) { return a.file < b.file; });
    return out;
}

std::string subject(const Source& s, const ParseOptions& o = {}) {
    const auto r = Specification::parse(s, o);
    if (!r) return "refused: " + r.error().render(s.text);
    return (*r)->subject();
}

std::string golden_of(const std::string& specification) {
    for (const Golden& g : goldens())
        if (g.specification == specification) return g.text;
    return "";
}

// The value of a field in a line of an index: one object a line.
std::string field(const std::string& line, const std::string& name) {
    const auto at = line.find("\"" + name + "\": \"");
    if (at == std::string::npos) return "";
    const auto from = at + name.size() + 5;
    return line.substr(from, line.find('"', from) - from);
}

std::vector<std::string> list(const std::string& line, const std::string& name) {
    std::vector<std::string> out;
    auto at = line.find("\"" + name + "\": [");
    if (at == std::string::npos) return out;
    const auto end = line.find(']', line.rfind('"'));
    at += name.size() + 4;
    while ((at = line.find('"', at)) < end) {
        const auto close = line.find('"', at + 1);
        out.push_back(line.substr(at + 1, close - at - 1));
        at = close + 1;
    }
    return out;
}

TEST(VariantTest, GoldenTexts) {
    const auto folder = specifications();
    const bool there = fs::exists(folder / "paper");
    const bool write = std::getenv("CUBRIDGE_WRITE_GOLDEN") != nullptr;
    int compared = 0;
    for (const Golden& g : goldens()) {
        if (!there) continue;
        Source s = source_of(folder, g.specification);
        const ParseOptions o = apply_options(g.args, s);
        const std::string text = subject(s, o);
        if (write) {
            std::ofstream f(g.file, std::ios::binary);
            f << "# " << g.specification << "\n#";
            for (const auto& a : g.args) f << " " << a;
            f << "\n" << text;
        } else {
            EXPECT_EQ(g.text, text) << g.file;
        }
        ++compared;
    }
    std::printf("%d golden texts compared with their specifications%s\n", compared,
                there ? "" : ": no folder of specifications here");
    EXPECT_GE(goldens().size(), 37u);
    if (there) {
        EXPECT_GE(compared, 37);
    }
}

TEST(VariantTest, RespellingsAreEqual) {
    int count = 0;
    for (const auto& folder : fs::directory_iterator(kCorpus / "respell")) {
        const std::string original = "paper/" + folder.path().filename().string() + ".py", golden = golden_of(original);
        ASSERT_FALSE(golden.empty()) << original;
        int here = 0;
        for (const auto& e : fs::directory_iterator(folder)) {
            EXPECT_EQ(golden, subject(source_of(folder.path(), e.path().filename().string()))) << e.path();
            ++here, ++count;
        }
        EXPECT_GE(here, 8) << folder.path();
    }
    std::printf("%d respellings\n", count);
    EXPECT_GE(count, 64);
}

TEST(VariantTest, NearMissesDiffer) {
    std::istringstream index(read(kCorpus / "near" / "index.json"));
    const auto folder = specifications();
    const bool there = fs::exists(folder / "paper");
    int count = 0, with_variant = 0, refused = 0;
    cubridge::test::Sample sample;
    for (std::string line; std::getline(index, line);) {
        const std::string file = field(line, "file"), original = field(line, "original");
        if (file.empty() || sample.skips()) continue;
        Source s = source_of(kCorpus / "near", file + ":" + field(line, "function"));
        const auto args = list(line, "args");
        const ParseOptions o = apply_options(args, s);
        const auto r = Specification::parse(s, o);
        ++count;
        if (!r) {
            ++refused;
            EXPECT_TRUE(original == "serving/tree_verify.py") << file << ": " << r.error().render(s.text);
            continue;
        }
        with_variant += (*r)->has_variant() ? 1 : 0;
        EXPECT_NE((*r)->subject(), golden_of(original)) << file << ": " << field(line, "differs");
        if (!there) continue;
        Source same = source_of(folder, original);
        const ParseOptions p = apply_options(args, same);
        if (std::all_of(same.settings.begin(), same.settings.end(),
                        [&](const auto& x) { return same.text.find(x.first) != std::string::npos; })) {
            EXPECT_NE((*r)->subject(), subject(same, p)) << file << ": " << field(line, "differs");
        }
    }
    std::printf("%d near misses, %d with a Variant, %d refused\n", count, with_variant, refused);
    EXPECT_GE(count - refused, cubridge::test::at_least(120));
}

// A value is never structure: two defaults, two settings and none share one text.
TEST(VariantTest, ValuesAreArguments) {
    const std::string text =
        "import torch\nW = 7\ndef m(b, h, q_idx, kv_idx):\n    return (q_idx - kv_idx <= W) & (q_idx >= kv_idx)\n";
    Source a{text, "m", {}, {}}, b{text, "m", {}, {}};
    b.settings["W"] = Setting{Setting::Kind::Constant, 1000, {}, {}, {}};
    EXPECT_EQ(subject(a), subject(b));
    Source c{text, "m", {}, {}};
    c.settings["W"] = Setting{Setting::Kind::Operand, 0, DType::I32, 0, {}};
    EXPECT_EQ(subject(a), subject(c));
}

} // namespace
