// The engine on a real GPU: from a text to numbers on a stream and in a graph, and what must not disturb a capture.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/driver.h"
#include "cubridge/runtime/engine.h"
#include "runtime/driver/memory.h"
#include "runtime/driver/stream.h"
#include "runtime/launch/served_kernel.h"
#include "tests/gpu/check.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using namespace cubridge;
using namespace cubridge::runtime;

namespace {

constexpr int kBf16 = 2, kF32 = 3; // as in cubridge.h
constexpr int kBatch = 2, kHeadsKv = 2, kGroup = 2, kLength = 40, kDim = 32;
constexpr char kText[] = R"(
import torch
def attention(q, k, v, doc, window=8):
    group = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    i = torch.arange(q.size(2))[:, None]
    j = torch.arange(k.size(2))[None, :]
    keep = (doc[i] == doc[j]) & (j <= i) & (i - j < window)
    return torch.softmax(s.masked_fill(~keep, float("-inf")), -1) @ v
)";

/// Small values that repeat with a period that divides nothing.
std::vector<float> values(std::size_t count, int seed) {
    std::vector<float> out(count);
    for (std::size_t k = 0; k < count; ++k)
        out[k] = static_cast<float>(static_cast<int>((k * 37 + static_cast<std::size_t>(seed) * 11) % 101) - 50) / 40;
    return out;
}

std::uint16_t to_bf16(float x) {
    std::uint32_t u = 0;
    std::memcpy(&u, &x, 4);
    return static_cast<std::uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float from_bf16(std::uint16_t x) {
    const std::uint32_t u = std::uint32_t{x} << 16;
    float f = 0;
    std::memcpy(&f, &u, 4);
    return f;
}

/// One engine, one text, one type: float32 is served by the generic kernel, bfloat16 by an expert's.
class Bench {
public:
    explicit Bench(bool expert) : expert(expert) {}

    std::string open() {
        Settings settings;
        settings.executor = true;
        settings.store = "";
        const auto opened = Engine::open(complete_settings(settings, nullptr), engine);
        if (!opened) return opened.message;
        ir::Source source;
        source.text = kText;
        const auto parsed = engine->parse(source, text);
        return parsed ? std::string() : parsed.message;
    }

    Query query(int head_dim = kDim) const {
        Query q;
        q.text = text;
        q.q_dtype = q.kv_dtype = q.o_dtype = expert ? kBf16 : kF32;
        q.head_dim = q.head_dim_v = head_dim;
        q.group = kGroup;
        return q;
    }

    /// Asks, waits, asks again.
    std::string serve(const Query& q, const ServedKernel*& kernel) {
        Answer a;
        auto v = engine->get(q, Want::BestNow, a);
        if (v && a.kind == Answer::Kind::Pending) {
            if (const auto done = engine->wait(a.job, -1); !done) return done.message;
            v = engine->get(q, Want::BestNow, a);
        }
        kernel = a.kernel;
        return !v ? v.message : kernel == nullptr ? std::string(a.message) : std::string();
    }

    std::string prepare(const std::shared_ptr<Context>& context) {
        auto made = Stream::create(context);
        CHECK_DONE(made);
        stream = *made;
        q = values(kBatch * kHeadsKv * kGroup * kLength * kDim, 1);
        k = values(kBatch * kHeadsKv * kLength * kDim, 2);
        v = values(kBatch * kHeadsKv * kLength * kDim, 3);
        for (int n = 0; n < kLength; ++n) doc.push_back(n / 9);
        const std::size_t sizes[] = {width() * q.size(), width() * k.size(), width() * v.size(), width() * q.size(),
                                     4 * doc.size()};
        for (const auto size : sizes) {
            auto buffer = Buffer::allocate(context, size);
            CHECK_DONE(buffer);
            buffers.push_back(*buffer);
        }
        std::size_t at = 0;
        for (auto* tensor : {&q, &k, &v}) {
            std::vector<std::uint16_t> narrow;
            for (float& x : *tensor) narrow.push_back(to_bf16(x));
            if (expert) // the text is asked about what the kernel sees
                std::transform(narrow.begin(), narrow.end(), tensor->begin(), from_bf16);
            const void* from = expert ? static_cast<const void*>(narrow.data()) : tensor->data();
            CHECK_DONE(buffers[at]->upload(from, sizes[at], stream->handle()));
            CHECK_DONE(stream->synchronise());
            ++at;
        }
        CHECK_DONE(buffers[4]->upload(doc.data(), sizes[4], stream->handle()));
        const auto tensor = [&](std::size_t n, long long heads) {
            return ir::abi::cb_tensor{address(n), heads * kLength * kDim, kDim, kLength * kDim};
        };
        args.q = tensor(0, kHeadsKv * kGroup), args.k = tensor(1, kHeadsKv), args.v = tensor(2, kHeadsKv);
        args.o = tensor(3, kHeadsKv * kGroup);
        args.requests = kBatch, args.heads_kv = kHeadsKv, args.max_q = args.max_kv = kLength;
        operand.data = address(4);
        operand.size[0] = kLength, operand.stride[0] = 1;
        args.operands = {&operand, 1};
        std::size_t bytes = 0;
        if (const auto done = engine->workspace(query(), args, bytes); !done) return done.message;
        auto workspace = Buffer::allocate(context, bytes);
        CHECK_DONE(workspace);
        buffers.push_back(*workspace);
        args.workspace = address(5), args.workspace_size = bytes;
        return {};
    }

    void* address(std::size_t n) const { return reinterpret_cast<void*>(buffers[n]->address()); }

    std::string poison() const {
        CHECK_DONE(buffers[3]->fill(0xff, stream->handle())); // NaN
        return {};
    }

    /// The output against the text itself in float64.
    std::string compare() const {
        std::vector<float> o(q.size());
        std::vector<std::uint16_t> narrow(q.size());
        void* to = expert ? static_cast<void*>(narrow.data()) : o.data();
        CHECK_DONE(buffers[3]->download(to, width() * o.size(), stream->handle()));
        CHECK_DONE(stream->synchronise());
        if (expert) std::transform(narrow.begin(), narrow.end(), o.begin(), from_bf16);
        const auto array = [](const std::vector<float>& from, std::int64_t heads) {
            return ir::Array{ir::DType::F32, {kBatch, heads, kLength, kDim}, {from.begin(), from.end()}};
        };
        const ir::Array documents{ir::DType::I32, {kLength}, {doc.begin(), doc.end()}};
        const auto wanted = text->specification().evaluate(
            {array(q, kHeadsKv * kGroup), array(k, kHeadsKv), array(v, kHeadsKv), documents, std::nullopt});
        if (!wanted) return wanted.error().message;
        for (std::size_t n = 0; n < o.size(); ++n) {
            const double want = wanted->front().values[n];
            if (!(std::abs(want - static_cast<double>(o[n])) < (expert ? 1e-2 : 1e-5)))
                return "element " + std::to_string(n) + ": got " + std::to_string(o[n]) + ", want " +
                       std::to_string(want);
        }
        return {};
    }

    std::size_t width() const { return expert ? 2 : 4; }

    const bool expert;
    std::unique_ptr<Engine> engine;
    const Text* text = nullptr;
    const ServedKernel* kernel = nullptr;
    std::shared_ptr<Stream> stream;
    std::vector<std::shared_ptr<Buffer>> buffers; // q, k, v, o, doc, workspace
    std::vector<float> q, k, v;
    std::vector<std::int32_t> doc;
    ir::abi::cb_operand operand{};
    LaunchArgs args;
};

std::string launches(Bench& b) {
    if (auto wrong = b.poison(); !wrong.empty()) return wrong;
    if (const auto v = b.kernel->launch(b.args, b.stream->handle()); !v) return v.message;
    return b.compare();
}

std::string too_short(Bench& b) {
    auto args = b.args;
    auto operand = b.operand;
    operand.size[0] = kLength - 1;
    args.operands = {&operand, 1};
    if (auto wrong = b.poison(); !wrong.empty()) return wrong;
    const auto v = b.kernel->launch(args, b.stream->handle());
    CHECK(v.status == Status::Unsupported);
    std::vector<std::uint32_t> o(b.q.size() * b.width() / 4);
    CHECK_DONE(b.buffers[3]->download(o.data(), 4 * o.size(), b.stream->handle()));
    CHECK_DONE(b.stream->synchronise());
    for (const auto word : o) CHECK(word == 0xffffffffu);
    return {};
}

std::string who_made_it(Bench& b) {
    CHECK((b.kernel->made() == 0) == b.expert && b.kernel->exact() == b.expert); // by rules, or generic
    CHECK(b.kernel->verified() == (b.expert ? 1 : -1));                          // by the executor, or not at all
    return {};
}

// Scales of k and v are the generic kernel's: an expert's refuses them, and enqueues nothing.
std::string scaled(Bench& b) {
    auto args = b.args;
    args.k_scale.data = static_cast<const float*>(b.address(1));
    const auto v = b.kernel->launch(args, b.stream->handle());
    CHECK(!b.expert || v.status == Status::Unsupported);
    CHECK_DONE(b.stream->synchronise());
    return {};
}

// Rows of k and v elsewhere and otherwise laid out, and back: nothing of an earlier launch is read, tensor maps
// neither.
std::string moved(Bench& b) {
    constexpr std::size_t kRow = kDim, kHead = kLength * kRow, kAll = kHeadsKv * kHead;
    const std::size_t width = b.width(), bytes = width * b.k.size();
    auto args = b.args;
    std::vector<std::shared_ptr<Buffer>> elsewhere;
    std::vector<std::vector<std::byte>> kept;
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}}) {
        std::vector<std::byte> from(bytes), to(bytes);
        CHECK_DONE(b.buffers[n]->download(from.data(), bytes, b.stream->handle()));
        CHECK_DONE(b.stream->synchronise());
        for (std::size_t request = 0; request < kBatch; ++request) // [B, H, S, D] to [B, S, H, D]
            for (std::size_t head = 0; head < kHeadsKv; ++head)
                for (std::size_t row = 0; row < kLength; ++row)
                    std::memcpy(&to[width * (request * kAll + row * kHeadsKv * kRow + head * kRow)],
                                &from[width * (request * kAll + head * kHead + row * kRow)], width * kRow);
        auto buffer = Buffer::allocate(b.stream->context(), bytes);
        CHECK_DONE(buffer);
        CHECK_DONE((*buffer)->upload(to.data(), bytes, b.stream->handle()));
        CHECK_DONE(b.buffers[n]->fill(0xff, b.stream->handle())); // NaN
        CHECK_DONE(b.stream->synchronise());
        auto& tensor = n == 1 ? args.k : args.v;
        tensor = {reinterpret_cast<void*>((*buffer)->address()), kAll, kHeadsKv * kRow, kRow};
        elsewhere.push_back(*buffer);
        kept.push_back(std::move(from));
    }
    if (auto wrong = b.poison(); !wrong.empty()) return wrong;
    if (const auto v = b.kernel->launch(args, b.stream->handle()); !v) return v.message;
    if (auto wrong = b.compare(); !wrong.empty()) return wrong;
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}})
        CHECK_DONE(b.buffers[n]->upload(kept[n - 1].data(), bytes, b.stream->handle()));
    return launches(b);
}

// Rows that no tensor map has, and nothing is enqueued.
std::string no_such_map(Bench& b) {
    auto args = b.args;
    args.k.row = -args.k.row;
    if (auto wrong = b.poison(); !wrong.empty()) return wrong;
    const auto v = b.kernel->launch(args, b.stream->handle());
    CHECK(v.status == Status::Unsupported && v.message.find("args.k.row") != v.message.npos);
    std::vector<std::uint32_t> o(b.q.size() * b.width() / 4);
    CHECK_DONE(b.buffers[3]->download(o.data(), 4 * o.size(), b.stream->handle()));
    CHECK_DONE(b.stream->synchronise());
    for (const auto word : o) CHECK(word == 0xffffffffu);
    return {};
}

// While the stream is captured in the strictest mode, a kernel is made and loaded, and answers are given.
std::string captured(Bench& b) {
    if (auto wrong = b.poison(); !wrong.empty()) return wrong;
    CHECK_DONE(b.stream->synchronise());
    CHECK_DONE(b.stream->begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL));
    const auto launched = b.kernel->launch(b.args, b.stream->handle());
    const ServedKernel* other = nullptr;
    auto served = b.serve(b.query(16), other);
    const auto graph = b.stream->end_capture();
    CHECK_DONE(graph);
    if (!launched) return launched.message;
    if (!served.empty()) return served;
    for (int replay = 0; replay < 2; ++replay) {
        for (auto& d : b.doc) d = replay == 0 ? d : 0; // operands are read at each replay
        CHECK_DONE(b.buffers[4]->upload(b.doc.data(), 4 * b.doc.size(), b.stream->handle()));
        CHECK_DONE((*graph)->launch(b.stream->handle()));
        if (auto wrong = b.compare(); !wrong.empty()) return wrong;
    }
    return {};
}

std::string overhead(Bench& b) {
    constexpr int kTimes = 2000;
    CHECK_DONE(b.stream->synchronise());
    const auto begin = std::chrono::steady_clock::now();
    for (int n = 0; n < kTimes; ++n)
        if (const auto v = b.kernel->launch(b.args, b.stream->handle()); !v) return v.message;
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    CHECK_DONE(b.stream->synchronise());
    std::printf("      a launch: %.2f us on the host\n", took.count() / kTimes);
    return {};
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
    for (const bool expert : {false, true}) {
        const std::string what = expert ? " (bf16, by rules)" : " (fp32, generic)";
        const auto run = [&](const char* name, const auto& body) { checks.run((name + what).c_str(), body); };
        Bench b(expert);
        std::shared_ptr<Context> context;
        run("an engine and a text", [&] { return b.open(); });
        run("a kernel is made for the device and loaded", [&] { return b.serve(b.query(), b.kernel); });
        if (b.kernel == nullptr) continue;
        run("who made it", [&] { return who_made_it(b); });
        run("tensors on the device", [&] {
            auto retained = Context::retain(*driver, 0);
            CHECK_DONE(retained);
            context = *retained;
            return b.prepare(context);
        });
        if (b.buffers.size() < 6) continue;
        const ScopedContext scope(*context);
        run("a launch equals the text", [&] { return launches(b); });
        run("an operand that is too short enqueues nothing", [&] { return too_short(b); });
        run("scales of k and v", [&] { return scaled(b); });
        run("k and v elsewhere, otherwise laid out", [&] { return moved(b); });
        const auto& made = b.kernel->state().artifact;
        std::printf("      expert: %s, %zu tensor maps\n",
                    made.build.expert.empty() ? "none" : made.build.expert.c_str(), made.plan.maps.size());
        if (!made.plan.maps.empty()) run("rows that no tensor map has", [&] { return no_such_map(b); });
        run("captured, while another kernel is made", [&] { return captured(b); });
        run("launches back to back", [&] { return overhead(b); });
    }
    return checks.finish();
}
