// Exit statuses of the command (docs/command-line.md). SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdexcept>
#include <string>

namespace cubridge::cli {

enum Status : int {
    kDone = 0,
    kUsage = 2,       ///< the command line, or a file that can't be read
    kNotAccepted = 3, ///< a specification
    kNoKernel = 4,    ///< a request that no kernel can serve
    kUnverified = 5,  ///< numbers differ, or a stored row is damaged
    kNotCompiled = 6, ///< the compiler refused what was printed
    kEnvironment = 7, ///< something that is missing on this machine, named
};

/// The status of a failed adaptation, by the kind of its error.
int status_of_kind(const std::string& kind);

/// A command line that can't be obeyed. Thrown within the command, caught in main().
struct Usage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

} // namespace cubridge::cli
