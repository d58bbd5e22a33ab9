// The GPUs that an engine has touched. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/driver/context.h"
#include <map>
#include <mutex>

namespace cubridge::runtime {

/// Opens the driver and retains primary contexts with their first use, which is to happen on threads of ours only.
class Devices {
public:
    /// The open and initialised driver.
    Outcome<std::shared_ptr<Driver>> driver();
    Outcome<std::shared_ptr<Context>> context(int ordinal);
    /// Multiprocessors of a device whose context is retained; 0 where it is not. Calls no CUDA.
    int multiprocessors(int ordinal) const;

private:
    mutable std::mutex mutex_;
    std::shared_ptr<Driver> driver_;
    std::map<int, std::shared_ptr<Context>> contexts_;
};

} // namespace cubridge::runtime
