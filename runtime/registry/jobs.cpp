// States of jobs, and the threads that do the work.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/registry/jobs.h"
#include "runtime/registry/thread.h"
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

Verdict unknown(std::uint64_t number) {
    return {Status::Misuse, fmt::format("there is no job {}", number)};
}

} // namespace

std::shared_ptr<Job> Jobs::begin(const std::string& title) {
    const std::lock_guard lock(mutex_);
    auto job = std::make_shared<Job>();
    job->number = ++last_;
    rows_.emplace(job->number, Row{job, title, "waiting", {}});
    ++running_;
    return job;
}

Progress Jobs::progress_of(std::uint64_t number, const Row& row) const {
    Progress p;
    p.job = number;
    p.running = !row.verdict;
    p.status = row.verdict ? row.verdict->status : Status::Ok;
    p.ready = row.verdict && row.verdict->status == Status::Ok ? 1 : 0;
    p.stage = row.title + ": " + row.stage;
    return p;
}

void Jobs::stage(const Job& job, const std::string& stage) {
    Progress progress;
    {
        const std::lock_guard lock(mutex_);
        auto& row = rows_.at(job.number);
        if (row.verdict) return;
        row.stage = stage;
        progress = progress_of(job.number, row);
    }
    herald_.notify(progress);
}

bool Jobs::end(const Job& job, Verdict verdict) {
    Progress progress;
    {
        const std::lock_guard lock(mutex_);
        auto& row = rows_.at(job.number);
        if (row.verdict) return false;
        row.stage = verdict.status == Status::Ok          ? "ready"
                    : verdict.status == Status::Cancelled ? "cancelled"
                                                          : "failed";
        row.verdict = std::move(verdict);
        row.job = nullptr;
        --running_;
        progress = progress_of(job.number, row);
        ended_.notify_all();
    }
    herald_.notify(progress);
    return true;
}

bool Jobs::ended(const Job& job) const {
    const std::lock_guard lock(mutex_);
    return rows_.at(job.number).verdict.has_value();
}

Verdict Jobs::poll(std::uint64_t number, Progress& progress) const {
    const std::lock_guard lock(mutex_);
    const auto it = rows_.find(number);
    if (it == rows_.end()) return unknown(number);
    progress = progress_of(number, it->second);
    return {};
}

Verdict Jobs::wait(std::uint64_t number, std::int64_t timeout_ms) const {
    std::unique_lock lock(mutex_);
    const auto it = rows_.find(number);
    if (it == rows_.end()) return unknown(number);
    const Row& row = it->second; // a map's rows stay where they are
    const auto done = [&] { return row.verdict.has_value(); };
    constexpr std::int64_t kYear = std::int64_t{366} * 24 * 3600 * 1000;
    if (timeout_ms < 0 || timeout_ms > kYear)
        ended_.wait(lock, done);
    else if (!ended_.wait_for(lock, std::chrono::milliseconds(timeout_ms), done))
        return {Status::Timeout, fmt::format("job {} is not done yet: {}", number, row.stage)};
    return *row.verdict;
}

Verdict Jobs::cancel(std::uint64_t number) {
    std::shared_ptr<Job> job;
    {
        const std::lock_guard lock(mutex_);
        const auto it = rows_.find(number);
        if (it == rows_.end()) return unknown(number);
        job = it->second.job;
    }
    if (job == nullptr) return {}; // it is over: nothing to cancel
    job->cancelled = true;
    end(*job, {Status::Cancelled, fmt::format("job {} was cancelled", number)});
    return {};
}

void Jobs::cancel_all() {
    std::vector<std::uint64_t> numbers;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [number, row] : rows_)
            if (!row.verdict) numbers.push_back(number);
    }
    for (const auto number : numbers) cancel(number);
}

std::size_t Jobs::running() const {
    const std::lock_guard lock(mutex_);
    return running_;
}

void Workers::add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    queue_.push_back(std::move(work));
    if (idle_ < static_cast<int>(queue_.size()) && static_cast<int>(threads_.size()) < most_) {
        try {
            threads_.push_back(start_thread(name_, [this] { run(); }));
        } catch (...) { // those that there are do the work, later
            if (!threads_.empty()) return;
            queue_.pop_back();
            throw;
        }
    }
    wake_.notify_one();
}

void Workers::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        ++idle_;
        wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
        --idle_;
        if (stopping_) return;
        const auto work = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        work();
        lock.lock();
    }
}

void Workers::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        queue_.clear();
        wake_.notify_all();
    }
    for (auto& thread : threads_) thread.join();
    threads_.clear();
}

} // namespace cubridge::runtime
