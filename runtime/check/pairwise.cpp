// Greedy covering: of many random rows the one with most new pairs is taken. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/pairwise.h"
#include <algorithm>
#include <array>
#include <random>
#include <set>

namespace cubridge::runtime {

std::vector<std::vector<int>> pairwise(const std::vector<int>& levels, int most, std::uint64_t seed,
                                       const std::function<bool(const std::vector<int>&)>& allowed) {
    constexpr int kTries = 64; // candidates a row
    using Pair = std::array<int, 4>;
    std::mt19937_64 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
    const std::size_t n = levels.size();
    std::set<Pair> open; // not met yet
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = a + 1; b < n; ++b)
            for (int x = 0; x < levels[a]; ++x)
                for (int y = 0; y < levels[b]; ++y) open.insert({static_cast<int>(a), x, static_cast<int>(b), y});
    const auto gain = [&](const std::vector<int>& row) {
        int g = 0;
        for (std::size_t a = 0; a < n; ++a)
            for (std::size_t b = a + 1; b < n; ++b)
                g += static_cast<int>(open.count({static_cast<int>(a), row[a], static_cast<int>(b), row[b]}));
        return g;
    };
    std::set<std::vector<int>> taken;
    std::vector<std::vector<int>> rows;
    while (static_cast<int>(rows.size()) < most) {
        std::vector<int> best;
        int best_gain = -1;
        for (int t = 0; t < kTries; ++t) {
            std::vector<int> row;
            for (const int l : levels) row.push_back(below(l));
            if (!open.empty() && t % 2 == 0) { // half of the candidates start from a pair that is wanted
                const auto at =
                    std::next(open.begin(), below(static_cast<int>(std::min<std::size_t>(open.size(), 4096))));
                row[static_cast<std::size_t>((*at)[0])] = (*at)[1];
                row[static_cast<std::size_t>((*at)[2])] = (*at)[3];
            }
            if (taken.count(row) != 0 || !allowed(row)) continue;
            if (const int g = gain(row); g > best_gain) best_gain = g, best = std::move(row);
        }
        if (best.empty()) break;
        for (std::size_t a = 0; a < n; ++a)
            for (std::size_t b = a + 1; b < n; ++b)
                open.erase({static_cast<int>(a), best[a], static_cast<int>(b), best[b]});
        taken.insert(best);
        rows.push_back(std::move(best));
    }
    return rows;
}

} // namespace cubridge::runtime
