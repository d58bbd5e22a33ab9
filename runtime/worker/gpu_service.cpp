// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker/gpu_service.h"
#include "runtime/check/edges.h"
#include "runtime/check/given.h"
#include "runtime/driver/context.h"
#include "runtime/worker/confine.h"
#include <algorithm>
#include <fmt/format.h>
#include <new>

namespace cubridge::runtime::worker {
namespace {

enum Exit { kServed = 0, kFailed = 7 };

/// Of a run that says nothing of the kernel.
bool of_the_machine(const std::string& kind) {
    static constexpr std::string_view kinds[] = {"no_driver", "no_device", "memory", "busy", "domain"};
    return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

class GpuService {
public:
    Fault prepare(const Hello& hello, Ready& ready) {
        allow_devices(ready.confinement); // before the driver starts threads
        auto driver = Driver::open();
        if (!driver) return driver.fault();
        driver_ = *driver;
        auto context = Context::retain(driver_, 0);
        if (!context) return context.fault();
        context_ = *context; // kept: creating it takes longer than verifying
        auto free = context_->free_memory();
        if (!free) return free.fault();
        if (*free < hello.room)
            return {"memory",
                    fmt::format("{} has {} MiB free, and verifying wants {}", context_->device().name, *free >> 20,
                                hello.room >> 20),
                    "ask for kernels before the pool of keys and values is allocated, or name another GPU in "
                    "CUBRIDGE_VERIFY_GPU"};
        ready.location = context_->device().name;
        ready.identity = context_->device().arch;
        lock_calls(ready.confinement);
        return {};
    }

    Answer examine(const Question& q) {
        Answer out;
        const auto& device = context_->device();
        if (!runs_on(q.request.arch, device.arch)) {
            out.fault = {"no_device",
                         fmt::format("the kernel is for {}, and {} is {}", q.request.arch, device.name, device.arch),
                         "name a GPU of that kind in CUBRIDGE_VERIFY_GPU"};
            return out;
        }
        ir::ParseOptions how;
        how.heads = q.heads;
        how.certify = false; // the library has
        auto specification = ir::Specification::parse(q.source, how);
        if (!specification) {
            out.fault = {"internal", "the specification is refused in the worker: " + specification.error().message,
                         "please report"};
            return out;
        }
        Tiles tiles;
        if (q.tile_rows > 0 && q.tile_keys > 0) tiles = {q.tile_rows, q.tile_keys, std::max(1, q.stages)};
        CheckOptions options;
        options.seed = q.seed;
        options.driver = driver_;
        options.longest_launch = q.launch;
        Given given;
        given.cases = cases_around(**specification, q.request, tiles, q.seed);
        given.kernels.kernel = q.kernel;
        given.kernels.exact = q.exact;
        given.kernels.baseline = q.baseline;
        given.kernels.by_rules = q.baseline.has_value();
        const auto report = check_given(*specification, q.request, options, std::move(given));

        auto& r = out.result;
        r.passed = report.verdict == CheckReport::Verdict::Passed;
        r.against_text = report.against_text;
        r.cases = report.against_text + report.against_f64;
        r.ratio = report.worst_ratio;
        r.failures = report.failures;
        r.not_done = report.not_done;
        r.seed = q.seed;
        r.device = context_->device().name;
        if (const auto version = driver_->version()) r.driver = *version;
        r.ms = report.ms;
        if (report.error) {
            out.spent = true;                                            // whatever it was: another process tells
            const bool of_reference = report.error->kind == "reference"; // no verdict, unless there was one before
            if (of_the_machine(report.error->kind) || (of_reference && r.failures.empty()))
                out.fault = {report.error->kind, report.error->message, report.error->hint};
            else if (r.failures.empty())
                r.failures.push_back(report.error->message);
        }
        return out;
    }

private:
    std::shared_ptr<Driver> driver_;
    std::shared_ptr<Context> context_;
};

} // namespace

int serve_gpu(int socket, const Hello& hello, Ready ready) {
    constexpr auto forever = Clock::time_point::max();
    GpuService service;
    ready.fault = service.prepare(hello, ready);
    if (!send_frame(socket, Message::Ready, write(ready), forever)) return kServed;
    if (!ready.fault.kind.empty()) return kFailed;
    for (;;) {
        const auto frame = receive_frame(socket, forever);
        if (!frame) return frame.fault().kind == "closed" ? kServed : kFailed;
        Question question;
        if (frame->message != Message::Verify || !read(frame->body, question)) return kFailed;
        Answer answer;
        try {
            answer = service.examine(question);
        } catch (const std::bad_alloc&) {
            answer.fault = {"memory", "verifying took more memory than there is"};
            answer.spent = true;
        }
        if (!send_frame(socket, Message::Verified, write(answer), forever)) return kServed;
    }
}

} // namespace cubridge::runtime::worker
