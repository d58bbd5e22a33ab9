// What a ServedKernel holds. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/launch.h"
#include "runtime/driver/library.h"
#include "runtime/launch/binding.h"

namespace cubridge::runtime {

/// A kernel on its device. Empty where a kernel was made for an arch and loaded nowhere.
struct Loaded {
    std::shared_ptr<Context> context;
    std::shared_ptr<Library> library;
    std::vector<Kernel> kernels; ///< as the plan's entries
};

struct ServedKernel::State {
    Artifact artifact;
    Binding binding;
    ir::Request request;
    bool stored = false; ///< came from the store, not from a compiler
    Loaded loaded;
    std::string id, report;
    const void* owner = nullptr; ///< the engine
};

/// More multiprocessors than any GPU has: bounds what an unknown device needs.
inline constexpr int kMostMultiprocessors = 264;

} // namespace cubridge::runtime
