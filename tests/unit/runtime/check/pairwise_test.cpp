// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/pairwise.h"
#include <gtest/gtest.h>
#include <set>

using cubridge::runtime::pairwise;

namespace {

std::set<std::vector<int>> pairs_of(const std::vector<std::vector<int>>& rows) {
    std::set<std::vector<int>> out;
    for (const auto& r : rows)
        for (std::size_t a = 0; a < r.size(); ++a)
            for (std::size_t b = a + 1; b < r.size(); ++b)
                out.insert({static_cast<int>(a), r[a], static_cast<int>(b), r[b]});
    return out;
}

const auto anything = [](const std::vector<int>&) { return true; };

TEST(Pairwise, FewRowsHoldEveryPair) {
    const std::vector<int> levels = {5, 4, 3, 3, 2, 2};
    const auto rows = pairwise(levels, 40, 1, anything);
    std::size_t all = 0;
    for (std::size_t a = 0; a < levels.size(); ++a)
        for (std::size_t b = a + 1; b < levels.size(); ++b) all += static_cast<std::size_t>(levels[a] * levels[b]);
    EXPECT_EQ(pairs_of(rows).size(), all);
    EXPECT_EQ(pairs_of({rows.begin(), rows.begin() + 30}).size(), all) << "40 rows are plenty for this";
}

TEST(Pairwise, KeepsToWhatIsAllowedAndNeverRepeats) {
    const auto rows = pairwise({4, 4, 2}, 100, 3, [](const std::vector<int>& r) { return r[0] == r[1]; });
    EXPECT_LE(rows.size(), 8U);
    EXPECT_EQ(std::set<std::vector<int>>(rows.begin(), rows.end()).size(), rows.size());
    for (const auto& r : rows) EXPECT_EQ(r[0], r[1]);
}

TEST(Pairwise, IsDeterministic) {
    EXPECT_EQ(pairwise({3, 3, 3}, 7, 5, anything), pairwise({3, 3, 3}, 7, 5, anything));
    EXPECT_TRUE(pairwise({3, 3}, 7, 5, [](const std::vector<int>&) { return false; }).empty());
}

} // namespace
