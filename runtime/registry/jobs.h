// Jobs: work on other threads, named by numbers that are never used again. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/registry/herald.h"
#include <functional>
#include <map>

namespace cubridge::runtime {

/// One job. Shared by those who ask for the same; any thread.
struct Job {
    std::uint64_t number = 0;
    std::atomic<bool> cancelled{false}; ///< asked by the work between its stages
    std::atomic<bool> renewed{false};   ///< what was stored was refused, and is made again: once, should it come back
    std::atomic<bool> make{false};      ///< a caller wants more than what is stored
};

/// Numbers, states and waiting. Any thread. A job stays known for as long as this lives.
class Jobs {
public:
    explicit Jobs(Herald& herald) : herald_(herald) {}
    std::shared_ptr<Job> begin(const std::string& title);
    void stage(const Job& job, const std::string& stage);
    /// Only the first end counts: a job that was cancelled stays so, whatever its work comes to. True if this was it.
    bool end(const Job& job, Verdict verdict);
    bool ended(const Job& job) const;

    /// Misuse where there never was such a job.
    Verdict poll(std::uint64_t number, Progress& progress) const;
    Verdict wait(std::uint64_t number, std::int64_t timeout_ms) const;
    Verdict cancel(std::uint64_t number);
    void cancel_all();
    std::size_t running() const;

private:
    struct Row {
        std::shared_ptr<Job> job; ///< null once it has ended
        std::string title, stage;
        std::optional<Verdict> verdict;
    };
    Progress progress_of(std::uint64_t number, const Row& row) const;

    Herald& herald_;
    mutable std::mutex mutex_;
    mutable std::condition_variable ended_;
    std::map<std::uint64_t, Row> rows_;
    std::size_t running_ = 0;
    std::uint64_t last_ = 0;
};

/// Threads that take work in order. Any thread may add; they start when there is something to do.
class Workers {
public:
    Workers(std::string name, int most) : name_(std::move(name)), most_(most) {}
    ~Workers() { stop(); }
    void add(std::function<void()> work);
    /// Drops what has not begun and joins.
    void stop();

private:
    void run();

    const std::string name_;
    const int most_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::function<void()>> queue_;
    std::vector<std::thread> threads_;
    int idle_ = 0;
    bool stopping_ = false;
};

} // namespace cubridge::runtime
