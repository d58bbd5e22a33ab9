// What a kernel is verified against, compiled beside it. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/generic.h"
#include "cubridge/runtime/verifier.h"
#include "runtime/adapter/compiling.h"

namespace cubridge::runtime {

/// The float64 build of a request and, for kernels from experts with 16-bit outputs, the baseline. One thread.
class References {
public:
    /// Begins to compile.
    References(const ir::Specification& specification, const ir::Request& request,
               const std::shared_ptr<Compiler>& compiler);

    /// Waits; once or more. Faults: those of a compile, and of printing ("unsupported").
    Outcome<void> ready();
    const Built& exact() const { return exact_.built; }
    /// Nothing for outputs of 32 bits, which have none.
    const std::optional<Built>& baseline() const { return baseline_built_; }

private:
    struct Part {
        std::unique_ptr<Compiling> compiling;
        Built built;
        Fault fault; ///< kind empty: none
    };
    static void begin(Part& part, ir::Result<ir::GenericKernel> printed, const std::string& arch,
                      const std::shared_ptr<Compiler>& compiler);
    static Outcome<void> end(Part& part, const char* what);

    Part exact_;
    std::optional<Part> baseline_;
    std::optional<Built> baseline_built_;
};

} // namespace cubridge::runtime
