// What of a role has to do with its queues: the rest need not be followed. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/program.h"
#include <set>
#include <string>
#include <vector>

namespace cubridge::ir::lower {

/// The call of a statement that is a call of `function`; null of others.
const syntax::Node* effect(const cuir::Statement& s, const char* function);
/// `more, ... = take(channel)`.
bool takes(const cuir::Statement& s);
/// Whether a statement has to do with queues, or with how often others run.
bool matters(const cuir::Statement& s);
/// Names that a block assigns, however deep.
void written_in(const std::vector<cuir::Statement>& body, std::vector<std::string>& out);

struct Slice {
    std::set<std::string> waited;              ///< storage that is waited for
    std::set<const cuir::Statement*> followed; ///< those that change queues or names, or hold such
    std::set<std::string> names; ///< what decides which way is taken, and which cells of such storage are meant

    explicit Slice(const cuir::Statement& role);
};

/// The name of cells or registers, however they are indexed; "x" of `x.T`.
const std::string& storage_of(const syntax::Node& node);

} // namespace cubridge::ir::lower
