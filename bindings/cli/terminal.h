// Where the command writes: results to stdout, progress and complaints to stderr, colour only on a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace cubridge::cli {

enum class Colour { Plain, Good, Bad, Warning, Faint };

/// One stream. Colours are dropped unless it is a terminal and NO_COLOR is not set. One thread at a time.
class Terminal {
public:
    explicit Terminal(std::FILE* file, bool silent = false);
    void line(std::string_view text) const;
    /// Writes over itself on a terminal and says nothing elsewhere; ended by the next line().
    void transient(std::string_view text) const;
    std::string paint(Colour colour, std::string_view text) const;
    bool interactive() const { return interactive_; }

private:
    void clear() const;
    std::FILE* file_;
    bool silent_, interactive_;
    mutable bool dirty_ = false;
};

/// Columns that line up: every cell but the last of a row is padded to the widest of its column.
class Table {
public:
    void row(std::initializer_list<std::string> cells);
    /// With `indent` blanks before each line.
    std::string text(int indent = 0) const;
    bool empty() const { return rows_.empty(); }

private:
    std::vector<std::vector<std::string>> rows_;
};

} // namespace cubridge::cli
