// Sums of products over labelled axes. Operands are joined pairwise from the left; each pair is brought into the form
// of a batched matrix product and computed by one register-blocked loop. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/tensor/layout.h"
#include "ir/tensor/promotion.h"
#include <cmath>
#include <map>
#include <set>

namespace cubridge::ir::tensor {

namespace {

using Labels = std::vector<int>;

/// A tensor whose axes have distinct labels.
struct Operand {
    Tensor t;
    Labels labels;
};

bool has(const Labels& labels, int label) {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::int64_t size_of(const Operand& x, int label) {
    for (std::size_t axis = 0; axis < x.labels.size(); ++axis)
        if (x.labels[axis] == label) return x.t.shape[axis];
    return 1;
}

Operand diagonal(const Tensor& t, const Labels& labels) {
    if (labels.size() != t.shape.size())
        fail("shape", "einsum: " + std::to_string(labels.size()) + " labels for a tensor of shape " + text(t.shape));
    const Shape own = strides_of(t.shape);
    Operand out;
    Shape shape, strides;
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
        const auto seen = std::find(out.labels.begin(), out.labels.end(), labels[axis]);
        if (seen == out.labels.end()) {
            out.labels.push_back(labels[axis]);
            shape.push_back(t.shape[axis]);
            strides.push_back(own[axis]);
            continue;
        }
        const auto first = static_cast<std::size_t>(seen - out.labels.begin());
        if (shape[first] != t.shape[axis])
            fail("shape", "einsum: a label is repeated over different sizes of shape " + text(t.shape));
        strides[first] += own[axis];
    }
    out.t = out.labels.size() == labels.size() ? t : strided(t, std::move(shape), 0, strides);
    return out;
}

/// Sums away the labels that are not needed.
Operand summed(Operand x, const std::set<int>& needed) {
    std::vector<std::int64_t> dims;
    Labels left;
    for (std::size_t axis = 0; axis < x.labels.size(); ++axis) {
        if (needed.count(x.labels[axis]))
            left.push_back(x.labels[axis]);
        else
            dims.push_back(length(axis));
    }
    if (!dims.empty()) x.t = reduce(ReduceOp::Sum, x.t, dims, false);
    x.labels = std::move(left);
    return x;
}

/// c[l][r] = sum over k of a[l][k] * b[k][r], for Rows x Columns of c at once, in registers.
template <int Rows, int Columns>
void block(const double* a, const double* b, double* c, std::int64_t inner, std::int64_t right) {
    double acc[Rows][Columns] = {};
    for (std::int64_t k = 0; k < inner; ++k, b += right)
        for (int l = 0; l < Rows; ++l)
            for (int r = 0; r < Columns; ++r) acc[l][r] += a[l * inner + k] * b[r];
    for (int l = 0; l < Rows; ++l)
        for (int r = 0; r < Columns; ++r) c[l * right + r] = acc[l][r];
}

/// All of c, row major like a and b. The order of additions of an element is that of k, whatever the block.
void matmul(const double* a, const double* b, double* c, std::int64_t left, std::int64_t right, std::int64_t inner) {
    if (inner == 0) return; // sums of nothing are what c holds; a and b have no elements to point at
    std::int64_t r = 0;
    for (; r + 4 <= right; r += 4) { // a narrow panel of b stays in cache for all rows
        std::int64_t l = 0;
        for (; l + 4 <= left; l += 4) block<4, 4>(a + l * inner, b + r, c + l * right + r, inner, right);
        for (; l < left; ++l) block<1, 4>(a + l * inner, b + r, c + l * right + r, inner, right);
    }
    for (; r < right; ++r) {
        std::int64_t l = 0;
        for (; l + 4 <= left; l += 4) block<4, 1>(a + l * inner, b + r, c + l * right + r, inner, right);
        for (; l < left; ++l) block<1, 1>(a + l * inner, b + r, c + l * right + r, inner, right);
    }
}

/// The labels of a product, by the part that they play, and their common sizes.
struct Groups {
    Labels batch, left, right, inner;
    std::map<int, std::int64_t> sizes;

    std::int64_t size(const Labels& labels) const {
        Shape shape;
        for (const int label : labels) shape.push_back(sizes.at(label));
        return elements(shape);
    }
};

Labels joined(Labels a, const Labels& b, const Labels& c) {
    a.insert(a.end(), b.begin(), b.end());
    a.insert(a.end(), c.begin(), c.end());
    return a;
}

/// x with its axes in the order of `labels`, sizes of 1 expanded.
Tensor packed(const Operand& x, const Labels& labels, const Groups& g) {
    const Shape own = strides_of(x.t.shape);
    Shape shape, strides;
    for (const int label : labels) {
        const auto axis =
            static_cast<std::size_t>(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin());
        shape.push_back(g.sizes.at(label));
        strides.push_back(x.t.shape[axis] == 1 ? 0 : own[axis]);
    }
    bool as_it_is = shape == x.t.shape && labels == x.labels;
    return as_it_is ? x.t : strided(x.t, std::move(shape), 0, strides);
}

template <class T> std::vector<double> products(const std::vector<T>& a, const std::vector<T>& b, const Groups& g) {
    const std::int64_t batch = g.size(g.batch), left = g.size(g.left), right = g.size(g.right), inner = g.size(g.inner);
    std::vector<double> c(at(batch * left * right));
    const auto all = [&](const double* x, const double* y) {
        for (std::int64_t n = 0; n < batch; ++n)
            matmul(x + n * left * inner, y + n * inner * right, c.data() + n * left * right, left, right, inner);
    };
    if constexpr (std::is_same_v<T, double>) {
        all(a.data(), b.data());
    } else { // a product of floats is exact in double
        const std::vector<double> x(a.begin(), a.end()), y(b.begin(), b.end());
        all(x.data(), y.data());
    }
    return c;
}

/// The product of two operands, summed over what is not needed.
Operand product(const Operand& x, const Operand& y, const std::set<int>& needed) {
    Groups g;
    for (const int label : x.labels) {
        const bool both = has(y.labels, label);
        (needed.count(label) ? (both ? g.batch : g.left) : g.inner).push_back(label);
        const std::int64_t a = size_of(x, label), b = size_of(y, label);
        if (both && a != b && a != 1 && b != 1)
            fail("shape", "einsum: shapes " + text(x.t.shape) + " and " + text(y.t.shape) +
                              " have different sizes for one label, " + std::to_string(a) + " and " +
                              std::to_string(b));
        g.sizes[label] = both && a == 1 ? b : a;
    }
    for (const int label : y.labels) {
        if (has(x.labels, label)) continue;
        g.right.push_back(label);
        g.sizes[label] = size_of(y, label);
    }
    Operand out;
    out.labels = joined(g.batch, g.left, g.right);
    for (const int label : out.labels) out.t.shape.push_back(g.sizes.at(label));
    elements(out.t.shape);
    const Tensor a = packed(x, joined(g.batch, g.left, g.inner), g),
                 b = packed(y, joined(g.batch, g.inner, g.right), g);
    const Tensor pair[] = {a, b};
    out.t.dtype = result_type(pair);
    out.t.data = std::make_shared<const std::vector<double>>(products(*a.data, *b.data, g));
    if (out.t.dtype == DType::F32 && all_pinnable(pair)) {
        const std::vector<double> wide = products(*pin_of(a), *pin_of(b), g);
        auto pin = std::make_shared<std::vector<float>>(wide.size());
        for (std::size_t i = 0; i < wide.size(); ++i) (*pin)[i] = static_cast<float>(wide[i]);
        out.t.pin = std::move(pin);
    }
    return out;
}

} // namespace

Tensor contract(const std::vector<Tensor>& x, const std::vector<std::vector<int>>& labels,
                const std::vector<int>& out) {
    if (x.empty() || x.size() != labels.size())
        fail("shape", "einsum: " + std::to_string(labels.size()) + " lists of labels for " + std::to_string(x.size()) +
                          " operands");
    const std::set<int> wanted(out.begin(), out.end());
    if (wanted.size() != out.size()) fail("shape", "einsum: the result has a label twice");
    std::map<int, std::size_t> last; // the operand that has a label last
    for (std::size_t k = 0; k < x.size(); ++k)
        for (const int label : labels[k]) last[label] = k;
    for (const int label : out)
        if (!last.count(label)) fail("shape", "einsum: the result has a label that no operand has");

    DType dtype = result_type(x);
    if (dtype == DType::Bool && x.size() > 1) fail("type", "einsum: products of bool tensors are not defined");
    const auto needed_after = [&](std::size_t k) {
        std::set<int> needed = wanted;
        for (const auto& [label, operand] : last)
            if (operand > k) needed.insert(label);
        return needed;
    };
    Operand acc = summed(diagonal(x[0], labels[0]), needed_after(0));
    for (std::size_t k = 1; k < x.size(); ++k) {
        const std::set<int> needed = needed_after(k);
        std::set<int> here = needed; // a label of this operand alone is summed before the product
        here.insert(acc.labels.begin(), acc.labels.end());
        acc = product(acc, summed(diagonal(x[k], labels[k]), here), needed);
    }
    std::vector<std::int64_t> order;
    for (const int label : out)
        order.push_back(std::find(acc.labels.begin(), acc.labels.end(), label) - acc.labels.begin());
    Tensor result = permute(acc.t, order);
    if (!is_float(result.dtype)) {
        if (x.size() > 1) result.dtype = dtype; // a sum of an operand by itself makes int64 of it
        auto data = std::make_shared<std::vector<double>>(*result.data);
        for (double& v : *data) {
            if (std::fabs(v) > static_cast<double>(kMaxInteger)) too_large(v);
            v = fit(static_cast<std::int64_t>(v), result.dtype);
        }
        result.data = std::move(data);
    } else if (x.size() > 1) {
        result.dtype = dtype;
    }
    if (result.dtype != DType::F32) result.pin = nullptr;
    result.scalar = false;
    return result;
}

} // namespace cubridge::ir::tensor
