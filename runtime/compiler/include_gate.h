// Keeps untrusted CUDA text from reading the host's files through the compiler.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/fault.h"
#include <string_view>
#include <vector>

namespace cubridge::runtime {

/// Whether `source` may be given to a compiler that would read any file which the source names. A fault ("gate") names
/// the first offending line. Pure; linear in the text. What passes:
///   - #include of a literal name in `allowed`, in <> or quotes, and __has_include of one in #if; never through a
///   macro;
///   - the directives define, undef, if, ifdef, ifndef, elif, else, endif, error, warning, pragma; not line, embed,
///   import;
///   - #if over numbers, `defined` and macros of numbers: a macro that calls others could paste __has_include together;
///   - pragmas about unrolling and diagnostics, also as _Pragma("...");
///   - asm whose text is written out as literals, without .include and .incbin.
/// Where two compilers might read a text in two ways (splice() names some), it is refused: no generated kernel needs
/// it.
Outcome<void> include_gate(std::string_view source, const std::vector<std::string>& allowed);

} // namespace cubridge::runtime
