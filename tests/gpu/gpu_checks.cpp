// The lowest layer on a real GPU: describe, compile, load, launch, capture, and errors in words.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/compiler.h"
#include "runtime/driver/library.h"
#include "runtime/driver/memory.h"
#include "runtime/driver/stream.h"
#include "tests/gpu/check.h"
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

using namespace cubridge::runtime;

namespace {

constexpr int count = 100003; // no multiple of a block
constexpr std::uint32_t guard = 0xdeadbeefu;

const char* const saxpy_source = R"(
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
)";

struct Machine {
    std::shared_ptr<Context> context;
    std::shared_ptr<Stream> stream;
    std::shared_ptr<Compiler> compiler;
    std::vector<std::byte> cubin;
};

/// x, and y with one word behind its end that nothing may touch.
struct Vectors {
    std::shared_ptr<Buffer> x, y;
    std::vector<float> host_x, host_y;
};

LaunchShape shape_of(int n) {
    LaunchShape shape;
    shape.block[0] = 256;
    shape.grid[0] = static_cast<unsigned>((n + 255) / 256);
    return shape;
}

Outcome<Vectors> prepare(const Machine& on) {
    Vectors vectors;
    for (int i = 0; i < count; ++i) {
        vectors.host_x.push_back(static_cast<float>(i % 1024));
        vectors.host_y.push_back(static_cast<float>(i % 7));
    }
    auto x = Buffer::allocate(on.context, sizeof(float) * count);
    if (!x) return x.fault();
    auto y = Buffer::allocate(on.context, sizeof(float) * (count + 1));
    if (!y) return y.fault();
    vectors.x = *x;
    vectors.y = *y;
    if (auto done = vectors.y->fill_words(guard, on.stream->handle()); !done) return done.fault();
    if (auto done = vectors.x->upload(vectors.host_x.data(), sizeof(float) * count, on.stream->handle()); !done)
        return done.fault();
    if (auto done = vectors.y->upload(vectors.host_y.data(), sizeof(float) * count, on.stream->handle()); !done)
        return done.fault();
    if (auto done = on.stream->synchronise(); !done) return done.fault();
    return vectors;
}

Outcome<void> saxpy(const Machine& on, const Kernel& kernel, const Vectors& vectors) {
    float a = 2;
    CUdeviceptr x = vectors.x->address(), y = vectors.y->address();
    int n = count;
    void* arguments[] = {&a, &x, &y, &n};
    return launch(*on.context, kernel, shape_of(n), arguments, on.stream->handle());
}

/// Small whole numbers: exact in float, so any difference is a fault. `times` launches were made.
std::string compare(const Machine& on, const Vectors& vectors, int times) {
    std::vector<std::uint32_t> words(count + 1);
    CHECK_DONE(vectors.y->download(words.data(), 4 * words.size(), on.stream->handle()));
    CHECK_DONE(on.stream->synchronise());
    for (std::size_t i = 0; i < count; ++i) {
        float got = 0;
        static_assert(sizeof got == sizeof words[i]);
        std::memcpy(&got, &words[i], sizeof got);
        const float expected = vectors.host_y[i] + 2 * static_cast<float>(times) * vectors.host_x[i];
        if (got != expected)
            return "y[" + std::to_string(i) + "] is " + std::to_string(got) + ", not " + std::to_string(expected);
    }
    CHECK(words[count] == guard);
    return {};
}

std::string describe(cubridge::gpu::Checks& checks, const std::shared_ptr<Driver>& driver) {
    const auto devices = driver->devices();
    CHECK_DONE(devices);
    for (const auto& device : *devices)
        std::printf("device %d: %s, %s, %s, %d multiprocessors, %d bytes of shared memory a block, %zu MiB\n",
                    device.ordinal, device.name.c_str(), device.uuid.c_str(), device.arch.c_str(),
                    device.multiprocessors, device.shared_memory_optin, device.memory >> 20u);
    const auto& first = devices->front();
    checks.machine(first.name);
    CHECK(!first.name.empty() && first.uuid.size() == 40 && first.multiprocessors > 0);
    CHECK(first.shared_memory_optin >= 48 * 1024 && first.memory > 0);
    return {};
}

std::string compile(Machine& on) {
    auto compiler = open_nvrtc();
    CHECK_DONE(compiler);
    on.compiler = *compiler;
    CompileJob job;
    job.source = saxpy_source;
    job.arch = on.context->device().arch;
    const auto result = on.compiler->compile(job);
    CHECK_DONE(result);
    CHECK(result->entries.size() == 1 && result->entries[0].name == "saxpy" && result->entries[0].registers > 0);
    std::printf("compiler: %s, %s\n", result->compiler.c_str(), on.compiler->location().c_str());
    on.cubin = result->cubin;
    return {};
}

std::string run_on_stream(const Machine& on) {
    const auto library = Library::load(on.context, on.cubin);
    CHECK_DONE(library);
    const auto kernel = (*library)->kernel("saxpy");
    CHECK_DONE(kernel);
    CHECK(kernel->registers > 0 && kernel->max_threads >= 256);
    const auto vectors = prepare(on);
    CHECK_DONE(vectors);
    CHECK_DONE(saxpy(on, *kernel, *vectors));
    return compare(on, *vectors, 1);
}

std::string run_in_graph(const Machine& on) {
    const auto library = Library::load(on.context, on.cubin);
    CHECK_DONE(library);
    const auto kernel = (*library)->kernel("saxpy");
    CHECK_DONE(kernel);
    const auto vectors = prepare(on);
    CHECK_DONE(vectors);
    CHECK_DONE(on.stream->begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL));
    const auto launched = saxpy(on, *kernel, *vectors);
    const auto capturing = is_capturing(*on.context, on.stream->handle());
    const auto graph = on.stream->end_capture();
    CHECK_DONE(launched);
    CHECK(capturing && *capturing);
    CHECK_DONE(graph);
    for (int i = 0; i < 3; ++i) CHECK_DONE((*graph)->launch(on.stream->handle()));
    return compare(on, *vectors, 3);
}

/// What a thread of the runtime does while an engine captures: allocate and load, in RELAXED mode.
std::string load_aside(const Machine& on) {
    const RelaxedCapture relaxed(on.context->cuda());
    const auto buffer = Buffer::allocate(on.context, 1 << 20);
    CHECK_DONE(buffer);
    const auto library = Library::load(on.context, on.cubin);
    CHECK_DONE(library);
    CHECK_DONE((*library)->kernel("saxpy"));
    return {};
}

std::string load_beside_capture(const Machine& on) {
    const auto library = Library::load(on.context, on.cubin);
    CHECK_DONE(library);
    const auto kernel = (*library)->kernel("saxpy");
    CHECK_DONE(kernel);
    const auto vectors = prepare(on);
    CHECK_DONE(vectors);
    CHECK_DONE(on.stream->begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL));
    const auto before = saxpy(on, *kernel, *vectors);
    std::string aside;
    std::thread([&] { aside = load_aside(on); }).join();
    const auto after = saxpy(on, *kernel, *vectors);
    const auto graph = on.stream->end_capture();
    if (!aside.empty()) return aside;
    CHECK_DONE(before);
    CHECK_DONE(after);
    CHECK_DONE(graph);
    CHECK_DONE((*graph)->launch(on.stream->handle()));
    return compare(on, *vectors, 2);
}

std::string errors_in_words(const Machine& on) {
    const auto library = Library::load(on.context, on.cubin);
    CHECK_DONE(library);
    const auto kernel = (*library)->kernel("saxpy");
    CHECK_DONE(kernel);
    LaunchShape shape;
    shape.block[0] = 4096;
    float a = 0;
    CUdeviceptr address = 0;
    int n = 0;
    void* arguments[] = {&a, &address, &address, &n};
    const auto bad = launch(*on.context, *kernel, shape, arguments, on.stream->handle());
    CHECK(!bad);
    std::printf("a bad launch says: %s (%s)\n", bad.fault().text().c_str(), bad.fault().detail.c_str());
    CHECK(bad.fault().message.find("cuLaunchKernel: CUDA_ERROR_INVALID_VALUE") == 0);
    CHECK(bad.fault().detail.find("block 4096 x 1 x 1") != std::string::npos);

    const auto missing = (*library)->kernel("no_such_kernel");
    CHECK(!missing && missing.fault().kind == "artifact");
    const auto greedy = (*library)->kernel("saxpy", 1 << 24);
    CHECK(!greedy && greedy.fault().kind == "artifact");
    auto damaged = on.cubin;
    damaged.resize(damaged.size() / 2);
    const auto torn = Library::load(on.context, damaged);
    CHECK(!torn && torn.fault().kind == "artifact");
    std::printf("a torn cubin says: %s\n", torn.fault().text().c_str());
    auto foreign = on.cubin;
    foreign[18] = std::byte{62}; // the ELF's machine: x86-64
    const auto refused = Library::load(on.context, foreign);
    CHECK(!refused);
    std::printf("a cubin for another machine says: %s\n", refused.fault().text().c_str());
    CHECK(refused.fault().kind == "artifact");
    return run_on_stream(on); // none of this hurt the context
}

std::string other_arch(const Machine& on) {
    CompileJob job;
    job.source = saxpy_source;
    job.arch = on.context->device().major == 8 ? "sm_90" : "sm_80";
    const auto result = on.compiler->compile(job);
    CHECK_DONE(result);
    const auto library = Library::load(on.context, result->cubin);
    if (!library) {
        CHECK(library.fault().kind == "artifact");
        return {};
    }
    const auto kernel = (*library)->kernel("saxpy");
    CHECK(!kernel && kernel.fault().kind == "artifact");
    return {};
}

/// Engines call from threads that never had a context; events time what such a thread enqueues.
std::string timed_elsewhere(const Machine& on) {
    const auto begin = Event::create(on.context), end = Event::create(on.context);
    CHECK_DONE(begin);
    CHECK_DONE(end);
    const ScopedContext scope(*on.context);
    CHECK_DONE(scope.state());
    CHECK_DONE((*begin)->record(on.stream->handle()));
    const auto wrong = run_on_stream(on);
    if (!wrong.empty()) return wrong;
    CHECK_DONE((*end)->record(on.stream->handle()));
    CHECK_DONE((*end)->synchronise());
    const auto reached = (*end)->reached();
    CHECK(reached && *reached);
    const auto took = (*end)->since(**begin);
    CHECK_DONE(took);
    CHECK(*took > 0);
    return {};
}

std::string thread_without_context(const Machine& on) {
    std::string wrong;
    std::thread([&] { wrong = timed_elsewhere(on); }).join();
    return wrong;
}

} // namespace

int main() {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const auto driver = Driver::open();
    if (!driver) {
        std::printf("skipped, no GPU: %s\n", driver.fault().text().c_str());
        return cubridge::gpu::no_gpu;
    }
    if (const auto devices = (*driver)->devices(); !devices) {
        std::printf("skipped, no GPU: %s\n", devices.fault().text().c_str());
        return cubridge::gpu::no_gpu;
    }
    cubridge::gpu::Checks checks;
    Machine on;
    checks.run("devices are described", [&] { return describe(checks, *driver); });
    checks.run("primary context and stream", [&] {
        auto context = Context::retain(*driver, 0);
        CHECK_DONE(context);
        on.context = *context;
        auto stream = Stream::create(on.context);
        CHECK_DONE(stream);
        on.stream = *stream;
        const auto free = on.context->free_memory();
        CHECK_DONE(free);
        CHECK(*free > 0 && *free <= on.context->device().memory);
        return std::string();
    });
    if (on.stream == nullptr) return checks.finish();
    const ScopedContext scope(*on.context);
    checks.run("NVRTC compiles for the device", [&] { return compile(on); });
    if (on.cubin.empty()) return checks.finish();
    checks.run("a launch on a stream", [&] { return run_on_stream(on); });
    checks.run("a launch in a captured graph", [&] { return run_in_graph(on); });
    checks.run("another thread loads beside a GLOBAL capture", [&] { return load_beside_capture(on); });
    checks.run("a thread without a context", [&] { return thread_without_context(on); });
    checks.run("a cubin of another architecture", [&] { return other_arch(on); });
    checks.run("errors in words", [&] { return errors_in_words(on); });
    return checks.finish();
}
