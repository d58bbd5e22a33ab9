// The figures of an engine, by the names of docs/operations.md. Those of what is not built stay 0.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/registry/state.h"

namespace cubridge::runtime {

std::vector<Figure> Engine::figures() const {
    auto& s = *state_;
    std::vector<Figure> out;
    const auto count = [&](const char* name, std::uint64_t value) { out.push_back({name, value, false}); };
    const auto gauge = [&](const char* name, std::uint64_t value) { out.push_back({name, value, true}); };
#define CUBRIDGE_FIGURE(name) count(#name, s.counters.sum(Counter::name));
    CUBRIDGE_COUNTERS(CUBRIDGE_FIGURE)
#undef CUBRIDGE_FIGURE
    for (const char* name : {"hits_bundle", "hits_remote", "worker_starts", "worker_crashes", "worker_kills",
                             "stale_refused", "remote_requests", "remote_failures", "llm_requests", "llm_failures",
                             "llm_tokens_in", "llm_tokens_out", "llm_cost_micros"})
        count(name, 0);
    const auto store = s.store->stats();
    const auto whole = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
    count("store_writes", whole(store.writes));
    count("store_write_failures", whole(store.write_failures));
    count("store_quarantined", whole(store.quarantined));
    count("untrusted_refused", whole(store.untrusted_refused));

    std::uint64_t loaded = 0, fallback = 0, code = 0, host = 0;
    s.table.each([&](const Slot& slot) {
        const Known& known = *slot.known.load(std::memory_order_acquire);
        if (known.kind != Known::Kind::Served) return;
        const auto& state = known.kernel->state();
        const bool on_device = state.loaded.context != nullptr;
        loaded += on_device;
        fallback += known.reasons != 0;
        code += on_device ? state.artifact.cubin.size() : 0;
        host += state.artifact.cubin.size() + state.artifact.cuda.size() + state.report.size();
    });
    gauge("kernels_loaded", loaded);
    gauge("kernels_on_fallback", fallback);
    gauge("jobs_running", s.jobs.running());
    gauge("generation", generation());
    gauge("sealed", s.sealed ? 1 : 0);
    gauge("device_code_bytes", code);
    gauge("host_bytes", host);
    gauge("store_bytes", whole(store.bytes));
    gauge("remote_down", 0);
    return out;
}

} // namespace cubridge::runtime
