// SPDX-License-Identifier: Apache-2.0
#include "cache/fork_guard.h"
#include <atomic>
#include <cstdint>
#include <unistd.h>

namespace cubridge::cache {

namespace {

// One word, so that a child sees a consistent pair: process id above; below it "tainted" in the top bit and the calls
// under way.
std::atomic<std::uint64_t> calls{0};
constexpr std::uint64_t TAINTED = std::uint64_t{1} << 31;
constexpr std::uint64_t LOW = 0xffffffff;

} // namespace

Visit::Visit() noexcept {
    const auto self = static_cast<std::uint64_t>(static_cast<std::uint32_t>(getpid())) << 32;
    std::uint64_t before = calls.load(), after;
    do {
        if ((before & ~LOW) == self || before == 0)
            after = self | ((before & LOW) + 1);
        else // the first call in this process: what is counted are the parent's calls, or its taint
            after = self | ((before & LOW) != 0 ? TAINTED : 0) | 1;
    } while (!calls.compare_exchange_weak(before, after));
    safe_ = (after & TAINTED) == 0;
}

Visit::~Visit() {
    // A child that was forked inside a call (by a callback of the host) destroys its parent's visit: it has none of its
    // own to end.
    const auto self = static_cast<std::uint64_t>(static_cast<std::uint32_t>(getpid())) << 32;
    std::uint64_t before = calls.load();
    while ((before & ~LOW) == self && (before & ~TAINTED & LOW) != 0)
        if (calls.compare_exchange_weak(before, before - 1)) break;
}

} // namespace cubridge::cache
