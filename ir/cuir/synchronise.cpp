// Barriers, phases and channels at work. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/machine.h"
#include <algorithm>
#include <fmt/format.h>

namespace cubridge::ir::cuir {

using Tag = Value::Tag;

int Cta::barrier_of(const Value& v, Tag tag, const char* what) const {
    if (v.tag != tag)
        trouble("type", fmt::format("{} is {}, not {}", what, tag == Tag::Named ? "a named barrier" : "a barrier",
                                    describe(v)));
    if (v.depth == 0) trouble("type", fmt::format("{} is one barrier of the {}; say which", what, v.version));
    return static_cast<int>(v.index);
}

void Cta::arrive(int number, bool lands) {
    auto& a = self();
    auto& b = barriers_[static_cast<std::size_t>(number)];
    if (b.arrived >= b.count)
        trouble("barrier",
                fmt::format("one arrival too many at {}: phase {} counts {}, the last at line {}", b.name, b.completed,
                            b.count, b.arrivals.back().step->line),
                b.arrivals.back().step->line);
    ++b.arrived;
    if (lands) {
        ++b.landing;
        b.landed_by = outer_;
        b.landed_in = b.completed;
        b.landed_agent = current_;
    }
    const Arrival arrival{current_, outer_, a.clock[current_]};
    b.arrivals.push_back(arrival);
    b.latest[static_cast<std::size_t>(current_)] = arrival;
    b.open.join(a.clock);
    ++a.clock[current_];
    close(number);
}

void Cta::landed(int number) {
    --barriers_[static_cast<std::size_t>(number)].landing;
    close(number);
}

void Cta::close(int number) {
    auto& b = barriers_[static_cast<std::size_t>(number)];
    if (b.arrived < b.count || b.landing > 0) return;
    for (std::size_t k = 0; k < b.passed.size(); ++k) {
        const auto& p = b.passed[k];
        if (p.phase != b.completed - 1 || b.open[static_cast<int>(k)] >= p.time) continue;
        trouble(
            "phase",
            fmt::format("phase {} of {} can complete before {} has passed phase {} (line {}); one bit of parity can't "
                        "tell phase {} from {}",
                        b.completed, b.name, who(static_cast<int>(k)), p.phase, p.step->line, b.completed + 1, p.phase),
            p.step->line);
    }
    b.open.see({b.component, static_cast<std::uint32_t>(b.completed + 1)});
    std::swap(b.last, b.open);
    b.open.reset();
    b.arrived = 0;
    b.arrivals.clear();
    ++b.completed;
}

bool Cta::wait_phase(int number, std::int64_t phase) {
    auto& a = self();
    const auto& b = barriers_[static_cast<std::size_t>(number)];
    if (phase < -1) trouble("phase", fmt::format("phase {} of {} never completes; phases count from 0", phase, b.name));
    if (phase >= 1 && a.clock[b.component] < static_cast<std::uint32_t>(phase))
        trouble("phase",
                fmt::format("{} waits for phase {} of {} and may not have seen phase {} complete; phase {} has the "
                            "same parity and lets it pass",
                            a.name, phase, b.name, phase - 1, phase - 2));
    a.blocked = Agent::Blocked::Phase;
    a.on = number;
    a.phase = phase;
    return true;
}

void Cta::pass(Agent& a, int number, std::int64_t phase) {
    auto& b = barriers_[static_cast<std::size_t>(number)];
    if (b.completed > phase + 1)
        trouble("phase",
                fmt::format("{} waits for phase {} of {}, which is at phase {} by now; one bit of parity can't tell",
                            a.name, phase, b.name, b.completed));
    if (phase >= 0) a.clock.join(b.last);
    ++a.clock[a.index];
    b.passed[static_cast<std::size_t>(a.index)] = {phase, a.clock[a.index], a.step};
}

void Cta::arrive_named(int number) {
    auto& a = self();
    auto& b = named_[static_cast<std::size_t>(number)];
    auto& before = b.arrived_in[static_cast<std::size_t>(current_)];
    if (before >= 0 && a.clock[b.component] < static_cast<std::uint32_t>(before + 1))
        trouble("barrier",
                fmt::format("{} arrives at {} again and may not have seen phase {} complete, in which it arrived "
                            "already; an agent arrives once a phase",
                            a.name, b.name, before));
    before = b.completed;
    b.arrivals.push_back({current_, outer_, a.clock[current_]});
    b.open.join(a.clock);
    ++a.clock[current_];
    if (static_cast<std::int64_t>(b.arrivals.size()) < b.count) return;
    b.open.see({b.component, static_cast<std::uint32_t>(b.completed + 1)});
    for (const int w : b.waiting) {
        auto& other = agents_[static_cast<std::size_t>(w)];
        other.clock.join(b.open);
        other.blocked = Agent::Blocked::No;
    }
    b.waiting.clear();
    b.arrivals.clear();
    b.open.reset();
    ++b.completed;
}

bool Cta::sync(int number) {
    auto& a = self();
    auto& b = named_[static_cast<std::size_t>(number)];
    b.waiting.push_back(current_); // before the arrival: this one may complete the phase
    a.blocked = Agent::Blocked::Sync;
    a.on = number;
    arrive_named(number);
    return true;
}

bool Cta::publish(int number, Value v) {
    auto& a = self();
    auto& c = channels_[static_cast<std::size_t>(number)];
    if (c.publisher >= 0 && c.publisher != current_)
        trouble("barrier", fmt::format("{} publishes on {}, which is {}'s; a channel has one publisher", a.name, c.name,
                                       who(c.publisher)));
    c.publisher = current_;
    a.pending = std::move(v);
    a.blocked = Agent::Blocked::Room;
    a.on = number;
    return true;
}

void Cta::put(Agent& a) {
    auto& c = channels_[static_cast<std::size_t>(a.on)];
    c.queue.push_back({std::move(a.pending), a.clock, a.step});
    a.pending = {};
    ++a.clock[a.index];
}

Value Cta::take(Agent& a) {
    auto& c = channels_[static_cast<std::size_t>(a.on)];
    auto& at = c.position[static_cast<std::size_t>(a.index)];
    if (at < 0) {
        at = 0;
        if (++c.taking > c.takers)
            trouble("barrier",
                    fmt::format("{} takes from {}, which counts {} takers and has more", a.name, c.name, c.takers));
    }
    auto& entry = c.queue[static_cast<std::size_t>(at++)];
    a.clock.join(entry.clock);
    return entry.value;
}

} // namespace cubridge::ir::cuir
