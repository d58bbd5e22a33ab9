// Running a kernel against its specification where it can do no harm: on a GPU, in a process of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/launch.h"
#include "cubridge/ir/specification.h"
#include "cubridge/runtime/fault.h"
#include "cubridge/runtime/worker.h"
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cubridge::runtime {

/// A compiled kernel and how it is launched.
struct Built {
    std::vector<std::byte> cubin;
    ir::launch::Plan plan;
};

struct VerifyJob {
    std::shared_ptr<const ir::Specification> specification;
    ir::Request request; ///< with `arch`; as it was asked for: head dims, group, rows, LSE
    Built kernel;
    Built exact;                   ///< ir::generic_kernel() of the request in float64: the reference of large cases
    std::optional<Built> baseline; ///< ir::baseline_kernel(): what errors of a kernel from an expert are held against
    std::string program;           ///< its CuIR, for the sizes of its tiles; empty: the generic kernel
    std::uint64_t seed = 0;        ///< of all numbers; the record names it. 0: a fresh one
    std::chrono::milliseconds deadline{60000}; ///< for all of it
    std::chrono::milliseconds launch{2000};    ///< for one launch
};

struct VerifyResult {
    bool passed = false;
    int cases = 0, against_text = 0;   ///< compared, and how many of those with the text itself in float64
    double ratio = 0;                  ///< worst error over the baseline's, of the 2 allowed
    std::vector<std::string> failures; ///< one line each, the case first; of a kernel that did not pass
    std::vector<std::string> not_done;
    std::uint64_t seed = 0;
    std::string device; ///< "NVIDIA H200"
    int driver = 0;     ///< 13000: the newest CUDA that its driver was made for; 0: not known
    double ms = 0;

    /// "gpu: 23 cases, seed 5, error 1.21 of 2 (NVIDIA H200)", or the first failure.
    std::string record() const;
};

/// Any thread; one job at a time, the others wait. Faults say that nothing can be said of the kernel: "no_driver",
/// "no_device", "memory", "busy", "worker", and "reference" (the float64 build failed). A kernel that faults,
/// hangs or ends the process that ran it has not passed.
class Verifier {
public:
    virtual ~Verifier() = default;
    virtual Outcome<VerifyResult> verify(const VerifyJob& job) = 0;
    /// A job will come: begins what takes long, and returns at once.
    virtual void expect() {}
    /// Of the GPU that it runs kernels on; starts its process. Empty: not known.
    virtual Outcome<std::string> arch() { return std::string(); }
    /// What holds its process back; starts it. For people.
    virtual Outcome<Confinement> confinement() = 0;
};

struct VerifierSettings {
    std::string file;                        ///< the `cubridge` executable, as WorkerSettings::file
    std::string device;                      ///< what CUDA_VISIBLE_DEVICES is to name: a UUID; empty: the first GPU
    std::size_t room = std::size_t{3} << 29; ///< bytes of GPU memory that must be free
};

/// Verifies in a process that is started with the first job, keeps its CUDA context, and is replaced when it dies.
std::shared_ptr<Verifier> open_verifier(VerifierSettings settings);

} // namespace cubridge::runtime
