// Its kernel, and keeping it going. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/company.h"

namespace cubridge::runtime {

namespace {

// Every other warp reads and writes lines all over the buffer, the others calculate. Bounded by clock and by turns.
constexpr char kText[] = R"(
extern "C" __global__ void __launch_bounds__(32) company(unsigned* memory, unsigned lines, unsigned clocks) {
    const long long begin = clock64();
    unsigned x = blockIdx.x * 0x9E3779B9u + threadIdx.x / 32 + 1;
    for (int turn = 0; turn < 1 << 16 && clock64() - begin < clocks; ++turn) {
        x ^= x << 13, x ^= x >> 17, x ^= x << 5;
        unsigned* const p = memory + (x % lines) * 32 + threadIdx.x;
        if (blockIdx.x % 2 == 0) *p = *p + x;
    }
    if (x == 0) *memory = 0; // what is calculated counts
}
)";
constexpr unsigned kLines = 1U << 17, kClocks = 1U << 20; // 16 MiB; half a millisecond

} // namespace

Outcome<std::unique_ptr<Company>> Company::make(const std::shared_ptr<Context>& context, Compiler& compiler) {
    CompileJob job;
    job.source = kText;
    job.name = "company.cu";
    job.arch = context->device().arch;
    const auto compiled = compiler.compile(job);
    if (!compiled) return compiled.fault();
    std::unique_ptr<Company> out(new Company);
    out->context_ = context;
    auto library = Library::load(context, compiled->cubin);
    if (!library) return library.fault();
    out->library_ = *library;
    auto kernel = out->library_->kernel("company");
    if (!kernel) return kernel.fault();
    out->kernel_ = *kernel;
    auto memory = Buffer::allocate(context, std::size_t{kLines} * 128);
    if (!memory) return memory.fault();
    out->memory_ = *memory;
    auto stream = Stream::create(context);
    if (!stream) return stream.fault();
    out->stream_ = *stream;
    if (auto done = out->memory_->fill(0, out->stream_->handle()); !done) return done.fault();
    return out;
}

Company::~Company() {
    if (stream_) (void)stream_->synchronise();
}

Outcome<void> Company::keep(unsigned warps) {
    const auto idle = stream_->finished();
    if (!idle) return idle.fault();
    if (!*idle) return {};
    const ScopedContext current(*context_);
    if (!current.state()) return current.state();
    CUdeviceptr memory = memory_->address();
    unsigned lines = kLines, clocks = kClocks;
    void* arguments[] = {&memory, &lines, &clocks};
    LaunchShape shape;
    shape.grid[0] = warps;
    shape.block[0] = 32;
    return launch(*context_, kernel_, shape, arguments, stream_->handle());
}

} // namespace cubridge::runtime
