// One literal of an opening line: order=, registers=, ctas=. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/program.h"
#include <optional>
#include <string>
#include <vector>

namespace cubridge::ir::lower {

struct Literal {
    std::string before, after; ///< as CUDA spells them: without quotes
};

/// The one keyword's literal in which two opening lines differ; nothing where they differ in more, or are equal.
std::optional<Literal> changed_literal(const cuir::Statement& from, const cuir::Statement& to);

/// Replaces the one place where `before` stands as a word of its own. False: it stands nowhere, or more than once.
bool replace_once(std::vector<std::string>& lines, const std::string& before, const std::string& after);

} // namespace cubridge::ir::lower
