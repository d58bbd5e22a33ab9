// Says each kind of trouble once.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/open_store.h"
#include <array>
#include <mutex>

namespace cubridge::cache {

/// Hands warnings to the host's callback: the first of a kind, and WRITE_FAILED again after an hour. Any thread. An
/// exception of the callback is dropped.
class Warner {
public:
    Warner(std::function<void(const Warning&)> callback, std::function<std::int64_t()> clock)
        : callback_(std::move(callback)), clock_(std::move(clock)) {}
    void say(Trouble trouble, const std::string& path, const std::string& message) noexcept;

private:
    const std::function<void(const Warning&)> callback_;
    const std::function<std::int64_t()> clock_;
    std::mutex mutex_;
    std::array<std::optional<std::int64_t>, 8> said_;
};

} // namespace cubridge::cache
