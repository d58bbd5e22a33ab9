// Indices: cells of storage, barriers of a group, slices and elements of tensors. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/machine.h"
#include <algorithm>
#include <fmt/format.h>

namespace cubridge::ir::cuir {

using Tag = Value::Tag;
using Form = Expr::Form;

namespace {

constexpr int kLargest = 1 << 16; // rows of a slice

bool is_whole(const Expr* e) {
    return e->form == Form::Slice &&
           std::none_of(e->args.begin(), e->args.end(), [](const Expr* part) { return part != nullptr; });
}

} // namespace

Value Cta::index(const Expr& e, Thread& t) {
    Value v = eval(*e.args[0], t);
    switch (v.tag) {
    case Tag::Place: return index_place(std::move(v), e, t);
    case Tag::Tensor: return index_tensor(static_cast<int>(v.index), e, t);
    case Tag::Barrier:
    case Tag::Named: {
        if (v.depth != 0 || e.args.size() != 2) trouble("type", "this is one barrier");
        const auto k = integer(*e.args[1], t);
        if (k < 0 || k >= static_cast<std::int64_t>(v.version))
            trouble("bounds", fmt::format("barrier {} of {}", k, v.version));
        v.index += k;
        v.depth = 1;
        return v;
    }
    case Tag::Tuple: {
        const auto k = e.args.size() == 2 ? integer(*e.args[1], t) : -1;
        if (k < 0 || k >= static_cast<std::int64_t>(v.items().size())) trouble("bounds", "no such item of the tuple");
        return v.items()[static_cast<std::size_t>(k)];
    }
    default: trouble("type", describe(v) + " has no index");
    }
}

Value Cta::index_place(Value v, const Expr& e, Thread& t) {
    const auto& buffer = buffers_[static_cast<std::size_t>(v.index)];
    for (std::size_t k = 1; k < e.args.size(); ++k) {
        if (is_whole(e.args[k])) continue;
        const auto i = integer(*e.args[k], t);
        if (static_cast<std::size_t>(v.depth) >= buffer.leading.size())
            trouble("type", "a cell of `" + buffer.name + "` has no index; it is read and written whole");
        const auto extent = buffer.leading[v.depth];
        if (i < 0 || i >= extent)
            trouble("bounds", fmt::format("{}[{}] of {}", buffer.name_of(v.first, v.depth), i, extent));
        ++v.depth;
        v.first += static_cast<int>(i) * buffer.cells_below(v.depth);
        v.version = 0;
    }
    return v;
}

Value Cta::index_tensor(int tensor, const Expr& e, Thread& t) {
    const bool sliced =
        std::any_of(e.args.begin() + 1, e.args.end(), [](const auto* a) { return a->form == Form::Slice; });
    const auto& shape = launch_.tensors[static_cast<std::size_t>(tensor)].shape;
    if (sliced || e.args.size() - 1 < shape.size()) {
        Value v;
        v.tag = Tag::Slice;
        v.object = slice(tensor, e, t);
        return v;
    }
    if (e.args.size() - 1 != shape.size()) trouble("shape", "too many indices");
    std::vector<Value> at;
    for (std::size_t k = 1; k < e.args.size(); ++k) at.push_back(read(*e.args[k], t));
    return gather(tensor, at);
}

Ref<TensorSlice> Cta::slice(int number, const Expr& e, Thread& t) {
    const auto& tensor = launch_.tensors[static_cast<std::size_t>(number)];
    Ref<TensorSlice> out(new TensorSlice);
    out->tensor = number;
    std::size_t dim = 0;
    std::int64_t before = 0;
    for (; dim + 1 < e.args.size() && e.args[dim + 1]->form != Form::Slice; ++dim) {
        const auto i = integer(*e.args[dim + 1], t);
        if (dim >= tensor.shape.size()) trouble("shape", "too many indices");
        if (i < 0 || i >= tensor.shape[dim])
            trouble("bounds", fmt::format("index {} of dimension {} of {}, which has {}", i, dim, tensor.name,
                                          tensor.shape[dim]));
        before = before * tensor.shape[dim] + i;
    }
    if (dim >= tensor.shape.size()) trouble("shape", "too many indices");
    out->extent = tensor.shape[dim];
    out->rows = out->extent;
    if (dim + 1 < e.args.size()) {
        const auto& s = *e.args[dim + 1];
        if (s.args[0]) out->first = integer(*s.args[0], t);
        out->rows = (s.args[1] ? integer(*s.args[1], t) : out->extent) - out->first;
        if (s.args[2]) out->step = integer(*s.args[2], t);
        if (out->step < 1 || out->step > kLargest)
            trouble("bounds", fmt::format("a slice with step {}; steps go up, from 1", out->step));
        out->rows = (std::max<std::int64_t>(out->rows, 0) + out->step - 1) / out->step;
        for (std::size_t k = dim + 2; k < e.args.size(); ++k)
            if (!is_whole(e.args[k])) trouble("shape", "one dimension is sliced; all after it are whole");
    }
    for (std::size_t k = dim + 1; k < tensor.shape.size(); ++k) out->cols *= tensor.shape[k];
    out->base = before * out->extent * out->cols;
    if (out->rows > kLargest) trouble("shape", "a slice of too many rows");
    out->rows = std::max<std::int64_t>(out->rows, 0); // its end may be a length of the data
    return out;
}

std::int64_t Cta::element(int number, const Expr& e, Thread& t) {
    const auto& tensor = launch_.tensors[static_cast<std::size_t>(number)];
    if (e.args.size() - 1 != tensor.shape.size()) trouble("shape", "an element has an index a dimension");
    std::int64_t at = 0;
    for (std::size_t k = 0; k < tensor.shape.size(); ++k) {
        const auto i = integer(*e.args[k + 1], t);
        if (i < 0 || i >= tensor.shape[k])
            trouble("bounds",
                    fmt::format("index {} of dimension {} of {}, which has {}", i, k, tensor.name, tensor.shape[k]));
        at = at * tensor.shape[k] + i;
    }
    return at;
}

Value Cta::gather(int number, const std::vector<Value>& index) {
    const auto& tensor = launch_.tensors[static_cast<std::size_t>(number)];
    int rows = 1, cols = 1;
    bool array = false;
    for (const auto& i : index) {
        if (i.is_integer()) continue;
        if (i.tag != Tag::Array || i.array().number == Number::Real)
            trouble("type", "an index is an integer, not " + describe(i));
        array = true;
        const auto& a = i.array();
        if ((a.rows != 1 && rows != 1 && a.rows != rows) || (a.cols != 1 && cols != 1 && a.cols != cols))
            trouble("shape", "the indices do not fit together");
        rows = std::max(rows, a.rows);
        cols = std::max(cols, a.cols);
        if (std::int64_t{rows} * cols > kElements) trouble("limit", "a tile of more than 2^18 elements");
    }
    const auto get = [&](int r, int c) {
        std::int64_t at = 0;
        for (std::size_t k = 0; k < index.size(); ++k) {
            const auto extent = tensor.shape[k];
            if (extent == 0) return 0.0;
            const auto i =
                index[k].is_integer() ? index[k].index : static_cast<std::int64_t>(index[k].array().at(r, c));
            at = at * extent + std::clamp<std::int64_t>(i, 0, extent - 1);
        }
        const double x = tensor.read(at, kernel_number_);
        if (x != x && !is_float(tensor.type))
            trouble("unwritten", tensor.element(at) + " is nothing that the launch owns");
        return x;
    };
    const auto number_kind = tensor.type == DType::Bool ? Number::Bool
                             : is_float(tensor.type)    ? Number::Real
                                                        : Number::Int;
    if (!array) {
        const double x = get(0, 0);
        if (number_kind == Number::Real) return Value::number(x);
        return number_kind == Number::Int ? Value::integer(static_cast<std::int64_t>(x)) : Value::boolean(x != 0);
    }
    Ref<Array> out(new Array(number_kind, rows, cols));
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) out->data[r * cols + c] = get(r, c);
    return Value::of(out);
}

} // namespace cubridge::ir::cuir
