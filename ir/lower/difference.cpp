// Two programs, line by line. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/difference.h"
#include <algorithm>
#include <vector>

namespace cubridge::ir::lower {
namespace {

constexpr std::size_t kContext = 2;

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size());
        out.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

struct Edit {
    char mark; ///< ' ', '-', '+'
    std::string line;
};

std::vector<Edit> edits(const std::vector<std::string>& a, const std::vector<std::string>& b) {
    const std::size_t n = a.size(), m = b.size();
    std::vector<std::uint32_t> best((n + 1) * (m + 1), 0);
    const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t& { return best[i * (m + 1) + j]; };
    for (std::size_t i = n; i-- > 0;)
        for (std::size_t j = m; j-- > 0;)
            at(i, j) = a[i] == b[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    std::vector<Edit> out;
    std::size_t i = 0, j = 0;
    while (i < n || j < m) {
        if (i < n && j < m && a[i] == b[j])
            out.push_back({' ', a[i]}), ++i, ++j;
        else if (i < n && (j == m || at(i + 1, j) >= at(i, j + 1)))
            out.push_back({'-', a[i++]});
        else
            out.push_back({'+', b[j++]});
    }
    return out;
}

} // namespace

std::string unified_difference(const std::string& before, const std::string& after) {
    const auto all = edits(lines_of(before), lines_of(after));
    std::vector<bool> shown(all.size(), false);
    for (std::size_t k = 0; k < all.size(); ++k)
        if (all[k].mark != ' ')
            for (std::size_t j = k - std::min(k, kContext); j < std::min(all.size(), k + kContext + 1); ++j)
                shown[j] = true;
    std::string out;
    std::size_t a = 1, b = 1;
    for (std::size_t k = 0; k < all.size();) {
        if (!shown[k]) {
            ++a, ++b, ++k;
            continue;
        }
        std::string hunk;
        std::size_t from = 0, to = 0;
        for (; k < all.size() && shown[k]; ++k) {
            hunk += all[k].mark + all[k].line + "\n";
            if (all[k].mark != '+') ++from;
            if (all[k].mark != '-') ++to;
        }
        const auto place = [](std::size_t line, std::size_t count) {
            return std::to_string(count == 0 ? line - 1 : line) + "," + std::to_string(count);
        };
        out += "@@ -" + place(a, from) + " +" + place(b, to) + " @@\n" + hunk;
        a += from;
        b += to;
    }
    return out;
}

} // namespace cubridge::ir::lower
