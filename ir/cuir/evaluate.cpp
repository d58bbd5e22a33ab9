// Expressions at work. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/machine.h"
#include <algorithm>
#include <fmt/format.h>

namespace cubridge::ir::cuir {

using Tag = Value::Tag;
using Form = Expr::Form;

namespace {

constexpr int kDepth = 16;        // of calls
constexpr int kLargest = 1 << 16; // elements of an array
constexpr int kOperands = 3;

} // namespace

Value Cta::value_of(const Value& v) {
    if (v.tag != Tag::Place) return v;
    const auto ref = one_cell(v, "a value");
    if (current_ < 0) trouble("static", "storage is not read in the prelude");
    touch(ref, false, generic_access(), self().clock);
    const auto& cell = at(ref);
    if (v.version != 0 && v.version != cell.version)
        trouble("stale", fmt::format("this name stands for {} as it was before it was written again; read it earlier",
                                     buffers_[static_cast<std::size_t>(ref.buffer)].name_of(ref.cell)));
    return Value::of(cell.value);
}

Value Cta::read(const Expr& e, Thread& t) {
    Value v = eval(e, t);
    return v.tag == Tag::Place ? value_of(v) : v;
}

bool Cta::truth(const Expr& e, Thread& t) {
    const Value v = eval(e, t);
    if (!v.is_integer()) trouble("type", "a condition is a truth value, not " + describe(v));
    return v.index != 0;
}

std::int64_t Cta::integer(const Expr& e, Thread& t) {
    const Value v = eval(e, t);
    if (!v.is_integer()) trouble("type", "an integer is needed here, not " + describe(v));
    if (v.index > kIntegers || v.index < -kIntegers) trouble("range", "an integer beyond 2^53");
    return v.index;
}

std::int64_t Cta::evaluate_integer(const Expr& e) {
    Thread t;
    t.names = common_.data();
    return integer(e, t);
}

Value Cta::eval(const Expr& e, Thread& t) {
    switch (e.form) {
    case Form::Constant: return e.constant;
    case Form::Local:
    case Form::Common: {
        const Value& v = e.form == Form::Local ? t.names[e.slot] : common_[static_cast<std::size_t>(e.slot)];
        if (v.tag == Tag::None) trouble("name", "`" + e.name + "` has no value yet");
        return v;
    }
    case Form::Elementwise:
    case Form::ElementwiseF32: {
        Value x[kOperands];
        const auto count = static_cast<int>(e.args.size());
        for (int k = 0; k < count; ++k) x[k] = read(*e.args[static_cast<std::size_t>(k)], t);
        return e.form == Form::Elementwise ? apply(e.op, x, count) : apply_f32(e.op, x, count);
    }
    case Form::And:
    case Form::Or: {
        const bool until = e.form == Form::Or;
        for (const auto* a : e.args)
            if (truth(*a, t) == until) return Value::boolean(until);
        return Value::boolean(!until);
    }
    case Form::Not: return Value::boolean(!truth(*e.args[0], t));
    case Form::Conditional: return eval(truth(*e.args[0], t) ? *e.args[1] : *e.args[2], t);
    case Form::Tuple: {
        std::vector<Value> items;
        for (const auto* a : e.args) items.push_back(eval(*a, t));
        return Value::tuple(std::move(items));
    }
    case Form::List: {
        std::vector<Value> items;
        for (const auto* a : e.args) items.push_back(eval(*a, t));
        return Value::of(ranges(Value::tuple(std::move(items))));
    }
    case Form::Index: return index(e, t);
    case Form::Slice: trouble("type", "a slice stands in brackets only");
    case Form::Transpose: trouble("type", ".T stands on the second operand of a product only");
    case Form::Amax:
    case Form::Sum: {
        const Value v = read(*e.args[0], t);
        if (v.tag != Tag::Array) trouble("type", "a row statistic is of a tile, not of " + describe(v));
        return e.form == Form::Amax ? largest(v.array()) : total(v.array());
    }
    case Form::Shape: {
        const Value v = eval(*e.args[0], t);
        const auto dim = integer(*e.args[1], t);
        if (v.tag != Tag::Tensor) trouble("type", "only a tensor has a shape");
        const auto& shape = launch_.tensors[static_cast<std::size_t>(v.index)].shape;
        if (dim < 0 || dim >= static_cast<std::int64_t>(shape.size())) trouble("bounds", "there is no such dimension");
        return Value::integer(shape[static_cast<std::size_t>(dim)]);
    }
    case Form::Call: return call(e, t);
    case Form::Def: {
        std::vector<Value> args;
        for (const auto* a : e.args) args.push_back(pinned(eval(*a, t)));
        return call_def(e.slot, std::move(args));
    }
    }
    return {};
}

Value Cta::pinned(Value v) const {
    if (v.tag == Tag::Place && v.version == 0) {
        const auto& buffer = buffers_[static_cast<std::size_t>(v.index)];
        if (buffer.cells_below(v.depth) == 1) v.version = buffer.cells[static_cast<std::size_t>(v.first)].version;
    }
    return v;
}

Value Cta::call_def(int number, std::vector<Value> args) {
    const auto& def = kernel_.defs[static_cast<std::size_t>(number)];
    if (args.size() != def.params.size())
        trouble("static", fmt::format("`{}` takes {} arguments", def.name, def.params.size()));
    if (depth_ >= kDepth) trouble("limit", fmt::format("calls of defs are nested more than {} deep", kDepth));
    args.resize(static_cast<std::size_t>(def.slots));
    Thread t;
    t.names = args.data();
    t.stack.push_back({&def.body, 0, nullptr, {}});
    ++depth_;
    const auto* before = inner_;
    finish(t);
    inner_ = before;
    --depth_;
    return t.result;
}

Ref<Ranges> Cta::ranges(const Value& v) {
    if (v.tag == Tag::Ranges) return Ref<Ranges>(static_cast<Ranges*>(v.object.get()));
    if (v.tag != Tag::Tuple) trouble("type", "key ranges are needed here, not " + describe(v));
    Ref<Ranges> out(new Ranges);
    for (const auto& item : v.items()) {
        if (item.tag != Tag::Tuple || item.items().size() != 3 || !item.items()[0].is_integer() ||
            !item.items()[1].is_integer() || !item.items()[2].is_integer())
            trouble("type", "a key range is (begin, end, masked)");
        const auto begin = item.items()[0].index, end = item.items()[1].index;
        if (std::max({begin, end, begin < 0 ? ~begin : 0, end < 0 ? ~end : 0}) > kIntegers)
            trouble("range", "an integer beyond 2^53");
        out->list.push_back({begin, end, item.items()[2].index != 0});
    }
    return out;
}

Value Cta::call(const Expr& e, Thread& t) {
    const auto arg = [&](std::size_t k) -> const Expr& { return *e.args[k]; };
    switch (e.builtin) {
    case Builtin::Cdiv: {
        const auto a = integer(arg(0), t), b = integer(arg(1), t);
        if (b <= 0) trouble("value", "cdiv by a number that is not positive");
        const Value x[2] = {Value::integer(a + b - 1), Value::integer(b)};
        return apply(Op::FloorDiv, x, 2);
    }
    case Builtin::Divmod: {
        const Value x[2] = {Value::integer(integer(arg(0), t)), Value::integer(integer(arg(1), t))};
        if (x[1].index == 0) trouble("value", "divmod by 0");
        return Value::tuple({apply(Op::FloorDiv, x, 2), apply(Op::Mod, x, 2)});
    }
    case Builtin::Clamp: {
        Value x[2] = {read(arg(0), t), read(arg(1), t)};
        x[0] = apply(Op::Max, x, 2);
        x[1] = read(arg(2), t);
        return apply(Op::Min, x, 2);
    }
    case Builtin::Rows:
    case Builtin::Cols: {
        const auto first = integer(arg(0), t), count = integer(arg(1), t);
        if (count < 1 || count > kLargest) trouble("shape", "rows and cols need at least one");
        const auto n = static_cast<int>(count);
        Ref<Array> out(e.builtin == Builtin::Rows ? new Array(Number::Int, n, 1) : new Array(Number::Int, 1, n));
        for (int k = 0; k < n; ++k) out->data[k] = static_cast<double>(first + k);
        return Value::of(out);
    }
    case Builtin::Full: {
        const auto count = integer(arg(0), t);
        const Value v = read(arg(1), t);
        if (count < 1 || count > kLargest || !v.is_scalar()) trouble("shape", "full(rows, scalar)");
        Ref<Array> out(new Array(Number::Real, static_cast<int>(count), 1));
        std::fill(out->data, out->data + count, v.as_real());
        return Value::of(out);
    }
    case Builtin::Complete: return read(arg(0), t);
    case Builtin::Real: return to_real(read(arg(0), t));
    case Builtin::Integer: return to_integer(read(arg(0), t));
    case Builtin::Vote: {
        const Value v = read(arg(0), t);
        bool some = v.is_scalar() && v.as_real() != 0;
        if (v.tag == Tag::Array)
            some = std::any_of(v.array().data, v.array().data + v.array().size(), [](double x) { return x != 0; });
        // Groups of rows vote together, so that rows may be taken along without a cause of their own.
        return Value::boolean(some || (launch_.run.policy != Run::Policy::Early && chance_.percent(15)));
    }
    case Builtin::TanhSmall: return tanh_small(read(arg(0), t));
    case Builtin::LogisticSmall: return logistic_small(read(arg(0), t));
    case Builtin::Length: return Value::integer(ranges(eval(arg(0), t))->length());
    case Builtin::Pick: {
        const auto r = ranges(eval(arg(0), t));
        const auto k = integer(arg(1), t);
        if (k < 0 || k >= r->length()) trouble("bounds", fmt::format("pick of key tile {} of {}", k, r->length()));
        const auto [n, masked] = r->pick(k);
        return Value::tuple({Value::integer(n), Value::boolean(masked)});
    }
    case Builtin::Classify: {
        if (e.args.size() < 2 || e.args[1]->form != Form::Def) trouble("static", "classify(count, def, arguments...)");
        const auto count = integer(arg(0), t);
        std::vector<Value> args;
        for (std::size_t k = 2; k < e.args.size(); ++k) args.push_back(eval(arg(k), t));
        Ref<Ranges> out(new Ranges);
        for (std::int64_t n = count - 1; n >= 0; --n) {
            auto with = args;
            with.push_back(Value::integer(n));
            const Value v = call_def(e.args[1]->slot, std::move(with));
            if (v.tag != Tag::Tuple || v.items().size() != 2 || !v.items()[0].is_integer() ||
                !v.items()[1].is_integer())
                trouble("type", "a tile's class is (some, every)");
            if (v.items()[0].index != 0) out->list.push_back({n, n + 1, v.items()[1].index == 0});
        }
        return Value::of(out);
    }
    case Builtin::Alloc:
    case Builtin::Barrier:
    case Builtin::NamedBarrier:
    case Builtin::Channel: return make(e, t);
    default: trouble("static", std::string("`") + name_of(e.builtin) + "` is no value");
    }
}

Value Cta::make(const Expr& e, Thread& t) {
    const auto positive = [&](const Expr* x, std::int64_t most) {
        const auto n = integer(*x, t);
        if (n < 1 || n > most) trouble("static", fmt::format("{} of these can't be", n));
        return n;
    };
    if (e.builtin == Builtin::Alloc) {
        const Value extents = eval(*e.args[1], t), type = eval(*e.args[2], t);
        if (extents.tag != Tag::Tuple || extents.items().size() < 2)
            trouble("static", "storage has two extents or more");
        if (type.tag != Tag::Type) trouble("static", "storage has a type");
        Buffer b;
        b.name = e.name;
        b.type = static_cast<DType>(type.index);
        b.owner = e.slot == 1 ? current_ : -1;
        std::int64_t all = 1;
        for (const auto& x : extents.items()) {
            if (!x.is_integer() || x.index < 1 || x.index > kLargest)
                trouble("static", "an extent is a positive integer");
            all *= x.index;
            if (all > (std::int64_t{1} << 24)) trouble("limit", "storage of more than 2^24 elements");
            b.leading.push_back(static_cast<int>(x.index));
        }
        b.cols = b.leading.back();
        b.leading.pop_back();
        b.rows = b.leading.back();
        b.leading.pop_back();
        if (std::int64_t{b.rows} * b.cols > kElements) trouble("limit", "a cell of more than 2^18 elements");
        b.cells.resize(static_cast<std::size_t>(b.cells_below(0)));
        for (std::size_t k = 0; k < buffers_.size(); ++k) // an agent that comes here again gets the same registers
            if (b.owner >= 0 && buffers_[k].owner == b.owner && buffers_[k].name == b.name)
                return Value::handle(Tag::Place, static_cast<std::int64_t>(k));
        buffers_.push_back(std::move(b));
        return Value::handle(Tag::Place, static_cast<std::int64_t>(buffers_.size()) - 1);
    }
    const auto count = positive(e.args[0], 1 << 16);
    if (e.builtin == Builtin::Channel) {
        channels_.push_back({e.name, count, positive(e.args[1], 64), -1, {}, {}, 0});
        return Value::handle(Tag::Channel, static_cast<std::int64_t>(channels_.size()) - 1);
    }
    const bool named = e.builtin == Builtin::NamedBarrier, many = e.args[1] != nullptr;
    const auto n = many ? positive(e.args[1], 256) : 1;
    Value v = Value::handle(named ? Tag::Named : Tag::Barrier,
                            static_cast<std::int64_t>(named ? named_.size() : barriers_.size()));
    v.depth = many ? 0 : 1;
    v.version = static_cast<std::uint32_t>(n); // how many there are
    for (std::int64_t k = 0; k < n; ++k) {
        const auto name = many ? fmt::format("{}[{}]", e.name, k) : e.name;
        if (named) {
            named_.emplace_back();
            named_.back().name = name;
            named_.back().count = count;
        } else {
            barriers_.emplace_back();
            barriers_.back().name = name;
            barriers_.back().count = count;
        }
    }
    return v;
}

} // namespace cubridge::ir::cuir
