// Running the kernels of a plan on a GPU. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/verifier.h"
#include "runtime/check/company.h"
#include "runtime/check/image.h"
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

/// Another build of a kernel.
struct Delayed {
    LoadedKernel kernel;
    CUdeviceptr seed_at = 0; ///< where it reads the seed of its delays; 0: it has none
};

/// Launches of another build, which are to leave what a launch of the kernel leaves; each has a seed of its own.
struct Repeats {
    const Delayed& build;
    int launches = 1;
    std::uint64_t seed = 1;
    std::chrono::milliseconds longest{10000}; ///< for one launch, where no limit() is set
};

/// One GPU and a stream of its own. One thread.
class Gpu {
public:
    static Outcome<std::unique_ptr<Gpu>> open(const std::shared_ptr<Driver>& driver, int ordinal);

    Outcome<LoadedKernel> load(const std::vector<std::byte>& cubin, const ir::launch::Plan& plan);
    /// One that ir::lower::with_delays() made.
    Outcome<Delayed> load_delayed(const Built& built);
    /// Two launches of a case under two poisons, or one. Faults: "launch" where the plan's conditions don't hold, and
    /// those of the driver.
    Outcome<Launched> run(const LoadedKernel& kernel, const ir::Specification& specification, const Unit& unit,
                          const Case& c, const std::vector<ir::Argument>& inputs,
                          const std::vector<std::int64_t>& out_shape, int launches);
    /// What the first launch that differs leaves otherwise, in any byte, with its seed; empty: none does. Faults as of
    /// run(), with the seed.
    Outcome<std::string> repeat(const LoadedKernel& kernel, const Repeats& repeats,
                                const ir::Specification& specification, const Unit& unit, const Case& c,
                                const std::vector<ir::Argument>& inputs, const std::vector<std::int64_t>& out_shape);
    /// Keeps a load beside the launches of repeat() from now on.
    Outcome<void> accompany(Compiler& compiler);
    /// Of a launch, from when it is enqueued to its end; then the fault is "hang" and the context of no more use. 0:
    /// none.
    void limit(std::chrono::milliseconds longest) { longest_ = longest; }
    const Device& device() const { return context_->device(); }

private:
    Outcome<void> once(const LoadedKernel& kernel, const ir::Request& request, Image& image, int processors,
                       std::byte poison, std::vector<std::byte>& after);
    Outcome<void> sow(const Repeats& repeats, const std::uint32_t& seed) const;
    Outcome<std::shared_ptr<Buffer>> room(std::shared_ptr<Buffer>& buffer, std::size_t bytes) const;

    Outcome<void> wait() const;

    std::shared_ptr<Context> context_;
    std::shared_ptr<Stream> stream_;
    std::chrono::milliseconds longest_{0};
    std::shared_ptr<Buffer> memory_, workspace_;      ///< grown as needed, shared by all cases
    std::vector<std::shared_ptr<Library>> libraries_; ///< all that was loaded
    std::unique_ptr<Company> company_;
};

/// After a launch that never ends: the driver would wait for it before it took back what it uses, so all of that is
/// kept until the process ends.
void abandon(std::unique_ptr<Gpu> gpu);

} // namespace cubridge::runtime
