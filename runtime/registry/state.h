// What an Engine holds. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/adapter.h"
#include "runtime/launch/served_kernel.h"
#include "runtime/registry/counters.h"
#include "runtime/registry/devices.h"
#include "runtime/registry/fork_mark.h"
#include "runtime/registry/jobs.h"
#include "runtime/registry/table.h"
#include "runtime/registry/text.h"

namespace cubridge::runtime {

struct Engine::State {
    explicit State(Settings s);
    ~State();

    // ---- Answers (engine.cpp) ----
    void answer_of(const Slot& slot, const Known& known, Want want, Answer& answer);
    /// What is neither served nor refused: begins work where that is wanted and allowed. Takes `start`.
    void begin(Slot& slot, Want want, Answer& answer);

    // ---- Work, on threads of ours (work.cpp) ----
    void look_up(Slot& slot, const std::shared_ptr<Job>& job);
    void make(Slot& slot, const std::shared_ptr<Job>& job);
    /// Runs `work`; what it throws ends the job.
    void guarded(Slot& slot, const std::shared_ptr<Job>& job, void (State::*work)(Slot&, const std::shared_ptr<Job>&));
    /// Publishes unless the job was cancelled meanwhile, then ends it.
    void finish(Slot& slot, const std::shared_ptr<Job>& job, Known known, Verdict verdict);
    void refuse(Slot& slot, const std::shared_ptr<Job>& job, const Report& report);
    void serve(Slot& slot, const std::shared_ptr<Job>& job, Report report,
               const std::shared_ptr<const ir::Specification>& specification, const ir::Request& request);
    bool wanted(Slot& slot, const Job& job); ///< is it still the slot's job?
    /// The request's arch, from the device where need be; with the device's context. False: the job has ended.
    bool prepare(Slot& slot, const std::shared_ptr<Job>& job, std::shared_ptr<const ir::Specification>& specification,
                 ir::Request& request);
    /// What runs kernels for this device (-1: the first GPU). One a GPU; any thread.
    std::shared_ptr<Verifier> verifier_for(int device);
    /// What became of the stage that runs kernels.
    void count_verified(const Report& report);
    void trace(const Report& report, const ir::Specification& specification, const ir::Request& request) const;

    const ForkMark fork;
    const Settings settings;
    Herald herald;
    Counters counters;
    Texts texts;
    Table table;
    Jobs jobs;
    std::unique_ptr<cache::Store> store;
    std::unique_ptr<cache::Locks> locks;
    std::shared_ptr<Compiler> compiler;
    Devices devices;
    std::atomic<std::uint64_t> generation{1};
    std::atomic<bool> sealed{false};

    std::mutex verifying; ///< of the map alone
    std::map<std::string, std::shared_ptr<Verifier>> verifiers;

    std::mutex start; ///< of the beginning and the end of work on a slot
    std::map<Slot*, std::shared_ptr<Job>> running;
    std::deque<std::unique_ptr<ServedKernel>> kernels; ///< under `start`

    Workers loaders, makers; // last: they stop before what they use goes
};

} // namespace cubridge::runtime
