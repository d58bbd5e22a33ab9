// Masks that keep one residue class: programs over class rows and class keys, golden and executed.
// CUBRIDGE_WRITE_GOLDEN=1 writes the golden texts anew. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/execute.h"
#include "ir/transfer/reference.h"
#include "tests/unit/ir/transfer/corpus.h"
#include <cstdio>
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
    for (const char* f :
         {"every_third", "every_sixteenth", "both_sides", "shifted", "mirrored", "window", "window_or_sinks",
          "keys_alone", "within_documents", "up_to_a_length", "alibi", "softcap", "by_distance"})
        out.push_back(text_of(std::string("mods.py:") + f));
    out.push_back(text_of("sink.py"));
    return out;
}

struct Made {
    std::shared_ptr<const Specification> text;
    Transferred made;
};

std::optional<Made> made_of(const Case& c, const Request& request) {
    auto s = Specification::parse(c.source, c.options);
    if (!s || !(*s)->has_variant()) {
        ADD_FAILURE() << c.name << ": " << (s ? (*s)->no_variant_reason() : s.error().message);
        return std::nullopt;
    }
    auto t = transfer::transfer(expert(), target_of(**s, request));
    if (!t) ADD_FAILURE() << c.name << ": " << t.error().message;
    if (!t) return std::nullopt;
    return Made{*s, *t};
}

TEST(ResidueTest, GoldenPrograms) {
    for (const Case& c : texts()) {
        const auto made = made_of(c, c.request);
        if (!made) continue;
        std::string out;
        for (const auto& r : made->made.rules) out += "# " + r + "\n";
        out += cuir::print(made->made.program);
        const fs::path file = kFolder / "golden" / (c.name + ".py");
        if (std::getenv("CUBRIDGE_WRITE_GOLDEN") != nullptr) {
            std::ofstream f(file, std::ios::binary);
            f << out;
        } else {
            EXPECT_EQ(read(file), out) << file;
        }
    }
}

TEST(ResidueTest, WhatTheTextsSay) {
    for (const Case& c : texts())
        for (const auto lse : {Request::Lse::None, Request::Lse::Natural}) {
            const char* only = std::getenv("CUBRIDGE_ONLY");
            if (only && c.name.find(only) == std::string::npos) continue;
            Request request = c.request;
            request.lse = lse;
            const auto made = made_of(c, request);
            if (!made) continue;
            const auto& program = made->made.program;
            for (const auto& f : cuir::check(program)) ADD_FAILURE() << c.name << ": " << f.text();
            const auto trial = trial_of(program, *made->text, 7);
            ASSERT_TRUE(trial) << c.name;
            const auto findings = cuir::verify(program, *trial, reference_of(*made->text, request));
            for (const auto& f : findings) ADD_FAILURE() << c.name << ": " << f.kind << ": " << f.text();
            if (!findings.empty()) std::printf("%s\n", cuir::print(program).c_str());
            std::printf("%-20s %zu runs\n", c.name.c_str(), trial->runs.size());
        }
}

} // namespace
