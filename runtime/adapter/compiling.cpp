// SPDX-License-Identifier: Apache-2.0
#include "runtime/adapter/compiling.h"
#include "runtime/registry/thread.h"
#include <new>
#include <system_error>

namespace cubridge::runtime {

Compiling::Compiling(std::shared_ptr<Compiler> compiler, CompileJob job)
    : compiler_(std::move(compiler)), job_(std::move(job)) {
    try {
        thread_ = start_thread("cubridge-compile", [this] { compile(); });
    } catch (const std::system_error&) { // no thread is left
    }
}

Compiling::~Compiling() {
    if (thread_.joinable()) thread_.join();
}

void Compiling::compile() {
    try {
        result_ = compiler_->compile(job_);
    } catch (const std::bad_alloc&) {
        no_memory_ = true;
    } catch (const std::exception& e) {
        result_ = Fault{"internal", std::string("compiling failed: ") + e.what(), "please report the text"};
    }
}

Outcome<CompileResult> Compiling::get() {
    thread_.joinable() ? thread_.join() : compile();
    if (no_memory_) throw std::bad_alloc();
    return std::move(*result_);
}

} // namespace cubridge::runtime
