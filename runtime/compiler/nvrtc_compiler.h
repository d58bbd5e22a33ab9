// NVRTC inside this process.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/compiler/nvrtc_library.h"
#include <atomic>
#include <mutex>

namespace cubridge::runtime {

class NvrtcCompiler final : public Compiler {
public:
    /// `gated` is false in the tests of what stands behind the gate, and nowhere else.
    explicit NvrtcCompiler(Nvrtc nvrtc, bool gated = true) : nvrtc_(std::move(nvrtc)), gated_(gated) {}

    Outcome<CompileResult> compile(const CompileJob& job) override;
    Outcome<std::string> identity() override;
    std::string location() const override { return nvrtc_.file; }

private:
    Outcome<CompileResult> build(const CompileJob& job);
    Outcome<std::string> probe();

    const Nvrtc nvrtc_;
    const bool gated_;
    std::atomic<unsigned> refused_{0}; ///< bit i: this NVRTC does not know dispensable option i
    std::mutex probing_;
    std::string identity_;
};

} // namespace cubridge::runtime
