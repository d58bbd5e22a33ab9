// Launching a case. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/gpu.h"
#include "ir/lower/delays.h"
#include "runtime/driver/call.h"
#include "runtime/launch/block.h"
#include <algorithm>
#include <fmt/format.h>
#include <mutex>
#include <random>
#include <thread>

namespace cubridge::runtime {

namespace {

constexpr std::size_t kGuard = 512; // bytes behind the workspace
constexpr std::byte kWorkspaceFill{0x9D};

// Nothing, or the condition of the plan that these sizes break.
std::string refused(const ir::launch::Plan& plan, const ir::launch::Sizes& sizes) {
    for (const auto& c : plan.conditions) {
        const auto l = c.left.evaluate(sizes), r = c.right.evaluate(sizes);
        using Kind = ir::launch::Condition::Kind;
        const bool holds = l && r &&
                           (c.kind == Kind::Equal     ? *l == *r
                            : c.kind == Kind::AtLeast ? *l >= *r
                                                      : *r != 0 && *l % *r == 0);
        if (!holds) return "the launch needs " + c.text;
    }
    for (std::size_t k = 0; k < plan.operands.size(); ++k)
        for (std::size_t a = 0; a < plan.operands[k].least.size(); ++a) {
            const auto least = plan.operands[k].least[a].evaluate(sizes);
            if (!least || sizes.operand[k][a] < *least)
                return "operand `" + plan.operands[k].name + "` is too short along axis " + std::to_string(a);
        }
    return "";
}

} // namespace

Outcome<std::unique_ptr<Gpu>> Gpu::open(const std::shared_ptr<Driver>& driver, int ordinal) {
    auto gpu = std::make_unique<Gpu>();
    auto context = Context::retain(driver, ordinal);
    if (!context) return context.fault();
    gpu->context_ = *context;
    auto stream = Stream::create(gpu->context_);
    if (!stream) return stream.fault();
    gpu->stream_ = *stream;
    return gpu;
}

Outcome<LoadedKernel> Gpu::load(const std::vector<std::byte>& cubin, const ir::launch::Plan& plan) {
    LoadedKernel out;
    out.plan = plan;
    auto library = Library::load(context_, cubin);
    if (!library) return library.fault();
    out.library = *library;
    libraries_.push_back(*library);
    for (const auto& e : plan.entries) {
        auto kernel = out.library->kernel(e.name.c_str(), e.shared_bytes);
        if (!kernel) return kernel.fault();
        out.entries.push_back(*kernel);
    }
    return out;
}

Outcome<Delayed> Gpu::load_delayed(const Built& built) {
    auto loaded = load(built.cubin, built.plan);
    if (!loaded) return loaded.fault();
    const auto at = loaded->library->global(ir::lower::kDelaySeed, sizeof(std::uint32_t));
    if (!at) return at.fault();
    return Delayed{std::move(*loaded), *at};
}

Outcome<std::shared_ptr<Buffer>> Gpu::room(std::shared_ptr<Buffer>& buffer, std::size_t bytes) const {
    if (buffer && buffer->bytes() >= bytes) return buffer;
    buffer.reset();
    auto grown = Buffer::allocate(context_, bytes + bytes / 2);
    if (grown) buffer = *grown;
    return grown;
}

Outcome<void> Gpu::wait() const {
    if (longest_.count() == 0) return {};
    const auto end = std::chrono::steady_clock::now() + longest_;
    for (auto pause = std::chrono::microseconds(20);; pause = std::min(2 * pause, std::chrono::microseconds(2000))) {
        const auto done = stream_->finished();
        if (!done) return done.fault();
        if (*done) return {};
        if (std::chrono::steady_clock::now() > end)
            return Fault{"hang", "the launch did not end within " + std::to_string(longest_.count()) + " ms"};
        std::this_thread::sleep_for(pause);
    }
}

Outcome<void> Gpu::once(const LoadedKernel& kernel, const ir::Request& request, Image& image, int processors,
                        std::byte poison, std::vector<std::byte>& after) {
    const ScopedContext current(*context_);
    if (!current.state()) return current.state();
    const CUstream stream = stream_->handle();
    const ir::launch::Sizes sizes = image.sizes(processors != 0 ? processors : context_->device().multiprocessors);
    if (std::string why = refused(kernel.plan, sizes); !why.empty()) return Fault{"launch", std::move(why)};
    const auto need = kernel.plan.workspace.evaluate(sizes);
    if (!need || *need < 0) return Fault{"launch", "the workspace of these sizes is beyond 64 bits"};
    const auto bytes = static_cast<std::size_t>(*need);

    image.poison(poison);
    const auto memory = room(memory_, image.bytes().size());
    if (!memory) return memory.fault();
    const auto workspace = room(workspace_, bytes + kGuard);
    if (!workspace) return workspace.fault();
    if (auto done = (*memory)->upload(image.bytes().data(), image.bytes().size(), stream); !done) return done;
    if (auto done = (*workspace)->fill(static_cast<std::uint8_t>(kWorkspaceFill), stream); !done) return done;
    ir::abi::cb_args args = image.bind((*memory)->address(), (*workspace)->address());
    place_ticket(kernel.plan, *need, args);
    if (auto v = encode_maps(context_->cuda(), kernel.plan, request, &kernel, args); !v)
        return Fault{"launch", std::move(v.message)};
    if (auto done = zero_ticket(*context_, args, stream); !done) return done;
    for (std::size_t k = 0; k < kernel.entries.size(); ++k) {
        const ir::launch::Entry& e = kernel.plan.entries[k];
        LaunchShape shape;
        shape.shared_bytes = static_cast<unsigned>(e.shared_bytes);
        for (std::size_t a = 0; a < 3; ++a) {
            const auto grid = e.grid[a].evaluate(sizes);
            if (!grid || *grid < 0 || *grid > 0x7fffffff)
                return Fault{"launch", "the grid of these sizes is too large"};
            shape.grid[a] = static_cast<unsigned>(*grid);
            shape.block[a] = static_cast<unsigned>(e.block[a]);
        }
        if (std::count(shape.grid.begin(), shape.grid.end(), 0U) != 0) continue;
        void* arguments[] = {&args};
        if (auto done = launch(*context_, kernel.entries[k], shape, arguments, stream); !done) return done;
    }
    if (auto done = wait(); !done) return done; // before the downloads: one into pageable memory waits by itself
    after.resize(image.bytes().size());
    std::vector<std::byte> guard(kGuard);
    if (auto done = (*memory)->download(after.data(), after.size(), stream); !done) return done;
    if (auto done = (*workspace)->download(guard.data(), kGuard, stream, bytes); !done) return done;
    if (auto done = stream_->synchronise(); !done) return done;
    if (std::any_of(guard.begin(), guard.end(), [](std::byte b) { return b != kWorkspaceFill; }))
        return Fault{"launch", "the launch wrote behind its workspace"};
    return {};
}

Outcome<Launched> Gpu::run(const LoadedKernel& kernel, const ir::Specification& specification, const Unit& unit,
                           const Case& c, const std::vector<ir::Argument>& inputs,
                           const std::vector<std::int64_t>& out_shape, int launches) {
    constexpr std::byte first{0x7B}, second{0xA6};
    Image image(specification, unit, c, inputs, kernel.plan, out_shape);
    std::vector<std::byte> one, two;
    if (auto done = once(kernel, unit.request, image, c.processors, first, one); !done) return done.fault();
    Launched out;
    out.wrong = image.disturbed(one);
    if (launches > 1) {
        if (auto done = once(kernel, unit.request, image, c.processors, second, two); !done) return done.fault();
        if (out.wrong.empty()) out.wrong = image.disturbed(two);
        if (out.wrong.empty()) out.wrong = image.unequal(one, first, two, second);
    }
    out.outputs = image.outputs(one);
    return out;
}

Outcome<void> Gpu::accompany(Compiler& compiler) {
    auto made = Company::make(context_, compiler);
    if (!made) return made.fault();
    company_ = std::move(*made);
    return {};
}

// A launch's seed, and what runs beside it: from a quarter of a warp an SM to two of them.
Outcome<void> Gpu::sow(const Repeats& repeats, const std::uint32_t& seed) const {
    const auto processors = static_cast<unsigned>(context_->device().multiprocessors);
    if (company_)
        if (auto done = company_->keep((seed / 2 % 8 + 1) * processors / 4 + 1); !done) return done;
    if (repeats.build.seed_at == 0) return {};
    return within(*context_, "cuMemcpyHtoDAsync", [&](const Symbols& cuda) {
        return cuda.cuMemcpyHtoDAsync(repeats.build.seed_at, &seed, sizeof seed, stream_->handle());
    });
}

Outcome<std::string> Gpu::repeat(const LoadedKernel& kernel, const Repeats& repeats,
                                 const ir::Specification& specification, const Unit& unit, const Case& c,
                                 const std::vector<ir::Argument>& inputs, const std::vector<std::int64_t>& out_shape) {
    constexpr std::byte poison{0x5C};
    const auto usual = longest_;
    Image image(specification, unit, c, inputs, kernel.plan, out_shape);
    std::vector<std::byte> right, got;
    if (auto done = once(kernel, unit.request, image, c.processors, poison, right); !done) return done.fault();
    std::mt19937_64 random(repeats.seed);
    for (int n = 0; n < repeats.launches; ++n) {
        const auto seed = static_cast<std::uint32_t>(random() | 1);
        if (usual.count() == 0) longest_ = repeats.longest;
        auto done = sow(repeats, seed);
        if (done) done = once(repeats.build.kernel, unit.request, image, c.processors, poison, got);
        longest_ = usual;
        const std::string which = fmt::format("launch {}, seed {}: ", n + 1, seed);
        if (!done) {
            Fault fault = done.fault();
            fault.message = which + fault.message;
            return fault;
        }
        if (got == right) continue;
        const std::string wrong = image.disturbed(got);
        return which + (wrong.empty() ? image.unequal(right, poison, got, poison) : wrong);
    }
    return std::string();
}

void abandon(std::unique_ptr<Gpu> gpu) {
    static std::mutex mutex;
    static auto& left = *new std::vector<std::unique_ptr<Gpu>>;
    const std::lock_guard<std::mutex> hold(mutex);
    left.push_back(std::move(gpu));
}

} // namespace cubridge::runtime
