// Kernels run in a worker on a real GPU: right ones pass, whatever the seed; wrong ones do not, and what they do to
// their process this one does not notice, with work of its own on the same GPU. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/candidate.h"
#include "cubridge/runtime/driver.h"
#include "cubridge/runtime/verifier.h"
#include "runtime/adapter/references.h"
#include "runtime/driver/memory.h"
#include "runtime/driver/stream.h"
#include "tests/gpu/check.h"
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

using namespace cubridge;
using namespace cubridge::runtime;
using Clock = std::chrono::steady_clock;

namespace {

constexpr char kTexts[][600] = {
    R"(
import torch
def attention(q, k, v, reach=200):
    group = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]
    return torch.softmax(s.masked_fill((j > i) | (i - j >= reach), float("-inf")), -1) @ v
)",
    R"(
import torch
def attention(q, k, v, prefix: int):
    group = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]
    return torch.softmax(s.masked_fill((j > i) & (j >= prefix), float("-inf")), -1) @ v
)",
    R"(
import torch
def attention(q, k, v, doc):
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]
    s = 30.0 * torch.tanh(s / 30.0)
    return torch.softmax(s.masked_fill((j > i) | (doc[i] != doc[j]), float("-inf")), -1) @ v
)",
    R"(
import torch
def attention(q, k, v):
    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5 - 4.0
    return torch.sigmoid(s).masked_fill(j > i, 0.0) @ v
)"};

/// A kernel by rules with what it is verified against.
struct Made {
    std::shared_ptr<const ir::Specification> specification;
    ir::Request request;
    std::string cuda, program;
    std::vector<std::byte> cubin; ///< of `cuda` as it is
    ir::launch::Plan plan;
    std::unique_ptr<References> references;
};

struct Machine {
    std::shared_ptr<Compiler> compiler;
    std::shared_ptr<Driver> driver;
    std::shared_ptr<Verifier> verifier;
    std::string arch;
};

std::string make(Machine& m, const char* text, ir::DType dtype, Made& out) {
    ir::Source source;
    source.text = text;
    auto specification = ir::Specification::parse(source);
    if (!specification) return specification.error().message;
    out.specification = *specification;
    auto& r = out.request;
    r.q_dtype = r.kv_dtype = r.o_dtype = dtype;
    r.head_dim = r.head_dim_v = 128;
    r.arch = m.arch;
    if (std::strstr(text, "group") != nullptr) r.group = 4;
    const auto experts = ir::Candidate::experts(**specification, r);
    if (!experts) return experts.error().message;
    const auto candidate = ir::Candidate::transfer(**specification, r, experts->front());
    if (!candidate) return candidate.error().message;
    auto lowered = candidate->lower(**specification, r);
    if (!lowered) return lowered.error().message;
    out.cuda = std::move(lowered->kernel.cuda);
    out.plan = std::move(lowered->kernel.plan);
    out.program = candidate->program();
    out.references = std::make_unique<References>(**specification, r, m.compiler);
    const auto ready = out.references->ready();
    return ready ? "" : ready.fault().text();
}

/// Verifies the kernel with edits, of which each is for a text that stands there once.
Outcome<VerifyResult> verify(Machine& m, Made& made, const std::vector<std::pair<std::string, std::string>>& edits = {},
                             std::uint64_t seed = 0) {
    CompileJob job;
    job.source = made.cuda;
    job.arch = made.request.arch;
    for (const auto& [from, to] : edits) {
        const auto at = job.source.find(from);
        if (at == job.source.npos || job.source.find(from, at + 1) != job.source.npos)
            return Fault{"test", "`" + from + "` does not stand there once"};
        job.source.replace(at, from.size(), to);
    }
    std::vector<std::byte> cubin = made.cubin;
    if (cubin.empty() || !edits.empty()) {
        auto compiled = m.compiler->compile(job);
        if (!compiled) return compiled.fault();
        cubin = std::move(compiled->cubin);
        if (edits.empty()) made.cubin = cubin;
    }
    VerifyJob v;
    v.specification = made.specification;
    v.request = made.request;
    v.kernel = {std::move(cubin), made.plan};
    v.exact = made.references->exact();
    v.baseline = made.references->baseline();
    v.program = made.program;
    v.seed = seed;
    return m.verifier->verify(v);
}

std::string rights(Machine& m) {
    double worst = 0, slowest = 0;
    std::vector<double> times;
    int runs = 0;
    for (const char* text : kTexts)
        for (const ir::DType dtype : {ir::DType::BF16, ir::DType::F16}) {
            Made made;
            if (auto wrong = make(m, text, dtype, made); !wrong.empty()) return wrong;
            for (int again = 0; again < 2; ++again) {
                const auto result = verify(m, made);
                if (!result) return result.fault().text();
                if (!result->passed) return "seed " + std::to_string(result->seed) + ": " + result->record();
                worst = std::max(worst, result->ratio);
                times.push_back(result->ms);
                slowest = std::max(slowest, result->ms);
                ++runs;
            }
        }
    std::sort(times.begin(), times.end());
    std::printf("        %d runs with fresh seeds: worst error %.2f of 2, median %.0f ms, slowest %.0f ms\n", runs,
                worst, times[times.size() / 2], slowest);
    CHECK(worst <= 1.6);
    return "";
}

struct Wrong {
    const char* what;
    int text;
    std::vector<std::pair<std::string, std::string>> edits;
    const char* says; ///< in the first failure; empty: anything
};

std::string wrongs(Machine& m) {
    const std::vector<Wrong> all = {
        {"scale",
         0,
         {{"const float unit = LOG2E / sqrtf((float)D);", "const float unit = 1.02f * LOG2E / sqrtf((float)D);"}},
         ""},
        {"key head of the group",
         1,
         {{"copy_async(Ks[s], K.rows(b, h / G,", "copy_async(Ks[s], K.rows(b, h % Hk,"}},
         ""},
        {"last row of values",
         0,
         {{"V.rows(b, h / G, before * BN, (before + 1) * BN), Sk,",
           "V.rows(b, h / G, before * BN, (before + 1) * BN), Sk - (Sk % 2),"}},
         ""},
        {"ticket left", 1, {{"ticket[0] = 0, ticket[1] = 0;", "ticket[1] = 0;"}}, ""},
        {"writes beyond its rows",
         0,
         {{"copy_async(Out.rows(b, h, m * BM + g * R, m * BM + (g + 1) * R), Sq, Qs[q][g]);",
           "copy_async(Out.rows(b, h, m * BM + g * R, m * BM + (g + 1) * R), Sq + 1, Qs[q][g]);"}},
         ""},
        {"endless where it is long",
         1,
         {{"            wait_stores<0>();", "            if (w > 0 && Sk > 256) while (*(volatile int*)args.ticket >= "
                                            "0) {}\n            wait_stores<0>();"}},
         "did not end within"},
        {"trap",
         0,
         {{"    begin_roles();\n", "    begin_roles();\n    if (Sk == 257) asm volatile(\"trap;\");\n"}},
         ""},
        {"address of nothing",
         2,
         {{"    begin_roles();\n", "    begin_roles();\n    if (Sk > 200) *(volatile int*)8 = 1;\n"}},
         ""}};
    std::string missed;
    std::map<int, Made> texts;
    for (const Wrong& w : all) {
        Made& made = texts[w.text];
        if (made.cuda.empty())
            if (auto wrong = make(m, kTexts[w.text], ir::DType::F16, made); !wrong.empty()) return wrong;
        const auto begin = Clock::now();
        const auto result = verify(m, made, w.edits);
        const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
        if (!result) return std::string(w.what) + ": " + result.fault().text() + "\n" + result.fault().detail;
        std::printf("        %-26s %s (%.0f ms)\n", w.what, result->record().substr(0, 170).c_str(), ms);
        if (result->passed || result->record().find(w.says) == std::string::npos) missed += std::string(w.what) + " ";
        const auto next = verify(m, made, {}, 3);
        if (!next) return std::string("after ") + w.what + ": " + next.fault().text();
        if (!next->passed) return std::string("after ") + w.what + ": " + next->record();
    }
    return missed.empty() ? "" : "passed: " + missed;
}

/// Copies to the GPU and back, as long as the body takes; answers what went wrong, and says how long copies took.
template <class Body> std::string beside_work(Machine& m, Body body) {
    const auto context = Context::retain(m.driver, 0);
    if (!context) return context.fault().text();
    std::atomic<bool> done{false};
    std::string wrong;
    std::vector<double> steps;
    std::thread host([&] {
        const ScopedContext current(**context);
        const auto stream = Stream::create(*context);
        const auto buffer = Buffer::allocate(*context, 1 << 20);
        if (!current.state() || !stream || !buffer) {
            wrong = "no stream or memory";
            return;
        }
        std::vector<std::uint32_t> to(1 << 18), from(1 << 18);
        for (std::uint32_t n = 0; !done && wrong.empty(); ++n) {
            std::fill(to.begin(), to.end(), n * 2654435761U);
            const auto begin = Clock::now();
            const bool fine = (*buffer)->upload(to.data(), 1 << 20, (*stream)->handle()) &&
                              (*buffer)->download(from.data(), 1 << 20, (*stream)->handle()) &&
                              (*stream)->synchronise();
            steps.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
            if (!fine || to != from) wrong = "step " + std::to_string(n) + " of the host went wrong";
        }
    });
    const std::string of_body = body();
    done = true;
    host.join();
    std::sort(steps.begin(), steps.end());
    if (!steps.empty())
        std::printf("        the host's own steps (1 MiB there and back): %zu, median %.2f ms, p99.9 %.2f ms, longest "
                    "%.2f ms\n",
                    steps.size(), steps[steps.size() / 2], steps[steps.size() * 999 / 1000], steps.back());
    return wrong.empty() ? of_body : wrong;
}

} // namespace

int main() {
    Machine m;
    const auto driver = Driver::open();
    if (!driver || !(*driver)->device(0)) {
        std::fprintf(stderr, "not run: no GPU\n");
        return gpu::no_gpu;
    }
    m.driver = *driver;
    const Device device = *m.driver->device(0);
    m.arch = device.arch;
    auto compiler = open_nvrtc();
    if (!compiler) {
        std::fprintf(stderr, "not run: %s\n", compiler.fault().text().c_str());
        return gpu::no_gpu;
    }
    m.compiler = *compiler;
    m.verifier = open_verifier({});
    gpu::Checks checks;
    checks.machine(device.name);
    checks.run("the worker is confined", [&]() -> std::string {
        const auto held = m.verifier->confinement();
        if (!held) return held.fault().text();
        std::printf("        %s\n", held->text().c_str());
        return held->seccomp ? "" : held->text();
    });
    checks.run("right kernels pass with any seed", [&] { return rights(m); });
    checks.run("wrong kernels don't, beside the host's own work",
               [&] { return beside_work(m, [&] { return wrongs(m); }); });
    return checks.finish();
}
