// Numbers against the float64 reference: of the scalarised text on any machine, of kernels on a GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/lock.h"
#include "cubridge/cache/store.h"
#include "cubridge/ir/specification.h"
#include "cubridge/runtime/compiler.h"
#include "cubridge/runtime/driver.h"
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cubridge::runtime {

struct CheckOptions {
    std::uint64_t seed = 1; ///< of the plan and of every number; the same seed is the same run
    int cases = 40;         ///< at most
    bool small = false;     ///< only lengths of up to 65 and small head dims, for slow tools around the program
    bool longer = false;    ///< also 4097 and 16384 keys at the real head dims, on a GPU
    int delayed = 0; ///< launches a case of a build with delays where agents meet, of kernels made from an expert
    int threads = 0; ///< for references and compiles; 0: as many as there are cores
    /// Sizes that were given; 0: whatever the text allows. As in complete().
    int heads_q = 0, heads_kv = 0;
    std::string expert; ///< only this one, or the generic kernel; empty: all that there are for the GPU

    /// The GPU to run on; null: the scalarised text is compared with the text, and nothing is launched.
    std::shared_ptr<Driver> driver;
    int device = 0;
    std::chrono::milliseconds longest_launch{0}; ///< beyond it a launch is a failure and the run ends; 0: no limit
    std::shared_ptr<Compiler> compiler;          ///< needed with a driver
    cache::Store* store = nullptr;               ///< where kernels are looked up and kept; may be null
    cache::Locks* locks = nullptr;

    std::function<void(const std::string&)> progress; ///< one line each; called from the calling thread
};

struct CheckReport {
    enum class Verdict { Passed, Failed, NotRun };
    Verdict verdict = Verdict::NotRun;
    std::optional<ir::Error> error;           ///< of NotRun: why. Kinds as Report::error, and Fault::kind
    int planned = 0;                          ///< cases
    int against_text = 0;                     ///< compared with the text itself, in float64 on the CPU
    int against_f64 = 0;                      ///< compared with the float64 build of the kernel
    int kernels = 0;                          ///< compiled, with float64 builds and baselines
    int by_rules = 0;                         ///< of the kernels under test, made from an expert
    std::map<std::string, int> experts;       ///< of those, how many from which
    std::vector<std::string> passed_over;     ///< why not from an expert that comes before, each reason once
    int delayed = 0;                          ///< launches with delays that left what the kernel leaves
    int generic = 0;                          ///< of the kernels under test, printed from the text
    std::vector<std::string> generic_because; ///< each reason once
    /// Largest error over the baseline's; at most 2 passes. The baseline of a kernel made from an expert is
    /// ir::baseline_kernel(), that of a generic one the exact result rounded once. Without a GPU: over 1e-11.
    double worst_ratio = 0;
    std::string worst_case;
    std::vector<std::string> failures; ///< one line each, the case first
    std::vector<std::string> not_done; ///< what this run did not look at, and why
    double ms = 0;
};

/// Runs the plan. `request` says dtypes and the real head dims; groups, rows, empty rows and LSE are varied unless it
/// asks for other than the defaults. Any thread; throws nothing but std::bad_alloc.
CheckReport check(const std::shared_ptr<const ir::Specification>& specification, const ir::Request& request,
                  const CheckOptions& options);

/// The cases that check() would run, one line each, for people.
std::vector<std::string> plan_of_cases(const ir::Specification& specification, const ir::Request& request,
                                       const CheckOptions& options);

} // namespace cubridge::runtime
