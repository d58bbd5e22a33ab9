// One way through a role: the integers that are known on it, and what its agent has in flight.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/lower/expression.h"
#include "ir/lower/facts.h"
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cubridge::ir::lower {

/// Cells or registers: of cells their indices, a dimension nothing where its index is unknown.
struct Place {
    std::string storage;
    std::vector<std::optional<std::int64_t>> index;
    auto operator<=>(const Place&) const = default; // NOLINT(modernize-use-nullptr)
};

/// Whether two may be the same, or one a part of the other.
bool touch(const Place& a, const Place& b);

/// A copy or a product in flight: all that it reads or writes on this side.
struct Operation {
    std::vector<Place> places;
    auto operator<=>(const Operation&) const = default; // NOLINT(modernize-use-nullptr)
};

struct Path {
    std::map<std::string, std::int64_t> known;
    std::vector<Operation> copies, stores, products; ///< the agent's queues, oldest first
    int taken = 0;                                   ///< entries of channels
    bool broken = false;                             ///< on its way out of the innermost loop
    auto operator<=>(const Path&) const = default;   // NOLINT(modernize-use-nullptr)
};

using Paths = std::set<Path>;

/// How many key tiles items have: the first, all others.
struct Lengths {
    std::int64_t first = 1, then = 1;
};

/// What an integer or a truth value is on a path; nothing: not known. `length(ranges)` is that of item `item`.
std::optional<std::int64_t> value_on(const syntax::Node& node, const Path& path, const Lengths& lengths, int item);

/// What an assignment makes known, and what it makes unknown.
void assign_on(const cuir::Statement& s, Path& path, const Lengths& lengths, int item);

} // namespace cubridge::ir::lower
