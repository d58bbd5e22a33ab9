// Where the worker's executable lies.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace cubridge::runtime::worker {

/// `given`, or the first that can be executed: ../bin/cubridge beside this library, `cubridge` beside it, that of PATH.
/// Empty where there is none.
std::string find_executable(const std::string& given);

} // namespace cubridge::runtime::worker
