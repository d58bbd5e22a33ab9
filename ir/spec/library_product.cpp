// Rows that are sums of products: matmul, einsum, and attention itself. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/library.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace cubridge::ir::spec {

namespace {

template <std::size_t left, std::size_t right> Value matmul_row(Interpreter& in, Args& a) { // ranks; 0: any
    const std::size_t m = in.domain().rank(a.tensor(0)), n = in.domain().rank(a.tensor(1));
    if ((left != 0 && m != left) || (right != 0 && n != right))
        fail("shape",
             std::string(a.routine().name) + "() takes tensors of rank " + std::to_string(left) + " and " +
                 std::to_string(right) + ", not " + std::to_string(m) + " and " + std::to_string(n),
             in.span(), "use torch.matmul");
    return matmul(in.domain(), a.tensor(0), a.tensor(1));
}

Value einsum_row(Interpreter& in, Args& a) {
    std::vector<TensorRef> x;
    for (const Value& v : *a[1].as<Sequence>().items) x.push_back(in.tensor(v));
    return einsum(in.domain(), a.name(0), x);
}

Value linear(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef w = a.tensor(1);
    if (d.rank(w) != 2) fail("shape", "linear() takes a weight of rank 2", in.span());
    const Value out = matmul(d, a.tensor(0), d.permute(w, {1, 0}));
    return a.given(2) ? in.elementwise(Op::Add, {out, a[2]}) : out;
}

Value outer(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    if (d.rank(a.tensor(0)) != 1 || d.rank(a.tensor(1)) != 1)
        fail("shape", "outer() takes tensors of rank 1", in.span());
    return d.apply(Op::Mul, {unsqueeze(d, a.tensor(0), 1), a.tensor(1)});
}

// PyTorch's reference text of F.scaled_dot_product_attention.
Value sdpa(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef q = a.tensor(0);
    TensorRef k = a.tensor(1), v = a.tensor(2);
    const Values sq = d.shape(q), sk = d.shape(k);
    if (sq.size() < 2 || sk.size() < 2)
        fail("shape", "scaled_dot_product_attention() takes tensors of rank 2 or more", in.span());
    if (a.given(4) && !(a[4].is<double>() && a[4].as<double>() == 0) &&
        !(a[4].is<std::int64_t>() && a[4].as<std::int64_t>() == 0))
        fail("unsupported", "dropout", in.span(), "inference has none: leave dropout_p at 0");
    if (a.flag(7)) {
        const int head = static_cast<int>(sq.size()) - 3;
        if (head < 0) fail("shape", "enable_gqa needs a head dimension", in.span());
        const auto h = static_cast<std::size_t>(head);
        k = d.repeat_interleave(k, in.binary("//", sq[h], sk[h]), head);
        v = d.repeat_interleave(v, in.binary("//", sq[h], sk[h]), head);
    }
    const Value n = sq.back();
    const Value scale = a.given(6)
                            ? a[6]
                            : in.binary("/", Value(1),
                                        n.is<Expr>() ? d.number(Op::Sqrt, std::array{d.to_float(n)})
                                                     : Value(std::sqrt(static_cast<double>(n.as<std::int64_t>()))));
    std::vector<int> order(sk.size());
    for (std::size_t m = 0; m < order.size(); ++m) order[m] = static_cast<int>(m);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    Value s = in.elementwise(Op::Mul, {Value(matmul(d, q, d.permute(k, order))), scale});
    const double inf = std::numeric_limits<double>::infinity();
    if (a.flag(5)) {
        const TensorRef i = unsqueeze(d, d.arange(0, sq[sq.size() - 2], 1, DType::I64), 1),
                        j = d.arange(0, sk[sk.size() - 2], 1, DType::I64);
        s = in.elementwise(Op::Where, {Value(d.apply(Op::Le, {j, i})), s, Value(-inf)});
    }
    if (a.given(3)) {
        const TensorRef m = a.tensor(3);
        s = m->dtype == DType::Bool ? in.elementwise(Op::Where, {Value(m), s, Value(-inf)})
                                    : in.elementwise(Op::Add, {s, Value(m)});
    }
    const TensorRef x = in.tensor(s);
    return matmul(d, softmax(d, x, static_cast<int>(d.rank(x)) - 1, false), v);
}

constexpr unsigned kTM = kTorch | kMethod;

constexpr Routine rows[] = {
    {"matmul", kTM, "input, other", matmul_row<0, 0>},
    {"mm", kTM, "input, mat2", matmul_row<2, 2>},
    {"bmm", kTM, "input, mat2", matmul_row<3, 3>},
    {"mv", kTM, "input, vec", matmul_row<2, 1>},
    {"dot", kTM, "input, tensor", matmul_row<1, 1>},
    {"einsum", kTorch, "equation, *operands", einsum_row},
    {"outer", kTM, "input, vec2", outer},
    {"linear", kFunctional, "input, weight, bias=?", linear},
    {"scaled_dot_product_attention", kFunctional,
     "query, key, value, attn_mask=?, dropout_p=0.0, is_causal=False, scale=?, enable_gqa=False", sdpa,
     "is_causal is aligned at the top left, as PyTorch's reference text"},
};

} // namespace

TensorRef matmul(Domain& d, const TensorRef& a, const TensorRef& b) {
    const int m = static_cast<int>(d.rank(a)), n = static_cast<int>(d.rank(b));
    if (m == 0 || n == 0) fail("shape", "a matrix product needs tensors of rank 1 or more");
    // Unlike einsum's letters, the summed sizes must be equal: a 1 does not repeat.
    const Values left = d.shape(a), right = d.shape(b);
    const Value &p = left.back(), &q = right[n >= 2 ? static_cast<std::size_t>(n) - 2 : 0];
    const auto one = [](const Value& v) { return v.is<std::int64_t>() && v.as<std::int64_t>() == 1; };
    if (one(p) != one(q))
        fail("shape", "a matrix product sums over the last axis of the left and the axis before the last of the right, "
                      "their sizes do not agree");
    // labels: batch axes from the right as 10, 11, ...; 0 rows, 1 summed, 2 columns
    std::vector<int> x, y, out;
    for (int k = std::max(m, n) - 3; k >= 0; --k) {
        if (k < m - 2) x.push_back(10 + k);
        if (k < n - 2) y.push_back(10 + k);
        out.push_back(10 + k);
    }
    if (m >= 2) x.push_back(0), out.push_back(0);
    x.push_back(1);
    y.push_back(1);
    if (n >= 2) y.push_back(2), out.push_back(2);
    return d.contract({a, b}, {x, y}, out);
}

TensorRef einsum(Domain& d, std::string_view text, const std::vector<TensorRef>& x) {
    std::string s;
    for (const char c : text)
        if (c != ' ') s += c;
    const auto arrow = s.find("->");
    const std::string inputs = s.substr(0, arrow);
    std::vector<std::string> parts{""};
    for (const char c : inputs) {
        if (c == ',')
            parts.emplace_back();
        else
            parts.back() += c;
    }
    if (parts.size() != x.size())
        fail("shape", "einsum(\"" + std::string(text) + "\") names " + std::to_string(parts.size()) + " operands, " +
                          std::to_string(x.size()) + " are given");
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    std::vector<std::vector<int>> labels;
    std::size_t most = 0; // axes under the ellipsis
    for (std::size_t k = 0; k < parts.size(); ++k) {
        const auto dots = parts[k].find("...");
        const std::size_t named = static_cast<std::size_t>(std::count_if(parts[k].begin(), parts[k].end(), letter));
        const std::size_t rank = d.rank(x[k]);
        if (dots == std::string::npos ? named != rank : named > rank)
            fail("shape", "einsum(\"" + std::string(text) + "\"): operand " + std::to_string(k + 1) + " has rank " +
                              std::to_string(rank) + ", its letters are \"" + parts[k] + "\"");
        if (dots != std::string::npos) most = std::max(most, rank - named);
    }
    const auto read = [&](const std::string& part, std::size_t under) {
        std::vector<int> out;
        for (std::size_t k = 0; k < part.size(); ++k) {
            if (part.compare(k, 3, "...") == 0) {
                for (std::size_t m = under; m-- > 0;) out.push_back(1000 + static_cast<int>(m));
                k += 2;
            } else if (letter(part[k])) {
                out.push_back(part[k]);
            } else {
                fail("syntax", std::string("einsum: unexpected `") + part[k] + "` in \"" + std::string(text) + "\"");
            }
        }
        return out;
    };
    for (std::size_t k = 0; k < parts.size(); ++k) {
        const auto named = static_cast<std::size_t>(std::count_if(parts[k].begin(), parts[k].end(), letter));
        labels.push_back(read(parts[k], d.rank(x[k]) - named));
    }
    std::vector<int> out;
    if (arrow != std::string::npos) {
        out = read(s.substr(arrow + 2), most);
        for (const int l : out)
            if (std::none_of(labels.begin(), labels.end(),
                             [&](const auto& p) { return std::find(p.begin(), p.end(), l) != p.end(); }))
                fail("shape", "einsum(\"" + std::string(text) + "\"): the output letter `" + static_cast<char>(l) +
                                  "` stands in no operand");
    } else { // letters that stand once, in alphabetical order, behind the ellipsis
        for (std::size_t m = most; m-- > 0;) out.push_back(1000 + static_cast<int>(m));
        std::vector<int> all;
        for (const auto& p : labels)
            for (const int l : p)
                if (l < 1000) all.push_back(l);
        std::sort(all.begin(), all.end());
        for (const int l : all)
            if (std::count(all.begin(), all.end(), l) == 1) out.push_back(l);
    }
    return d.contract(x, labels, out);
}

std::span<const Routine> rows_product() {
    return rows;
}

} // namespace cubridge::ir::spec
