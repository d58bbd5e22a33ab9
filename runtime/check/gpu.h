// Running the kernels of a plan on a GPU. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/check/image.h"
#include "runtime/driver/library.h"
#include "runtime/driver/memory.h"
#include "runtime/driver/stream.h"
#include <chrono>

namespace cubridge::runtime {

/// A compiled kernel with its plan, loaded.
struct LoadedKernel {
    std::shared_ptr<Library> library;
    std::vector<Kernel> entries; ///< in the plan's order
    ir::launch::Plan plan;
};

struct Launched {
    Outputs outputs;
    std::string wrong; ///< guards, inputs, elements not written, launches that differ; empty: nothing
};

/// One GPU and a stream of its own. One thread.
class Gpu {
public:
    static Outcome<std::unique_ptr<Gpu>> open(const std::shared_ptr<Driver>& driver, int ordinal);

    Outcome<LoadedKernel> load(const std::vector<std::byte>& cubin, const ir::launch::Plan& plan) const;
    /// Two launches of a case under two poisons, or one. Faults: "launch" where the plan's conditions don't hold, and
    /// those of the driver.
    Outcome<Launched> run(const LoadedKernel& kernel, const ir::Specification& specification, const Unit& unit,
                          const Case& c, const std::vector<ir::Argument>& inputs,
                          const std::vector<std::int64_t>& out_shape, int launches);
    /// Of a launch, from when it is enqueued to its end; then the fault is "hang" and the context of no more use. 0:
    /// none.
    void limit(std::chrono::milliseconds longest) { longest_ = longest; }
    const Device& device() const { return context_->device(); }

private:
    Outcome<void> once(const LoadedKernel& kernel, const ir::Request& request, Image& image, int processors,
                       std::byte poison, std::vector<std::byte>& after);
    Outcome<std::shared_ptr<Buffer>> room(std::shared_ptr<Buffer>& buffer, std::size_t bytes) const;

    Outcome<void> wait() const;

    std::shared_ptr<Context> context_;
    std::shared_ptr<Stream> stream_;
    std::chrono::milliseconds longest_{0};
    std::shared_ptr<Buffer> memory_, workspace_; ///< grown as needed, shared by all cases
};

} // namespace cubridge::runtime
