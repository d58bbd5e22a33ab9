// One maker per kernel, and a limit on how many work at a time: among the threads and the processes of one user on one
// node. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/digest.h"
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace cubridge::cache {

using Deadline = std::chrono::steady_clock::time_point;
/// Asked between tries, at least every 20 ms; true ends the wait.
using Cancel = std::function<bool()>;

/// A lock that is held. Movable; gives the lock back when destroyed or at `release`. For one thread at a time. If the
/// process dies the kernel gives it back. In a child made by fork it is inert: it neither holds nor releases the
/// parent's lock.
class Lock {
public:
    Lock() noexcept; ///< holds nothing
    Lock(Lock&&) noexcept;
    Lock& operator=(Lock&&) noexcept;
    ~Lock();

    explicit operator bool() const { return state_ != nullptr; }
    /// True if other processes respect it; false if it holds among this process's threads only (no folder, or one that
    /// can't be written).
    bool shared() const;
    void release() noexcept;

private:
    friend class Locks;
    struct State;
    explicit Lock(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

enum class Wait { HELD, TIMED_OUT, CANCELLED };
struct Waited {
    Wait result = Wait::TIMED_OUT;
    Lock lock; ///< set if HELD
};

/// The locks of one store's folder (Store::place().folder): <folder>/lock/<16 hex> for a key, <folder>/lock/slot.<i>
/// for a slot. Any thread; a Lock may outlive it. Nothing throws but std::bad_alloc. A waiter polls, so nobody is first
/// in line; two waiters of one process exclude each other like two of different ones. Folder and files appear with the
/// first lock.
class Locks {
public:
    /// Empty: locks among the threads that share this object.
    explicit Locks(std::string folder);
    ~Locks();
    Locks(const Locks&) = delete;
    Locks& operator=(const Locks&) = delete;

    /// Nothing if somebody has it.
    Lock try_lock(const Digest& key);
    Waited lock(const Digest& key, Deadline deadline, const Cancel& cancel = {});
    /// One of `count` slots (at least one): a counting semaphore. Users of one folder that give different counts share
    /// the lower slots.
    Lock try_slot(int count);
    Waited slot(int count, Deadline deadline, const Cancel& cancel = {});

private:
    friend class Lock;
    struct Table;
    Lock take(const std::string& name);
    std::shared_ptr<Table> table_;
};

} // namespace cubridge::cache
