// Static gates for kernels that no rule of this library printed: of their text before it is compiled, of the cubin
// before it is loaded. Pure: they read what they are given and nothing else. What passes, and what they can't see, is
// in docs/gates.md. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/launch.h"
#include "cubridge/runtime/fault.h"
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cubridge::runtime {

/// What a kernel says of itself beforehand. More than that is refused.
struct Declared {
    struct Kernel {
        std::string name;
        int threads = 0;       ///< of a block: its launch bounds allow as many at least
        int shared = 0;        ///< bytes, dynamic
        int static_shared = 0; ///< bytes at most
        int registers = 255;   ///< a thread at most
        int stack = 4096;      ///< bytes a thread at most
        int barriers = 16;     ///< at most
        bool operator==(const Kernel&) const = default;
    };
    std::vector<Kernel> kernels;
    bool ticket = false;  ///< atomics on global memory
    bool grid_yz = false; ///< .y and .z of blockIdx and gridDim mean something
    bool block_yz = false;
    bool tables = false; ///< constant tables beside the kernels, as the generic printer makes them
    bool operator==(const Declared&) const = default;
};

/// What an artifact with this plan declares. `generic`: its CUDA is in the generic printer's form, which has tables and
/// shares a double a thread.
Declared declared_by(const ir::launch::Plan& plan, bool generic = false);

/// Names of the numbers that a text defines as constexpr: memory of its cubin that may be.
using Constants = std::vector<std::string>;

/// Whether `source` may be compiled. A Fault ("gate"): "line L: RULE: what was found", the hint says what to do. The
/// lines are those of the text, of a macro's body where what stands there is used. Linear in the text and in what its
/// macros stand for, which is limited.
Outcome<Constants> text_gate(std::string_view source, const Declared& declared);

/// Whether `cubin`, compiled from a text with these constants, may be loaded. A Fault ("gate"): "cubin: RULE: what was
/// found".
Outcome<void> cubin_gate(std::span<const std::byte> cubin, const Declared& declared, const Constants& constants);

/// Both, of a text with its cubin.
Outcome<void> both_gates(std::string_view source, std::span<const std::byte> cubin, const Declared& declared);

} // namespace cubridge::runtime
