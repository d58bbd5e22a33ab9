// x[...] as PyTorch and Python mean it. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/interpreter.h"
#include "ir/spec/library.h"
#include <algorithm>

namespace cubridge::ir::spec {

Value Interpreter::subscript(const Value& object, const Value& index) {
    if (object.is<TensorRef>()) return index_tensor(object.as<TensorRef>(), index);
    if (object.is<Opaque>()) return object; // Optional[Tensor] in an annotation
    if (!object.is<Sequence>()) fail("type", kind_of(object) + " cannot be indexed", span_);
    const auto& s = object.as<Sequence>();
    const auto n = static_cast<std::int64_t>(s.items->size());
    const auto known = [&](const Value& v, std::int64_t fallback) {
        if (v.none()) return fallback;
        if (v.is<std::int64_t>()) return v.as<std::int64_t>();
        if (v.is<bool>()) return std::int64_t{v.as<bool>()};
        if (v.is<Expr>()) return domain_.require_int(v, "a list index");
        fail("type", "a list index must be an int, this is " + kind_of(v), span_);
    };
    if (!index.is<SliceValue>()) {
        std::int64_t k = known(index, 0);
        if (k < 0) k += n;
        if (k < 0 || k >= n)
            fail("index", "index " + std::to_string(k) + " is out of range for " + std::to_string(n) + " elements",
                 span_);
        return fresh((*s.items)[static_cast<std::size_t>(k)], "the element");
    }
    const auto& p = *index.as<SliceValue>().parts;
    const std::int64_t step = known(p[2], 1);
    if (step == 0) fail("index", "a slice step cannot be 0", span_);
    const auto clip = [&](std::int64_t k) {
        if (k < 0) k += n;
        return step > 0 ? std::clamp<std::int64_t>(k, 0, n) : std::clamp<std::int64_t>(k, -1, n - 1);
    };
    const std::int64_t start = p[0].none() ? (step > 0 ? 0 : n - 1) : clip(known(p[0], 0));
    const std::int64_t stop = p[1].none() ? (step > 0 ? n : -1) : clip(known(p[1], 0));
    Values out;
    const std::int64_t by = std::clamp<std::int64_t>(step, -n - 1, n + 1);
    for (std::int64_t k = start; by > 0 ? k < stop : k > stop; k += by)
        out.push_back((*s.items)[static_cast<std::size_t>(k)]);
    this->step(out.size());
    return Sequence{make_items(std::move(out)), s.tuple};
}

Value Interpreter::index_tensor(const TensorRef& source, const Value& index) {
    const Values parts =
        index.is<Sequence>() && index.as<Sequence>().tuple ? *index.as<Sequence>().items : Values{index};
    TensorRef t = source;
    std::size_t named = 0;
    bool ellipsis = false;
    for (const Value& p : parts) {
        if (p.is<EllipsisValue>()) {
            if (ellipsis) fail("index", "an index may hold one `...` only", span_);
            ellipsis = true;
        } else if (!p.none()) {
            ++named;
        }
    }
    const std::size_t rank = domain_.rank(t);
    if (named > rank)
        fail("index", std::to_string(named) + " indices for a tensor of rank " + std::to_string(rank), span_);
    // Slices, None and single positions are done axis by axis; tensors are collected for one gather at the end. A
    // single position beside a tensor is part of the gather, as in PyTorch.
    const bool advanced =
        std::any_of(parts.begin(), parts.end(), [](const Value& p) { return p.is<TensorRef>() || p.is<Sequence>(); });
    std::vector<TensorRef> at;
    int axis = 0;
    for (const Value& p : parts) {
        if (p.is<EllipsisValue>()) {
            for (std::size_t k = named; k < rank; ++k) at.push_back(nullptr), ++axis;
        } else if (p.none()) {
            t = unsqueeze(domain_, t, static_cast<std::size_t>(axis));
            at.push_back(nullptr), ++axis;
        } else if (p.is<SliceValue>()) {
            const auto& s = *p.as<SliceValue>().parts;
            if (!s[0].none() || !s[1].none() || !s[2].none()) t = domain_.slice(t, axis, s[0], s[1], s[2]);
            at.push_back(nullptr), ++axis;
        } else if (p.is<TensorRef>()) {
            const DType type = p.as<TensorRef>()->dtype;
            if (type == DType::Bool)
                fail("unsupported", "indexing by a boolean mask gives a tensor whose size hangs on data", span_,
                     "use torch.where(mask, x, other)");
            if (is_float(type))
                fail("type", "a tensor is indexed by integers, this is " + kind_of(p), span_, "use .long()");
            at.push_back(p.as<TensorRef>()), ++axis;
        } else if (p.is<Sequence>()) {
            const Values items = iterate(p);
            at.push_back(domain_.from_numbers({static_cast<std::int64_t>(items.size())}, items, DType::I64)), ++axis;
        } else if (p.number() && !p.is<double>() && !p.is<bool>()) {
            if (advanced)
                at.push_back(domain_.cast(domain_.wrap(p), DType::I64)), ++axis;
            else
                t = domain_.select(t, axis, p);
        } else {
            fail("unsupported", "a tensor cannot be indexed by " + kind_of(p), span_);
        }
    }
    if (advanced) return domain_.gather(t, at);
    share(source, t);
    return t;
}

} // namespace cubridge::ir::spec
