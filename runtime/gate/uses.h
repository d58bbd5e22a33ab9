// What the words of a preprocessed text are used for, place by place.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/gate/outline.h"

namespace cubridge::runtime::gates {

/// Before the outline is drawn: words that may stand nowhere, attributes in brackets, launches, names for pointers.
void check_words(const Text& text);

/// With it: who is called, what is read of the grid, memory that is declared inside of functions, pointers made of
/// numbers, assembly.
void check_uses(const Text& text, const Outline& outline, const Declared& declared);

/// The names that `constexpr` defines, wherever.
Constants constants_of(const Text& text);

} // namespace cubridge::runtime::gates
