// A cubin in the driver, and the kernels in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/driver/context.h"
#include <array>
#include <cstddef>
#include <span>

namespace cubridge::runtime {

/// Where a kernel runs: blocks, threads of one block, and bytes of dynamic shared memory.
struct LaunchShape {
    std::array<unsigned, 3> grid = {1, 1, 1};
    std::array<unsigned, 3> block = {1, 1, 1};
    unsigned shared_bytes = 0;
};

/// One kernel, loaded on its device and ready: launching it allocates and loads nothing. A value, valid while its
/// Library lives. Any thread.
struct Kernel {
    CUfunction function = nullptr;
    int registers = 0;     ///< per thread
    int local_bytes = 0;   ///< per thread: stack and spills
    int static_shared = 0; ///< bytes per block
    int max_threads = 0;   ///< per block, with these registers
};

/// A cubin loaded on one device. Unloaded when it goes: only after every stream has passed the last launch from it.
/// Any thread.
class Library {
public:
    /// Copies `image`. Faults: "artifact" where it is torn or the driver refuses it. Not to be called on a thread that
    /// captures, unless inside a RelaxedCapture.
    static Outcome<std::shared_ptr<Library>> load(std::shared_ptr<Context> context, std::span<const std::byte> image);
    ~Library();

    /// Loads the kernel on the device now (the driver would otherwise do it with the first launch, which a capture
    /// refuses) and lets it have `dynamic_shared` bytes. Faults: "artifact" where the name is missing or the device
    /// can't give them.
    Outcome<Kernel> kernel(const char* name, int dynamic_shared = 0) const;

    /// Where a variable of this name and size lies, also a constant one, for copies from the host. Faults: "artifact"
    /// where there is none.
    Outcome<CUdeviceptr> global(const char* name, std::size_t bytes) const;

    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

private:
    Library(std::shared_ptr<Context> context, CUlibrary handle) : context_(std::move(context)), handle_(handle) {}

    const std::shared_ptr<Context> context_;
    const CUlibrary handle_;
};

/// Enqueues one launch. `arguments` are pointers to the values, in the kernel's order; they are read before this
/// returns. `context` must be current on the thread. A stream that is being captured is fine.
Outcome<void> launch(const Context& context, const Kernel& kernel, const LaunchShape& shape, void** arguments,
                     CUstream stream);

} // namespace cubridge::runtime
