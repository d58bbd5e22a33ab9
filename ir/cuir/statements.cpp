// Statements at work: control, bindings, stores, and the door to what synchronises. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/machine.h"
#include <algorithm>
#include <fmt/format.h>

namespace cubridge::ir::cuir {

using Tag = Value::Tag;
using Do = Step::Do;

/// The next statement that is not control; null at the end of the thread.
const Step* Cta::next(Thread& t) {
    while (!t.stack.empty()) {
        auto& f = t.stack.back();
        if (f.at == f.block->size()) {
            if (f.loop && iterate(f, t)) {
                if (++launch_.steps > launch_.run.steps) trouble("limit", "the step limit is reached");
                f.at = 0;
            } else {
                t.stack.pop_back();
            }
            continue;
        }
        const Step& s = (*f.block)[f.at++];
        (t.is_agent ? outer_ : inner_) = &s;
        if (++launch_.steps > launch_.run.steps) trouble("limit", "the step limit is reached");
        switch (s.what) {
        case Do::If: {
            const auto& branch = truth(*s.args[0], t) ? s.body : s.other;
            t.stack.push_back({&branch, 0, nullptr, {}});
            break;
        }
        case Do::While: t.stack.push_back({&s.body, s.body.size(), &s, {}}); break;
        case Do::For: {
            auto iteration = begin(*s.args[0], t);
            t.stack.push_back({&s.body, s.body.size(), &s, std::move(iteration)});
            break;
        }
        case Do::Break:
            while (!t.stack.empty() && !t.stack.back().loop) t.stack.pop_back();
            if (t.stack.empty()) trouble("static", "break stands in a loop");
            t.stack.pop_back();
            break;
        case Do::Return:
            if (!s.args.empty()) t.result = eval(*s.args[0], t);
            t.stack.clear();
            break;
        default: return &s;
        }
    }
    return nullptr;
}

void Cta::finish(Thread& t) {
    while (const Step* s = next(t)) perform(*s, t);
}

bool Cta::iterate(Frame& f, Thread& t) {
    const Step& loop = *f.loop;
    (t.is_agent ? outer_ : inner_) = &loop;
    if (loop.what == Do::While) return truth(*loop.args[0], t);
    auto& it = f.iteration;
    Value item;
    switch (it.over) {
    case Builtin::Draw: {
        if (drawer_ >= 0 && drawer_ != current_)
            trouble("barrier", "one agent of a CTA draws work items; " + who(drawer_) + " does");
        drawer_ = current_;
        auto& left = launch_.left;
        while (cta_ + 1 < ctas_ && !left.empty() && chance_.percent(50)) { // another CTA was faster
            launch_.later.push_back(left.front());
            left.erase(left.begin());
        }
        if (left.empty()) return false;
        item = work_item(left.front(), it);
        left.erase(left.begin());
        break;
    }
    case Builtin::Bind:
        if (it.at >= it.stop) return false;
        item = work_item(it.at, it);
        it.at += ctas_;
        break;
    case Builtin::Each: {
        if (it.at >= it.stop) return false;
        std::vector<Value> index(it.extents.size());
        auto rest = it.at++;
        for (std::size_t k = index.size(); k-- > 0; rest /= it.extents[k])
            index[k] = Value::integer(rest % it.extents[k]);
        item = index.size() == 1 ? index[0] : Value::tuple(std::move(index));
        break;
    }
    case Builtin::Walk: {
        if (it.at >= it.stop) return false;
        const auto [n, masked] = it.ranges->pick(it.at++);
        item = Value::tuple({Value::integer(n), Value::boolean(masked), Value::boolean(it.at < it.stop)});
        break;
    }
    default:
        if (it.at >= it.stop) return false;
        item = Value::integer(it.at++);
    }
    if (it.enumerated) item = Value::tuple({Value::integer(it.count++), std::move(item)});
    bind(loop.target, item, t, true);
    return true;
}

Iteration Cta::begin(const Expr& e, Thread& t) {
    if (e.builtin == Builtin::Enumerate) {
        auto it = begin(*e.args[0], t);
        it.enumerated = true;
        return it;
    }
    Iteration it;
    it.over = e.builtin;
    switch (e.builtin) {
    case Builtin::Range:
        it.at = e.args[1] ? integer(*e.args[0], t) : 0;
        it.stop = integer(e.args[1] ? *e.args[1] : *e.args[0], t);
        break;
    case Builtin::Walk:
        it.ranges = ranges(eval(*e.args[0], t));
        it.stop = it.ranges->length();
        break;
    default: {
        const bool draw = e.builtin == Builtin::Draw;
        it.stop = 1;
        for (std::size_t k = draw ? 1 : 0; k < e.args.size(); ++k) {
            it.extents.push_back(std::max<std::int64_t>(integer(*e.args[k], t), 0));
            if (it.extents.back() > launch_.run.steps || it.stop > launch_.run.steps)
                trouble("limit", "more work items than steps");
            it.stop *= it.extents.back();
        }
        if (e.builtin == Builtin::Each) break;
        if (it.extents.size() != 3) trouble("static", "work items are of batches, heads and tiles of rows");
        it.heaviest_first = e.slot == 1;
        it.at = cta_;
        if (draw && !launch_.drawing) {
            launch_.drawing = true;
            for (std::int64_t k = 0; k < it.stop; ++k) launch_.left.push_back(k);
        }
    }
    }
    return it;
}

/// (batch, head, tile): tiles from the last one, which a causal mask makes the heaviest.
Value Cta::work_item(std::int64_t k, const Iteration& it) const {
    const auto heads = it.extents[1], tiles = it.extents[2];
    std::int64_t b = 0, h = 0, m = 0;
    if (it.heaviest_first) {
        h = k % heads;
        b = k / heads % it.extents[0];
        m = k / heads / it.extents[0];
    } else {
        m = k % tiles;
        h = k / tiles % heads;
        b = k / tiles / heads;
    }
    return Value::tuple({Value::integer(b), Value::integer(h), Value::integer(tiles - 1 - m)});
}

void Cta::bind(const Target& target, const Value& v, Thread& t, bool pin) {
    if (target.items.empty()) {
        t.names[target.slot] = pin ? pinned(v) : v;
        return;
    }
    if (v.tag != Tag::Tuple || v.items().size() != target.items.size())
        trouble("type", fmt::format("{} names for {}", target.items.size(), describe(v)));
    for (std::size_t k = 0; k < target.items.size(); ++k) bind(target.items[k], v.items()[k], t, pin);
}

void Cta::store(const Step& s, Thread& t) {
    const Expr& to = *s.args[0];
    const Value object = eval(*to.args[0], t);
    const Value v = read(*s.args[1], t);
    if (object.tag == Tag::Tensor) {
        const bool sliced =
            std::any_of(to.args.begin() + 1, to.args.end(), [](const auto* a) { return a->form == Expr::Form::Slice; });
        auto& tensor = launch_.tensors[static_cast<std::size_t>(object.index)];
        if (!sliced) {
            if (!v.is_scalar()) trouble("type", "an element is a scalar, not " + describe(v));
            const auto at = element(static_cast<int>(object.index), to, t);
            tensor.write(at, v.as_real(), *outer_, kernel_number_);
            return;
        }
        const auto where = slice(static_cast<int>(object.index), to, t);
        if (v.tag == Tag::Array) {
            const auto& a = v.array();
            if ((a.rows != 1 && a.rows != where->rows) || (a.cols != 1 && a.cols != where->cols))
                trouble("shape", fmt::format("{} is stored to {} rows of {}", describe(v), where->rows, where->cols));
            store_slice(*where, a);
        } else if (v.is_scalar()) {
            Array one(Number::Real, 1, 1);
            one.data[0] = v.as_real();
            store_slice(*where, one);
        } else {
            trouble("type", describe(v) + " is nothing that a tensor holds");
        }
        return;
    }
    const Value place = index(to, t);
    if (place.tag != Tag::Place) trouble("type", "only storage and tensors are written");
    if (to.args.back()->form != Expr::Form::Slice)
        trouble("static", "write the whole cell: " + place_name(place) + "[:] = ...");
    const auto ref = one_cell(place, "what is written");
    touch(ref, true, generic_access(), self().clock);
    write_cell(ref, v);
}

bool Cta::perform(const Step& s, Thread& t) {
    switch (s.what) {
    case Do::Assign: {
        const Expr& e = *s.args[0];
        const bool makes = e.form == Expr::Form::Call && e.builtin == Builtin::Alloc;
        bind(s.target, eval(e, t), t, !makes);
        return false;
    }
    case Do::Store: store(s, t); return false;
    case Do::Assert:
        if (!truth(*s.args[0], t)) trouble("assert", "does not hold");
        return false;
    case Do::Take: {
        if (!t.is_agent) trouble("static", "take stands in a role");
        const Value c = eval(*s.args[0], t);
        if (c.tag != Tag::Channel) trouble("type", "take is from a channel, not from " + describe(c));
        auto& a = self();
        a.blocked = Agent::Blocked::Entry;
        a.on = static_cast<int>(c.index);
        a.phase = std::max<std::int64_t>(
            channels_[static_cast<std::size_t>(a.on)].position[static_cast<std::size_t>(current_)], 0);
        return true;
    }
    case Do::Effect: return effect(s, t);
    default: return false;
    }
}

bool Cta::effect(const Step& s, Thread& t) {
    if (current_ < 0 || (!t.is_agent && s.builtin != Builtin::Gemm && s.builtin != Builtin::Copy))
        trouble("static", "nothing that synchronises or moves data stands outside a role");
    const auto arg = [&](std::size_t k) { return eval(*s.args[k], t); };
    switch (s.builtin) {
    case Builtin::Gemm: product(s, t); return false;
    case Builtin::Copy: copy(s, t); return false;
    case Builtin::CopyAsync: return copy_async(s, t);
    case Builtin::GemmAsync: return gemm_async(s, t);
    case Builtin::Fence: fence(arg(0)); return true;
    case Builtin::Arrive: {
        const Value v = arg(0);
        if (v.tag == Tag::Named)
            arrive_named(barrier_of(v, Tag::Named, "what arrives"));
        else
            arrive(barrier_of(v, Tag::Barrier, "what arrives"), false);
        return true;
    }
    case Builtin::Sync: return sync(barrier_of(arg(0), Tag::Named, "what syncs"));
    case Builtin::Publish: {
        const Value c = arg(0);
        if (c.tag != Tag::Channel) trouble("type", "publish is on a channel, not on " + describe(c));
        return publish(static_cast<int>(c.index), arg(1));
    }
    case Builtin::Wait: {
        const Value v = arg(0);
        if (v.tag == Tag::Barrier) {
            if (!s.args[1]) trouble("static", "a wait for a barrier names the phase");
            return wait_phase(barrier_of(v, Tag::Barrier, "what is waited for"), integer(*s.args[1], t));
        }
        if (s.args[1]) trouble("static", "a wait for storage has no phase");
        wait_cells(v);
        return true;
    }
    default: return false;
    }
}

} // namespace cubridge::ir::cuir
