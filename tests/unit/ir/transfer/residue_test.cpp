// Masks that keep one residue class: programs over class rows and class keys, golden and executed.
// CUBRIDGE_WRITE_GOLDEN=1 writes the golden texts anew. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/execute.h"
#include "ir/transfer/reference.h"
#include "tests/unit/ir/transfer/corpus.h"
#include "tests/unit/sample.h"
#include <cstdio>
#include <functional>
#include <gtest/gtest.h>

namespace {

using namespace cubridge::ir;
using namespace cubridge::ir::transfer;
using namespace cubridge::ir::transfer::test;

const fs::path kFolder = "tests/corpus/residue";

Case text_of(const std::string& path) {
    Case c;
    c.name = path.substr(path.find(':') + 1);
    c.name = c.name.substr(0, c.name.find(".py"));
    c.source = cubridge::ir::test::source_of(kFolder, path);
    c.request.head_dim = c.request.head_dim_v = 128;
    c.request.arch = "sm_90a";
    return c;
}

std::vector<Case> texts() {
    std::vector<Case> out;
    for (const char* f : {"every_third", "every_sixteenth", "both_sides", "shifted", "mirrored", "window",
                          "window_or_sinks", "keys_alone", "window_sinks_and_every_8th", "window_and_every_5th",
                          "band_or_every_4th", "window_and_every_8th_with_alibi", "every_8th_up_to_a_length",
                          "within_documents", "up_to_a_length", "alibi", "softcap", "by_distance"})
        out.push_back(text_of(std::string("mods.py:") + f));
    out.push_back(text_of("sink.py"));
    return out;
}

struct Made {
    std::shared_ptr<const Specification> text;
    Transferred made;
};

std::optional<Made> made_of(const Case& c, const Request& request, const cuir::Program& from = expert()) {
    auto s = Specification::parse(c.source, c.options);
    if (!s || !(*s)->has_variant()) {
        ADD_FAILURE() << c.name << ": " << (s ? (*s)->no_variant_reason() : s.error().message);
        return std::nullopt;
    }
    auto t = transfer::transfer(from, target_of(**s, request));
    if (!t) ADD_FAILURE() << c.name << ": " << t.error().message;
    if (!t) return std::nullopt;
    return Made{*s, *t};
}

std::vector<cuir::Finding> findings_of(const cuir::Program& program, const Specification& text,
                                       const Request& request) {
    const auto trial = trial_of(program, text, 7);
    EXPECT_TRUE(trial);
    return trial ? cuir::verify(program, *trial, reference_of(text, request)) : std::vector<cuir::Finding>{};
}

void compare(const cuir::Program& from, const fs::path& folder) {
    for (const Case& c : texts()) {
        const auto made = made_of(c, c.request, from);
        if (!made) continue;
        std::string out;
        for (const auto& r : made->made.rules) out += "# " + r + "\n";
        out += cuir::print(made->made.program);
        const fs::path file = folder / (c.name + ".py");
        if (std::getenv("CUBRIDGE_WRITE_GOLDEN") != nullptr) {
            std::ofstream f(file, std::ios::binary);
            f << out;
        } else {
            EXPECT_EQ(read(file), out) << file;
        }
    }
}

TEST(ResidueTest, GoldenPrograms) {
    compare(expert(), kFolder / "golden");
    compare(hopper(), kFolder / "golden_sm90");
}

void run(const Case& c, const Request& request, const cuir::Program& from) {
    const auto made = made_of(c, request, from);
    if (!made) return;
    const auto& program = made->made.program;
    for (const auto& f : cuir::check(program)) ADD_FAILURE() << c.name << ": " << f.text();
    const auto findings = findings_of(program, *made->text, request);
    for (const auto& f : findings) ADD_FAILURE() << c.name << ": " << f.kind << ": " << f.text();
    if (!findings.empty()) std::printf("%s\n", cuir::print(program).c_str());
}

TEST(ResidueTest, WhatTheTextsSay) {
    cubridge::test::Sample sample(5);
    for (const Case& c : texts())
        for (const auto lse : {Request::Lse::None, Request::Lse::Natural}) {
            const char* only = std::getenv("CUBRIDGE_ONLY");
            if (only && c.name.find(only) == std::string::npos) continue;
            if (sample.skips()) continue;
            Request request = c.request;
            request.lse = lse;
            run(c, request, expert());
            run(c, request, hopper());
        }
}

TEST(ResidueTest, HeadDimsThatTakeOtherSchedules) {
    for (const auto& [d, dv] : {std::pair{64, 64}, {256, 256}, {192, 128}}) {
        Case c = text_of("mods.py:shifted");
        c.request.head_dim = d, c.request.head_dim_v = dv;
        run(c, c.request, hopper());
    }
}

struct Edit {
    const char *from, *to;
};

/// Every place where an edit fits, edited alone: found, or the line is one that `harmless` knows.
int wrong_ones(const Case& c, const std::vector<Edit>& edits,
               const std::function<bool(const std::string& line, const Edit&)>& harmless) {
    const auto made = made_of(c, c.request);
    if (!made) return 0;
    int found = 0;
    cubridge::test::Sample sample(16);
    const std::string text = cuir::print(made->made.program);
    for (const auto& e : edits)
        for (auto at = text.find(e.from); at != std::string::npos; at = text.find(e.from, at + 1)) {
            if (sample.skips()) continue;
            std::string edited = text;
            edited.replace(at, std::string(e.from).size(), e.to);
            const auto program = cuir::read(edited);
            if (!program || !cuir::check(*program).empty() || !findings_of(*program, *made->text, c.request).empty()) {
                ++found;
                continue;
            }
            const auto begin = text.rfind('\n', at) + 1;
            const std::string line = edited.substr(begin, edited.find('\n', begin) - begin);
            EXPECT_TRUE(harmless(line, e)) << c.name << " survives: " << line;
        }
    std::printf("%s: %d found\n", c.name.c_str(), found);
    return found;
}

bool has(const std::string& line, const char* what) {
    return line.find(what) != std::string::npos;
}

TEST(ResidueTest, WrongClassesAreFound) {
    const std::vector<Edit> edits = {{"h % T", "(h + 1) % T"}, {"h // T", "h % Hq"}, {":T]", "]"},
                                     {":T]", ":T + 1]"},       {"BM * T)", "BM)"},   {"Hq * T", "Hq"},
                                     {" * T + ", " + "},       {", T)", ", 1)"}};
    // more tiles are visited than have to be, or masked; blocks of no rows are items
    const auto more = [](const std::string& line, const Edit& e) {
        return has(line, "some = ") || has(line, "every = ") || has(line, "tiles = ") || has(line, "return [") ||
               (has(line, " bind(") && std::string(e.from) == "BM * T)");
    };
    int found = 0;
    for (const char* f : {"mods.py:both_sides", "mods.py:every_third"}) found += wrong_ones(text_of(f), edits, more);
    EXPECT_GE(found, cubridge::test::at_least(70));
}

TEST(ResidueTest, WrongTilesOfTwoKindsAreFound) {
    const std::vector<Edit> edits = {{"BN * C0", "BN"},
                                     {", C0)", ", 1)"},
                                     {"< cdiv(Sk, BN)", "<= cdiv(Sk, BN)"},
                                     {">= cdiv(Sk, BN)", "> cdiv(Sk, BN)"},
                                     {" & strided", ""},
                                     {" & ~strided", ""},
                                     {"beyond + ", ""},
                                     {"strided, C0, 1", "strided, 1, C0"},
                                     {"// C0", "// 2"},
                                     {":by", ":1"}};
    // more tiles, or a condition of the mask that another one implies
    const auto more = [](const std::string& line, const Edit& e) {
        return has(line, "some") || has(line, "every") || has(line, "first") || has(line, "least") ||
               (has(line, "limit") && std::string(e.from) == "// C0");
    };
    int found = 0;
    for (const char* f : {"mods.py:window_and_every_5th", "mods.py:window_sinks_and_every_8th"})
        found += wrong_ones(text_of(f), edits, more);
    EXPECT_GE(found, cubridge::test::at_least(40));
}

} // namespace
