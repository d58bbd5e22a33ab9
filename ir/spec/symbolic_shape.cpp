// Moving elements: index arithmetic. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/build.h"
#include "ir/spec/symbolic.h"
#include <algorithm>
#include <numeric>

namespace cubridge::ir::spec {

SymbolicDomain::Ptr SymbolicDomain::like(const SymbolicTensor& t) {
    auto r = std::make_shared<SymbolicTensor>(t);
    r->sorted = nullptr;
    return r;
}

SymbolicDomain::Ptr SymbolicDomain::fresh(DType dtype, std::vector<Expr> shape, Expr body, std::uint64_t inputs) {
    auto r = std::make_shared<SymbolicTensor>();
    r->dtype = dtype;
    r->shape = std::move(shape);
    r->body = body;
    r->inputs = inputs;
    return r;
}

SymbolicDomain::Ptr SymbolicDomain::moved(const SymbolicTensor& t, std::vector<Expr> shape,
                                          const std::vector<Expr>& map) {
    if (t.sorted)
        fail("unsupported", "moving the elements of an argsort", {},
             "turn the order into ranks (argsort of argsort, or scatter) first");
    auto r = like(t);
    r->shape = std::move(shape);
    r->scalar = false;
    r->body = pool_.substitute(t.body, map);
    if (t.pin) r->pin = pool_.substitute(t.pin, map);
    return r;
}

Values SymbolicDomain::shape(const TensorRef& t) {
    begin();
    touch(at(t));
    Values out;
    for (const Expr e : at(t).shape) out.push_back(to_value(e));
    return out;
}

TensorRef SymbolicDomain::permute(const TensorRef& t, const std::vector<int>& order) {
    const auto& x = at(t);
    std::vector<Expr> shape, map(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
        shape.push_back(x.shape[static_cast<std::size_t>(order[k])]);
        map[static_cast<std::size_t>(order[k])] = pool_.index(static_cast<int>(k));
    }
    return moved(x, std::move(shape), map);
}

// Axes are matched in groups of equal size from the left, as PyTorch's view does: one to one, one into several, several
// into one; only a group of several into several needs // and %.
TensorRef SymbolicDomain::reshape(const TensorRef& t, const Values& sizes) {
    begin();
    const auto& x = at(t);
    touch(x);
    // An axis added to a captured tensor of rank 0 whose rank is a guess: it is meant to have one.
    if (x.guessed && x.shape.empty() && sizes.size() == 1) fail("shape", "an axis is added to a number");
    std::vector<Expr> target;
    int open = -1;
    Expr known = pool_.integer(1), total = pool_.integer(1);
    for (std::size_t k = 0; k < sizes.size(); ++k) {
        const bool inferred = sizes[k].is<std::int64_t>() && sizes[k].as<std::int64_t>() == -1;
        if (inferred && open >= 0) fail("shape", "only one size of a view may be -1");
        if (inferred) open = static_cast<int>(k);
        target.push_back(inferred ? nullptr : size_of(sizes[k]));
        if (!inferred) known = pool_.mul(known, target.back());
        if (!inferred && is_const(target.back()) && target.back()->integer < 0)
            fail("shape", "a size of a view is negative");
    }
    for (const Expr e : x.shape) total = pool_.mul(total, e);
    if (open >= 0) {
        // a captured tensor of rank 0 whose rank is a guess is not meant by view(-1, ...)
        if (x.guessed && x.shape.empty()) fail("shape", "a view with -1 of a number");
        Expr q = detail::divide_exactly(pool_, total, known);
        if (is_const(known) && known->integer != 0) {
            q = pool_.apply(Op::FloorDiv, total, known);
            if (!is_zero(pool_.sub(pool_.mul(q, known), total))) require(Fact::Kind::Divides, total, known);
        } else if (!q) {
            // [Hq, W] as (Hk, G, -1): the outer sizes say what the outer axis is
            Expr left = pool_.integer(1), right = pool_.integer(1);
            for (std::size_t k = 0; k < target.size(); ++k)
                if (target[k])
                    (static_cast<int>(k) < open ? left : right) =
                        pool_.mul(static_cast<int>(k) < open ? left : right, target[k]);
            if (x.shape.size() >= 2 && !is_int(left, 1) && x.shape.front()->kind == Kind::Dim &&
                dims::is_input(x.shape.front()->number))
                unify(x.shape.front(), left, "view");
            if (x.shape.size() >= 2 && !is_int(right, 1) && x.shape.back()->kind == Kind::Dim &&
                dims::is_input(x.shape.back()->number))
                unify(x.shape.back(), right, "view");
            if (!detail::divide_exactly(pool_, total, known)) {
                // sizes whose product is the total but for one: cancel what both sides have
                Expr rest = total, by = known;
                for (const Expr e : target)
                    if (e)
                        if (const Expr d = detail::divide_exactly(pool_, rest, e))
                            rest = d, by = detail::divide_exactly(pool_, by, e);
                q = pool_.apply(Op::FloorDiv, rest, by);
            } else {
                q = detail::divide_exactly(pool_, total, known);
            }
        }
        target[static_cast<std::size_t>(open)] = q;
    }
    std::vector<Expr> map(x.shape.size(), pool_.integer(0));
    if (is_int(total, 0)) { // nothing to move
        Expr n = pool_.integer(1);
        for (const Expr e : target) n = pool_.mul(n, e);
        if (!is_int(n, 0)) fail("shape", "a view of " + text(x.shape) + " as " + text(target));
        return moved(x, std::move(target), map);
    }
    std::size_t i = 0, j = 0;
    const auto skip_ones = [&](const std::vector<Expr>& s, std::size_t& at) {
        while (at < s.size() && is_int(s[at], 1)) ++at;
    };
    while (true) {
        skip_ones(x.shape, i);
        skip_ones(target, j);
        if (i >= x.shape.size() && j >= target.size()) break;
        if (i >= x.shape.size() || j >= target.size()) {
            const Expr rest = i < x.shape.size() ? x.shape[i] : target[j];
            if (is_const(rest) || x.shape.empty()) fail("shape", "a view of " + text(x.shape) + " as " + text(target));
            unify(rest, pool_.integer(1), "view");
            (i < x.shape.size() ? i : j) += 1;
            continue;
        }
        std::size_t i2 = i + 1, j2 = j + 1;
        Expr p = x.shape[i], q = target[j];
        while (p != q && !is_zero(pool_.sub(p, q))) {
            const bool more_source = i2 < x.shape.size(), more_target = j2 < target.size();
            const auto divides = [&](Expr by, Expr e) {
                return detail::divide_exactly(pool_, e, by) ||
                       (is_const(by) && is_const(e) && by->integer != 0 && e->integer % by->integer == 0);
            };
            if (is_const(p) && is_const(q) && p->integer < q->integer && more_source)
                p = pool_.mul(p, x.shape[i2++]);
            else if (is_const(p) && is_const(q) && q->integer < p->integer && more_target)
                q = pool_.mul(q, target[j2++]);
            else if (more_source && divides(p, q))
                p = pool_.mul(p, x.shape[i2++]);
            else if (more_target && divides(q, p))
                q = pool_.mul(q, target[j2++]);
            else if (more_target && (q->kind == Kind::FloorDiv || (is_const(q) && !is_const(p))))
                q = pool_.mul(q, target[j2++]);
            else if (more_target && i2 == x.shape.size())
                q = pool_.mul(q, target[j2++]);
            else if (more_source && j2 == target.size())
                p = pool_.mul(p, x.shape[i2++]);
            else {
                // an open size beside a known one: [n, G] as Hq says that n is Hq / G
                if (more_source && p->kind == Kind::Dim && (p->number == dims::kB || p->number == dims::vB))
                    unify(p, pool_.dim(dims::B), "view");
                if (p->kind == Kind::Dim && dims::is_input(p->number) && i2 + 1 == x.shape.size() &&
                    open == static_cast<int>(target.size()) - 1)
                    while (static_cast<int>(j2) < open)
                        q = pool_.mul(q, target[j2++]); // the open size is the last axis, so the others are this one
                if (more_source && p->kind == Kind::Dim)
                    if (const Expr rest = detail::divide_exactly(pool_, q, x.shape[i2])) unify(p, rest, "view");
                unify(p, q, "view"); // settles it, or fails
                break;
            }
        }
        if (j2 == j + 1 && i2 == i + 1) {
            map[i] = pool_.index(static_cast<int>(j));
        } else {
            Expr flat = pool_.index(static_cast<int>(j));
            for (std::size_t k = j + 1; k < j2; ++k)
                flat = pool_.add(pool_.mul(flat, target[k]), pool_.index(static_cast<int>(k)));
            Expr stride = pool_.integer(1);
            for (std::size_t k = i2; k-- > i;) {
                Expr e = pool_.apply(Op::FloorDiv, flat, stride);
                if (k > i) e = pool_.apply(Op::Mod, e, x.shape[k]);
                map[k] = e;
                stride = pool_.mul(stride, x.shape[k]);
            }
        }
        i = i2, j = j2;
    }
    auto r = moved(x, std::move(target), map);
    const auto in_range = [&](Expr e) { // Index(k) // its extent is 0
        if ((e->kind != Kind::FloorDiv && e->kind != Kind::Mod) || e->args[0]->kind != Kind::Index) return e;
        const auto k = static_cast<std::size_t>(e->args[0]->number);
        if (k >= r->shape.size() || r->shape[k] != e->args[1]) return e;
        return e->kind == Kind::Mod ? e->args[0] : pool_.integer(0);
    };
    r->body = pool_.rewrite(r->body, in_range);
    if (r->pin) r->pin = pool_.rewrite(r->pin, in_range);
    return r;
}

TensorRef SymbolicDomain::expand(const TensorRef& t, const Values& sizes) {
    begin();
    const auto& x = at(t);
    touch(x);
    if (sizes.size() < x.shape.size()) fail("shape", "expand() to fewer dimensions than " + text(x.shape));
    const std::size_t shift = sizes.size() - x.shape.size();
    std::vector<Expr> shape, map;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
        const bool keep = sizes[k].is<std::int64_t>() && sizes[k].as<std::int64_t>() == -1;
        if (k < shift) {
            if (keep) fail("shape", "expand(): -1 for a new dimension");
            shape.push_back(size_of(sizes[k]));
            continue;
        }
        const Expr from = x.shape[k - shift], to = keep ? from : size_of(sizes[k]);
        shape.push_back(to);
        if (is_int(from, 1) && !is_int(to, 1)) {
            map.push_back(pool_.integer(0));
            continue;
        }
        unify(from, to, "expand");
        map.push_back(pool_.index(static_cast<int>(k)));
    }
    return moved(x, std::move(shape), map);
}

// Comparisons that say no more than 0 <= Index(axis) < extent.
Expr SymbolicDomain::by_extent(Expr body, int axis, Expr extent) {
    const Expr i = pool_.index(axis);
    if ((body->free & index_bit(axis)) == 0) return body;
    return pool_.rewrite(body, [&](Expr e) {
        if (e->kind != Kind::Cmp || e->args.size() != 1 || e->op != Op::Le || (e->free & index_bit(axis)) == 0)
            return e;
        const IntSum s = as_sum(e->args[0]);
        for (const auto& [c, t] : s.terms) {
            if (t != i) continue;
            const Expr rest = pool_.isum(0, {{1, e->args[0]}, {-c, i}}); // c i + rest <= 0
            if (c == 1 && nonnegative(pool_.isum(1, {{-1, rest}, {-1, extent}}))) return pool_.boolean(true);
            if (c == 1 && nonnegative(pool_.isum(-1, {{1, rest}}))) return pool_.boolean(false);
            if (c == -1 && nonnegative(pool_.isum(0, {{-1, rest}}))) return pool_.boolean(true);
            if (c == -1 && nonnegative(pool_.isum(0, {{1, rest}, {-1, extent}}))) return pool_.boolean(false);
        }
        return e;
    });
}

TensorRef SymbolicDomain::slice(const TensorRef& t, int dim, const Value& start, const Value& stop, const Value& step) {
    begin();
    const auto& x = at(t);
    touch(x);
    const auto d = static_cast<std::size_t>(dim);
    const Expr size = x.shape[d];
    const std::int64_t by = step.none()               ? 1
                            : step.is<std::int64_t>() ? step.as<std::int64_t>()
                                                      : require_int(step, "a slice step");
    if (by < 1) fail("unsupported", "a slice with a step below 1", {}, "use torch.flip");
    const auto bound = [&](const Value& v, Expr fallback) {
        if (v.none()) return fallback;
        Expr e = size_of(v);
        const Expr zero = pool_.integer(0);
        if (is_const(e) && e->integer < 0) e = pool_.add(e, size);
        if (is_const(e) && is_const(size)) return pool_.integer(std::clamp<std::int64_t>(e->integer, 0, size->integer));
        if (!nonnegative(e)) {
            std::set<int> dims, args;
            bool loads = false;
            dims_of(e, dims, args, loads);
            require(Fact::Kind::AtLeast, e, zero);
        }
        if (e != size && !nonnegative(pool_.sub(size, e))) require(Fact::Kind::AtLeast, size, e);
        return e;
    };
    const Expr from = bound(start, pool_.integer(0)), to = bound(stop, size);
    Expr count = pool_.sub(to, from);
    if (is_const(count) && count->integer < 0) count = pool_.integer(0);
    if (!is_const(count) && !nonnegative(count)) require(Fact::Kind::AtLeast, count, pool_.integer(0));
    if (by > 1) count = pool_.apply(Op::FloorDiv, pool_.isum(by - 1, {{1, count}}), pool_.integer(by));
    std::vector<Expr> shape = x.shape, map(x.shape.size());
    shape[d] = count;
    map[d] = pool_.isum(0, {{by, pool_.index(dim)}, {1, from}});
    auto r = moved(x, std::move(shape), map);
    r->body = by_extent(r->body, dim, count);
    if (r->pin) r->pin = by_extent(r->pin, dim, count);
    return r;
}

TensorRef SymbolicDomain::select(const TensorRef& t, int dim, const Value& where) {
    begin();
    const auto& x = at(t);
    touch(x);
    const auto d = static_cast<std::size_t>(dim);
    Expr e = pool_.cast(Type::Int, to_expr(where));
    if (is_const(e)) {
        const Expr size = x.shape[d];
        if (is_const(size) && (e->integer >= size->integer || e->integer < -size->integer))
            fail("index", "position " + std::to_string(e->integer) + " is out of range for a size of " +
                              std::to_string(size->integer));
        if (e->integer < 0) e = pool_.add(e, size);
    } else {
        e = position(e, x.shape[d]);
    }
    std::vector<Expr> shape, map;
    for (std::size_t k = 0; k < x.shape.size(); ++k) {
        map.push_back(k == d ? e : pool_.index(static_cast<int>(k < d ? k : k - 1)));
        if (k != d) shape.push_back(x.shape[k]);
    }
    return moved(x, std::move(shape), map);
}

TensorRef SymbolicDomain::flip(const TensorRef& t, int dim) {
    const auto& x = at(t);
    std::vector<Expr> map(x.shape.size());
    map[static_cast<std::size_t>(dim)] =
        pool_.isum(-1, {{1, x.shape[static_cast<std::size_t>(dim)]}, {-1, pool_.index(dim)}});
    return moved(x, x.shape, map);
}

TensorRef SymbolicDomain::repeat_interleave(const TensorRef& t, const Value& times, int dim) {
    begin();
    const auto& x = at(t);
    touch(x);
    const Expr n = size_of(times);
    std::vector<Expr> shape = x.shape, map(x.shape.size());
    shape[static_cast<std::size_t>(dim)] = pool_.mul(shape[static_cast<std::size_t>(dim)], n);
    map[static_cast<std::size_t>(dim)] = pool_.apply(Op::FloorDiv, pool_.index(dim), n);
    return moved(x, std::move(shape), map);
}

TensorRef SymbolicDomain::concat(const std::vector<TensorRef>& parts, int dim) {
    begin();
    const auto& first = at(parts[0]);
    const auto d = static_cast<std::size_t>(dim);
    std::vector<Expr> shape = first.shape;
    std::uint64_t inputs = 0;
    bool pinned = true;
    Expr at_end = pool_.integer(0);
    for (const auto& p : parts) {
        const auto& x = at(p);
        touch(x);
        inputs |= x.inputs;
        pinned = pinned && x.pin;
        if (x.raw >= 0 && parts.size() > 1) uses_[x.raw] |= kUsedAsFloat;
        if (x.shape.size() != shape.size())
            fail("shape", "cat() of tensors of ranks " + std::to_string(shape.size()) + " and " +
                              std::to_string(x.shape.size()));
        for (std::size_t k = 0; k < shape.size(); ++k)
            if (k != d) unify(shape[k], x.shape[k], "cat");
    }
    Expr body = nullptr, pin = nullptr;
    std::vector<Expr> starts;
    for (const auto& p : parts) {
        starts.push_back(at_end);
        at_end = pool_.add(at_end, at(p).shape[d]);
    }
    for (std::size_t k = parts.size(); k-- > 0;) { // the last one is the innermost else
        const auto& x = at(parts[k]);
        std::vector<Expr> map(shape.size());
        map[d] = pool_.sub(pool_.index(dim), starts[k]);
        const Expr here = pool_.substitute(x.body, map), here_pin = pinned ? pool_.substitute(x.pin, map) : nullptr;
        const Expr inside = body ? pool_.apply(Op::Lt, pool_.index(dim), pool_.add(starts[k], x.shape[d])) : nullptr;
        body = body ? pool_.select(inside, here, body) : here;
        if (pinned) pin = pin ? pool_.select(inside, here_pin, pin) : here_pin;
    }
    shape[d] = at_end;
    auto r = fresh(first.dtype, std::move(shape), body, inputs);
    r->pin = pin;
    return r;
}

Expr SymbolicDomain::position(Expr e, Expr size) {
    if (nonnegative(e)) return e;
    return pool_.select(pool_.apply(Op::Lt, e, pool_.integer(0)), pool_.add(e, size), e);
}

TensorRef SymbolicDomain::gather(const TensorRef& t, const std::vector<TensorRef>& where) {
    begin();
    const auto& x = at(t);
    touch(x);
    if (where.size() > x.shape.size())
        fail("index", "too many indices for a tensor of rank " + std::to_string(x.shape.size()));
    std::vector<const SymbolicTensor*> index;
    std::vector<std::size_t> axes;
    std::uint64_t inputs = x.inputs;
    for (std::size_t k = 0; k < where.size(); ++k) {
        if (!where[k]) continue;
        const auto& i = at(where[k]);
        if (i.sorted)
            fail("unsupported", "gathering by an argsort", {},
                 "turn the order into ranks (argsort of argsort, or scatter) and compare");
        touch(i);
        if (i.raw >= 0) uses_[i.raw] |= kUsedAsInt | kUsedAsIndex;
        inputs |= i.inputs;
        index.push_back(&i);
        axes.push_back(k);
    }
    for (std::size_t k = 0; k < axes.size(); ++k) { // doc[i] over all positions i: the axis has room for them
        const Expr at_index = index[k]->body, size = x.shape[axes[k]];
        if (at_index->kind != Kind::Index || size->kind != Kind::Dim || !dims::is_input(size->number)) continue;
        const Expr extent = index[k]->shape[static_cast<std::size_t>(at_index->number)];
        if (size != extent) require(Fact::Kind::AtLeast, size, extent);
    }
    const std::vector<Expr> common = broadcast(index);
    // The index tensors' axes stand where the first of them stands if only such axes lie between them, else first. One
    // of rank 0 counts as a position: its axis is gone, and it separates nothing.
    bool adjacent = true, ended = false;
    std::size_t front = 0, before = 0, wide = 0;
    for (std::size_t k = 0; k < x.shape.size(); ++k) {
        const bool indexed = k < where.size() && where[k];
        if (!indexed) {
            ended = ended || wide > 0;
            ++before;
        } else if (!at(where[k]).shape.empty()) {
            adjacent = adjacent && !ended;
            if (wide++ == 0) front = before;
        }
    }
    if (!adjacent) front = 0;
    const std::size_t n = common.size();
    std::vector<Expr> shape, map(x.shape.size());
    std::size_t kept = 0;
    for (std::size_t k = 0; k < x.shape.size(); ++k) {
        if (std::find(axes.begin(), axes.end(), k) != axes.end()) continue;
        map[k] = pool_.index(static_cast<int>(kept < front ? kept : kept + n));
        shape.push_back(x.shape[k]);
        ++kept;
    }
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(front), common.begin(), common.end());
    for (std::size_t k = 0; k < axes.size(); ++k) {
        std::vector<Expr> shift; // the index tensor's axes stand at `front` of the result
        const auto& i = *index[k];
        for (std::size_t m = 0; m < i.shape.size(); ++m) {
            const std::size_t axis = n - i.shape.size() + m;
            shift.push_back(is_int(i.shape[m], 1) && !is_int(common[axis], 1)
                                ? pool_.integer(0)
                                : pool_.index(static_cast<int>(front + axis)));
        }
        map[axes[k]] = position(pool_.substitute(pool_.cast(Type::Int, i.body), shift), x.shape[axes[k]]);
    }
    auto r = moved(x, std::move(shape), map);
    r->inputs = inputs;
    return r;
}

TensorRef SymbolicDomain::take_along(const TensorRef& t, int dim, const TensorRef& index) {
    begin();
    const auto &x = at(t), &i = at(index);
    touch(x), touch(i);
    if (i.raw >= 0) uses_[i.raw] |= kUsedAsInt | kUsedAsIndex;
    if (i.sorted)
        fail("unsupported", "gathering by an argsort", {},
             "turn the order into ranks (argsort of argsort, or scatter) and compare");
    if (i.shape.size() != x.shape.size()) fail("shape", "gather() takes an index of the tensor's rank");
    std::vector<Expr> map(x.shape.size());
    for (std::size_t k = 0; k < map.size(); ++k) map[k] = pool_.index(static_cast<int>(k));
    map[static_cast<std::size_t>(dim)] =
        position(pool_.cast(Type::Int, i.body), x.shape[static_cast<std::size_t>(dim)]);
    auto r = moved(x, i.shape, map);
    r->inputs |= i.inputs;
    return r;
}

// Only the inverse of a permutation is an expression: out[order[r]] = r says that out is the rank.
TensorRef SymbolicDomain::scatter(const TensorRef& t, int dim, const TensorRef& index, const TensorRef& source) {
    begin();
    const auto &i = at(index), &s = at(source);
    touch(at(t)), touch(i), touch(s);
    const bool inverse = i.sorted && i.sorted_axis == dim && s.body == pool_.cast(s.body->type, pool_.index(dim));
    if (!inverse)
        fail("unsupported", "scatter() writes where data says", {},
             "it is understood as the rank: scatter(dim, argsort(x, dim), arange)");
    for (std::size_t k = 0; k < i.shape.size(); ++k) unify(at(t).shape[k], i.shape[k], "scatter");
    auto order = like(i);
    order->sorted = i.sorted, order->sorted_axis = i.sorted_axis, order->descending = i.descending;
    return argsort(order, dim, false);
}

TensorRef SymbolicDomain::argsort(const TensorRef& t, int dim, bool descending) {
    begin();
    const auto& x = at(t);
    touch(x);
    if (!x.sorted) {
        auto r = fresh(DType::I64, x.shape, pool_.index(dim), x.inputs);
        r->sorted = x.body, r->sorted_axis = dim, r->descending = descending;
        return r;
    }
    // The argsort of an argsort is the rank: how many stand before. NaN counts as largest, equals keep their order.
    if (x.sorted_axis != dim || descending) fail("unsupported", "sorting an order along another axis");
    const int fresh_axis = kMaxIndex - 1;
    std::vector<Expr> map(static_cast<std::size_t>(dim) + 1);
    map.back() = pool_.index(fresh_axis);
    const Expr here = x.sorted, there = pool_.substitute(x.sorted, map);
    Expr before = pool_.apply(x.descending ? Op::Gt : Op::Lt, there, here);
    Expr tie = pool_.apply(Op::Eq, there, here);
    if (here->type == Type::Real) {
        const Expr nan_here = pool_.apply(Op::Ne, here, here), nan_there = pool_.apply(Op::Ne, there, there);
        const Expr apart = x.descending ? pool_.logical_and(nan_there, pool_.logical_not(nan_here))
                                        : pool_.logical_and(nan_here, pool_.logical_not(nan_there));
        before = pool_.logical_or(before, apart);
        tie = pool_.logical_or(tie, pool_.logical_and(nan_here, nan_there));
    }
    before = pool_.logical_or(before,
                              pool_.logical_and(tie, pool_.apply(Op::Lt, pool_.index(fresh_axis), pool_.index(dim))));
    const Expr rank =
        pool_.reduce(ReduceOp::Sum, pool_.cast(Type::Int, before), fresh_axis, x.shape[static_cast<std::size_t>(dim)]);
    return fresh(DType::I64, x.shape, rank, x.inputs);
}

// The least position of what equals the largest value; NaN is larger than any.
TensorRef SymbolicDomain::argmax(const TensorRef& t, int dim, bool keepdim) {
    begin();
    const auto& x = at(t);
    touch(x);
    if (x.sorted) fail("unsupported", "reducing an argsort", {}, "turn the order into ranks and compare");
    if (x.raw >= 0) uses_[x.raw] |= kUsedAsFloat;
    const Expr extent = x.shape[static_cast<std::size_t>(dim)], body = x.pin ? x.pin : x.body;
    if (is_int(extent, 0)) fail("shape", "argmax over an axis of size 0");
    const Expr most = reduce_axis(ReduceOp::Max, body, dim, extent);
    Expr here = pool_.apply(Op::Eq, body, most);
    if (body->type != Type::Int) here = pool_.logical_or(here, pool_.apply(Op::Ne, body, body));
    const Expr first = pool_.reduce(ReduceOp::Min, pool_.select(here, pool_.index(dim), extent), dim, extent);
    std::vector<Expr> shape, map(x.shape.size());
    for (std::size_t k = 0; k < x.shape.size(); ++k) {
        if (static_cast<int>(k) == dim && !keepdim) continue;
        map[k] = pool_.index(static_cast<int>(shape.size()));
        shape.push_back(static_cast<int>(k) == dim ? pool_.integer(1) : x.shape[k]);
    }
    return fresh(DType::I64, std::move(shape), pool_.substitute(first, map), x.inputs);
}

TensorRef SymbolicDomain::assign(const TensorRef& t, const std::vector<Region>& where, const TensorRef& value) {
    begin();
    const auto& x = at(t);
    const SymbolicTensor& v = at(value);
    touch(x), touch(v);
    std::vector<Expr> inside, shape, map; // the region's shape; the value's axes as positions in t
    for (std::size_t k = 0; k < where.size(); ++k) {
        if (where[k].index) fail("unsupported", "assigning at positions that data says", {}, "use torch.where");
        const Expr i = pool_.index(static_cast<int>(k)), from = pool_.cast(Type::Int, to_expr(where[k].start));
        const Expr count = where[k].single ? pool_.integer(1) : resolve(to_expr(where[k].count));
        if (!nonnegative(from))
            fail("unsupported", "assigning at a position that may be negative", {}, "use torch.where");
        inside.push_back(pool_.apply(Op::Ge, i, from));
        const Expr by = pool_.integer(where[k].single ? 1 : require_int(where[k].step, "a slice step"));
        inside.push_back(pool_.apply(Op::Lt, i, pool_.add(from, pool_.mul(count, by))));
        if (where[k].single) continue;
        shape.push_back(count);
        const Expr offset = pool_.sub(i, from);
        if (!is_int(by, 1)) inside.push_back(pool_.apply(Op::Eq, pool_.apply(Op::Mod, offset, by), pool_.integer(0)));
        map.push_back(is_int(by, 1) ? offset : pool_.apply(Op::FloorDiv, offset, by));
    }
    std::vector<Expr> at_value;
    for (std::size_t k = 0; k < v.shape.size(); ++k) {
        at_value.push_back(pool_.integer(0));
        if (is_int(v.shape[k], 1)) continue; // leading ones may be more than the region has axes
        if (v.shape.size() - k > shape.size())
            fail("shape", "the value has a higher rank than the region it is assigned to");
        const std::size_t axis = shape.size() - (v.shape.size() - k);
        unify(v.shape[k], shape[axis], "assignment");
        at_value.back() = map[axis];
    }
    Expr c = pool_.logical_and(std::move(inside));
    for (std::size_t k = 0; k < x.shape.size(); ++k) c = by_extent(c, static_cast<int>(k), x.shape[k]);
    auto r =
        fresh(x.dtype, x.shape, pool_.select(c, convert(pool_.substitute(v.body, at_value), v.dtype, x.dtype), x.body),
              x.inputs | v.inputs);
    return r;
}

} // namespace cubridge::ir::spec
