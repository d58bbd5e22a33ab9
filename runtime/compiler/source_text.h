// CUDA text after line splicing, with the way back to where each character stood.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/fault.h"
#include <cstdint>
#include <string_view>
#include <vector>

namespace cubridge::runtime {

/// `text` is the source without its backslash-newlines. Offsets and lines (from 1) have one more entry than it, for its
/// end.
struct SourceText {
    std::string_view source;
    std::string text;
    std::vector<std::uint32_t> offset, line;
};

/// "line 12: message", of kind "gate".
Fault gate_fault(std::size_t line, std::string message, std::string hint = {});

/// Refuses what two readers of a text might understand in two ways: NUL and other control characters, a CR that ends a
/// line by itself, trigraphs, blanks between a backslash and the end of its line, bytes that are not UTF-8, texts above
/// 8 MiB.
Outcome<SourceText> splice(std::string_view source);

} // namespace cubridge::runtime
