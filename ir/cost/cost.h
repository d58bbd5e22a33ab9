// How long a program is expected to take at given sizes: a model, in which only differences between programs for one
// variant mean something. See docs/choosing.md. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cost/tiles.h"

namespace cubridge::ir::cost {

struct Cost {
    double us = 0;                ///< of one launch
    double tiles = 0, masked = 0; ///< that all work items visit
    bool guessed = false;         ///< what data decide about tiles was guessed
    std::string order;            ///< of work items
};

/// `numbers` has B, Hq, Hk, Sq, Sk and the operands whose value is known. Nothing: no kernel of it draws work items.
std::optional<Cost> cost_of(const cuir::Program& program, const Numbers& numbers);

} // namespace cubridge::ir::cost
