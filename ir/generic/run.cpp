// SPDX-License-Identifier: Apache-2.0
#include "ir/generic/run.h"
#include "ir/generic/evaluate.h"
#include "ir/generic/steps.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace cubridge::ir::generic {
namespace {

template <class T> double read(const void* data, std::int64_t i) {
    T v;
    std::memcpy(&v, static_cast<const char*>(data) + i * static_cast<std::int64_t>(sizeof v), sizeof v);
    return static_cast<double>(v);
}

double narrow(unsigned code, int fraction, int exponent, bool ieee) {
    const int bias = (1 << (exponent - 1)) - 1;
    const unsigned m = code & ((1u << fraction) - 1), e = (code >> fraction) & ((1u << exponent) - 1);
    const double sign = (code >> (fraction + exponent)) != 0 ? -1 : 1;
    if (e == (1u << exponent) - 1) {
        if (ieee)
            return m != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
        if (m == (1u << fraction) - 1) return std::numeric_limits<double>::quiet_NaN();
    }
    return sign * std::ldexp(e == 0 ? m : m + (1u << fraction), (e == 0 ? 1 : static_cast<int>(e)) - bias - fraction);
}

class Runner {
public:
    Runner(Program program, const abi::cb_args& args) : program_(std::move(program)), p_(program_.prepared), a_(args) {
        eval_.pool = p_.pool.get();
        eval_.dim = [this](int d) { return dim(d); };
        eval_.load = [this](Expr e, std::span<const std::int64_t> at) { return load(e, at); };
        eval_.arg = [this](Expr e) { return e->number >= kStep ? stored(e, {}) : argument(e); };
        tables_.resize(program_.steps.size());
    }

    HostResult run() {
        for (std::size_t k = 0; k < program_.steps.size(); ++k)
            if (!program_.steps[k].per_row) prologue(k);
        HostResult r;
        const std::int64_t heads = p_.heads.out * dim(kUnits), columns = p_.request.head_dim_v;
        r.o.assign(static_cast<std::size_t>(a_.requests * heads * a_.max_q * columns), 0);
        if (program_.lse != nullptr) r.lse.assign(static_cast<std::size_t>(a_.requests * heads * a_.max_q), 0);
        std::size_t at = 0;
        for (eval_.index[0] = 0; eval_.index[0] < a_.requests; ++eval_.index[0])
            for (eval_.index[1] = 0; eval_.index[1] < heads; ++eval_.index[1])
                for (eval_.index[2] = 0; eval_.index[2] < a_.max_q; ++eval_.index[2], ++at)
                    row(&r.o[at * static_cast<std::size_t>(columns)], r.lse.empty() ? nullptr : &r.lse[at]);
        return r;
    }

private:
    std::int64_t dim(int d) const {
        const auto b = eval_.index[0];
        switch (d) {
        case dims::B: return a_.requests;
        case dims::Sq: return a_.max_q;
        case dims::Sk: return a_.seq_lens_k != nullptr ? a_.seq_lens_k[b] : a_.max_kv;
        case kUnits: return a_.heads_kv / p_.heads.k;
        case kFirstUnit: return a_.head_begin / p_.heads.q;
        default: return operand(dims::input(d)).size[dims::axis(d)];
        }
    }

    const abi::cb_operand& operand(int input) const { return a_.operand[p_.slot.at(static_cast<std::size_t>(input))]; }

    double argument(Expr e) const {
        const abi::cb_operand& o = operand(e->number);
        return o.data == nullptr ? o.value : host_element(o.data, type_of(e->number), begin(o));
    }

    std::int64_t begin(const abi::cb_operand& o) const {
        const auto b = eval_.index[0];
        return o.begin != nullptr ? o.begin[b] : b * o.per_request;
    }

    DType type_of(int input) const { return p_.inputs[static_cast<std::size_t>(input)].dtype; }

    double load(Expr e, std::span<const std::int64_t> at) const {
        if (e->number >= kStep) return stored(e, at);
        const auto clamp = [](std::int64_t i, std::int64_t n) {
            return std::clamp<std::int64_t>(i, 0, std::max<std::int64_t>(n - 1, 0));
        };
        if (e->number > 2) {
            const abi::cb_operand& o = operand(e->number);
            std::int64_t offset = begin(o);
            for (std::size_t k = 0; k < at.size(); ++k) {
                if (o.size[k] <= 0) return 0;
                offset += clamp(at[k], o.size[k]) * o.stride[k];
            }
            return host_element(o.data, type_of(e->number), offset);
        }
        const abi::cb_tensor& t = e->number == 0 ? a_.q : e->number == 1 ? a_.k : a_.v;
        const std::int64_t heads = e->number == 0 ? p_.heads.q : e->number == 1 ? p_.heads.k : p_.heads.v;
        const std::int64_t rows = dim(e->number == 0 ? dims::Sq : dims::Sk), b = clamp(at[0], a_.requests);
        const std::int64_t h = clamp(at[1], heads * dim(kUnits));
        if (rows <= 0) return 0;
        const double x = host_element(t.data, e->number == 0 ? p_.request.q_dtype : p_.request.kv_dtype,
                                      b * t.outer + h * t.head + clamp(at[2], rows) * t.row +
                                          clamp(at[3], e->number == 2 ? p_.request.head_dim_v : p_.request.head_dim));
        const abi::cb_scale& s = e->number == 1 ? a_.k_scale : a_.v_scale;
        return e->number == 0 || s.data == nullptr ? x : x * static_cast<double>(s.data[b * s.request + h * s.head]);
    }

    /// Tables are kept by position, not by stride: what a kernel never writes is missed here, not read as 0.
    using Key = std::vector<std::int64_t>;
    Key key(const Step& s, std::span<const std::int64_t> at, std::int64_t divisor) const {
        Key k(at.begin(), at.end());
        if (s.over_request) k.push_back(eval_.index[0]);
        if (s.over_head) k.push_back(eval_.index[1] / (s.head_divisor / divisor));
        return k;
    }

    double stored(Expr e, std::span<const std::int64_t> at) const {
        const auto n = static_cast<std::size_t>(e->number - kStep);
        const auto it = tables_[n].find(key(program_.steps[n], at, divisor_));
        if (it == tables_[n].end())
            fail("unsupported", "step " + std::to_string(n) + " is read where it was not computed");
        return it->second;
    }

    double element(const Step& s) {
        if (!s.reduces) return eval_.value(s.body);
        double r = reduced_none(s.op, s.type);
        const std::int64_t end = eval_.integer(s.extent);
        auto& x = eval_.index[static_cast<std::size_t>(s.variable)];
        for (x = 0; x < end; ++x) r = reduced(s.op, r, eval_.value(s.body));
        return r;
    }

    void fill(std::size_t n, std::size_t parameter, Key& at, std::int64_t divisor) {
        const Step& s = program_.steps[n];
        if (parameter == s.extents.size()) {
            const double v = element(s);
            tables_[n][key(s, at, divisor)] = v;
            return;
        }
        const std::int64_t end = eval_.integer(s.extents[parameter]);
        for (std::int64_t x = 0; x < end; ++x) {
            eval_.index[kFirstParameter + parameter] = x;
            at.push_back(x);
            fill(n, parameter + 1, at, divisor);
            at.pop_back();
        }
    }

    void prologue(std::size_t n) {
        const Step& s = program_.steps[n];
        const std::int64_t heads = s.over_head ? (p_.heads.out * dim(kUnits) + s.head_divisor - 1) / s.head_divisor : 1;
        divisor_ = s.head_divisor;
        for (std::int64_t b = 0; b < a_.requests; ++b)
            for (std::int64_t h = 0; h < heads; ++h) {
                eval_.index[0] = b, eval_.index[1] = h;
                Key at;
                fill(n, 0, at, s.head_divisor);
            }
        divisor_ = 1;
    }

    void row(double* o, double* lse) {
        const double none = -std::numeric_limits<double>::infinity();
        const bool tail = p_.request.rows == Request::Rows::Tail;
        if (tail && eval_.index[2] + dim(dims::Sk) - dim(dims::Sq) < 0) {
            if (lse != nullptr) *lse = none;
            return;
        }
        for (std::size_t k = 0; k < program_.steps.size(); ++k) {
            if (!program_.steps[k].per_row) continue;
            tables_[k].clear();
            Key at;
            fill(k, 0, at, 1);
        }
        const bool empty = program_.empty != nullptr && eval_.value(program_.empty) != 0;
        for (eval_.index[3] = 0; eval_.index[3] < p_.request.head_dim_v; ++eval_.index[3])
            o[eval_.index[3]] = empty ? 0 : eval_.value(program_.out);
        if (lse == nullptr) return;
        *lse = empty ? none : eval_.value(program_.lse);
        if (p_.request.lse == Request::Lse::Log2) *lse *= 1.4426950408889634;
    }

    struct Hash {
        std::size_t operator()(const Key& k) const {
            std::size_t h = 14695981039346656037u;
            for (const auto x : k) h = (h ^ static_cast<std::size_t>(x)) * 1099511628211u;
            return h;
        }
    };
    Program program_;
    const Prepared& p_;
    const abi::cb_args& a_;
    PointEvaluator eval_;
    std::vector<std::unordered_map<Key, double, Hash>> tables_;
    std::int64_t divisor_ = 1;
};

} // namespace

double host_element(const void* data, DType t, std::int64_t i) {
    switch (t) {
    case DType::Bool: return read<unsigned char>(data, i) != 0;
    case DType::U8: return read<std::uint8_t>(data, i);
    case DType::I8: return read<std::int8_t>(data, i);
    case DType::I16: return read<std::int16_t>(data, i);
    case DType::I32: return read<std::int32_t>(data, i);
    case DType::I64: return read<std::int64_t>(data, i);
    case DType::E4M3: return narrow(static_cast<unsigned>(read<std::uint8_t>(data, i)), 3, 4, false);
    case DType::E5M2: return narrow(static_cast<unsigned>(read<std::uint8_t>(data, i)), 2, 5, true);
    case DType::F16: return narrow(static_cast<unsigned>(read<std::uint16_t>(data, i)), 10, 5, true);
    case DType::BF16: return narrow(static_cast<unsigned>(read<std::uint16_t>(data, i)), 7, 8, true);
    case DType::F32: return read<float>(data, i);
    case DType::F64: break;
    }
    return read<double>(data, i);
}

Result<HostResult> run(const Scalar& scalar, const Request& request, const Options& options, const abi::cb_args& args) {
    try {
        if (request.layout != Request::Layout::Dense) fail("unsupported", "only the dense layout runs on the host");
        return Runner(plan_steps(prepare(scalar, request, options)), args).run();
    } catch (const Failure& f) {
        return f.error;
    }
}

} // namespace cubridge::ir::generic
