// The text of an asm: PTX that a kernel may use.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cubridge::runtime::gates {

struct Asm {
    std::string text;                                       ///< its literals joined, escapes resolved
    std::vector<std::pair<std::size_t, std::size_t>> lines; ///< where in it a literal begins, and its line
    std::vector<char> operands;                             ///< the letter of each one's constraint, in their order
    bool atomics = false;                                   ///< Declared::ticket
};

/// Throws a Fault ("gate") at the first instruction, register, address or anything else that is not known to be
/// harmless.
void check_ptx(const Asm& assembly);

/// "" where a kernel may use the opcode, its modifiers included; else what is allowed in its place.
std::string instead_of(std::string_view opcode, bool atomics);

} // namespace cubridge::runtime::gates
