// A Scalar with data: host buffers, the argument block over them, and the text's value at each position by direct
// evaluation, which knows nothing of steps, units of heads or kernel rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/kernel_abi.h"
#include "ir/generic/evaluate.h"
#include "ir/generic/run.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <random>

namespace cubridge::ir::generic::test {

/// Bits of `v` as type t; what has no exact code is rounded towards a neighbour.
inline void store_element(void* data, DType t, std::int64_t i, double v) {
    const auto put = [&](auto x) {
        std::memcpy(static_cast<char*>(data) + i * static_cast<std::int64_t>(sizeof x), &x, sizeof x);
    };
    switch (t) {
    case DType::Bool:
    case DType::U8: return put(static_cast<std::uint8_t>(v));
    case DType::I8: return put(static_cast<std::int8_t>(v));
    case DType::I16: return put(static_cast<std::int16_t>(v));
    case DType::I32: return put(static_cast<std::int32_t>(v));
    case DType::I64: return put(static_cast<std::int64_t>(v));
    case DType::F32: return put(static_cast<float>(v));
    case DType::F64: return put(v);
    default: break;
    }
    // The narrow floats: the code whose value is nearest, by trying all.
    const unsigned codes = size_in_bytes(t) == 1 ? 256 : 65536;
    unsigned best = 0;
    double distance = HUGE_VAL;
    for (unsigned c = 0; c < codes; ++c) {
        const auto code = static_cast<std::uint16_t>(c);
        const double x = host_element(&code, t, 0);
        if (v != v ? x != x : std::fabs(x - v) < distance) best = c, distance = v != v ? HUGE_VAL : std::fabs(x - v);
    }
    if (codes == 256)
        put(static_cast<std::uint8_t>(best));
    else
        put(static_cast<std::uint16_t>(best));
}

struct Problem {
    Scalar scalar;
    Request request;
    Options options;
    abi::cb_args args{};
    std::vector<int> lengths; ///< Sk of each request; empty: max_kv
    std::mt19937 random{7};

    Problem() { scalar.pool = std::make_shared<ExprPool>(); }
    ExprPool& pool() { return *scalar.pool; }
    Expr ix(int k) { return pool().index(k); }
    Expr num(std::int64_t v) { return pool().integer(v); }
    Expr dim(int d) { return pool().dim(d); }

    void qkv(DType q = DType::F32, DType kv = DType::F32, DType o = DType::F64) {
        request.q_dtype = q, request.kv_dtype = kv, request.o_dtype = o;
        for (const char* name : {"q", "k", "v"}) {
            Input in;
            in.name = name;
            in.rank = 4;
            scalar.inputs.push_back(in);
        }
        scalar.shapes = {{dim(dims::B), dim(dims::Hq), dim(dims::Sq), dim(dims::D)},
                         {dim(dims::B), dim(dims::Hk), dim(dims::Sk), dim(dims::D)},
                         {dim(dims::B), dim(dims::Hk), dim(dims::Sk), dim(dims::Dv)}};
    }
    /// The text's output and, unless null, its LSE.
    void output(Expr body, Expr lse = nullptr, Expr heads = nullptr) {
        heads = heads != nullptr ? heads : dim(dims::Hq);
        scalar.out.push_back({{dim(dims::B), heads, dim(dims::Sq), dim(dims::Dv)}, body, DType::F32});
        if (lse != nullptr) scalar.out.push_back({{dim(dims::B), heads, dim(dims::Sq)}, lse, DType::F32});
    }
    int input(const char* name, DType t, std::vector<Expr> shape, Input::Fate fate = Input::Fate::Operand) {
        Input in;
        in.name = name;
        in.dtype = t;
        in.fate = fate;
        in.rank = static_cast<int>(shape.size());
        scalar.inputs.push_back(in);
        scalar.shapes.push_back(std::move(shape));
        return static_cast<int>(scalar.inputs.size()) - 1;
    }
    /// An operand's own shape, as Dims.
    std::vector<Expr> own(int rank) {
        const int x = static_cast<int>(scalar.inputs.size());
        std::vector<Expr> s;
        for (int a = 0; a < rank; ++a) s.push_back(dim(dims::of(x, a)));
        return s;
    }

    // ---- Launch -----------------------------------------------------------------------------------------------------
    void sizes(int requests, int heads_kv, int group, int sq, int sk, int d, int dv, int head_begin = 0) {
        request.head_dim = d, request.head_dim_v = dv, request.group = group;
        args.requests = requests, args.heads_kv = heads_kv, args.heads_q = heads_kv * group,
        args.head_begin = head_begin;
        args.max_q = sq, args.max_kv = sk, args.total_q = requests * sq;
    }
    /// Random q, k, v. `wild`: head-major rows with gaps, and NaN in all that no request may read.
    void data(bool wild = false, int v_heads = 0) {
        tensor(args.q, request.q_dtype, args.heads_q, args.max_q, request.head_dim, wild, false);
        tensor(args.k, request.kv_dtype, args.heads_kv, args.max_kv, request.head_dim, wild, true);
        tensor(args.v, request.kv_dtype, v_heads > 0 ? v_heads : args.heads_kv, args.max_kv, request.head_dim_v, wild,
               true);
        if (!lengths.empty()) args.seq_lens_k = lengths.data();
    }
    void operand(int slot, DType t, const std::vector<std::int64_t>& shape, const std::vector<double>& values) {
        abi::cb_operand& o = args.operand[slot];
        auto& buffer = memory(values.size() * static_cast<std::size_t>(size_in_bytes(t)));
        for (std::size_t k = 0; k < values.size(); ++k)
            store_element(buffer.data(), t, static_cast<std::int64_t>(k), values[k]);
        o.data = buffer.data();
        std::int64_t stride = 1;
        for (std::size_t a = shape.size(); a-- > 0;) o.size[a] = shape[a], o.stride[a] = stride, stride *= shape[a];
    }
    launch::Sizes launch_sizes(const launch::Plan& plan) const {
        launch::Sizes s;
        using launch::Size;
        s[Size::Requests] = args.requests, s[Size::HeadsQ] = args.heads_q, s[Size::HeadsKv] = args.heads_kv;
        s[Size::MaxQ] = args.max_q, s[Size::MaxKv] = args.max_kv, s[Size::TotalQ] = args.total_q;
        s[Size::SmCount] = 1, s[Size::HeadBegin] = args.head_begin;
        for (std::size_t k = 0; k < plan.operands.size(); ++k)
            s.operand.push_back(
                {args.operand[k].size[0], args.operand[k].size[1], args.operand[k].size[2], args.operand[k].size[3]});
        return s;
    }

    // ---- The text, directly -----------------------------------------------------------------------------------------
    std::int64_t keys(std::int64_t b) const {
        return lengths.empty() ? args.max_kv : lengths[static_cast<std::size_t>(b)];
    }
    std::int64_t heads_out() { return constant(scalar.out[0].shape[1]); }
    std::int64_t constant(Expr e) { return direct(0).integer(e); }

    PointEvaluator direct(std::int64_t b) {
        PointEvaluator e;
        e.pool = scalar.pool.get();
        const bool tail = request.rows == Request::Rows::Tail;
        e.dim = [this, b, tail](int d) -> std::int64_t {
            switch (d) {
            case dims::B:
            case dims::kB:
            case dims::vB: return args.requests;
            case dims::Hq: return request.heads > 0 ? request.heads : args.heads_q;
            case dims::Hk:
            case dims::Hv: return request.heads > 0 ? request.heads / request.group : args.heads_kv;
            case dims::Sq: return tail ? keys(b) : args.max_q;
            case dims::Sk:
            case dims::vS: return keys(b);
            case dims::D:
            case dims::kD: return request.head_dim;
            case dims::Dv: return request.head_dim_v;
            default: return args.operand[slot(dims::input(d))].size[dims::axis(d)];
            }
        };
        e.load = [this, b, tail](Expr x, std::span<const std::int64_t> at) {
            const auto clamp = [](std::int64_t i, std::int64_t n) { return std::clamp<std::int64_t>(i, 0, n - 1); };
            if (x->number > 2) {
                const abi::cb_operand& o = args.operand[slot(x->number)];
                std::int64_t offset = o.begin != nullptr ? o.begin[b] : b * o.per_request;
                for (std::size_t k = 0; k < at.size(); ++k) {
                    if (o.size[k] == 0) return 0.0;
                    offset += clamp(at[k], o.size[k]) * o.stride[k];
                }
                return host_element(o.data, scalar.inputs[static_cast<std::size_t>(x->number)].dtype, offset);
            }
            const abi::cb_tensor& t = x->number == 0 ? args.q : x->number == 1 ? args.k : args.v;
            const std::int64_t h = at[1] - (x->number == 0 ? args.head_begin : args.head_begin / request.group);
            const std::int64_t rows = x->number == 0 ? args.max_q : keys(b);
            const std::int64_t row = at[2] - (x->number == 0 && tail ? keys(b) - args.max_q : 0);
            if (rows == 0) return 0.0;
            const double v =
                host_element(t.data, x->number == 0 ? request.q_dtype : request.kv_dtype,
                             at[0] * t.outer + clamp(h, x->number == 0 ? args.heads_q : args.heads_kv) * t.head +
                                 clamp(row, rows) * t.row + at[3]);
            const abi::cb_scale& s = x->number == 1 ? args.k_scale : args.v_scale;
            return x->number == 0 || s.data == nullptr ? v
                                                       : v * static_cast<double>(s.data[b * s.request + h * s.head]);
        };
        e.arg = [this, b](Expr x) {
            const abi::cb_operand& o = args.operand[slot(x->number)];
            return o.data == nullptr ? o.value
                                     : host_element(o.data, scalar.inputs[static_cast<std::size_t>(x->number)].dtype,
                                                    b * o.per_request);
        };
        return e;
    }

    /// o, then lse, as run() lays them out.
    HostResult reference() {
        HostResult r;
        const bool tail = request.rows == Request::Rows::Tail;
        const Expr lse_text = scalar.out.size() > 1 ? scalar.out[1].body : options.lse;
        const double inf = HUGE_VAL;
        for (std::int64_t b = 0; b < args.requests; ++b)
            for (std::int64_t h = 0; h < local_heads_out(); ++h)
                for (std::int64_t t = 0; t < args.max_q; ++t) {
                    PointEvaluator e = direct(b);
                    const std::int64_t i = tail ? t + keys(b) - args.max_q : t;
                    e.index = {b, h + args.head_begin * local_heads_out() / args.heads_q, i, 0};
                    bool none = i < 0;
                    if (!none && request.empty_rows == Request::EmptyRows::Zero)
                        none = e.value(options.row_is_empty) != 0;
                    for (std::int64_t d = 0; d < request.head_dim_v; ++d) {
                        e.index[3] = d;
                        r.o.push_back(none ? 0 : e.value(scalar.out[0].body));
                    }
                    if (request.lse == Request::Lse::None) continue;
                    const double unit = request.lse == Request::Lse::Log2 ? 1.4426950408889634 : 1;
                    r.lse.push_back(none ? -inf : unit * e.value(lse_text));
                }
        return r;
    }
    std::int64_t local_heads_out() {
        return heads_out() * args.heads_q / (request.heads > 0 ? request.heads : args.heads_q);
    }

    /// Where a kernel writes: contiguous, with guards of its own.
    struct Output {
        std::vector<unsigned char> o, lse;
    };
    Output output_buffers() {
        Output out;
        const std::int64_t rows = args.requests * local_heads_out() * args.max_q;
        out.o.assign(static_cast<std::size_t>(rows * request.head_dim_v * size_in_bytes(request.o_dtype)), 0xff);
        out.lse.assign(static_cast<std::size_t>(rows * 8), 0xff);
        args.o = {out.o.data(), local_heads_out() * args.max_q * request.head_dim_v, request.head_dim_v,
                  args.max_q * request.head_dim_v};
        args.lse = {out.lse.data(), local_heads_out() * args.max_q, 1, args.max_q};
        return out;
    }
    HostResult read(const Output& out) {
        HostResult r;
        const std::int64_t rows = args.requests * local_heads_out() * args.max_q;
        for (std::int64_t k = 0; k < rows * request.head_dim_v; ++k)
            r.o.push_back(host_element(out.o.data(), request.o_dtype, k));
        const DType lse = request.o_dtype == DType::F64 ? DType::F64 : DType::F32;
        if (request.lse != Request::Lse::None)
            for (std::int64_t k = 0; k < rows; ++k) r.lse.push_back(host_element(out.lse.data(), lse, k));
        return r;
    }

private:
    int slot(int x) const {
        int s = -1;
        for (int k = 3; k <= x; ++k) s += scalar.inputs[static_cast<std::size_t>(k)].fate <= Input::Fate::Bound ? 1 : 0;
        return s;
    }
    std::vector<unsigned char>& memory(std::size_t bytes) {
        buffers_.emplace_back(std::max<std::size_t>(bytes, 1), static_cast<unsigned char>(0));
        return buffers_.back();
    }
    void tensor(abi::cb_tensor& t, DType type, int heads, int rows, int columns, bool wild, bool by_length) {
        const std::int64_t width = wild ? columns + 3 : columns;
        const std::int64_t n = args.requests * heads * rows * width;
        auto& buffer = memory(static_cast<std::size_t>(n * size_in_bytes(type)));
        t.data = buffer.data();
        t.row = wild ? width * heads : width; // [b, row, head] or [b, head, row]
        t.head = wild ? width : width * rows;
        t.outer = width * heads * rows;
        std::normal_distribution<double> normal;
        std::vector<double> some; // narrow types are slow to encode: a few values do
        for (int k = 0; k < 61; ++k) some.push_back(is_float(type) ? normal(random) : std::round(4 * normal(random)));
        std::size_t next = random() % 61;
        if (wild && is_float(type))
            for (std::int64_t k = 0; k < n; ++k) store_element(t.data, type, k, std::nan(""));
        for (std::int64_t b = 0; b < args.requests; ++b)
            for (std::int64_t h = 0; h < heads; ++h)
                for (std::int64_t r = 0; r < (by_length ? std::min<std::int64_t>(keys(b), rows) : rows); ++r)
                    for (std::int64_t c = 0; c < columns; ++c, next = (next * 7 + 3 + static_cast<std::size_t>(c)) % 61)
                        store_element(t.data, type, b * t.outer + h * t.head + r * t.row + c, some[next]);
    }
    std::deque<std::vector<unsigned char>> buffers_;
};

/// Equal up to `tolerance` relative to the larger of 1 and the value; NaN and inf in the same places.
inline ::testing::AssertionResult near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
    if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " values against " << b.size();
    for (std::size_t k = 0; k < a.size(); ++k) {
        const bool same = (a[k] != a[k] && b[k] != b[k]) || a[k] == b[k] ||
                          std::fabs(a[k] - b[k]) <= tolerance * std::max(1.0, std::fabs(b[k]));
        if (!same) return ::testing::AssertionFailure() << "at " << k << ": " << a[k] << " against " << b[k];
    }
    return ::testing::AssertionSuccess();
}

} // namespace cubridge::ir::generic::test
