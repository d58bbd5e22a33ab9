// One literal of an opening line. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/literal.h"
#include <cctype>

namespace cubridge::ir::lower {
namespace {

bool word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

/// A line as words; what stands between two is a word, too.
std::vector<std::string> words(const std::string& line) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < line.size();) {
        std::size_t end = at + 1;
        if (line[at] == '"') {
            end = line.find('"', at + 1);
            end = end == line.npos ? line.size() : end + 1;
        } else if (word(line[at])) {
            while (end < line.size() && word(line[end])) ++end;
        }
        out.push_back(line.substr(at, end - at));
        at = end;
    }
    return out;
}

bool is_literal(const std::string& w) {
    return !w.empty() && (w[0] == '"' || std::isdigit(static_cast<unsigned char>(w[0])) != 0);
}

std::string plain(const std::string& w) {
    return w.size() > 1 && w[0] == '"' ? w.substr(1, w.size() - 2) : w;
}

} // namespace

std::optional<Literal> changed_literal(const cuir::Statement& from, const cuir::Statement& to) {
    if (from.kind != to.kind || !from.opens_block()) return std::nullopt;
    const auto a = words(cuir::line_of(from)), b = words(cuir::line_of(to));
    if (a.size() != b.size()) return std::nullopt;
    std::optional<Literal> out;
    for (std::size_t k = 0; k < a.size(); ++k) {
        if (a[k] == b[k]) continue;
        if (out || k == 0 || a[k - 1] != "=" || !is_literal(a[k]) || !is_literal(b[k])) return std::nullopt;
        out = Literal{plain(a[k]), plain(b[k])};
    }
    return out;
}

bool replace_once(std::vector<std::string>& lines, const std::string& before, const std::string& after) {
    std::string* found = nullptr;
    std::size_t place = 0;
    for (auto& line : lines)
        for (auto at = line.find(before); at != line.npos; at = line.find(before, at + 1)) {
            const auto end = at + before.size();
            if ((at > 0 && word(line[at - 1])) || (end < line.size() && word(line[end]) && word(before.back())))
                continue;
            if (found != nullptr) return false;
            found = &line;
            place = at;
        }
    if (found == nullptr) return false;
    found->replace(place, before.size(), after);
    return true;
}

} // namespace cubridge::ir::lower
