// Choosing a configuration on a real GPU: made, measured, kept, found again. SPDX-License-Identifier: Apache-2.0
#include "cubridge/cache/open_store.h"
#include "cubridge/runtime/tune.h"
#include "tests/gpu/check.h"
#include <algorithm>

using namespace cubridge;
using namespace cubridge::runtime;

namespace {

constexpr char kCausal[] = R"(
import torch
def attention(q, k, v):
    group = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]
    return torch.softmax(s.masked_fill(j > i, float("-inf")), -1) @ v
)";
constexpr char kDocuments[] = R"(
import torch
def attention(q, k, v, doc, slope):
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]
    s = s + slope[:, None, None] * (j - i)
    return torch.softmax(s.masked_fill((j > i) | (doc[i] != doc[j]), float("-inf")), -1) @ v
)";

struct Bench {
    std::unique_ptr<Measurer> measurer;
    std::unique_ptr<cache::Store> store;
    AdaptOptions options;
    std::string arch;
};

ir::Result<std::shared_ptr<const ir::Specification>> parsed(const char* text) {
    ir::Source source;
    source.text = text;
    return ir::Specification::parse(source);
}

std::string tunes(Bench& b, const char* text, const ir::Request& request, const ir::Shape& shape) {
    const auto spec = parsed(text);
    if (!spec) return spec.error().message;
    const auto report = tune(*spec, request, b.options, *b.measurer, shape);
    if (report.error) return report.error->message;
    CHECK(report.status == Report::Status::Ready);
    CHECK(report.artifact && report.artifact->tuning);
    const Tuning& t = *report.artifact->tuning;
    for (const auto& r : t.rows)
        std::printf("        %-28s model %8.1f us, measured %8.1f us, spread %4.1f%%, %d launches%s%s%s\n",
                    r.configuration.name.c_str(), r.configuration.us, r.us, 100 * r.spread, r.launches,
                    r.chosen ? ", chosen" : "", r.refused.empty() ? "" : ": ", r.refused.c_str());
    for (const auto& w : report.warnings) std::printf("        %s\n", w.c_str());
    CHECK(t.device == b.measurer->device());
    CHECK(t.rows.size() >= 2);
    CHECK(std::count_if(t.rows.begin(), t.rows.end(), [](const auto& r) { return r.chosen; }) == 1);
    // What spills registers is refused; the others are measured.
    CHECK(
        std::all_of(t.rows.begin(), t.rows.end(), [](const auto& r) { return r.launches > 0 || !r.refused.empty(); }));
    for (const auto& r : t.rows) {
        if (r.refused.rfind("measure: ", 0) == 0) return r.configuration.name + ": " + r.refused;
        CHECK(r.launches == 0 || (r.us > 1 && r.us < 1e5 && r.spread < 0.5));
        CHECK(!r.chosen || r.configuration.name == report.artifact->build.expert);
    }
    // Nobody who is slower beyond doubt was chosen.
    const auto chosen = std::find_if(t.rows.begin(), t.rows.end(), [](const auto& r) { return r.chosen; });
    CHECK(t.rows[0].launches == 0 || chosen->us <= t.rows[0].us);
    // A plain look-up finds it, without a compiler; tuning again measures nothing.
    AdaptOptions only;
    only.store = b.store.get();
    only.device = t.device;
    const auto found = adapt(*spec, request, only);
    CHECK(found.artifact && found.artifact->id == report.artifact->id);
    const auto again = tune(*spec, request, b.options, *b.measurer, shape);
    CHECK(again.artifact && again.artifact->id == report.artifact->id && again.total_ms < 1000);
    return "";
}

} // namespace

int main() {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const auto driver = Driver::open();
    const auto devices = driver ? (*driver)->devices() : Outcome<std::vector<Device>>(driver.fault());
    if (!devices) {
        std::printf("skipped, no GPU: %s\n", devices.fault().text().c_str());
        return gpu::no_gpu;
    }
    gpu::Checks checks;
    Bench b;
    checks.run("measurer, compiler, store", [&] {
        checks.machine(devices->front().name);
        b.arch = devices->front().arch;
        auto measurer = gpu_measurer(*driver);
        CHECK_DONE(measurer);
        b.measurer = std::move(*measurer);
        auto compiler = open_nvrtc();
        CHECK_DONE(compiler);
        b.options.compiler = *compiler;
        cache::OpenOptions memory;
        memory.folder = "";
        b.store = cache::open_store(std::move(memory));
        b.options.store = b.store.get();
        return std::string();
    });
    if (b.options.compiler == nullptr) return checks.finish();
    ir::Request r;
    r.head_dim = r.head_dim_v = 128;
    r.group = 4;
    r.arch = b.arch;
    checks.run("causal, 2 requests of 1024", [&] { return tunes(b, kCausal, r, {2, 1024, 1024, 2}); });
    r.lse = ir::Request::Lse::Natural;
    checks.run("causal with an LSE, rows and keys that fill no tile", [&] {
        return tunes(b, kCausal, r, {1, 777, 1333, 2});
    });
    r.lse = ir::Request::Lse::None;
    r.group = 1;
    r.q_dtype = r.kv_dtype = r.o_dtype = ir::DType::F16;
    r.head_dim = r.head_dim_v = 64;
    checks.run("documents and slopes, fp16, head dim 64", [&] { return tunes(b, kDocuments, r, {2, 2048, 2048, 4}); });
    checks.run("what does not fit is said", [&] {
        const auto spec = parsed(kCausal);
        if (!spec) return spec.error().message;
        const auto report = tune(*spec, r, b.options, *b.measurer, {60000, 65536, 65536, 32});
        CHECK(report.error && report.error->kind == "memory");
        return std::string();
    });
    return checks.finish();
}
