// Knows whether this process was forked while a call was under way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cubridge::cache {

/// Marks a call for its lifetime. In a child of fork, `safe()` is false if some thread of the parent was inside a call
/// at the fork: our mutexes may then be held by threads that don't exist here, and SQLite's process-wide table of file
/// locks, which came along, describes the parent's locks. Between calls nothing of ours is held or open, so a fork then
/// is harmless. The count is process-wide because SQLite's table is. Any thread; never blocks.
class Visit {
public:
    Visit() noexcept;
    ~Visit();
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    bool safe() const { return safe_; }

private:
    bool safe_;
};

} // namespace cubridge::cache
