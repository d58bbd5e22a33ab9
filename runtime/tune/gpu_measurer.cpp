// Timing kernels on a GPU: several input sets in turn, blocks of all kernels alternating, events around each launch.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/rounding.h"
#include "runtime/driver/memory.h"
#include "runtime/driver/stream.h"
#include "runtime/launch/served_kernel.h"
#include "runtime/tune/inputs.h"
#include "runtime/tune/timing.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

constexpr int kRounds = 5;
constexpr double kBlockMs = 60, kWarmUpMs = 150; // a block; all kernels in turn before the first
constexpr int kLeastLaunches = 6, kMostLaunches = 400;
constexpr std::size_t kSets = 3;
constexpr std::size_t kCache = std::size_t{64} << 20; // more than any L2 keeps of a set that others follow

using Buffers = std::vector<std::shared_ptr<Buffer>>;

void* pointer(const Buffer& b, std::size_t offset = 0) {
    return reinterpret_cast<void*>(b.address() + offset);
}

/// Everything of one measurement; `fault` says what ended it.
class Session {
public:
    Session(std::shared_ptr<Context> context, std::shared_ptr<Stream> stream, const ir::Specification& specification,
            const ir::Request& request)
        : context_(std::move(context)), stream_(std::move(stream)), specification_(specification), request_(request) {}

    Outcome<std::vector<Measurer::Timing>> run(const ir::Shape& shape, std::span<const Artifact* const> artifacts) {
        const auto c = case_of(specification_, request_, shape);
        if (!c) return Fault{"domain", "the text does not allow this shape", "give another --shape"};
        case_ = *c;
        for (const Artifact* a : artifacts)
            if (auto done = load(*a); !done) return done.fault();
        if (auto done = inputs(); !done) return done.fault();
        std::vector<Measurer::Timing> out(artifacts.size());
        if (auto done = compare(out); !done) return done.fault();
        if (auto done = time(out); !done) return done.fault();
        return out;
    }

private:
    Outcome<void> load(const Artifact& artifact) {
        auto state = std::make_unique<ServedKernel::State>();
        auto binding = binding_of(artifact, specification_, request_);
        if (!binding) return Fault{"internal", "a configuration does not fit its specification", "please report"};
        auto library = Library::load(context_, artifact.cubin);
        if (!library) return library.fault();
        for (const auto& entry : artifact.plan.entries) {
            auto kernel = (*library)->kernel(entry.name.c_str(), entry.shared_bytes);
            if (!kernel) return kernel.fault();
            state->loaded.kernels.push_back(*kernel);
        }
        state->loaded.context = context_;
        state->loaded.library = *library;
        state->artifact = artifact;
        state->request = request_;
        state->binding = std::move(*binding);
        kernels_.push_back(std::make_unique<ServedKernel>(std::move(state)));
        return {};
    }

    Outcome<std::shared_ptr<Buffer>> room(std::size_t bytes) {
        auto buffer = Buffer::allocate(context_, std::max<std::size_t>(bytes, 256));
        if (buffer) buffers_.push_back(*buffer);
        return buffer;
    }

    Outcome<void> fill(const Buffer& to, std::size_t elements, const std::vector<std::uint16_t>& pattern,
                       std::size_t from) {
        for (std::size_t n = 0, at = from % pattern.size(); n < elements; at = 0) { // no copy of it all on the host
            const std::size_t some = std::min(elements - n, pattern.size() - at);
            if (auto done = to.upload(pattern.data() + at, 2 * some, stream_->handle(), 2 * n); !done) return done;
            n += some;
        }
        return stream_->synchronise();
    }

    Outcome<void> inputs() {
        const auto size = [](std::int64_t a, std::int64_t b, std::int64_t s, std::int64_t d) {
            return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(s) *
                   static_cast<std::size_t>(d);
        };
        const std::int64_t d = request_.head_dim, dv = request_.head_dim_v;
        const std::size_t q = size(case_.B, case_.Hq, case_.Sq, d), k = size(case_.B, case_.Hk, case_.Sk, d),
                          v = size(case_.B, case_.Hk, case_.Sk, dv), o = size(case_.B, case_.Hq, case_.Sq, dv),
                          lse = size(case_.B, case_.Hq, case_.Sq, 1);
        out_elements_ = o;
        auto free = context_->free_memory();
        if (!free) return free.fault();
        const std::size_t set = 2 * (q + k + v + o) + 4 * lse;
        const std::size_t wanted = std::clamp<std::size_t>(2 * kCache / std::max<std::size_t>(set, 1) + 1, kSets, 16);
        const std::size_t sets = std::min(wanted, *free / 2 / std::max<std::size_t>(set, 1));
        if (sets == 0)
            return Fault{"memory", fmt::format("a set of inputs takes {} MiB, {} are free", set >> 20, *free >> 20),
                         "give a smaller --shape"};
        const auto pattern = normal_elements(request_.q_dtype, 1);
        const auto tensor = [](const Buffer& b, std::int64_t heads, std::int64_t rows, std::int64_t width) {
            return ir::abi::cb_tensor{pointer(b), heads * rows * width, width, rows * width};
        };
        for (std::size_t n = 0; n < sets; ++n) {
            LaunchArgs a;
            const std::pair<std::size_t, ir::abi::cb_tensor*> all[] = {{q, &a.q}, {k, &a.k}, {v, &a.v}, {o, &a.o}};
            for (std::size_t t = 0; t < 4; ++t) {
                auto buffer = room(2 * all[t].first);
                if (!buffer) return buffer.fault();
                const bool keys = t == 1 || t == 2;
                *all[t].second =
                    tensor(**buffer, keys ? case_.Hk : case_.Hq, keys ? case_.Sk : case_.Sq, t < 2 ? d : dv);
                if (t < 3)
                    if (auto done = fill(**buffer, all[t].first, pattern, (7 * n + t) * 130003); !done) return done;
            }
            auto buffer = room(4 * lse);
            if (!buffer) return buffer.fault();
            if (kernels_[0]->state().artifact.plan.writes_lse) a.lse = tensor(**buffer, case_.Hq, case_.Sq, 1);
            a.requests = static_cast<int>(case_.B), a.heads_kv = static_cast<int>(case_.Hk);
            a.max_q = static_cast<int>(case_.Sq), a.max_kv = static_cast<int>(case_.Sk);
            a.total_q = static_cast<int>(case_.B * case_.Sq);
            sets_.push_back(a);
        }
        if (auto done = operands(); !done) return done;
        return workspace();
    }

    /// One copy for all sets and kernels: they are read by few.
    Outcome<void> operands() {
        const auto drawn =
            typical_operands(specification_, request_, case_, needs_tame(specification_, request_, case_));
        if (!drawn) return Fault{drawn.error().kind, drawn.error().message, drawn.error().hint};
        const auto& known = specification_.inputs();
        for (const auto& o : kernels_[0]->state().binding.plan.operands) {
            if (o.bound) continue;
            auto& out = operands_.emplace_back();
            const auto it = std::find_if(known.begin(), known.end(), [&](const auto& x) { return x.name == o.name; });
            const auto& given =
                it == known.end() ? ir::Argument() : (*drawn)[static_cast<std::size_t>(it - known.begin())];
            if (!given) return Fault{"internal", "operand `" + o.name + "` could not be drawn", "please report"};
            if (o.rank == 0) {
                out.value = given->values[0];
                continue;
            }
            // What is copied in pieces has whole pieces in each row.
            const std::int64_t width = ir::size_in_bytes(o.dtype),
                               piece = std::max<std::int64_t>(1, o.alignment / width);
            const std::int64_t row = given->shape.empty() ? 1 : std::max<std::int64_t>(1, given->shape.back());
            const std::int64_t wide = (row + piece - 1) / piece * piece;
            std::int64_t step = 1;
            for (std::size_t axis = given->shape.size(); axis-- > 0;) {
                out.size[axis] = given->shape[axis], out.stride[axis] = step;
                step *= axis + 1 == given->shape.size() ? wide : std::max<std::int64_t>(1, given->shape[axis]);
            }
            std::vector<std::byte> bytes(static_cast<std::size_t>(step * width));
            for (std::size_t n = 0; n < given->values.size(); ++n) {
                const auto at = static_cast<std::int64_t>(n);
                encode(given->values[n], o.dtype,
                       &bytes[static_cast<std::size_t>((at / row * wide + at % row) * width)]);
            }
            auto buffer = room(bytes.size());
            if (!buffer) return buffer.fault();
            out.data = pointer(**buffer);
            if (auto done = (*buffer)->upload(bytes.data(), bytes.size(), stream_->handle()); !done) return done;
            if (auto done = stream_->synchronise(); !done) return done;
        }
        for (auto& a : sets_) a.operands = operands_;
        return {};
    }

    Outcome<void> workspace() {
        std::size_t most = 0;
        for (const auto& k : kernels_) {
            std::size_t bytes = 0;
            if (auto v = k->workspace(sets_[0], bytes); !v) return refused(v);
            most = std::max(most, bytes);
        }
        auto buffer = room(most);
        if (!buffer) return buffer.fault();
        for (auto& a : sets_) a.workspace = pointer(**buffer), a.workspace_size = most;
        return {};
    }

    static Fault refused(const Verdict& v) { return {v.status == Status::Cuda ? "driver" : "domain", v.message}; }

    Outcome<void> launch(std::size_t kernel, std::size_t turn) const {
        const auto v = kernels_[kernel]->launch(sets_[turn % sets_.size()], stream_->handle());
        if (!v) return refused(v);
        return {};
    }

    /// Every output against the first's, on one set; a first launch is none to time.
    Outcome<void> compare(std::vector<Measurer::Timing>& out) {
        std::vector<std::uint16_t> first(out_elements_), other(out_elements_);
        const Buffer& to = *buffers_[3];
        for (std::size_t k = 0; k < kernels_.size(); ++k) {
            auto& here = k == 0 ? first : other;
            if (auto done = to.fill(0xff, stream_->handle()); !done) return done;
            if (auto done = launch(k, 0); !done) return done;
            if (auto done = to.download(here.data(), 2 * here.size(), stream_->handle()); !done) return done;
            if (auto done = stream_->synchronise(); !done) return done;
            if (k > 0) out[k].wrong = differs(first, other, request_.o_dtype);
        }
        return {};
    }

    Outcome<void> time(std::vector<Measurer::Timing>& out) {
        for (int n = 0; n <= kMostLaunches; ++n) {
            auto event = Event::create(context_);
            if (!event) return event.fault();
            events_.push_back(*event);
        }
        std::vector<std::vector<std::vector<float>>> blocks(kernels_.size());
        std::vector<int> launches(kernels_.size(), kLeastLaunches);
        for (int round = -1; round < kRounds; ++round) // the first only warms up and says how long a launch takes
            for (std::size_t k = 0; k < kernels_.size(); ++k) {
                if (!out[k].wrong.empty()) continue;
                auto times = block(k, launches[k]);
                if (!times) return times.fault();
                if (round >= 0) {
                    blocks[k].push_back(std::move(*times));
                    continue;
                }
                const double ms = std::max(1e-3, static_cast<double>(times->back()));
                launches[k] = std::clamp(static_cast<int>(std::lround(kBlockMs / ms)), kLeastLaunches, kMostLaunches);
                if (k == 0) // from idle clocks to those of work
                    for (double warm = 0; warm < kWarmUpMs; warm += ms * launches[0])
                        if (auto more = block(0, launches[0]); !more) return more.fault();
            }
        for (std::size_t k = 0; k < kernels_.size(); ++k)
            if (out[k].wrong.empty()) out[k] = timing_of(blocks[k]);
        return {};
    }

    /// Launches back to back.
    Outcome<std::vector<float>> block(std::size_t kernel, int launches) {
        const CUstream stream = stream_->handle();
        if (auto done = events_[0]->record(stream); !done) return done.fault();
        for (int n = 0; n < launches; ++n) {
            if (auto done = launch(kernel, turn_++); !done) return done.fault();
            if (auto done = events_[static_cast<std::size_t>(n) + 1]->record(stream); !done) return done.fault();
        }
        if (auto done = stream_->synchronise(); !done) return done.fault();
        std::vector<float> out;
        for (std::size_t n = 0; n < static_cast<std::size_t>(launches); ++n) {
            auto ms = events_[n + 1]->since(*events_[n]);
            if (!ms) return ms.fault();
            out.push_back(*ms);
        }
        return out;
    }

    const std::shared_ptr<Context> context_;
    const std::shared_ptr<Stream> stream_;
    const ir::Specification& specification_;
    const ir::Request& request_;
    Case case_;
    Buffers buffers_; ///< the first four are q, k, v and o of the first set
    std::vector<std::unique_ptr<ServedKernel>> kernels_;
    std::vector<LaunchArgs> sets_;
    std::vector<ir::abi::cb_operand> operands_;
    std::vector<std::shared_ptr<Event>> events_;
    std::size_t out_elements_ = 0, turn_ = 0;
};

class GpuMeasurer final : public Measurer {
public:
    GpuMeasurer(std::shared_ptr<Context> context, std::shared_ptr<Stream> stream)
        : context_(std::move(context)), stream_(std::move(stream)) {}

    std::string device() const override { return device_text(context_->device()); }

    Outcome<std::vector<Timing>> measure(const ir::Specification& specification, const ir::Request& request,
                                         const ir::Shape& shape, std::span<const Artifact* const> artifacts) override {
        const RelaxedCapture relaxed(context_->cuda());
        const ScopedContext current(*context_);
        if (!current.state()) return current.state().fault();
        Session session(context_, stream_, specification, request);
        auto out = session.run(shape, artifacts);
        (void)stream_->synchronise(); // before its memory goes
        return out;
    }

private:
    const std::shared_ptr<Context> context_;
    const std::shared_ptr<Stream> stream_;
};

} // namespace

Outcome<std::unique_ptr<Measurer>> gpu_measurer(const std::shared_ptr<Driver>& driver, int ordinal) {
    auto context = Context::retain(driver, ordinal);
    if (!context) return context.fault();
    auto stream = Stream::create(*context);
    if (!stream) return stream.fault();
    return std::unique_ptr<Measurer>(std::make_unique<GpuMeasurer>(*context, *stream));
}

} // namespace cubridge::runtime
