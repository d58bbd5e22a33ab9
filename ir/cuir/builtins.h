// The functions of the language by name. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/code.h"

namespace cubridge::ir::cuir {

struct Signature {
    Builtin builtin;
    const char* name;
    std::vector<const char*> params; ///< by position or by name
    int required;                    ///< of them
    bool variadic = false;           ///< further positional arguments; `params` are then by name only, after them
};
const Signature* find_builtin(std::string_view name);
/// An operator of the table, by its name or by its CuIR spelling ("maximum", "where", "tanh_approx").
const OpInfo* find_operator(std::string_view name);

} // namespace cubridge::ir::cuir
