// Every program that transfer makes of the expert lowers on it, reads back, and is an expert itself.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/lower/hopper.h"
#include "tests/unit/sample.h"
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>

namespace cubridge::ir::lower {
namespace {

void programs_lower(const std::string& expert, const std::string& folder, int least) {
    int programs = 0;
    cubridge::test::Sample sample;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        SCOPED_TRACE(entry.path().filename().string());
        const auto p = cuir::read(test::read_file(entry.path().string()));
        if (!p) continue; // the record of a refusal
        ++programs;
        if (sample.skips()) continue;
        const auto r = lower(expert, *p);
        ASSERT_TRUE(r) << test::message(r);
        const auto faults = read_back(expert, r->cuda, *p);
        EXPECT_TRUE(faults.empty()) << faults[0];
        EXPECT_GT(r->copied, 40);
        EXPECT_TRUE(shape_of(*p));
        const auto again = lower(r->cuda, *p);
        ASSERT_TRUE(again) << test::message(again);
        EXPECT_EQ(again->cuda, r->cuda);
    }
    EXPECT_GT(programs, least);
}

TEST(CorpusTest, TransferredProgramsLower) {
    programs_lower(test::expert_text(), "tests/corpus/transfer", 50);
    programs_lower(test::expert_text(), "tests/corpus/residue/golden", 12);
}

TEST(CorpusTest, TransferredProgramsLowerOnHopper) {
    programs_lower(test::hopper_text(), "tests/corpus/transfer_sm90", 30);
    programs_lower(test::hopper_text(), "tests/corpus/residue/golden_sm90", 12);
}

TEST(CorpusTest, TheRoomKnowsNoVariant) {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator("ir/lower")) {
        ++files;
        std::istringstream text(test::read_file(entry.path().string()));
        for (std::string line; std::getline(text, line);) {
            if (line.rfind("#include \"", 0) != 0) continue;
            for (const char* other : {"ir/spec", "ir/mask", "ir/transfer", "ir/generic", "specification.h", "request"})
                EXPECT_EQ(line.find(other), std::string::npos) << entry.path() << ": " << line;
        }
    }
    EXPECT_GT(files, 20);
}

} // namespace
} // namespace cubridge::ir::lower
