// SPDX-License-Identifier: Apache-2.0
#include "ir/spec/concrete.h"
#include <algorithm>
#include <cmath>
#include <map>

namespace cubridge::ir::spec {

namespace {

double as_double(const Value& v) {
    if (v.is<bool>()) return v.as<bool>() ? 1 : 0;
    if (v.is<std::int64_t>()) return static_cast<double>(v.as<std::int64_t>());
    if (v.is<double>()) return v.as<double>();
    fail("type", "a number is expected, this is " + kind_of(v));
}

DType type_of_number(const Value& v) {
    return v.is<bool>() ? DType::Bool : v.is<std::int64_t>() ? DType::I64 : DType::F32;
}

std::vector<tensor::Tensor> all(const std::vector<TensorRef>& x) {
    std::vector<tensor::Tensor> out;
    for (const auto& t : x) out.push_back(ConcreteDomain::at(t));
    return out;
}

} // namespace

TensorRef ConcreteDomain::make(tensor::Tensor t) {
    charge(static_cast<double>(t.size()));
    left_ -= t.size();
    if (meter_) meter_->spend(1 + static_cast<std::uint64_t>(t.size()) / 16);
    auto r = std::make_shared<ConcreteTensor>();
    r->dtype = t.dtype;
    r->scalar = t.scalar;
    r->t = std::move(t);
    return r;
}

TensorRef ConcreteDomain::computed(tensor::Tensor t) {
    if (noise_ == 0 || !is_float(t.dtype) || t.scalar) return make(std::move(t));
    auto data = std::make_shared<std::vector<double>>(*t.data);
    for (double& v : *data) {
        if (!std::isfinite(v) || (std::fabs(v) < 0x1p24 && v == std::trunc(v))) continue;
        noise_ = noise_ * 6364136223846793005u + 1442695040888963407u;
        v = std::nextafter(v, noise_ >> 63 != 0 ? HUGE_VAL : -HUGE_VAL);
    }
    t.data = std::move(data);
    return make(std::move(t));
}

void ConcreteDomain::charge(double elements) {
    if (elements > static_cast<double>(left_))
        fail("limit", "the text makes tensors of more elements than can be evaluated", {},
             "use smaller sizes or fewer temporaries");
}

tensor::Shape ConcreteDomain::sizes_of(const Values& sizes) {
    tensor::Shape out;
    double total = 1;
    for (const Value& v : sizes) {
        if (!v.is<std::int64_t>()) fail("type", "a size must be an int, this is " + kind_of(v));
        out.push_back(v.as<std::int64_t>());
        total *= std::max(1.0, static_cast<double>(v.as<std::int64_t>()));
    }
    charge(total);
    return out;
}

// Symbols do not occur here: sizes and scalars are numbers.
Value ConcreteDomain::number(Op, std::span<const Value>) {
    fail("internal", "a symbol in a concrete evaluation");
}
bool ConcreteDomain::truth(const Value&) {
    fail("internal", "a symbol in a concrete evaluation");
}
std::int64_t ConcreteDomain::require_int(const Value& v, const char* what_for) {
    if (v.is<bool>()) return v.as<bool>() ? 1 : 0;
    if (!v.is<std::int64_t>()) fail("type", std::string(what_for) + " needs an int, this is " + kind_of(v));
    return v.as<std::int64_t>();
}
double ConcreteDomain::require_float(const Value& v, const char*) {
    return as_double(v);
}

TensorRef ConcreteDomain::full(const Values& sizes, const Value& value, DType dtype) {
    return make(tensor::full(sizes_of(sizes), as_double(value), dtype, true));
}

TensorRef ConcreteDomain::wrap(const Value& v) {
    return make(tensor::number(as_double(v), type_of_number(v)));
}

TensorRef ConcreteDomain::arange(const Value& start, const Value& stop, const Value& step, DType dtype) {
    const double a = as_double(start), b = as_double(stop), s = as_double(step);
    if (s == 0) fail("domain", "arange() with step 0");
    const double n = std::ceil((b - a) / s);
    if (n < 0) fail("domain", "arange() of a negative count");
    sizes_of({Value(static_cast<std::int64_t>(std::min(n, 1e15)))});
    return make(tensor::arange(a, s, static_cast<std::int64_t>(n), dtype));
}

TensorRef ConcreteDomain::from_numbers(const std::vector<std::int64_t>& shape, const Values& numbers, DType dtype) {
    std::vector<double> values;
    for (const Value& v : numbers) values.push_back(as_double(v));
    return make(tensor::from_values(shape, std::move(values), dtype, true));
}

Values ConcreteDomain::shape(const TensorRef& t) {
    Values out;
    for (const auto s : at(t).shape) out.push_back(s);
    return out;
}

Value ConcreteDomain::item(const TensorRef& t, const char* what_for) {
    const auto& x = at(t);
    if (x.size() != 1)
        fail("shape", std::string(what_for) + " takes a tensor of one element, this is " + tensor::describe(x));
    const double v = (*x.data)[0];
    if (x.dtype == DType::Bool) return v != 0;
    if (!is_float(x.dtype)) return static_cast<std::int64_t>(v);
    return v;
}

TensorRef ConcreteDomain::cast(const TensorRef& t, DType dtype) {
    const auto& x = at(t);
    return x.dtype == dtype && !x.scalar ? t : make(tensor::cast(x, dtype));
}

TensorRef ConcreteDomain::apply(Op op, const std::vector<TensorRef>& x) {
    double total = 1;
    std::size_t rank = 0;
    for (const auto& t : x) rank = std::max(rank, at(t).shape.size());
    for (std::size_t k = 1; k <= rank; ++k) { // before anything of that size is made
        std::int64_t s = 1;
        for (const auto& t : x)
            if (at(t).shape.size() >= k) s = std::max(s, at(t).shape[at(t).shape.size() - k]);
        total *= static_cast<double>(s);
    }
    charge(total);
    return computed(tensor::apply(op, all(x)));
}

TensorRef ConcreteDomain::reshape(const TensorRef& t, const Values& sizes) {
    tensor::Shape s;
    for (const Value& v : sizes) s.push_back(require_int(v, "a size"));
    return make(tensor::reshape(at(t), s));
}

TensorRef ConcreteDomain::permute(const TensorRef& t, const std::vector<int>& order) {
    return make(tensor::permute(at(t), {order.begin(), order.end()}));
}
TensorRef ConcreteDomain::expand(const TensorRef& t, const Values& sizes) {
    return make(tensor::expand(at(t), sizes_of(sizes)));
}

TensorRef ConcreteDomain::slice(const TensorRef& t, int dim, const Value& start, const Value& stop, const Value& step) {
    const std::int64_t size = at(t).shape[static_cast<std::size_t>(dim)];
    const auto of = [&](const Value& v, std::int64_t fallback) {
        return v.none() ? fallback : require_int(v, "a slice bound");
    };
    return make(tensor::slice(at(t), dim, of(start, 0), of(stop, size), of(step, 1)));
}

TensorRef ConcreteDomain::select(const TensorRef& t, int dim, const Value& where) {
    return make(tensor::select(at(t), dim, require_int(where, "a position")));
}
TensorRef ConcreteDomain::flip(const TensorRef& t, int dim) {
    return make(tensor::flip(at(t), dim));
}
TensorRef ConcreteDomain::concat(const std::vector<TensorRef>& x, int dim) {
    double total = 0;
    for (const auto& t : x) total += static_cast<double>(at(t).size());
    charge(total);
    return make(tensor::concat(all(x), dim));
}

TensorRef ConcreteDomain::repeat_interleave(const TensorRef& t, const Value& times, int dim) {
    const std::int64_t n = require_int(times, "repeat_interleave()");
    sizes_of({Value(at(t).size()), Value(std::max<std::int64_t>(n, 0))});
    return make(tensor::repeat_interleave(at(t), n, dim));
}

TensorRef ConcreteDomain::gather(const TensorRef& t, const std::vector<TensorRef>& where) {
    std::vector<std::optional<tensor::Tensor>> index;
    double total = 1;                           // at most: the positions' broadcast by what is not indexed
    std::map<std::size_t, std::int64_t> common; // by axis from the last
    for (std::size_t k = 0; k < at(t).shape.size(); ++k) {
        if (k >= where.size() || !where[k]) {
            total *= static_cast<double>(at(t).shape[k]);
            continue;
        }
        const auto& s = at(where[k]).shape;
        for (std::size_t m = 0; m < s.size(); ++m) {
            std::int64_t& size = common.try_emplace(s.size() - m, 1).first->second;
            size = std::max(size, s[m]);
        }
    }
    for (const auto& [axis, size] : common) total *= static_cast<double>(size);
    charge(total);
    for (const auto& w : where) index.push_back(w ? std::optional(at(w)) : std::nullopt);
    return make(tensor::gather(at(t), index));
}
TensorRef ConcreteDomain::take_along(const TensorRef& t, int dim, const TensorRef& index) {
    return make(tensor::take_along(at(t), dim, at(index)));
}
TensorRef ConcreteDomain::scatter(const TensorRef& t, int dim, const TensorRef& index, const TensorRef& source) {
    return make(tensor::scatter(at(t), dim, at(index), at(source)));
}

TensorRef ConcreteDomain::assign(const TensorRef& t, const std::vector<Region>& where, const TensorRef& value) {
    std::vector<tensor::Region> regions;
    for (std::size_t k = 0; k < where.size(); ++k) {
        tensor::Region r;
        if (where[k].index) {
            r.index = at(where[k].index);
        } else if (where[k].single) {
            const std::int64_t p = require_int(where[k].start, "a position"), n = at(t).shape[k];
            if (p < 0 || p >= n)
                fail("index", "position " + std::to_string(p) + " is out of range for a size of " + std::to_string(n));
            r.index = tensor::from_values({}, {static_cast<double>(p)}, DType::I64, true);
        } else {
            r.start = require_int(where[k].start, "a slice bound");
            r.count = require_int(where[k].count, "a slice bound");
            r.step = require_int(where[k].step, "a slice step");
        }
        regions.push_back(std::move(r));
    }
    return make(tensor::assign(at(t), regions, at(value)));
}

TensorRef ConcreteDomain::reduce(ReduceOp op, const TensorRef& t, const std::vector<int>& dims, bool keepdim) {
    return computed(tensor::reduce(op, at(t), {dims.begin(), dims.end()}, keepdim));
}
TensorRef ConcreteDomain::cumsum(const TensorRef& t, int dim) {
    return computed(tensor::cumsum(at(t), dim));
}
TensorRef ConcreteDomain::argsort(const TensorRef& t, int dim, bool descending) {
    return make(tensor::argsort(at(t), dim, descending));
}
TensorRef ConcreteDomain::argmax(const TensorRef& t, int dim, bool keepdim) {
    return make(tensor::argmax(at(t), dim, keepdim));
}

TensorRef ConcreteDomain::contract(const std::vector<TensorRef>& x, const std::vector<std::vector<int>>& labels,
                                   const std::vector<int>& out) {
    for (const auto& t : x)
        if (is_float(t->dtype) != is_float(x[0]->dtype))
            fail("type",
                 std::string("a product of tensors of ") + torch_name(x[0]->dtype) + " and " + torch_name(t->dtype), {},
                 "convert one with .float() or .to(other.dtype)");
    // Operands are joined from the left: no step takes more products than all labels have positions.
    std::map<int, std::int64_t> size;
    for (std::size_t k = 0; k < x.size(); ++k)
        for (std::size_t m = 0; m < labels[k].size() && m < at(x[k]).shape.size(); ++m) {
            std::int64_t& s = size.try_emplace(labels[k][m], 1).first->second;
            s = std::max(s, at(x[k]).shape[m]);
        }
    double products = 1;
    for (const auto& [label, s] : size) products *= static_cast<double>(s);
    charge(products / 16);
    left_ -= static_cast<std::int64_t>(products / 16);
    if (meter_) meter_->spend(static_cast<std::uint64_t>(products / 64));
    return computed(tensor::contract(all(x), labels, out));
}

} // namespace cubridge::ir::spec
