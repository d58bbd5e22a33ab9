// A load beside what is tested: other warps on its SMs, other traffic to its memory. SPDX-License-Identifier:
// Apache-2.0
#pragma once
#include "cubridge/runtime/compiler.h"
#include "runtime/driver/library.h"
#include "runtime/driver/memory.h"
#include "runtime/driver/stream.h"

namespace cubridge::runtime {

/// On a stream of its own. Its CTAs are single warps of few registers, so that they fit beside a kernel that takes
/// nearly all of an SM; each ends by itself within about a millisecond. One thread.
class Company {
public:
    /// Compiles and loads it. Faults: those of compilers and of the driver.
    static Outcome<std::unique_ptr<Company>> make(const std::shared_ptr<Context>& context, Compiler& compiler);
    /// Waits for its last launch.
    ~Company();

    /// Where nothing of it runs: enqueues `warps` of them.
    Outcome<void> keep(unsigned warps);

    Company(const Company&) = delete;
    Company& operator=(const Company&) = delete;

private:
    Company() = default;

    std::shared_ptr<Context> context_;
    std::shared_ptr<Library> library_;
    std::shared_ptr<Buffer> memory_;
    std::shared_ptr<Stream> stream_;
    Kernel kernel_;
};

} // namespace cubridge::runtime
