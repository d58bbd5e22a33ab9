// Which helpers a printed region needs. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/helpers.h"
#include <algorithm>
#include <array>
#include <cctype>

namespace cubridge::ir::lower {
namespace {

using namespace std::string_view_literals;

constexpr std::array kHelpers{"Shared"sv,     "SharedColumn"sv, "Barriers"sv,    "NamedBarriers"sv,  "Channel"sv,
                              "Draw"sv,       "Items"sv,        "Ranges"sv,      "Operand"sv,        "Work"sv,
                              "Rows"sv,       "Cols"sv,         "classify"sv,    "key_length"sv,     "copy_async"sv,
                              "copy"sv,       "wait"sv,         "wait_copies"sv, "wait_stores"sv,    "wait_gemm"sv,
                              "arrive"sv,     "sync"sv,         "bar_sync"sv,    "gemm"sv,           "gemm_add"sv,
                              "gemm_async"sv, "transposed"sv,   "fence_async"sv, "pack"sv,           "load"sv,
                              "store"sv,      "store_tile"sv,   "store_rows"sv,  "row_max_of"sv,     "row_sum_of"sv,
                              "quad_sum"sv,   "columns_of"sv,   "logistic_of"sv, "logistic_small"sv, "tanh_small"sv,
                              "Taken"sv,      "narrow"sv,       "widen"sv};

} // namespace

bool in_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::set<std::string, std::less<>> words_of(std::string_view text) {
    std::set<std::string, std::less<>> out;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (end < text.size() && in_word(text[end])) ++end;
        if (end > at) out.emplace(text.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

std::string missing_helper(const std::vector<std::string>& lines, const std::set<std::string, std::less<>>& words) {
    for (const auto& line : lines)
        for (const auto& word : words_of(line))
            if (words.count(word) == 0 && std::find(kHelpers.begin(), kHelpers.end(), word) != kHelpers.end())
                return word;
    return "";
}

} // namespace cubridge::ir::lower
