// A compile on a thread of its own, beside what else there is to do for a kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/compiler.h"
#include <optional>
#include <thread>

namespace cubridge::runtime {

class Compiling {
public:
    /// Starts at once, on a thread; where there is none, the compile happens in get().
    Compiling(std::shared_ptr<Compiler> compiler, CompileJob job);
    /// Waits: a compiler can't be interrupted.
    ~Compiling();
    Compiling(const Compiling&) = delete;
    Compiling& operator=(const Compiling&) = delete;

    /// Once. Faults are those of Compiler::compile(); throws nothing but std::bad_alloc.
    Outcome<CompileResult> get();

private:
    void compile();

    const std::shared_ptr<Compiler> compiler_;
    const CompileJob job_;
    std::optional<Outcome<CompileResult>> result_;
    bool no_memory_ = false;
    std::thread thread_;
};

} // namespace cubridge::runtime
