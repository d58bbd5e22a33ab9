// What a command works with on this machine: the store, the compiler, the GPU. Each is opened when it is first asked
// for. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bindings/cli/options.h"
#include "bindings/cli/terminal.h"
#include "cubridge/cache/lock.h"
#include "cubridge/cache/open_store.h"
#include "cubridge/runtime/compiler.h"
#include "cubridge/runtime/driver.h"
#include "cubridge/runtime/tune.h"
#include "cubridge/runtime/verifier.h"
#include "cubridge/runtime/worker.h"
#include <memory>

namespace cubridge::cli {

class Machine {
public:
    Machine(const Options& options, const Terminal& progress) : options_(options), progress_(progress) {}

    cache::Store& store();
    cache::Locks& locks();
    /// Opens NVRTC, or starts a worker, with its first compile: a kernel that is stored needs none.
    std::shared_ptr<runtime::Compiler> compiler();
    /// The driver's first GPU, or why there is none.
    const runtime::Outcome<runtime::Device>& gpu();
    /// What `adapt --tune` measures with. Faults: "no_device" and its kin; "arch" where the GPU is not what kernels are
    /// asked for.
    runtime::Outcome<std::shared_ptr<runtime::Measurer>> measurer();
    /// What `adapt --verify` runs kernels with: a process that is this executable, on the GPU that CUBRIDGE_VERIFY_GPU
    /// names, or the first.
    std::shared_ptr<runtime::Verifier> verifier();
    std::shared_ptr<runtime::Driver> driver() { return gpu(), driver_; }
    /// Of the request, of the GPU, or sm_90a.
    std::string arch();
    /// What stores and compilers complained about, as lines.
    const std::vector<std::string>& complaints() const { return complaints_; }

private:
    const Options& options_;
    const Terminal& progress_;
    std::unique_ptr<cache::Store> store_;
    std::unique_ptr<cache::Locks> locks_;
    std::shared_ptr<runtime::Compiler> compiler_;
    std::shared_ptr<runtime::WorkerCompiler> worker_;
    std::shared_ptr<runtime::Driver> driver_;
    std::optional<runtime::Outcome<runtime::Device>> gpu_;
    std::shared_ptr<runtime::Measurer> measurer_;
    std::shared_ptr<runtime::Verifier> verifier_;
    std::vector<std::string> complaints_;
};

/// $CUBRIDGE_NVRTC and $CUDA_HOME, as the command hands them to the library, which reads no environment itself.
runtime::NvrtcSettings nvrtc_settings();

/// Workers that are this executable.
std::shared_ptr<runtime::WorkerCompiler> worker_compiler(std::shared_ptr<runtime::Compiler> otherwise = nullptr);

} // namespace cubridge::cli
