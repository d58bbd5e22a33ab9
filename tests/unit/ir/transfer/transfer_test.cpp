// Programs of the visible specifications: golden texts, or the refusal. CUBRIDGE_WRITE_GOLDEN=1 writes them anew.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/transfer/corpus.h"
#include <cstdio>
#include <gtest/gtest.h>

namespace {

using namespace cubridge::ir;
using namespace cubridge::ir::transfer;
using namespace cubridge::ir::transfer::test;

std::string outcome(const Case& c, const cuir::Program& from) {
    const auto s = Specification::parse(c.source, c.options);
    if (!s) return "# not parsed: " + s.error().message + "\n";
    if (!(*s)->has_variant()) return "# no variant: " + (*s)->no_variant_reason() + "\n";
    const auto t = transfer::transfer(from, target_of(**s, c.request));
    if (!t) return "# " + t.error().kind + ": " + t.error().message + "\n";
    std::string out;
    for (const auto& r : t->rules) out += "# " + r + "\n";
    const std::string text = cuir::print(t->program);
    const auto again = cuir::read(text);
    EXPECT_TRUE(again && cuir::equal(*again, t->program)) << c.name << "\n" << text;
    return out + text;
}

void compare(const cuir::Program& from, const fs::path& folder) {
    int programs = 0, refused = 0;
    for (const Case& c : cases()) {
        const std::string text = outcome(c, from);
        const fs::path file = folder / (c.name + ".py");
        if (std::getenv("CUBRIDGE_WRITE_GOLDEN") != nullptr) {
            std::ofstream f(file, std::ios::binary);
            f << text;
        } else {
            EXPECT_EQ(read(file), text) << file;
        }
        (text.find("@kernel") != std::string::npos ? programs : refused) += 1;
    }
    std::printf("%s: %d programs, %d refused\n", folder.c_str(), programs, refused);
}

TEST(TransferTest, GoldenPrograms) {
    if (!fs::exists(specifications() / "paper")) GTEST_SKIP() << "no folder of specifications here";
    compare(expert(), "tests/corpus/transfer");
}

TEST(TransferTest, GoldenProgramsForHopper) {
    if (!fs::exists(specifications() / "paper")) GTEST_SKIP() << "no folder of specifications here";
    compare(hopper(), "tests/corpus/transfer_sm90");
}

} // namespace
