// No rule builds a program from a template: the largest string that one contains is a statement. A rule knows an
// expert's names by dataflow only. SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/transfer/corpus.h"
#include <gtest/gtest.h>

namespace {

using namespace cubridge::ir::transfer::test;

std::vector<std::string> literals(const std::string& text) {
    std::vector<std::string> out;
    std::string now;
    bool inside = false;
    for (std::size_t k = 0; k < text.size(); ++k) {
        const char c = text[k];
        if (!inside && c == '/' && text.compare(k, 2, "//") == 0) {
            k = std::min(text.find('\n', k), text.size() - 1);
        } else if (!inside && c == '\'') {
            k += text[k + 1] == '\\' ? 3 : 2;
        } else if (c == '"') {
            if (inside) out.push_back(now);
            now.clear();
            inside = !inside;
        } else if (inside) {
            now += c;
            if (c == '\\') now += text[++k];
        }
    }
    return out;
}

TEST(TransferLintTest, StringsAreStatements) {
    int files = 0;
    for (const auto& e : fs::directory_iterator("ir/transfer")) {
        ++files;
        for (const auto& s : literals(read(e.path()))) {
            EXPECT_EQ(s.find("\\n"), std::string::npos) << e.path() << ": " << s;
            EXPECT_LT(s.size(), 110u) << e.path() << ": " << s;
            for (const char* name : {"attend", "row_max", "row_sum", "new_max", "shrink", "key_tiles", "Qs", "Ks[",
                                     "acc[", "scores(", "refer(", "SLACK", "LIMIT", "q_free", "k_free", "o_full"})
                EXPECT_EQ(s.find(name), std::string::npos) << e.path() << " names `" << name << "`: " << s;
        }
    }
    EXPECT_GE(files, 20);
}

} // namespace
