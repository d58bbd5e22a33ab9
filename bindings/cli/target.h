// SPEC.py[:FUNCTION[+MASK]], or the name of a specification that comes with the library, as a Source.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bindings/cli/options.h"

namespace cubridge::cli {

struct Target {
    std::string word; ///< as it was written
    ir::Source source;
};

/// The text of a file. Throws Usage where there is none, or it can't be read.
std::string read_text(const std::string& path);

/// Reads the file. Throws Usage where there is none, or it can't be read: a text is only refused once it has been seen.
Target open_target(const std::string& word, const Options& options);

/// Parses it. A text that computes with the number of query heads is parsed with the one that was asked for, or with
/// the default.
ir::Result<std::shared_ptr<const ir::Specification>> parse_target(const Target& target, const Options& options);

} // namespace cubridge::cli
