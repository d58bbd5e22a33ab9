// Work as a count: the measure of time that does not hang on the machine, and its bound whatever the text.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cubridge::ir {

/// One unit is about a tenth of a microsecond: a node asked for, a step of the text, sixteen elements of an array. One
/// parse has one; used by one thread at a time.
class Meter {
public:
    /// Throws a Failure of kind "limit" once there was more than the limit.
    void spend(std::uint64_t work) {
        used_ += work;
        if (used_ > limit_) refuse();
    }
    std::uint64_t used() const { return used_; }
    bool exhausted() const { return used_ > limit_; }
    void set_limit(std::uint64_t work) { limit_ = work; }

private:
    [[noreturn]] void refuse() const;
    std::uint64_t used_ = 0, limit_ = std::uint64_t{1} << 62;
};

} // namespace cubridge::ir
