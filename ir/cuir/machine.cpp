// Agents and their schedule. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/machine.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace cubridge::ir::cuir {

using Tag = Value::Tag;
using Policy = Run::Policy;

namespace {

constexpr std::int64_t kAgents = 32; // of a CTA

} // namespace

std::uint64_t Chance::next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

Cta::Cta(Launch& launch, const KernelCode& kernel, int kernel_number, int cta, int ctas)
    : launch_(launch), kernel_(kernel), kernel_number_(kernel_number), cta_(cta), ctas_(ctas),
      chance_(launch.run.seed + 97 * static_cast<std::uint64_t>(cta)), common_(static_cast<std::size_t>(kernel.slots)) {
}

Finding Cta::finding(const Trouble& t) const {
    Finding f;
    f.kind = t.kind;
    f.other = t.other;
    const Step* step = outer_ ? outer_ : inner_;
    if (current_ >= 0) f.role = self().name;
    if (step) {
        f.line = step->line;
        f.message = "`" + step->text() + "`: ";
    }
    f.message += t.message;
    if (inner_ && outer_ && inner_ != outer_)
        f.message += fmt::format(" (line {}, `{}`)", inner_->line, inner_->text());
    return f;
}

std::optional<Finding> Cta::prelude() {
    try {
        bind_parameters();
        Thread t;
        t.names = common_.data();
        t.is_agent = true; // its statements are the ones that findings name
        t.stack.push_back({&kernel_.prelude, 0, nullptr, {}});
        finish(t);
        outer_ = nullptr;
    } catch (const Trouble& t) {
        return finding(t);
    }
    return std::nullopt;
}

std::optional<Finding> Cta::run() {
    if (auto f = prelude()) return f;
    try {
        make_agents();
        make_clocks();
        schedule();
        end_of_cta();
    } catch (const Trouble& t) {
        return finding(t);
    }
    return std::nullopt;
}

void Cta::bind_parameters() {
    const auto& run = launch_.run;
    const auto set = [&](int slot, Value v) { common_[static_cast<std::size_t>(slot)] = std::move(v); };
    for (const auto& [name, slot] : kernel_.sizes)
        if (const auto it = run.sizes.find(name); it != run.sizes.end()) set(slot, Value::integer(it->second));
    for (std::size_t k = 0; k < kernel_.constants.size(); ++k) {
        const auto& [name, slot] = kernel_.constants[k];
        const Value& own = kernel_.constant_values[k];
        if (const auto it = run.constants.find(name); it != run.constants.end())
            set(slot,
                own.tag == Tag::Real ? Value::number(static_cast<double>(it->second)) : Value::integer(it->second));
        else if (common_[static_cast<std::size_t>(slot)].tag == Tag::None) // a size of the run is stronger
            set(slot, own);
    }
    for (const auto& p : kernel_.params) {
        for (std::size_t k = 0; k < launch_.tensors.size(); ++k) {
            const auto& tensor = launch_.tensors[k];
            if (tensor.name != p.name || tensor.use == Tensor::Use::Workspace) continue;
            if (p.tensor) {
                set(p.slot, Value::handle(Tag::Tensor, static_cast<std::int64_t>(k)));
            } else {
                const double x = tensor.input[0];
                if (!is_float(p.type) && !(std::fabs(x) <= static_cast<double>(kIntegers)))
                    trouble("static", "the run gives `" + p.name + "` no integer");
                set(p.slot, is_float(p.type)        ? Value::number(x)
                            : p.type == DType::Bool ? Value::boolean(x != 0)
                                                    : Value::integer(static_cast<std::int64_t>(x)));
            }
        }
        if (p.counter) set(p.slot, Value::handle(Tag::Text, 0));
    }
    for (const auto& [number, slot] : kernel_.workspace)
        for (std::size_t k = 0; k < launch_.tensors.size(); ++k)
            if (launch_.tensors[k].use == Tensor::Use::Workspace &&
                launch_.tensors[k].name == launch_.code.storage[static_cast<std::size_t>(number)].name)
                set(slot, Value::handle(Tag::Tensor, static_cast<std::int64_t>(k)));
}

void Cta::make_agents() {
    for (const auto& role : kernel_.roles) {
        const auto k = evaluate_integer(role.warps ? *role.warps : *role.warpgroups);
        if (k < 1 || static_cast<std::int64_t>(agents_.size()) + k > kAgents)
            trouble("static", fmt::format("role {} has {} agents", role.name, k));
        for (std::int64_t g = 0; g < k; ++g) {
            agents_.emplace_back();
            auto& a = agents_.back();
            a.role = role.name;
            a.name = k == 1 ? role.name : fmt::format("{} {}", role.name, g);
            a.code = &role;
            a.index = static_cast<int>(agents_.size()) - 1;
            a.number = static_cast<int>(g);
            a.agents_of_role = static_cast<int>(k);
            a.names.resize(static_cast<std::size_t>(role.slots));
            if (role.index_slot >= 0) a.names[static_cast<std::size_t>(role.index_slot)] = Value::integer(g);
            a.thread.names = a.names.data();
            a.thread.is_agent = true;
            a.thread.stack.push_back({&role.body, 0, nullptr, {}});
        }
    }
}

void Cta::make_clocks() {
    const auto n = agents_.size();
    int component = static_cast<int>(4 * n); // itself and three queues each
    for (auto& b : barriers_) b.component = component++;
    for (auto& b : named_) b.component = component++;
    const auto components = static_cast<std::size_t>(component);
    for (auto& a : agents_) {
        a.clock = Clock(components);
        a.clock[a.index] = 1;
    }
    for (auto& b : barriers_) {
        b.open = b.last = Clock(components);
        b.passed.resize(n);
        b.latest.resize(n);
    }
    for (auto& b : named_) {
        b.open = Clock(components);
        b.arrived_in.assign(n, -1);
    }
    for (auto& c : channels_) c.position.assign(n, -1);
}

bool Cta::ready(const Agent& a) const {
    switch (a.blocked) {
    case Agent::Blocked::No: return true;
    case Agent::Blocked::Phase: return barriers_[static_cast<std::size_t>(a.on)].completed > a.phase;
    case Agent::Blocked::Sync: return false; // the last arrival frees it
    case Agent::Blocked::Room: return channels_[static_cast<std::size_t>(a.on)].room() > 0;
    case Agent::Blocked::Entry:
        return static_cast<std::int64_t>(channels_[static_cast<std::size_t>(a.on)].queue.size()) > a.phase;
    }
    return false;
}

void Cta::schedule() {
    const auto policy = launch_.run.policy;
    std::vector<Agent*> able, others;
    for (;;) {
        able.clear();
        bool live = false;
        for (auto& a : agents_) {
            live = live || !a.over;
            if (!a.over && ready(a)) able.push_back(&a);
        }
        if (!live) return;
        if (policy == Policy::Starve) {
            others.clear();
            for (auto* a : able)
                if (a->role != launch_.run.starved) others.push_back(a);
            if (!others.empty()) able.swap(others);
        }
        if (!flight_.empty() && (able.empty() || (policy == Policy::Random && chance_.percent(30)))) {
            const int op = flight_[chance_.below(flight_.size())];
            current_ = operations_[static_cast<std::size_t>(op)].agent;
            outer_ = operations_[static_cast<std::size_t>(op)].step;
            inner_ = nullptr;
            complete(op);
            continue;
        }
        if (able.empty()) deadlock();
        advance(*able[chance_.below(able.size())]);
    }
}

void Cta::advance(Agent& a) {
    current_ = a.index;
    outer_ = a.step;
    inner_ = nullptr;
    if (a.blocked != Agent::Blocked::No) resume(a);
    while (const Step* s = next(a.thread)) {
        a.step = s;
        if (perform(*s, a.thread)) return;
    }
    end_of(a);
}

void Cta::resume(Agent& a) {
    const auto was = std::exchange(a.blocked, Agent::Blocked::No);
    if (was == Agent::Blocked::Phase) pass(a, a.on, a.phase);
    if (was == Agent::Blocked::Room) put(a);
    if (was == Agent::Blocked::Entry) bind(a.step->target, take(a), a.thread, true);
}

void Cta::end_of(Agent& a) {
    a.over = true;
    for (const auto& queue : a.queues)
        if (!queue.empty()) {
            const auto& op = operations_[static_cast<std::size_t>(queue.front())];
            outer_ = op.step;
            trouble("flight", fmt::format("may still be in flight when {} ends; no wait follows it", a.name));
        }
}

/// What lands in a barrier has landed for certain only if somebody has seen the phase.
void Cta::end_of_cta() {
    for (const auto& b : barriers_) {
        if (!b.landed_by) continue;
        const bool seen = std::any_of(agents_.begin(), agents_.end(), [&](const Agent& a) {
            return a.clock[b.component] > static_cast<std::uint32_t>(b.landed_in);
        });
        if (seen) continue;
        current_ = b.landed_agent;
        outer_ = b.landed_by;
        trouble("flight", fmt::format("may still be in flight when the CTA ends; nobody waits for phase {} of {}",
                                      b.landed_in, b.name));
    }
    for (const auto& c : channels_)
        for (const auto& a : agents_) {
            const auto at = c.position[static_cast<std::size_t>(a.index)];
            if (at < 0 || at == static_cast<std::int64_t>(c.queue.size())) continue;
            current_ = c.publisher;
            outer_ = c.queue[static_cast<std::size_t>(at)].step;
            trouble("barrier", fmt::format("{} ends without having taken this from {}", a.name, c.name));
        }
}

namespace {

/// Whether a block arrives at a barrier whose name stands in common slot `slot`.
bool arrives(const Block& block, int slot) {
    const auto base = [](const Expr* e) {
        while (e && e->form == Expr::Form::Index) e = e->args[0];
        return e && e->form == Expr::Form::Common ? e->slot : -1;
    };
    return std::any_of(block.begin(), block.end(), [&](const Step& s) {
        if (s.what == Step::Do::Effect) {
            if ((s.builtin == Builtin::Arrive || s.builtin == Builtin::Sync) && base(s.args[0]) == slot) return true;
            if (s.builtin == Builtin::CopyAsync && base(s.args[2]) == slot) return true;
        }
        return arrives(s.body, slot) || arrives(s.other, slot);
    });
}

} // namespace

bool Cta::arrives_at(const Agent& a, const Value& v) const {
    for (std::size_t slot = 0; slot < common_.size(); ++slot) {
        const Value& group = common_[slot];
        const auto n = static_cast<std::int64_t>(group.version);
        if (group.tag != v.tag || v.index < group.index || v.index >= group.index + n) continue;
        return arrives(a.code->body, static_cast<int>(slot));
    }
    return false;
}

std::string Cta::waiting_for(const Agent& a) const {
    const auto on = static_cast<std::size_t>(a.on);
    std::string out, from;
    const auto missing = [&](const std::vector<Arrival>& here, const Value& barrier) {
        for (const auto& other : agents_) {
            if (other.index == a.index || !arrives_at(other, barrier)) continue;
            if (std::any_of(here.begin(), here.end(), [&](const auto& x) { return x.agent == other.index; })) continue;
            from += (from.empty() ? " from " : " or ") + other.name + (other.over ? " (which has ended)" : "");
        }
    };
    if (a.blocked == Agent::Blocked::Phase) {
        const auto& b = barriers_[on];
        missing(b.arrivals, Value::handle(Tag::Barrier, a.on));
        out =
            fmt::format("phase {} of {} (line {}), which is in phase {} and needs {} more arrival{}{}", a.phase, b.name,
                        a.step->line, b.completed, b.count - b.arrived, b.count - b.arrived == 1 ? "" : "s", from);
    } else if (a.blocked == Agent::Blocked::Sync) {
        const auto& b = named_[on];
        missing(b.arrivals, Value::handle(Tag::Named, a.on));
        out = fmt::format("{} (line {}), which needs {} more{}", b.name, a.step->line,
                          b.count - static_cast<std::int64_t>(b.arrivals.size()), from);
    } else if (a.blocked == Agent::Blocked::Room) {
        const auto& c = channels_[on];
        out = fmt::format("room in {} (line {})", c.name, a.step->line);
        if (c.taking < c.takers) out += fmt::format(", of which {} of {} takers took", c.taking, c.takers);
    } else {
        out = fmt::format("an entry of {} (line {})", channels_[on].name, a.step->line);
    }
    return out;
}

void Cta::deadlock() {
    std::string all;
    current_ = -1;
    for (const auto& a : agents_) {
        if (a.over) continue;
        if (current_ < 0) {
            current_ = a.index;
            outer_ = a.step;
            inner_ = nullptr;
        }
        all += (all.empty() ? "deadlock: " : "; ") + a.name + " waits for " + waiting_for(a);
    }
    trouble("deadlock", all);
}

} // namespace cubridge::ir::cuir
