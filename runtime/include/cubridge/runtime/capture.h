// Another program, run to its end, and what it said. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/fault.h"
#include <chrono>
#include <vector>

namespace cubridge::runtime {

struct Captured {
    int status = 0;     ///< exit status; 128 + n for signal n
    bool ended = false; ///< it took longer than it may, and was ended
    std::string output; ///< stdout and stderr, as they came
};

/// Runs `arguments[0]`, a path, with this process's environment and nothing on stdin. `longest` 0: for as long as it
/// takes; else it gets a process group of its own, all of which is ended. Faults: "environment" where it can't be
/// started. Any thread.
Outcome<Captured> capture(const std::vector<std::string>& arguments, std::chrono::milliseconds longest = {});

} // namespace cubridge::runtime
