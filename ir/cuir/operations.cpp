// What moves data and multiplies: at once, and asynchronously. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/machine.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace cubridge::ir::cuir {

using Tag = Value::Tag;

void Cta::check_range(const Buffer& buffer, int cell, const Array& a) const {
    const double most = largest_of(buffer.type);
    for (int k = 0; k < a.size(); ++k)
        if (std::fabs(a.data[k]) > most && std::isfinite(a.data[k]))
            trouble("range", fmt::format("{:.6g} in {} is beyond the range of {}", a.data[k], buffer.name_of(cell),
                                         short_name(buffer.type)));
}

void Cta::write_cell(const CellRef& ref, const Value& v) {
    const auto& buffer = buffers_[static_cast<std::size_t>(ref.buffer)];
    auto& cell = at(ref);
    const bool same = v.tag == Tag::Array && v.array().rows == buffer.rows && v.array().cols == buffer.cols;
    if (same) {
        cell.value = Ref<Array>(static_cast<Array*>(v.object.get()));
    } else {
        if (!v.is_scalar() && v.tag != Tag::Array) trouble("type", describe(v) + " is nothing that storage holds");
        if (v.tag == Tag::Array && ((v.array().rows != 1 && v.array().rows != buffer.rows) ||
                                    (v.array().cols != 1 && v.array().cols != buffer.cols)))
            trouble("shape", fmt::format("{} does not fit {}, {} x {}", describe(v), buffer.name_of(ref.cell),
                                         buffer.rows, buffer.cols));
        Ref<Array> a(new Array(Number::Real, buffer.rows, buffer.cols));
        for (int r = 0; r < buffer.rows; ++r)
            for (int c = 0; c < buffer.cols; ++c)
                a->data[r * buffer.cols + c] = v.is_scalar() ? v.as_real() : v.array().at(r, c);
        cell.value = a;
    }
    check_range(buffer, ref.cell, *cell.value);
}

void Cta::load(const TensorSlice& from, const CellRef& to, int number, int part, int parts) {
    const auto& buffer = buffers_[static_cast<std::size_t>(to.buffer)];
    const auto& tensor = launch_.tensors[static_cast<std::size_t>(from.tensor)];
    auto& cell = at(to);
    Ref<Array> a(new Array(Number::Real, buffer.rows, buffer.cols));
    const bool column = buffer.rows == 1 && from.cols == 1;
    for (int r = 0; r < buffer.rows; ++r)
        for (int c = 0; c < buffer.cols; ++c) {
            const int at = r * buffer.cols + c;
            if ((buffer.rows == 1 ? c : r) % parts == part || part < 0) {
                const std::int64_t row =
                    column ? std::int64_t{number} * buffer.cols + c : std::int64_t{number} * buffer.rows + r;
                a->data[at] = row < from.rows && from.inside(row)
                                  ? tensor.read(from.at(row) + (column ? 0 : c), kernel_number_)
                                  : 0.0;
            } else {
                a->data[at] = cell.value ? cell.value->data[at] : std::nan("");
            }
        }
    cell.value = a;
    check_range(buffer, to.cell, *a);
}

void Cta::store_slice(const TensorSlice& to, const Array& from) {
    auto& tensor = launch_.tensors[static_cast<std::size_t>(to.tensor)];
    for (std::int64_t r = 0; r < to.rows; ++r)
        if (to.inside(r))
            for (std::int64_t c = 0; c < to.cols; ++c)
                tensor.write(to.at(r) + c, from.at(static_cast<int>(r), static_cast<int>(c)), *outer_, kernel_number_);
}

/// A slice has the rows and columns of the cells that it is copied to or from. A slice that is loaded may have fewer
/// rows, which ends it like the end of its tensor: zeros follow.
void Cta::fit(const TensorSlice& s, const Value& place, bool loads) const {
    const auto& buffer = buffers_[static_cast<std::size_t>(place.index)];
    const std::int64_t cells = buffer.cells_below(place.depth);
    const bool column = buffer.rows == 1 && s.cols == 1;
    const std::int64_t rows = cells * (column ? buffer.cols : buffer.rows);
    const bool fits = (s.rows == rows || (loads && s.rows < rows)) && (column || s.cols == buffer.cols);
    if (!fits)
        trouble("shape", fmt::format("{} rows of {} of {} do not fit {}: {} x {} x {}", s.rows, s.cols,
                                     launch_.tensors[static_cast<std::size_t>(s.tensor)].name, place_name(place), cells,
                                     buffer.rows, buffer.cols));
}

void Cta::copy(const Step& s, Thread& t) {
    const Value a = eval(*s.args[0], t), b = eval(*s.args[1], t);
    const auto as = generic_access();
    if (a.tag == Tag::Place && b.tag == Tag::Slice) {
        const auto& to = static_cast<const TensorSlice&>(*b.object);
        fit(to, a, false);
        const auto ref = one_cell(a, "what a copy reads");
        touch(ref, false, as, self().clock);
        store_slice(to, *at(ref).value);
    } else if (a.tag == Tag::Slice && b.tag == Tag::Place) {
        const auto& from = static_cast<const TensorSlice&>(*a.object);
        fit(from, b, true);
        int number = 0;
        for (const auto& ref : cells_of(b)) {
            touch(ref, true, as, self().clock);
            load(from, ref, number++, -1, 1);
        }
    } else {
        trouble("type", "a copy is between storage and a slice of a tensor");
    }
}

bool Cta::copy_async(const Step& s, Thread& t) {
    Operation op;
    op.step = &s;
    op.a = eval(*s.args[0], t);
    op.target = eval(*s.args[1], t);
    if (s.args[2]) op.barrier = barrier_of(eval(*s.args[2], t), Tag::Barrier, "what a copy signals");
    if (op.a.tag == Tag::Slice && op.target.tag == Tag::Place) {
        op.queue = Operation::In;
        fit(static_cast<const TensorSlice&>(*op.a.object), op.target, true);
        if (op.barrier < 0 && self().agents_of_role > 1) { // all agents of the role fill each cell together
            op.parts = self().agents_of_role;
            op.part = self().number;
        }
    } else if (op.a.tag == Tag::Place && op.target.tag == Tag::Slice) {
        op.queue = Operation::Out;
        fit(static_cast<const TensorSlice&>(*op.target.object), op.a, false);
        one_cell(op.a, "what a copy reads");
        if (op.barrier >= 0)
            trouble("static", "a copy to global memory is waited for by its agent; it signals nothing");
    } else {
        trouble("type", "a copy is between storage and a slice of a tensor");
    }
    if (op.queue == Operation::In) {
        if (op.parts > 1)
            for (const auto& ref : cells_of(op.target)) {
                auto& parts = at(ref).parts;
                if (parts.size() == 1) parts.resize(static_cast<std::size_t>(op.parts), parts[0]);
                if (parts.size() != static_cast<std::size_t>(op.parts))
                    trouble("static", "two roles of different size fill one cell in shares");
            }
        const auto writes = cells_of(op.target, op.part);
        issue(std::move(op), {}, writes);
    } else {
        const auto reads = cells_of(op.a);
        issue(std::move(op), reads, {});
    }
    return true;
}

bool Cta::gemm_async(const Step& s, Thread& t) {
    Operation op;
    op.what = Builtin::GemmAsync;
    op.queue = Operation::Product;
    op.step = &s;
    const Expr& b = *s.args[1];
    op.transposed = b.form == Expr::Form::Transpose;
    op.a = eval(*s.args[0], t);
    op.b = eval(op.transposed ? *b.args[0] : b, t);
    op.target = eval(s.accumulates ? *s.args[3] : *s.args[2], t);
    op.accumulates = s.accumulates || (s.args[3] && truth(*s.args[3], t));
    const auto target = one_cell(op.target, "what a product writes");
    std::vector<CellRef> reads{one_cell(op.a, "an operand"), one_cell(op.b, "an operand")};
    if (op.accumulates) reads.push_back(target);
    issue(std::move(op), reads, {target});
    return true;
}

void Cta::issue(Operation op, const std::vector<CellRef>& reads, const std::vector<CellRef>& writes) {
    auto& a = self();
    op.agent = current_;
    Access as;
    as.step = outer_;
    as.agent = current_;
    // What threads copy for themselves (cp.async) is of the threads' proxy; what lands in a barrier is not.
    as.generic = op.queue == Operation::In && op.barrier < 0;
    if (op.barrier >= 0) {
        auto& b = barriers_[static_cast<std::size_t>(op.barrier)];
        op.epoch = {b.component, static_cast<std::uint32_t>(b.completed + 1)};
        as.landing = true;
    } else {
        op.epoch = {queue_component(current_, op.queue), ++a.issued[op.queue]};
        as.queued = true;
    }
    as.epoch = op.epoch;
    for (const auto& r : reads) touch(r, false, as, a.clock);
    for (const auto& w : writes) touch(w, true, as, a.clock);
    op.touched = reads;
    op.touched.insert(op.touched.end(), writes.begin(), writes.end());
    const int barrier = op.barrier;
    const auto number = static_cast<int>(operations_.size());
    if (barrier < 0) a.queues[op.queue].push_back(number);
    operations_.push_back(std::move(op));
    if (barrier >= 0) {
        flight_.push_back(number);
        arrive(barrier, true);
    }
    ++a.clock[current_];
    if (launch_.run.policy == Run::Policy::Early) complete(number);
}

void Cta::complete(int number) {
    auto& op = operations_[static_cast<std::size_t>(number)];
    if (op.done) return;
    op.done = true;
    carry_out(op);
    op.a = op.b = op.target = {};
    if (op.barrier >= 0) {
        flight_.erase(std::find(flight_.begin(), flight_.end(), number));
        landed(op.barrier);
    }
}

void Cta::carry_out(const Operation& op) {
    const auto* before = outer_;
    outer_ = op.step;
    if (op.what == Builtin::GemmAsync) {
        const auto target = one_cell(op.target, "");
        write_cell(target, multiply(op.a, op.b, op.transposed, target, op.accumulates));
    } else if (op.queue == Operation::In) {
        int number = 0;
        for (const auto& ref : cells_of(op.target))
            load(static_cast<const TensorSlice&>(*op.a.object), ref, number++, op.part, op.parts);
    } else {
        store_slice(static_cast<const TensorSlice&>(*op.target.object), *at(one_cell(op.a, "")).value);
    }
    outer_ = before;
}

Value Cta::multiply(const Value& a, const Value& b, bool transposed, const CellRef& target, bool accumulate) {
    const Array &x = *at(one_cell(a, "an operand")).value, &y = *at(one_cell(b, "an operand")).value;
    const auto& buffer = buffers_[static_cast<std::size_t>(target.buffer)];
    const int inner = transposed ? y.cols : y.rows, cols = transposed ? y.rows : y.cols;
    if (x.cols != inner || x.rows != buffer.rows || cols != buffer.cols)
        trouble("shape", fmt::format("a product of {} x {} and {} x {} is not {} x {}", x.rows, x.cols, inner, cols,
                                     buffer.rows, buffer.cols));
    Ref<Array> out(new Array(Number::Real, x.rows, cols));
    const Array* base = accumulate ? at(target).value.get() : nullptr;
    for (int r = 0; r < x.rows; ++r)
        for (int c = 0; c < cols; ++c) {
            double sum = base ? base->data[r * cols + c] : 0.0;
            const double* left = x.data + r * x.cols;
            const double* right = transposed ? y.data + c * y.cols : y.data + c;
            const int stride = transposed ? 1 : y.cols;
            for (int k = 0; k < inner; ++k) sum += left[k] * right[k * stride];
            out->data[r * cols + c] = sum;
        }
    return Value::of(out);
}

void Cta::product(const Step& s, Thread& t) {
    const Expr& right = *s.args[1];
    const bool transposed = right.form == Expr::Form::Transpose;
    const Value a = eval(*s.args[0], t), b = eval(transposed ? *right.args[0] : right, t);
    const Value to = eval(s.accumulates ? *s.args[3] : *s.args[2], t);
    const auto target = one_cell(to, "what a product writes");
    const auto as = generic_access();
    touch(one_cell(a, "an operand"), false, as, self().clock);
    touch(one_cell(b, "an operand"), false, as, self().clock);
    if (s.accumulates) touch(target, false, as, self().clock);
    touch(target, true, as, self().clock);
    write_cell(target, multiply(a, b, transposed, target, s.accumulates));
}

void Cta::wait_cells(const Value& place) {
    auto& a = self();
    const auto cells = cells_of(place);
    const auto touches = [&](int number) {
        for (const auto& x : operations_[static_cast<std::size_t>(number)].touched)
            for (const auto& y : cells)
                if (x.buffer == y.buffer && x.cell == y.cell) return true;
        return false;
    };
    for (int q = 0; q < 3; ++q) {
        auto& queue = a.queues[q];
        std::size_t retire = 0;
        for (std::size_t k = queue.size(); k > 0 && retire == 0; --k)
            if (touches(queue[k - 1])) retire = k;
        for (std::size_t k = 0; k < retire; ++k) {
            complete(queue[k]);
            a.clock.see(operations_[static_cast<std::size_t>(queue[k])].epoch);
        }
        queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(retire));
    }
}

void Cta::fence(const Value& place) {
    auto& a = self();
    for (const auto& ref : cells_of(place))
        for (auto& part : at(ref).parts)
            if (part.write.agent == current_ && part.write.generic && a.clock.knows(part.write.epoch))
                part.fence = {current_, a.clock[current_]};
    ++a.clock[current_];
}

} // namespace cubridge::ir::cuir
