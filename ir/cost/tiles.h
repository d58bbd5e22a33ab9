// Which key tiles the work items of a kernel visit at given sizes: its own statements about items and key ranges,
// computed with numbers. Private to ir/cost. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/program.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cubridge::ir::cost {

/// Integers by name: sizes, constants, operands whose value is known; "x0[]": whatever is read of x0.
using Numbers = std::map<std::string, std::int64_t>;

struct Item {
    double tiles = 0, masked = 0; ///< key tiles, and how many of them need the mask
    bool operator==(const Item&) const = default;
};

struct Items {
    std::int64_t batch = 0, heads = 0, rows = 0; ///< work items along each
    std::string order;
    std::vector<std::vector<Item>> of_head; ///< of a few heads, of every block of rows
    bool guessed = false;                   ///< what data decide about tiles was guessed

    const Item& at(std::int64_t head, std::int64_t row) const {
        const auto sample = static_cast<std::size_t>(head * static_cast<std::int64_t>(of_head.size()) / heads);
        return of_head[sample][static_cast<std::size_t>(row)];
    }
};

/// `numbers` has the sizes B, Hq, Hk, Sq, Sk; the kernel's constants are added. Nothing: the kernel draws no items,
/// or has more tiles to be asked about than the model takes the time for.
std::optional<Items> items_of(const cuir::Kernel& kernel, Numbers numbers);

/// An integer expression, or nothing where something in it is unknown.
std::optional<std::int64_t> number_of(const syntax::NodePtr& node, const Numbers& numbers);
/// The kernel's constants and what its first statements make of them and of `numbers`.
Numbers known_in(const cuir::Kernel& kernel, Numbers numbers);

} // namespace cubridge::ir::cost
