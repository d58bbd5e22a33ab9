// One run of a trial: sizes that the text accepts, and inputs. Inside the room, and for tests that ask for more runs
// than a trial has. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/execute.h"
#include "ir/expr/expr.h"
#include "ir/spec/state.h"
#include <optional>

namespace cubridge::ir::transfer {

constexpr std::int64_t kBudget = std::int64_t{1} << 22; ///< elements of all temporaries of an evaluation

constexpr std::pair<const char*, int> kSizes[] = {{"B", dims::B},   {"Hq", dims::Hq}, {"Hk", dims::Hk},
                                                  {"Sq", dims::Sq}, {"Sk", dims::Sk}, {"D", dims::D},
                                                  {"Dv", dims::Dv}};

constexpr std::int64_t kLargeHead = 32; ///< texts that demand a larger one are tried on few rows

/// Constants of a program that decide when a reference moves and a tile is tried again: those that are no integers.
inline bool is_limit(const syntax::Param& p) {
    return p.fallback && p.fallback->kind == syntax::Kind::Float;
}

struct Question {
    std::array<std::int64_t, 7> wanted; ///< B, Hk, group, Sq, Sk, D, Dv; bent to what the text demands
    std::int64_t rows = 2, keys = 3;    ///< of a tile: rows of one agent, keys
    std::int64_t stages = 1;
    std::uint64_t seed = 0;
    /// Usual: any numbers up to the lengths. Edges: integers about lengths and multiples of tiles, positions in groups
    /// of about a tile, numbers below 0 and far beyond.
    enum class Draw { Usual, Edges } draw = Draw::Usual;
};

/// The parameter that an input of the specification is: Q, K, V, x0, ...; empty where it is none.
std::string parameter(const Specification& s, int input);
std::vector<Argument> arguments_of(const Specification& s, const cuir::Run& run);

/// Agents that share the rows of a tile.
std::int64_t agents_of(const cuir::Program& program);

/// A run of the program on about those sizes; nothing where they can't be bent to the text, or it refuses all inputs
/// that were drawn. Throws Failure.
std::optional<cuir::Run> run_of(const cuir::Program& program, const Specification& s, const Question& question);

} // namespace cubridge::ir::transfer
