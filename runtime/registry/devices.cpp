// Driver and contexts, once a process.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/registry/devices.h"

namespace cubridge::runtime {

Outcome<std::shared_ptr<Driver>> Devices::driver() {
    const std::lock_guard lock(mutex_);
    if (driver_ == nullptr) {
        auto opened = Driver::open();
        if (!opened) return opened.fault();
        if (const auto ready = (*opened)->initialise(); !ready) return ready.fault();
        driver_ = *std::move(opened);
    }
    return driver_;
}

Outcome<std::shared_ptr<Context>> Devices::context(int ordinal) {
    auto opened = driver();
    if (!opened) return opened.fault();
    const std::lock_guard lock(mutex_);
    if (const auto it = contexts_.find(ordinal); it != contexts_.end()) return it->second;
    auto context = Context::retain(*std::move(opened), ordinal);
    if (!context) return context.fault();
    return contexts_.emplace(ordinal, *std::move(context)).first->second;
}

int Devices::multiprocessors(int ordinal) const {
    const std::lock_guard lock(mutex_);
    const auto it = contexts_.find(ordinal);
    return it == contexts_.end() ? 0 : it->second->device().multiprocessors;
}

} // namespace cubridge::runtime
