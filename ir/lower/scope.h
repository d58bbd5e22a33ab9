// Names of a program with their types, by the scope they live in: the kernel, a def in it, a role.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/program.h"
#include "ir/lower/type.h"
#include <map>
#include <string>
#include <vector>

namespace cubridge::ir::lower {

struct Variable {
    Type type;
    int writes = 0;              ///< statements that assign it; 0: a parameter, a size or a constant of the kernel
    bool given = false;          ///< declared by an opening line: a parameter, a loop's counter
    int first = 0;               ///< order of the statement that declares it
    std::vector<Type> carried{}; ///< of a channel: what an entry holds
};

struct Scope;

/// A def: its CUDA is a lambda. Arrays are passed by reference, and so is what it returns, unless that is one scalar or
/// key ranges.
struct Def {
    const cuir::Statement* statement = nullptr;
    Scope* scope = nullptr; ///< of its body
    std::vector<std::string> params;
    std::vector<std::string> results; ///< by reference: names of the lambda's parameters
    std::vector<Type> types;          ///< of what it returns; one, if by value
    bool by_value = false;
    bool called = false;

    bool is_param(const std::string& name) const;
    /// "float (&S)[TILE(BN)], int b": what its lambda takes.
    std::string signature() const;
};

struct Scope {
    Scope* outer = nullptr;
    std::map<std::string, Variable> variables;
    std::map<std::string, Def> defs;

    /// Null: not a variable of this program.
    const Variable* find(const std::string& name) const;
    Variable* find(const std::string& name);
    const Def* find_def(const std::string& name) const;
    Def* find_def(const std::string& name);
};

} // namespace cubridge::ir::lower
