// Lines, colours and columns. SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/terminal.h"
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

namespace cubridge::cli {

Terminal::Terminal(std::FILE* file, bool silent)
    : file_(file), silent_(silent), interactive_(isatty(fileno(file)) != 0 && std::getenv("NO_COLOR") == nullptr) {}

void Terminal::clear() const {
    if (dirty_) std::fputs("\r\033[K", file_);
    dirty_ = false;
}

void Terminal::line(std::string_view text) const {
    if (silent_) return;
    clear();
    std::fwrite(text.data(), 1, text.size(), file_);
    std::fputc('\n', file_);
    std::fflush(file_);
}

void Terminal::transient(std::string_view text) const {
    if (silent_ || !interactive_) return;
    clear();
    std::fwrite(text.data(), 1, text.size(), file_);
    std::fflush(file_);
    dirty_ = true;
}

std::string Terminal::paint(Colour colour, std::string_view text) const {
    if (!interactive_ || colour == Colour::Plain) return std::string(text);
    const char* code = colour == Colour::Good      ? "32"
                       : colour == Colour::Bad     ? "31"
                       : colour == Colour::Warning ? "33"
                                                   : "2";
    return fmt::format("\033[{}m{}\033[0m", code, text);
}

void Table::row(std::initializer_list<std::string> cells) {
    rows_.emplace_back(cells);
}

std::string Table::text(int indent) const {
    std::vector<std::size_t> width;
    for (const auto& r : rows_)
        for (std::size_t k = 0; k < r.size(); ++k) {
            if (k == width.size()) width.push_back(0);
            width[k] = std::max(width[k], r[k].size());
        }
    std::string out;
    for (const auto& r : rows_) {
        if (!out.empty()) out += '\n';
        std::string line(static_cast<std::size_t>(indent), ' ');
        for (std::size_t k = 0; k < r.size(); ++k)
            line += k + 1 == r.size() ? r[k] : fmt::format("{:<{}}  ", r[k], width[k]);
        while (!line.empty() && line.back() == ' ') line.pop_back();
        out += line;
    }
    return out;
}

} // namespace cubridge::cli
