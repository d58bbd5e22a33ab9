// A compiler that is opened when something is to be compiled: a process that only serves its store never maps it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/compiler.h"
#include <mutex>

namespace cubridge::runtime {

/// Any thread. What opening answered is kept: no compiler stays no compiler.
class LazyCompiler final : public Compiler {
public:
    explicit LazyCompiler(NvrtcSettings settings) : settings_(std::move(settings)) {}
    Outcome<CompileResult> compile(const CompileJob& job) override { return opened().compile(job); }
    Outcome<std::string> identity() override { return opened().identity(); }
    std::string location() const override {
        const std::lock_guard lock(mutex_);
        return compiler_ != nullptr ? compiler_->location() : std::string();
    }

private:
    Compiler& opened() {
        const std::lock_guard lock(mutex_);
        if (compiler_ == nullptr) {
            auto found = open_nvrtc(settings_);
            compiler_ = found ? *std::move(found) : no_compiler(found.fault());
        }
        return *compiler_;
    }

    const NvrtcSettings settings_;
    mutable std::mutex mutex_;
    std::shared_ptr<Compiler> compiler_;
};

} // namespace cubridge::runtime
