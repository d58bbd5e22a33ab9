// Cases for one kernel: where its tiles end, and where the numbers that its text compares positions with lie.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/check/case.h"

namespace cubridge::runtime {

/// What a kernel's work is cut into.
struct Tiles {
    std::int64_t rows = 64, keys = 64; ///< of a work item, of a step
    int stages = 1;                    ///< steps whose keys are held at a time
};

/// Numbers from 2 to 4096 in the masks and scores of the text, the scalars among them that it holds; ascending.
std::vector<std::int64_t> numbers_of(const ir::Specification& specification);

/// Key counts 1, one less and one more than a tile and than all stages, rows likewise, Sq unlike Sk both ways, one
/// position before and behind each number of the text (four at most), 8192 keys and some, CTAs that draw several work
/// items each, requests of unlike lengths, some of none; contents, layouts and operands in turns that `seed` begins.
/// Only what the text allows; small ones, which the CPU can evaluate, among them. Deterministic.
std::vector<Case> cases_around(const ir::Specification& specification, const ir::Request& request, const Tiles& tiles,
                               std::uint64_t seed);

} // namespace cubridge::runtime
