// The outline of a preprocessed text: what it declares where, and in what form. Function bodies are not looked into.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/gate.h"
#include "runtime/gate/text.h"

namespace cubridge::runtime::gates {

struct Outline {
    Names types;                            ///< structs, enums, aliases, parameters of templates
    Names callables;                        ///< functions, members
    Names functions;                        ///< those of the namespace
    Names constants;                        ///< of the namespace
    std::vector<bool> judged;               ///< by place: specifiers of declarations whose form is right
    std::size_t abi_begin = 0, abi_end = 0; ///< the definition of the argument block
};

/// Throws a Fault ("gate") where the text declares what it may not: anything but types, functions that run on the
/// device, constants, and the declared kernels, whose only parameter is the argument block.
Outline outline_of(const Text& text, const Declared& declared);

} // namespace cubridge::runtime::gates
