// Is the CUDA driven by its margin? Faults put through the margin into both: what a GPU shows of them, beside what the
// executor says (tests/unit/ir/cuir/coupling_test.cpp). A fault of order is helped by one warp that comes late.
// The record says which stayed silent; at least 12 must show. And are other orchestrations lowered rightly? Programs
// that no variant could ask for give the expert's numbers. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/runtime/compiler.h"
#include "ir/experts/experts.h"
#include "runtime/driver/library.h"
#include "runtime/driver/memory.h"
#include "runtime/driver/stream.h"
#include "tests/gpu/check.h"
#include "tests/gpu/margin_mutants.h"
#include "tests/unit/ir/lower/orchestration.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace cubridge;
using namespace cubridge::runtime;

namespace {

constexpr int kD = 128, kThreads = 128, kShared = 128 * 256 + 2 * 64 * 256, kCtas = 3;

struct Machine {
    std::shared_ptr<Context> context;
    std::shared_ptr<Stream> stream;
    std::shared_ptr<Compiler> compiler;
};

struct Problem {
    int heads_q, heads_kv, rows, keys;
};
// Several items a CTA, several tiles an item, tails, one tile, no key at all.
constexpr Problem kProblems[] = {{6, 3, 200, 333}, {4, 2, 130, 64}, {4, 4, 300, 200}, {4, 4, 60, 0}};

std::uint16_t bf16(float x) {
    std::uint32_t u = 0;
    std::memcpy(&u, &x, 4);
    return static_cast<std::uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

std::vector<std::uint16_t> draw(std::size_t n, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    std::vector<std::uint16_t> out(n);
    for (auto& x : out) x = bf16(normal(random));
    return out;
}

struct Outputs {
    std::vector<std::uint16_t> o;
    std::vector<float> lse;
};

/// Compiles one text and runs it on every problem. Errors: the compiler's, or what the launch said.
ir::Result<std::vector<Outputs>> run(const Machine& on, const std::string& cuda, int threads = kThreads,
                                     int shared = kShared) {
    CompileJob job;
    job.source = std::string(ir::abi::kernel_abi_text()) + "\n" + cuda;
    job.name = "attention.cu";
    job.arch = on.context->device().arch;
    auto compiled = on.compiler->compile(job);
    if (!compiled) return ir::Error{"compile", compiled.fault().text() + compiled.fault().detail, {}, ""};
    auto library = Library::load(on.context, compiled->cubin);
    if (!library) return ir::Error{"load", library.fault().text(), {}, ""};
    auto kernel = (*library)->kernel("attention", shared);
    if (!kernel) return ir::Error{"load", kernel.fault().text(), {}, ""};
    std::vector<Outputs> out;
    for (const auto& p : kProblems) {
        const auto hq = static_cast<std::size_t>(p.heads_q), hk = static_cast<std::size_t>(p.heads_kv);
        const auto rows = static_cast<std::size_t>(p.rows), keys = static_cast<std::size_t>(p.keys);
        const auto q = draw(hq * rows * kD, 1), k = draw(hk * keys * kD, 2), v = draw(hk * keys * kD, 3);
        const auto place = [&](std::size_t bytes) {
            return Buffer::allocate(on.context, std::max<std::size_t>(bytes, 16));
        };
        auto dq = place(2 * q.size()), dk = place(2 * k.size()), dv = place(2 * v.size()), dout = place(2 * q.size()),
             dlse = place(4 * hq * rows), dzero = place(4 * hq * (keys + 1));
        for (const auto* b : {&dq, &dk, &dv, &dout, &dlse, &dzero})
            if (!*b) return ir::Error{"memory", b->fault().text(), {}, ""};
        const auto stream = on.stream->handle();
        Outcome<void> done = (*dq)->upload(q.data(), 2 * q.size(), stream);
        if (done && !k.empty()) done = (*dk)->upload(k.data(), 2 * k.size(), stream);
        if (done && !v.empty()) done = (*dv)->upload(v.data(), 2 * v.size(), stream);
        if (done) done = (*dout)->fill(0xff, stream);
        if (done) done = (*dlse)->fill(0xff, stream);
        if (done) done = (*dzero)->fill(0, stream);
        ir::abi::cb_args a{};
        const auto tensor = [](const std::shared_ptr<Buffer>& at, std::size_t length, std::size_t heads, int width) {
            ir::abi::cb_tensor t{};
            t.data = reinterpret_cast<void*>(at->address());
            t.row = width;
            t.head = static_cast<long long>(length) * width;
            t.outer = t.head * static_cast<long long>(heads);
            return t;
        };
        a.q = tensor(*dq, rows, hq, kD), a.k = tensor(*dk, keys, hk, kD), a.v = tensor(*dv, keys, hk, kD);
        a.o = tensor(*dout, rows, hq, kD), a.lse = tensor(*dlse, rows, hq, 1);
        a.operand[0].data =
            reinterpret_cast<const void*>((*dzero)->address()); // [heads, keys] of zeros, where one is read
        a.operand[0].size[0] = p.heads_q, a.operand[0].size[1] = p.keys;
        a.operand[0].stride[0] = p.keys, a.operand[0].stride[1] = 1;
        a.requests = 1, a.heads_q = p.heads_q, a.heads_kv = p.heads_kv, a.max_q = p.rows, a.max_kv = p.keys;
        LaunchShape shape;
        shape.grid[0] = kCtas;
        shape.block[0] = static_cast<unsigned>(threads);
        shape.shared_bytes = static_cast<unsigned>(shared);
        void* parameters[] = {&a};
        if (done) done = launch(*on.context, *kernel, shape, parameters, stream);
        Outputs got{std::vector<std::uint16_t>(q.size()), std::vector<float>(hq * rows)};
        if (done) done = (*dout)->download(got.o.data(), 2 * got.o.size(), stream);
        if (done) done = (*dlse)->download(got.lse.data(), 4 * got.lse.size(), stream);
        if (done) done = on.stream->synchronise();
        if (!done) return ir::Error{done.fault().kind, done.fault().text(), {}, ""};
        out.push_back(std::move(got));
    }
    return out;
}

float widened(std::uint16_t x) {
    const std::uint32_t u = std::uint32_t{x} << 16;
    float f = 0;
    std::memcpy(&f, &u, 4);
    return f;
}

/// Empty: the same numbers but for rounding.
std::string difference(const std::vector<Outputs>& got, const std::vector<Outputs>& right, double tolerance = 1e-3,
                       bool with_lse = true) {
    for (std::size_t k = 0; k < right.size(); ++k) {
        double wrong = 0, norm = 0;
        for (std::size_t n = 0; n < right[k].o.size(); ++n) {
            const double a = widened(got[k].o[n]), b = widened(right[k].o[n]);
            if (std::isnan(a) != std::isnan(b)) return "NaN in the output of problem " + std::to_string(k);
            wrong += (a - b) * (a - b), norm += b * b;
        }
        if (std::sqrt(wrong) > tolerance * std::sqrt(norm) + 1e-6)
            return "output of problem " + std::to_string(k) + " off by " +
                   std::to_string(std::sqrt(wrong / std::max(norm, 1e-30)));
        for (std::size_t n = 0; with_lse && n < right[k].lse.size(); ++n) {
            const double a = got[k].lse[n], b = right[k].lse[n];
            if (std::isnan(a) || std::isinf(a) != std::isinf(b) || (!std::isinf(b) && std::fabs(a - b) > 1e-3))
                return "LSE of problem " + std::to_string(k);
        }
    }
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
    Machine on;
    checks.run("context, stream, compiler", [&] {
        auto context = Context::retain(*driver, 0);
        CHECK_DONE(context);
        on.context = *context;
        auto stream = Stream::create(on.context);
        CHECK_DONE(stream);
        on.stream = *stream;
        auto compiler = open_nvrtc();
        CHECK_DONE(compiler);
        on.compiler = *compiler;
        checks.machine(on.context->device().name);
        return std::string();
    });
    if (on.compiler == nullptr) return checks.finish();
    const ScopedContext scope(*on.context);
    const std::string expert(ir::experts::all()[0].text);
    std::vector<Outputs> right;
    checks.run("the expert itself, twice", [&]() -> std::string {
        auto first = run(on, expert), second = run(on, expert);
        if (!first || !second) return first ? second.error().message : first.error().message;
        right = std::move(*first);
        for (std::size_t k = 0; k < right.size(); ++k)
            if (right[k].o != (*second)[k].o || right[k].lse != (*second)[k].lse) return "two runs differ";
        return "";
    });
    if (right.empty()) return checks.finish();
    int shown = 0, silent = 0;
    for (const auto& mutant : tests::margin_mutants()) {
        std::string what;
        checks.run(("mutant: " + mutant.name).c_str(), [&]() -> std::string {
            const std::string text = tests::mutated(expert, mutant);
            if (text.empty()) return "an edit finds no place in the expert";
            auto got = run(on, text);
            if (!got && got.error().kind == "compile") return got.error().message;
            what = got ? difference(*got, right) : got.error().message;
            return "";
        });
        ++(what.empty() ? silent : shown);
        std::printf("        %s\n", what.empty() ? "SILENT" : what.c_str());
    }
    checks.run(("at least 12 mutants show: " + std::to_string(shown) + " shown, " + std::to_string(silent) + " silent")
                   .c_str(),
               [&] { return std::string(shown >= 12 ? "" : "too few"); });
    for (const auto& [name, text] : ir::lower::test::orchestrations())
        checks.run(("orchestration: " + name).c_str(), [&]() -> std::string {
            const auto program = ir::cuir::read(text);
            if (!program) return program.error().message;
            const auto lowered = ir::lower::lower(expert, *program);
            const auto shape = ir::lower::shape_of(*program);
            if (!lowered || !shape) return lowered ? shape.error().message : lowered.error().message;
            const auto& grid = shape->grids.back();
            auto got = run(on, lowered->cuda, grid.threads, grid.shared_bytes);
            if (!got) return got.error().message;
            // Another tile width rounds other weights: by as much as the expert's own differ from the exact ones.
            return difference(*got, right, 4e-3, name != "no LSE");
        });
    return checks.finish();
}
