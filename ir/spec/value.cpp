// Lists and tuples, which a text may nest as deep as it has steps. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/value.h"
#include <set>

namespace cubridge::ir::spec {

namespace {

// The Values in which `v` alone keeps others alive are emptied into `out`.
void release(Value& v, Values& out) {
    if (v.is<Sequence>()) {
        const auto& items = v.as<Sequence>().items;
        if (items.use_count() != 1) return;
        out.insert(out.end(), std::make_move_iterator(items->begin()), std::make_move_iterator(items->end()));
        items->clear();
    } else if (v.is<FunctionValue>()) {
        const auto& fallbacks = v.as<FunctionValue>().fallbacks;
        if (fallbacks.use_count() == 1) out.insert(out.end(), fallbacks->begin(), fallbacks->end());
    } else if (v.is<RoutineValue>()) {
        const auto& self = v.as<RoutineValue>().self;
        if (self.use_count() == 1) out.push_back(*self);
    } else if (v.is<SliceValue>()) {
        const auto& parts = v.as<SliceValue>().parts;
        if (parts.use_count() == 1) out.insert(out.end(), parts->begin(), parts->end());
    }
}

bool compound(const Value& v) {
    return v.is<Sequence>() || v.is<FunctionValue>() || v.is<RoutineValue>() || v.is<SliceValue>();
}

// Values that end with a loop instead of a recursion.
struct Items final : Values {
    explicit Items(Values v) : Values(std::move(v)) {}
    Items(const Items&) = delete;
    Items& operator=(const Items&) = delete;
    ~Items() {
        Values pending;
        for (Value& v : *this)
            if (compound(v)) pending.push_back(std::move(v));
        while (!pending.empty()) {
            Value v = std::move(pending.back());
            pending.pop_back();
            release(v, pending);
        }
    }
};

} // namespace

std::shared_ptr<Values> make_items(Values items) {
    return std::make_shared<Items>(std::move(items));
}

Value make_tuple(Values items) {
    return Sequence{make_items(std::move(items)), true};
}
Value make_list(Values items) {
    return Sequence{make_items(std::move(items)), false};
}

bool holds(const Value& v, const Values& list, std::size_t& looked_at) {
    std::set<const void*> seen;
    std::vector<const Value*> pending{&v};
    const auto all = [&](const auto& items) {
        for (const Value& i : items)
            if (compound(i)) pending.push_back(&i);
    };
    while (!pending.empty()) {
        const Value& x = *pending.back();
        pending.pop_back();
        if (x.is<Sequence>()) {
            const Values* items = x.as<Sequence>().items.get();
            if (items == &list) return true;
            if (seen.insert(items).second) all(*items), looked_at += items->size();
        } else if (x.is<FunctionValue>()) {
            if (seen.insert(x.as<FunctionValue>().fallbacks.get()).second) all(*x.as<FunctionValue>().fallbacks);
        } else if (x.is<RoutineValue>() && x.as<RoutineValue>().self) {
            if (seen.insert(x.as<RoutineValue>().self.get()).second) pending.push_back(x.as<RoutineValue>().self.get());
        } else if (x.is<SliceValue>()) {
            if (seen.insert(x.as<SliceValue>().parts.get()).second) all(*x.as<SliceValue>().parts);
        }
        ++looked_at;
    }
    return false;
}

} // namespace cubridge::ir::spec
