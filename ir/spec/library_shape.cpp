// Rows that move elements. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/library.h"
#include <algorithm>
#include <numeric>

namespace cubridge::ir::spec {

TensorRef unsqueeze(Domain& d, const TensorRef& t, std::size_t at) {
    Values sizes = d.shape(t);
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(at), Value(1));
    return d.reshape(t, sizes);
}

namespace {

bool is_one(const Value& v) {
    return v.is<std::int64_t>() && v.as<std::int64_t>() == 1;
}

Value reshape(Interpreter& in, Args& a) {
    return in.domain().reshape(a.tensor(0), a.sizes(1));
}
Value reshape_as(Interpreter& in, Args& a) {
    return in.domain().reshape(a.tensor(0), in.domain().shape(a.tensor(1)));
}

Value view(Interpreter& in, Args& a) {
    const auto& rest = *a[1].as<Sequence>().items;
    if (rest.size() == 1 && rest[0].is<DType>()) fail("unsupported", "view(dtype) reinterprets bits", in.span());
    return in.domain().reshape(a.tensor(0), a.sizes(1));
}

Value flatten(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0);
    const Values sizes = d.shape(t);
    const int from = a.dim(1, sizes.size()), to = a.dim(2, sizes.size());
    if (to < from) fail("index", "flatten(): start_dim stands behind end_dim", in.span());
    Values out(sizes.begin(),
               sizes.begin() + std::min<std::ptrdiff_t>(from, static_cast<std::ptrdiff_t>(sizes.size())));
    Value merged = 1;
    for (int k = from; k <= to && k < static_cast<int>(sizes.size()); ++k)
        merged = in.binary("*", merged, sizes[static_cast<std::size_t>(k)]);
    out.push_back(merged);
    for (std::size_t k = static_cast<std::size_t>(to) + 1; k < sizes.size(); ++k) out.push_back(sizes[k]);
    return d.reshape(t, out);
}

Value unflatten(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0);
    const Values sizes = d.shape(t);
    const auto dim = static_cast<std::size_t>(a.axis(1, sizes.size()));
    Values parts = a.sizes(2), out;
    Value known = 1;
    for (const Value& v : parts)
        if (!(v.is<std::int64_t>() && v.as<std::int64_t>() == -1)) known = in.binary("*", known, v);
    for (Value& v : parts)
        if (v.is<std::int64_t>() && v.as<std::int64_t>() == -1) v = in.binary("//", sizes[dim], known);
    for (std::size_t k = 0; k < sizes.size(); ++k) {
        if (k == dim)
            out.insert(out.end(), parts.begin(), parts.end());
        else
            out.push_back(sizes[k]);
    }
    return d.reshape(t, out);
}

Value unsqueeze_row(Interpreter& in, Args& a) {
    const TensorRef t = a.tensor(0);
    return unsqueeze(in.domain(), t, static_cast<std::size_t>(a.dim(1, in.domain().rank(t) + 1)));
}

Value squeeze(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0);
    const Values sizes = d.shape(t);
    std::vector<bool> drop(sizes.size(), !a.given(1));
    if (a.given(1)) {
        const Values dims = a[1].is<Sequence>() ? *a[1].as<Sequence>().items : Values{a[1]};
        for (const Value& v : dims) {
            if (!v.is<std::int64_t>()) a.wrong(1, "an int");
            std::int64_t k = v.as<std::int64_t>();
            const auto n =
                std::max<std::int64_t>(1, static_cast<std::int64_t>(sizes.size())); // a number has one to name
            if (k < 0) k += n;
            if (k < 0 || k >= n) fail("index", "squeeze(): dimension out of range", in.span());
            if (!drop.empty()) drop[static_cast<std::size_t>(k)] = true;
        }
    }
    Values out;
    for (std::size_t k = 0; k < sizes.size(); ++k)
        if (!drop[k] || !is_one(sizes[k])) out.push_back(sizes[k]);
    return d.reshape(t, out);
}

Value permute(Interpreter& in, Args& a) {
    const TensorRef t = a.tensor(0);
    const std::size_t rank = in.domain().rank(t);
    std::vector<int> order;
    for (const Value& v : *a[1].as<Sequence>().items) {
        if (!v.is<std::int64_t>()) a.wrong(1, "ints");
        const auto n = static_cast<std::int64_t>(rank);
        const std::int64_t k = v.as<std::int64_t>() < 0 ? v.as<std::int64_t>() + n : v.as<std::int64_t>();
        if (k < 0 || k >= n || std::find(order.begin(), order.end(), static_cast<int>(k)) != order.end())
            fail("index", "permute() takes each dimension once", in.span());
        order.push_back(static_cast<int>(k));
    }
    if (order.size() != rank)
        fail("index",
             "permute() of a tensor of rank " + std::to_string(rank) + " takes " + std::to_string(rank) + " dimensions",
             in.span());
    return in.domain().permute(t, order);
}

TensorRef swap(Domain& d, const TensorRef& t, int x, int y) {
    std::vector<int> order(d.rank(t));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[static_cast<std::size_t>(x)], order[static_cast<std::size_t>(y)]);
    return d.permute(t, order);
}

Value transpose(Interpreter& in, Args& a) {
    const TensorRef t = a.tensor(0);
    const std::size_t rank = in.domain().rank(t);
    if (rank == 0) return t;
    return swap(in.domain(), t, a.dim(1, rank), a.dim(2, rank));
}

Value t_row(Interpreter& in, Args& a) {
    const TensorRef t = a.tensor(0);
    const std::size_t rank = in.domain().rank(t);
    if (rank > 2) fail("shape", "t() takes a tensor of rank 2 at most", in.span(), "use transpose(-2, -1)");
    return rank < 2 ? t : swap(in.domain(), t, 0, 1);
}

Value mT(Interpreter& in, Args& a) {
    const TensorRef t = a.tensor(0);
    const int rank = static_cast<int>(in.domain().rank(t));
    if (rank < 2) fail("shape", ".mT takes a tensor of rank 2 or more", in.span());
    return swap(in.domain(), t, rank - 2, rank - 1);
}

Value T(Interpreter& in, Args& a) {
    const TensorRef t = a.tensor(0);
    std::vector<int> order(in.domain().rank(t));
    std::iota(order.rbegin(), order.rend(), 0);
    return in.domain().permute(t, order);
}

Value movedim(Interpreter& in, Args& a) {
    const TensorRef t = a.tensor(0);
    const std::size_t rank = in.domain().rank(t);
    const int from = a.dim(1, rank), to = a.dim(2, rank);
    if (rank == 0) return t;
    std::vector<int> order;
    for (int k = 0; k < static_cast<int>(rank); ++k)
        if (k != from) order.push_back(k);
    order.insert(order.begin() + to, from);
    return in.domain().permute(t, order);
}

Value expand(Interpreter& in, Args& a) {
    return in.domain().expand(a.tensor(0), a.sizes(1));
}
Value expand_as(Interpreter& in, Args& a) {
    return in.domain().expand(a.tensor(0), in.domain().shape(a.tensor(1)));
}

Value repeat(Interpreter& in, Args& a) { // tiles; most often of size-1 axes
    Domain& d = in.domain();
    TensorRef t = a.tensor(0);
    Values times = a.sizes(1);
    if (std::string_view(a.routine().name) == "tile")
        times.insert(times.begin(), d.rank(t) - std::min(d.rank(t), times.size()), Value(1));
    if (times.size() < d.rank(t)) fail("shape", "repeat() needs a count for each dimension", in.span());
    while (d.rank(t) < times.size()) t = unsqueeze(d, t, 0);
    const Values sizes = d.shape(t);
    Values split, spread, merged;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
        split.push_back(1), split.push_back(sizes[k]);
        spread.push_back(times[k]), spread.push_back(sizes[k]);
        merged.push_back(in.binary("*", times[k], sizes[k]));
    }
    return d.reshape(d.expand(d.reshape(t, split), spread), merged);
}

Value repeat_interleave(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    TensorRef t = a.tensor(0);
    Value times = a[1];
    if (times.is<TensorRef>()) times = d.item(times.as<TensorRef>(), "repeat_interleave with a tensor of counts");
    if (!times.number() || times.is<double>()) a.wrong(1, "an int");
    if (times.is<std::int64_t>() && times.as<std::int64_t>() < 0)
        fail("domain", "repeat_interleave(): a negative count", in.span());
    int dim = 0;
    if (a.given(2))
        dim = a.axis(2, d.rank(t));
    else
        t = d.reshape(t, {Value(-1)});
    return d.repeat_interleave(t, times, dim);
}

std::vector<TensorRef> tensors(Interpreter& in, const Value& list, const char* name) {
    std::vector<TensorRef> out;
    for (const Value& v : in.iterate(list)) {
        if (!v.is<TensorRef>())
            fail("type", std::string(name) + "() takes a list of tensors, one is " + kind_of(v), in.span());
        out.push_back(v.as<TensorRef>());
    }
    if (out.empty()) fail("shape", std::string(name) + "() of an empty list", in.span());
    return out;
}

Value cat(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    auto x = tensors(in, a[0], "cat");
    DType t = x[0]->dtype;
    for (const auto& y : x) t = promote(t, y->dtype);
    for (auto& y : x) y = d.cast(y, t);
    return d.concat(x, a.axis(1, d.rank(x[0])));
}

Value stack(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    auto x = tensors(in, a[0], "stack");
    const int dim = a.dim(1, d.rank(x[0]) + 1);
    DType t = x[0]->dtype;
    for (const auto& y : x) t = promote(t, y->dtype);
    for (auto& y : x) y = unsqueeze(d, d.cast(y, t), static_cast<std::size_t>(dim));
    return d.concat(x, dim);
}

Value narrow(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0);
    const int dim = a.axis(1, d.rank(t));
    const Value size = d.shape(t)[static_cast<std::size_t>(dim)];
    Value start = a[2];
    if (start.is<TensorRef>()) start = d.item(start.as<TensorRef>(), "narrow()");
    if (!start.number() || !a[3].number()) a.wrong(2, "an int");
    if (start.is<std::int64_t>() && start.as<std::int64_t>() < 0) start = in.binary("+", start, size);
    const Value end = in.binary("+", start, a[3]);
    const auto known = [](const Value& v) { return v.is<std::int64_t>(); };
    if (known(start) && known(end) && known(size))
        if (start.as<std::int64_t>() < 0 || end.as<std::int64_t>() < start.as<std::int64_t>() ||
            end.as<std::int64_t>() > size.as<std::int64_t>())
            fail("index", "narrow() reaches beyond the dimension's size of " + std::to_string(size.as<std::int64_t>()),
                 in.span());
    return d.slice(t, dim, start, end, Value());
}

Value select(Interpreter& in, Args& a) {
    const TensorRef t = a.tensor(0);
    return in.domain().select(t, a.axis(1, in.domain().rank(t)), a[2]);
}

Value index_select(Interpreter& in, Args& a) {
    const TensorRef t = a.tensor(0), at = a.tensor(2);
    if (in.domain().rank(at) > 1) a.wrong(2, "an index of rank 1");
    std::vector<TensorRef> index(in.domain().rank(t));
    index[static_cast<std::size_t>(a.axis(1, index.size()))] = at;
    return in.domain().gather(t, index);
}

Value unbind(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0);
    const int dim = a.axis(1, d.rank(t));
    const Value size = d.shape(t)[static_cast<std::size_t>(dim)];
    const std::int64_t n = size.is<std::int64_t>() ? size.as<std::int64_t>() : d.require_int(size, "unbind");
    in.list_size(static_cast<std::size_t>(std::max<std::int64_t>(0, n)));
    Values out;
    for (std::int64_t k = 0; k < n; ++k) out.push_back(d.select(t, dim, k));
    return make_tuple(std::move(out));
}

Value pieces(Interpreter& in, const TensorRef& t, int dim, const std::vector<Value>& sizes) {
    Values out;
    Value at = 0;
    for (const Value& s : sizes) {
        const Value end = in.binary("+", at, s);
        out.push_back(in.domain().slice(t, dim, at, end, Value()));
        at = end;
    }
    return make_tuple(std::move(out));
}

Value chunk(Interpreter& in, Args& a) { // in equal parts; the last is shorter where the count does not divide
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0);
    const int dim = a.axis(2, d.rank(t));
    const std::int64_t n = a.integer(1);
    if (n < 1) fail("domain", "chunk() into fewer than one part", in.span());
    const Value size = d.shape(t)[static_cast<std::size_t>(dim)];
    if (size.is<std::int64_t>() && size.as<std::int64_t>() == 0)
        return pieces(in, t, dim, Values(static_cast<std::size_t>(std::min<std::int64_t>(n, 1000)), Value(0)));
    if (size.is<std::int64_t>()) {
        const std::int64_t whole = size.as<std::int64_t>(),
                           each = std::max<std::int64_t>(1, whole / n + (whole % n != 0 ? 1 : 0));
        in.list_size(static_cast<std::size_t>(whole / each + 1));
        Values sizes;
        for (std::int64_t left = size.as<std::int64_t>(); left > 0; left -= each) sizes.push_back(std::min(each, left));
        return pieces(in, t, dim, sizes);
    }
    in.list_size(static_cast<std::size_t>(n));
    return pieces(in, t, dim, Values(static_cast<std::size_t>(n), in.binary("//", size, n)));
}

Value split(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0);
    const int dim = a.axis(2, d.rank(t));
    if (a[1].is<Sequence>()) return pieces(in, t, dim, a.sizes(1));
    const Value size = d.shape(t)[static_cast<std::size_t>(dim)];
    const std::int64_t n = size.is<std::int64_t>() ? size.as<std::int64_t>() : d.require_int(size, "split"),
                       each = a.integer(1);
    if (each < 1) fail("domain", "split() into parts of less than one", in.span());
    in.list_size(static_cast<std::size_t>(std::max<std::int64_t>(0, n / each) + 1));
    Values sizes;
    for (std::int64_t left = n; left > 0 || sizes.empty(); left -= each) sizes.push_back(std::min(each, left));
    return pieces(in, t, dim, sizes);
}

Value flip(Interpreter& in, Args& a) {
    TensorRef t = a.tensor(0);
    for (const Value& v : a.sizes(1)) {
        std::int64_t k = v.is<std::int64_t>() ? v.as<std::int64_t>() : in.domain().require_int(v, "flip");
        if (k < 0) k += static_cast<std::int64_t>(in.domain().rank(t));
        if (k < 0 || k >= static_cast<std::int64_t>(in.domain().rank(t)))
            fail("index", "flip(): dimension out of range", in.span());
        t = in.domain().flip(t, static_cast<int>(k));
    }
    return t;
}

Value gather(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0), index = a.tensor(2);
    const int dim = a.dim(1, d.rank(t));
    if (d.rank(t) > 0) return d.take_along(t, dim, index);
    return d.reshape(d.take_along(unsqueeze(d, t, 0), 0, d.reshape(index, {Value(-1)})), d.shape(index));
}

Value scatter(Interpreter& in, Args& a) {
    const TensorRef t = a.tensor(0), from = a.tensor(3);
    if (!from->scalar && from->dtype != t->dtype) a.wrong(3, "of the tensor's dtype");
    Domain& d = in.domain();
    const TensorRef index = a.tensor(2), source = d.cast(from, t->dtype);
    const int dim = a.dim(1, d.rank(t));
    if (d.rank(t) > 0) return d.scatter(t, dim, index, source);
    const auto flat = [&](const TensorRef& x) { return d.reshape(x, {Value(-1)}); };
    return d.reshape(d.scatter(flat(t), 0, flat(index), flat(source)), {});
}

template <bool lower> Value triangle(Interpreter& in, Args& a) { // keeps j <= i + diagonal (or >=), zero elsewhere
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0);
    const Values sizes = d.shape(t);
    if (sizes.size() < 2) fail("shape", "tril() and triu() take a tensor of rank 2 or more", in.span());
    const TensorRef i = unsqueeze(d, d.arange(0, sizes[sizes.size() - 2], 1, DType::I64), 1);
    const TensorRef j = d.arange(0, sizes[sizes.size() - 1], 1, DType::I64);
    const TensorRef edge = in.tensor(in.elementwise(Op::Add, {Value(i), a[1]}));
    const TensorRef keep = d.apply(lower ? Op::Le : Op::Ge, {j, edge});
    return d.apply(Op::Where, {keep, t, d.cast(d.wrap(Value(0)), t->dtype)});
}

// What negative counts of pad() take away.
TensorRef cropped(Interpreter& in, const TensorRef& t, int dim, const Value& before, const Value& after) {
    const auto below = [](const Value& n) { return n.is<std::int64_t>() && n.as<std::int64_t>() < 0; };
    if (!below(before) && !below(after)) return t;
    const Value size = in.domain().shape(t)[static_cast<std::size_t>(dim)];
    const Value from = below(before) ? in.elementwise(Op::Neg, {before}) : Value(0),
                to = below(after) ? in.binary("+", size, after) : size;
    if (from.is<std::int64_t>() && to.is<std::int64_t>() && to.as<std::int64_t>() < from.as<std::int64_t>())
        fail("shape", "pad() takes away more than there is", in.span());
    return in.domain().slice(t, dim, from, to, Value());
}

Value pad(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    TensorRef t = a.tensor(0);
    const Values by = a.sizes(1);
    if (a.given(2) && a.name(2) != "constant")
        fail("unsupported", "pad() with mode " + a.name(2), in.span(), "use constant padding");
    if (by.size() % 2 != 0 || by.size() > 2 * d.rank(t))
        fail("shape", "pad() takes two counts for each of the last dimensions", in.span());
    for (std::size_t k = 0; k < by.size() / 2; ++k) {
        const int dim = static_cast<int>(d.rank(t) - 1 - k);
        t = cropped(in, t, dim, by[2 * k], by[2 * k + 1]);
        std::vector<TensorRef> parts;
        for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
            const Value& n = by[2 * k + side];
            if (side == 1) parts.push_back(t);
            if (n.is<std::int64_t>() && n.as<std::int64_t>() <= 0) continue;
            Values sizes = d.shape(t);
            sizes[static_cast<std::size_t>(dim)] = n;
            const TensorRef filler = d.full(sizes, a[3].none() ? Value(0) : a[3], t->dtype);
            parts.push_back(filler);
        }
        t = parts.size() == 1 ? parts[0] : d.concat(parts, dim);
    }
    return t;
}

Value size(Interpreter& in, Args& a) {
    const TensorRef t = a.tensor(0);
    const Values sizes = in.domain().shape(t);
    if (!a.given(1)) return make_tuple(sizes);
    return sizes.at(static_cast<std::size_t>(a.axis(1, sizes.size())));
}
Value shape(Interpreter& in, Args& a) {
    return make_tuple(in.domain().shape(a.tensor(0)));
}
Value rank(Interpreter& in, Args& a) {
    return static_cast<std::int64_t>(in.domain().rank(a.tensor(0)));
}
Value numel(Interpreter& in, Args& a) {
    Value n = 1;
    for (const Value& s : in.domain().shape(a.tensor(0))) n = in.binary("*", n, s);
    return n;
}
Value dtype(Interpreter&, Args& a) {
    return a.tensor(0)->dtype;
}
Value device(Interpreter&, Args&) {
    return Opaque{"a device"};
}
Value is_floating_point(Interpreter&, Args& a) {
    return is_float(a.tensor(0)->dtype);
}
Value item(Interpreter& in, Args& a) {
    return in.domain().item(a.tensor(0), "item()");
}

constexpr unsigned kTM = kTorch | kMethod;

constexpr Routine rows[] = {
    {"reshape", kTM | kView, "input, *shape", reshape},
    {"reshape_as", kMethod | kView, "input, other", reshape_as},
    {"view", kMethod | kView, "input, *size", view},
    {"view_as", kMethod | kView, "input, other", reshape_as},
    {"flatten", kTM | kView, "input, start_dim=0, end_dim=-1", flatten},
    {"unflatten", kTM | kView, "input, dim, sizes", unflatten},
    {"unsqueeze", kTM | kView, "input, dim", unsqueeze_row},
    {"squeeze", kTM | kView, "input, dim=?", squeeze},
    {"permute", kTM | kView, "input, *dims", permute},
    {"transpose", kTM | kView, "input, dim0, dim1", transpose},
    {"swapaxes", kTM | kView, "input, dim0, dim1", transpose},
    {"swapdims", kTM | kView, "input, dim0, dim1", transpose},
    {"movedim", kTM | kView, "input, source, destination", movedim},
    {"t", kTM | kView, "input", t_row},
    {"mT", kProperty | kView, "input", mT},
    {"T", kProperty | kView, "input", T},
    {"expand", kMethod | kView, "input, *size", expand},
    {"expand_as", kMethod | kView, "input, other", expand_as},
    {"broadcast_to", kTM | kView, "input, *size", expand},
    {"repeat", kMethod, "input, *repeats", repeat},
    {"tile", kTM, "input, *dims", repeat},
    {"repeat_interleave", kTM, "input, repeats, dim=?", repeat_interleave},
    {"cat", kTorch, "tensors, dim=0", cat},
    {"concat", kTorch, "tensors, dim=0", cat},
    {"concatenate", kTorch, "tensors, dim=0", cat},
    {"stack", kTorch, "tensors, dim=0", stack},
    {"narrow", kTM | kView, "input, dim, start, length", narrow},
    {"select", kTM | kView, "input, dim, index", select},
    {"index_select", kTM, "input, dim, index", index_select},
    {"unbind", kTM | kView, "input, dim=0", unbind},
    {"chunk", kTM | kView, "input, chunks, dim=0", chunk, "of a launch size: must divide it"},
    {"split", kTM | kView, "input, split_size, dim=0", split},
    {"flip", kTM, "input, *dims", flip},
    {"gather", kTM, "input, dim, index", gather},
    {"take_along_dim", kTM, "input, indices, dim",
     [](Interpreter& in, Args& a) -> Value {
         const TensorRef t = a.tensor(0);
         return in.domain().take_along(t, a.axis(2, in.domain().rank(t)), a.tensor(1));
     },
     "indices have the shape of input but for dim"},
    {"scatter", kTM, "input, dim, index, src", scatter, "kernels: of positions by an argsort, which gives ranks"},
    {"scatter_", kMethod, "input, dim, index, src", scatter, "as scatter"},
    {"tril", kTM, "input, diagonal=0", triangle<true>},
    {"triu", kTM, "input, diagonal=0", triangle<false>},
    {"pad", kFunctional, "input, pad, mode=?, value=?", pad, "constant mode"},
    {"size", kMethod, "input, dim=?", size},
    {"shape", kProperty, "input", shape},
    {"dim", kMethod, "input", rank},
    {"ndim", kProperty, "input", rank},
    {"ndimension", kMethod, "input", rank},
    {"numel", kTM, "input", numel},
    {"nelement", kMethod, "input", numel},
    {"dtype", kProperty, "input", dtype},
    {"device", kProperty, "input", device},
    {"is_floating_point", kTM, "input", is_floating_point},
    {"item", kMethod, "input", item, "of a captured scalar"},
};

} // namespace

std::span<const Routine> rows_shape() {
    return rows;
}

} // namespace cubridge::ir::spec
