// Jobs.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/c/handles.h"

using namespace cubridge::c;

cubridge_status cubridge_poll(cubridge_context* context, cubridge_job job, cubridge_progress* progress) {
    return guarded([&]() -> Verdict {
        if (auto v = check(context); !v) return v;
        cubridge::runtime::Progress p;
        if (auto v = context->engine->poll(job, p); !v) return v;
        cubridge_progress out{};
        out.job = p.job;
        out.running = p.running ? 1 : 0;
        out.status = static_cast<int32_t>(p.status);
        out.ready = p.ready;
        out.total = p.total;
        p.stage.copy(out.stage, sizeof out.stage - 1);
        return write(out, "progress", kProgress, progress);
    });
}

cubridge_status cubridge_wait(cubridge_context* context, cubridge_job job, int64_t timeout_ms) {
    return guarded([&]() -> Verdict {
        if (auto v = check(context); !v) return v;
        return context->engine->wait(job, timeout_ms);
    });
}

cubridge_status cubridge_cancel(cubridge_context* context, cubridge_job job) {
    return guarded([&]() -> Verdict {
        if (auto v = check(context); !v) return v;
        return context->engine->cancel(job);
    });
}
