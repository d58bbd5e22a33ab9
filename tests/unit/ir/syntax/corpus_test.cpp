// Whole texts survive printing: those in tests/corpus/syntax, and what specifications and programs lie beside the
// project. SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/ast.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <sstream>

namespace cubridge::ir::syntax {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> texts_under(const fs::path& folder) {
    std::vector<fs::path> found;
    if (!fs::is_directory(folder)) return found;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.path().extension() == ".py") found.push_back(entry.path());
    }
    return found;
}

std::string read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

void survives_printing(const std::string& text, const Node& tree) {
    const std::string printed = print(tree);
    const auto again = parse(printed);
    ASSERT_TRUE(again) << again.error().render(printed);
    EXPECT_TRUE(equal(tree, **again)) << printed;
    EXPECT_EQ(print(**again), printed);
    EXPECT_FALSE(text.empty());
}

TEST(Corpus, EveryTextOfOursIsReadAndSurvivesPrinting) {
    const auto paths = texts_under("tests/corpus/syntax");
    std::cout << paths.size() << " texts in tests/corpus/syntax\n";
    ASSERT_GE(paths.size(), 12u) << "run from the project's folder";
    for (const fs::path& path : paths) {
        SCOPED_TRACE(path.string());
        const std::string text = read(path);
        const auto tree = parse(text);
        ASSERT_TRUE(tree) << tree.error().render(text);
        survives_printing(text, **tree);
    }
}

/// Everything there is to be read; the folder of sketches also holds ordinary Python, which may only be refused as
/// such.
TEST(Corpus, TextsBesideTheProject) {
    std::size_t read_back = 0, refused = 0;
    for (const fs::path folder :
         {"../shared/specs", "../shared/design/sketch", "../../shared/specs", "../../shared/design/sketch"}) {
        const bool programs_only = folder.filename() == "specs";
        for (const fs::path& path : texts_under(folder)) {
            SCOPED_TRACE(path.string());
            const std::string text = read(path);
            const auto tree = parse(text);
            if (!tree) {
                ++refused;
                EXPECT_EQ(tree.error().kind, "unsupported") << tree.error().render(text);
                EXPECT_FALSE(programs_only) << tree.error().render(text);
                continue;
            }
            ++read_back;
            survives_printing(text, **tree);
        }
    }
    std::cout << read_back << " texts beside the project read back, " << refused << " refused as outside the subset\n";
}

} // namespace
} // namespace cubridge::ir::syntax
