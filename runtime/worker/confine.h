// Takes away from this process what compiling does not need.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/worker.h"

namespace cubridge::runtime::worker {

/// At the start of a worker: no descriptor above `keep`, low priority, the first to go when memory runs out, killed
/// when the thread that started it ends.
void settle(int keep);

/// Before NVRTC is loaded: no core dumps, no file written, few descriptors, at most `memory` bytes of address space
/// (0: no limit).
void limit_resources(std::uint64_t memory, Confinement& confinement);

/// For the rest of the process's life: no sockets, no processes, no files but those below `folder`, to read. Needs a
/// process of one thread for Landlock; without Landlock no file can be opened at all.
void lock_down(const std::string& folder, Confinement& confinement);

/// For a process that runs kernels, before it has threads: no file written but devices and what describes itself
/// (/dev, /proc), no core dumps, no network where Landlock knows it.
void allow_devices(Confinement& confinement);

/// And when the driver has its threads: no socket, no process, nobody else's memory or signals.
void lock_calls(Confinement& confinement);

/// Before a compile: at most `memory` bytes of address space, never more than at the start, and so much more time of
/// the processor: what a host that died can't end must end by itself.
void limit_compile(std::uint64_t memory, std::chrono::milliseconds time);

} // namespace cubridge::runtime::worker
