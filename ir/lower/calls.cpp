// The table of calls. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/calls.h"
#include "ir/lower/helpers.h"
#include <algorithm>
#include <array>

namespace cubridge::ir::lower {

namespace {

using namespace std::string_view_literals;

// Calls that move data or make threads agree. A name that ends in `*` stands for all that begin so.
constexpr std::array kMeeting{"copy_async"sv,  "wait_copies"sv, "bar_sync"sv,   "bar_arrive"sv,  "copy"sv,
                              "gemm"sv,        "gemm_add"sv,    "gemm_async"sv, "wait_gemm*"sv,  "store"sv,
                              "load"sv,        "arrive"sv,      "fence*"sv,     "mbar_*"sv,      "tma_*"sv,
                              "cp_async*"sv,   "asm"sv,         "__sync*"sv,    "__pipeline*"sv, "__threadf*"sv,
                              "atomic*"sv,     "ldmatrix*"sv,   "stmatrix*"sv,  "wgmma*"sv,      "wait"sv,
                              "wait_stores"sv, "sync"sv,        "publish"sv,    "take"sv};
constexpr std::array kOwn{
    "store_rows"sv,  "store_tile"sv,      "pack"sv,          "__shfl*"sv,     "__any*"sv, "__all*"sv,
    "__ballot*"sv,   "__match*"sv,        "__reduce*"sv,     "__nanosleep"sv, "mma_*"sv,  "setmaxnreg*"sv,
    "begin_roles"sv, "fewer_registers"sv, "more_registers"sv}; ///< of a warp's own values and registers

template <std::size_t N> bool among(const std::array<std::string_view, N>& names, std::string_view word) {
    return std::any_of(names.begin(), names.end(), [&](std::string_view n) {
        return n.back() == '*' ? word.rfind(n.substr(0, n.size() - 1), 0) == 0 : word == n;
    });
}

} // namespace

std::string squeezed(const Lines& lines) {
    std::string out;
    for (auto line : lines) {
        line.resize(std::min(line.find("//"), line.size()));
        for (const char c : line + "\n") {
            if (c != ' ' && c != '\n' && c != '\t') {
                out += c;
            } else if (!out.empty() && out.back() != ' ') {
                out += ' ';
            }
        }
    }
    // A blank counts only between two words.
    std::string tight;
    for (std::size_t k = 0; k < out.size(); ++k)
        if (out[k] != ' ' || (k > 0 && k + 1 < out.size() && in_word(out[k - 1]) && in_word(out[k + 1])))
            tight += out[k];
    return tight;
}

std::vector<std::string> calls_in(const Lines& lines) {
    const std::string text = squeezed(lines);
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size();) {
        if (!in_word(text[at])) {
            ++at;
            continue;
        }
        std::size_t end = at;
        while (end < text.size() && in_word(text[end])) ++end;
        const std::string word = text.substr(at, end - at);
        const bool call = end < text.size() && (text[end] == '(' || text[end] == '<' || text[end] == ' ');
        std::size_t begin = at; // with the object of a method: `items.take(...)`
        if (begin > 1 && text[begin - 1] == '.')
            for (--begin; begin > 0 && in_word(text[begin - 1]);) --begin;
        at = end;
        if ((!among(kMeeting, word) && !among(kOwn, word)) || (!call && word != "asm")) continue;
        int depth = 0;
        while (end < text.size() && text[end] != ';') {
            if (text[end] == '(') ++depth;
            if (text[end] == ')' && --depth == 0) break;
            ++end;
        }
        out.push_back(text.substr(begin, std::min(end + 1, text.size()) - begin));
    }
    std::sort(out.begin(), out.end());
    return out;
}

bool meets_others(const std::string& call) {
    std::size_t begin = 0, end = 0;
    while (end < call.size() && in_word(call[end])) ++end;
    if (end < call.size() && call[end] == '.')
        for (begin = ++end; end < call.size() && in_word(call[end]);) ++end;
    return among(kMeeting, std::string_view(call).substr(begin, end - begin));
}

} // namespace cubridge::ir::lower
