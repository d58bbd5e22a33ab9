// Programs of the visible specifications: golden texts, or the refusal. CUBRIDGE_WRITE_GOLDEN=1 writes them anew.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/transfer/corpus.h"
#include <cstdio>
#include <gtest/gtest.h>

namespace {

using namespace cubridge::ir;
using namespace cubridge::ir::transfer;
using namespace cubridge::ir::transfer::test;

std::string outcome(const Case& c) {
    const auto s = Specification::parse(c.source, c.options);
    if (!s) return "# not parsed: " + s.error().message + "\n";
    if (!(*s)->has_variant()) return "# no variant: " + (*s)->no_variant_reason() + "\n";
    const auto t = transfer::transfer(expert(), target_of(**s, c.request));
    if (!t) return "# " + t.error().kind + ": " + t.error().message + "\n";
    std::string out;
    for (const auto& r : t->rules) out += "# " + r + "\n";
    const std::string text = cuir::print(t->program);
    const auto again = cuir::read(text);
    EXPECT_TRUE(again && cuir::equal(*again, t->program)) << c.name << "\n" << text;
    return out + text;
}

TEST(TransferTest, GoldenPrograms) {
    if (!fs::exists(specifications() / "paper")) GTEST_SKIP() << "no folder of specifications here";
    int programs = 0, refused = 0;
    for (const Case& c : cases()) {
        const std::string text = outcome(c);
        const fs::path file = "tests/corpus/transfer/" + c.name + ".py";
        if (std::getenv("CUBRIDGE_WRITE_GOLDEN") != nullptr) {
            std::ofstream f(file, std::ios::binary);
            f << text;
        } else {
            EXPECT_EQ(read(file), text) << file;
        }
        (text.find("@kernel") != std::string::npos ? programs : refused) += 1;
    }
    std::printf("%d programs, %d refused\n", programs, refused);
}

} // namespace
