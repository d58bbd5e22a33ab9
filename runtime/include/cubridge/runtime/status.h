// How a call of the engine ended, told apart by what the caller should do. Numbered as cubridge.h publishes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace cubridge::runtime {

enum class Status : std::int32_t {
    Ok = 0,
    Misuse = 1,
    BadSpec = 2,
    Unsupported = 3,
    Timeout = 4,
    Cancelled = 5,
    Untrusted = 6,
    Environment = 7,
    Cuda = 8,
    Forked = 9,
    Internal = 10
};

/// A status and, unless it is Ok, one sentence for people.
struct Verdict {
    Status status = Status::Ok;
    std::string message;
    explicit operator bool() const { return status == Status::Ok; }
};

} // namespace cubridge::runtime
