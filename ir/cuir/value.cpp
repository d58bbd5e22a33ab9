// Making and describing values. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/value.h"
#include <algorithm>

namespace cubridge::ir::cuir {

void release(Object* object) {
    if (--object->references == 0) delete object;
}

std::int64_t Ranges::length() const {
    std::int64_t n = 0;
    for (const auto& r : list) n += std::max<std::int64_t>(r.end - r.begin, 0);
    return std::max<std::int64_t>(n, 1);
}

std::pair<std::int64_t, bool> Ranges::pick(std::int64_t k) const {
    for (const auto& r : list) {
        const auto n = std::max<std::int64_t>(r.end - r.begin, 0);
        if (k < n) return {r.end - 1 - k, r.masked};
        k -= n;
    }
    return {0, true};
}

Value Value::tuple(std::vector<Value> items) {
    Ref<Tuple> t(new Tuple);
    t->items = std::move(items);
    return with(Tag::Tuple, t);
}

const std::vector<Value>& Value::items() const {
    return static_cast<const Tuple&>(*object).items;
}

std::string describe(const Value& v) {
    switch (v.tag) {
    case Value::Tag::None: return "nothing";
    case Value::Tag::Bool: return "a truth value";
    case Value::Tag::Int: return "an integer";
    case Value::Tag::Real: return "a real number";
    case Value::Tag::Array: {
        const auto& a = v.array();
        if (a.cols == 1) return "a row value of " + std::to_string(a.rows);
        if (a.rows == 1) return "a column value of " + std::to_string(a.cols);
        return "a tile of " + std::to_string(a.rows) + " x " + std::to_string(a.cols);
    }
    case Value::Tag::Tuple: return "a tuple of " + std::to_string(v.items().size());
    case Value::Tag::Ranges: return "key ranges";
    case Value::Tag::Place: return "storage";
    case Value::Tag::Barrier: return "a barrier";
    case Value::Tag::Named: return "a named barrier";
    case Value::Tag::Channel: return "a channel";
    case Value::Tag::Tensor: return "a tensor";
    case Value::Tag::Slice: return "a slice of a tensor";
    case Value::Tag::Type: return "a type";
    case Value::Tag::Text: return "a string";
    }
    return "";
}

void trouble(std::string kind, std::string message, int other) {
    throw Trouble{std::move(kind), std::move(message), other};
}

} // namespace cubridge::ir::cuir
