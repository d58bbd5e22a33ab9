// The library's side: a compiler that has workers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/registry/fork_mark.h"
#include "runtime/worker/process.h"
#include <atomic>
#include <map>

namespace cubridge::runtime::worker {

class Workers final : public WorkerCompiler {
public:
    explicit Workers(WorkerSettings settings);
    ~Workers() override;
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    Outcome<CompileResult> compile(const CompileJob& job) override;
    Outcome<std::string> identity() override;
    std::string location() const override;
    Outcome<Confinement> confinement() override;
    std::string executable() const override { return file_; }

    std::vector<int> pids() const; ///< of those that run; for tests

private:
    /// A place for one process, and a turn in it.
    struct Place {
        std::unique_ptr<Process> process;
        bool taken = false;
        std::atomic<int> pid{0};

        void end() {
            pid = 0;
            process.reset();
        }
    };
    class Turn;

    Outcome<CompileResult> in_a_worker(const CompileJob& job, bool& started);
    Outcome<void> start(Place& place, Clock::time_point deadline);
    Outcome<Ready> greeting();
    Fault forked() const;

    const WorkerSettings settings_;
    const std::string file_;
    const ForkMark fork_;

    mutable std::mutex mutex_; ///< of all below; a Place that is taken is its taker's
    std::condition_variable freed_;
    std::vector<Place> places_;
    std::map<std::string, int> killers_; ///< digests of jobs, and how many workers died of each
    std::optional<Ready> ready_;         ///< of the worker that was started last
    std::optional<Fault> broken_;        ///< why none could be started
    Clock::time_point again_{};          ///< until then none is tried
};

} // namespace cubridge::runtime::worker
