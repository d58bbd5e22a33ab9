// What of the argument block the launch itself makes: tensor maps and the ticket. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/ir/launch.h"
#include "cubridge/ir/specification.h"
#include "cubridge/runtime/status.h"
#include "runtime/driver/context.h"
#include <array>
#include <cstdint>

namespace cubridge::runtime {

/// A tensor map in numbers (docs/kernel-abi.md): all that its encoding depends on.
struct MapNumbers {
    std::uint64_t address = 0;
    std::array<std::uint64_t, 5> dims{};
    std::array<std::uint64_t, 4> strides{}; ///< bytes, of dims 1 to 4
    std::uint32_t rows = 0;                 ///< of the box
    int by = 0, bh = 0;                     ///< what a request adds to the coordinates of rows and of heads
    bool wide = false;                      ///< k and v: 256 bytes at a time into the L2 cache
    bool half = false;                      ///< fp16, else bf16
    bool operator==(const MapNumbers&) const = default;
};

/// Of one map of a plan, by the tensors and counts of `block`. Unsupported names the tensor and what of it no map has.
Verdict numbers_of(const ir::launch::Map& map, const ir::Request& request, const ir::abi::cb_args& block,
                   MapNumbers& out);

/// Fills `block.map`. The thread keeps the last maps of each of a few kernels (`kernel` tells them apart, nothing is
/// read there) and encodes only what has changed. Unsupported: the driver has no tensor maps, or none of such a tensor.
Verdict encode_maps(const Symbols& cuda, const ir::launch::Plan& plan, const ir::Request& request, const void* kernel,
                    ir::abi::cb_args& block);

/// Points `block.ticket` into the `bytes` of `block.workspace`, where the plan has a ticket.
void place_ticket(const ir::launch::Plan& plan, std::int64_t bytes, ir::abi::cb_args& block);
/// Enqueues what sets it to 0; nothing where there is none. `context` must be current. A stream that is being captured
/// is fine.
Outcome<void> zero_ticket(const Context& context, const ir::abi::cb_args& block, CUstream stream);

} // namespace cubridge::runtime
