// Types of the names of a kernel. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/lower/facts.h"

namespace cubridge::ir::lower {

/// Scopes of roles, by their statement.
using RoleScopes = std::map<const cuir::Statement*, Scope*>;

/// Gives every variable of the kernel's scopes, every parameter and result of its defs the one type that holds all that
/// is assigned to it. A name without a type stays Unknown. Throws Failure where there is none that holds all.
void infer_types(const cuir::Kernel& kernel, Scope& root, const RoleScopes& roles);

/// The type of a value of `alloc(...)`.
Type type_of_alloc(const syntax::Node& call);
/// The def whose body has this scope; null for other scopes.
Def* def_of(Scope& scope);
/// Each part of a shape, as text.
std::vector<std::string> texts(const syntax::NodePtr& node);

} // namespace cubridge::ir::lower
