// Laying out, poisoning and reading back. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/image.h"
#include "runtime/check/rounding.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace cubridge::runtime {

namespace {

using ir::Array;
using ir::DType;

constexpr std::int64_t kGuard = 256; // bytes before and after everything
constexpr std::byte kGuardFill{0xC3};
constexpr std::byte kNoNumber{0xFF}; // all ones is a NaN in every floating type, and -1 as an integer
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Lay written_lay(Lay lay) {
    return lay == Lay::SharedBatch ? Lay::Heads : lay == Lay::SharedHeads ? Lay::Rows : lay;
}

} // namespace

template <class F> void Image::each(const Placed& p, F f) {
    const std::size_t outer = p.shape.empty() ? 0 : p.shape.size() - 1; // the last axis is a loop of its own
    const std::int64_t size = ir::size_in_bytes(p.dtype), width = p.shape.empty() ? 1 : p.shape.back(),
                       step = p.shape.empty() ? 0 : p.stride.back() * size;
    std::int64_t rows = 1;
    for (std::size_t a = 0; a < outer; ++a) rows *= p.shape[a];
    std::vector<std::int64_t> at(outer, 0);
    for (std::int64_t k = 0; k < rows; ++k) {
        std::int64_t offset = 0;
        for (std::size_t a = 0; a < outer; ++a) offset += at[a] * p.stride[a];
        offset = p.at + offset * size;
        for (std::int64_t c = 0; c < width; ++c)
            f(static_cast<std::size_t>(k * width + c), static_cast<std::size_t>(offset + c * step));
        for (std::size_t a = outer; a-- > 0;) {
            if (++at[a] < p.shape[a]) break;
            at[a] = 0;
        }
    }
}

std::int64_t Image::reserve(std::int64_t bytes, std::byte fill, const char* name) {
    const std::int64_t at = static_cast<std::int64_t>(bytes_.size()) + kGuard;
    zones_.emplace_back(at - kGuard, std::string("before ") + name);
    zones_.emplace_back(at, name);
    zones_.emplace_back(at + bytes, std::string("behind ") + name);
    const std::int64_t end = (at + bytes + kGuard + 255) / 256 * 256;
    bytes_.resize(static_cast<std::size_t>(end), kGuardFill);
    std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at), bytes, fill);
    return at;
}

// [B, H, S, D]
Image::Placed Image::strided(std::vector<std::int64_t> shape, DType dtype, Lay lay, const char* name, bool output) {
    const std::int64_t B = shape[0], H = shape[1], S = shape[2], D = shape[3];
    Placed p{dtype, std::move(shape), {H * S * D, S * D, D, 1}, -1, 0};
    if (lay == Lay::Rows) p.stride = {S * H * D, D, H * D, 1};
    if (lay == Lay::Padded) p.stride = {(H + 1) * (S + 3) * (D + 16), (S + 3) * (D + 16), D + 16, 1};
    if (lay == Lay::SharedBatch) p.stride[0] = 0;
    if (lay == Lay::SharedHeads) p.stride = {S * D, 0, D, 1};
    // As far as the strides reach, and for padded ones to the end of the padding.
    const std::int64_t elements = lay == Lay::Padded        ? B * p.stride[0]
                                  : lay == Lay::SharedBatch ? H * S * D
                                  : lay == Lay::SharedHeads ? B * S * D
                                                            : B * H * S * D;
    p.extent = elements * ir::size_in_bytes(dtype);
    p.at = reserve(p.extent, output ? std::byte{0} : kNoNumber, name);
    return p;
}

void Image::write(const Placed& to, const Array& from) {
    each(to, [&](std::size_t n, std::size_t offset) { encode(from.values[n], to.dtype, &bytes_[offset]); });
}

// Rows behind a request's length hold NaN, unless another request shares them.
void Image::blank_rows(const Placed& to, const Case& c) {
    std::int64_t longest = 0;
    for (std::int64_t b = 0; b < c.B; ++b) longest = std::max(longest, c.length(b));
    const std::int64_t per_batch = to.shape[1] * to.shape[2] * to.shape[3];
    each(to, [&](std::size_t n, std::size_t offset) {
        const auto at = static_cast<std::int64_t>(n);
        const std::int64_t row = at / to.shape[3] % to.shape[2], b = at / per_batch;
        if (row >= (to.stride[0] == 0 ? longest : c.length(b))) encode(kNaN, to.dtype, &bytes_[offset]);
    });
}

void Image::operands(const ir::Specification& specification, const Case& c, const std::vector<ir::Argument>& inputs,
                     const ir::launch::Plan& plan) {
    const auto& known = specification.inputs();
    for (const ir::launch::Operand& o : plan.operands) {
        Operand out;
        out.value = o.value;
        std::size_t k = 0;
        while (k < known.size() && known[k].name != o.name) ++k;
        const Array* given = k < known.size() && inputs[k] ? &*inputs[k] : nullptr;
        if (given != nullptr && o.rank == 0) out.value = given->values[0];
        if (given != nullptr && (o.rank > 0 || (c.operands_apart && !o.bound))) {
            Placed p{o.dtype, given->shape, std::vector<std::int64_t>(given->shape.size()), -1, 0};
            // What is copied in pieces has whole pieces everywhere, and its last axis without gaps.
            const std::int64_t piece = std::max(1, o.alignment / ir::size_in_bytes(o.dtype));
            std::int64_t step = c.operands_apart && o.alignment == 0 ? 2 : 1;
            for (std::size_t a = p.shape.size(); a-- > 0;) {
                p.stride[a] = step;
                step *= std::max<std::int64_t>(1, p.shape[a]);
                if (c.operands_apart) step += 3;
                step = (step + piece - 1) / piece * piece;
            }
            p.extent = std::max<std::int64_t>(1, step) * ir::size_in_bytes(o.dtype);
            p.at = reserve(p.extent, kNoNumber, o.name.c_str());
            write(p, *given);
            out.placed = std::move(p);
        }
        operands_.push_back(std::move(out));
    }
}

Image::Image(const ir::Specification& specification, const Unit& unit, const Case& c,
             const std::vector<ir::Argument>& inputs, const ir::launch::Plan& plan,
             const std::vector<std::int64_t>& out_shape)
    : case_(c) {
    const ir::Request& r = unit.request;
    q_ = strided(inputs[0]->shape, r.q_dtype, c.q, "q", false);
    write(q_, *inputs[0]);
    k_ = strided(inputs[1]->shape, r.kv_dtype, c.kv, "k", false);
    write(k_, *inputs[1]);
    if (inputs[2]) {
        v_ = strided(inputs[2]->shape, r.kv_dtype, c.kv, "v", false);
        write(v_, *inputs[2]);
    }
    if (!c.kv_len.empty()) {
        blank_rows(k_, c);
        if (inputs[2]) blank_rows(v_, c);
        lengths_ = reserve(4 * c.B, kNoNumber, "seq_lens_k");
        for (std::int64_t b = 0; b < c.B; ++b)
            encode(static_cast<double>(c.length(b)), DType::I32, &bytes_[static_cast<std::size_t>(lengths_ + 4 * b)]);
    }
    operands(specification, c, inputs, plan);
    o_ = strided(out_shape, r.o_dtype, written_lay(c.q), "o", true);
    if (plan.writes_lse) {
        lse_ = strided({out_shape[0], out_shape[1], out_shape[2], 1}, r.o_dtype == DType::F64 ? DType::F64 : DType::F32,
                       written_lay(c.q), "lse", true);
    }
    kept_.assign(bytes_.size(), std::byte{0xFF});
    for (const Placed* p : {&o_, &lse_})
        if (p->at >= 0)
            each(*p, [&](std::size_t, std::size_t offset) {
                std::fill_n(kept_.begin() + static_cast<std::ptrdiff_t>(offset), ir::size_in_bytes(p->dtype),
                            std::byte{0});
            });
}

void Image::poison(std::byte pattern) {
    for (const Placed* p : {&o_, &lse_})
        if (p->at >= 0) std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(p->at), p->extent, pattern);
}

ir::abi::cb_args Image::bind(std::uint64_t address, std::uint64_t workspace) const {
    const auto pointer = [&](std::int64_t at) {
        return at < 0 ? nullptr : reinterpret_cast<void*>(address + static_cast<std::uint64_t>(at));
    };
    const auto tensor = [&](const Placed& p) -> ir::abi::cb_tensor {
        if (p.at < 0) return {};
        return {pointer(p.at), p.stride[0], p.stride[2], p.stride[1]};
    };
    ir::abi::cb_args a{};
    a.q = tensor(q_);
    a.k = tensor(k_);
    a.v = tensor(v_);
    a.o = tensor(o_);
    a.lse = tensor(lse_);
    for (std::size_t k = 0; k < operands_.size() && k < static_cast<std::size_t>(ir::abi::kMaxOperands); ++k) {
        const Operand& o = operands_[k];
        a.operand[k].data = pointer(o.placed.at);
        a.operand[k].value = o.value;
        for (std::size_t axis = 0; axis < o.placed.shape.size(); ++axis) {
            a.operand[k].size[axis] = o.placed.shape[axis];
            a.operand[k].stride[axis] = o.placed.stride[axis];
        }
    }
    a.requests = static_cast<int>(case_.B);
    a.heads_q = static_cast<int>(case_.Hq);
    a.heads_kv = static_cast<int>(case_.Hk);
    a.max_q = static_cast<int>(case_.Sq);
    a.max_kv = static_cast<int>(case_.Sk);
    a.total_q = static_cast<int>(case_.B * case_.Sq);
    a.seq_lens_k = static_cast<const int*>(pointer(lengths_));
    a.workspace = reinterpret_cast<void*>(workspace);
    return a;
}

ir::launch::Sizes Image::sizes(int multiprocessors) const {
    using ir::launch::Size;
    ir::launch::Sizes s;
    s[Size::Requests] = case_.B;
    s[Size::HeadsQ] = case_.Hq;
    s[Size::HeadsKv] = case_.Hk;
    s[Size::MaxQ] = case_.Sq;
    s[Size::MaxKv] = case_.Sk;
    s[Size::TotalQ] = case_.B * case_.Sq;
    s[Size::SmCount] = multiprocessors;
    for (const Operand& o : operands_) {
        std::array<std::int64_t, 4> size{};
        for (std::size_t a = 0; a < o.placed.shape.size() && a < 4; ++a) size[a] = o.placed.shape[a];
        s.operand.push_back(size);
    }
    return s;
}

std::string Image::disturbed(const std::vector<std::byte>& after) const {
    std::byte any{0}; // first all at once: millions of bytes, and none is changed by a kernel that is right
    for (std::size_t n = 0; n < bytes_.size(); ++n) any |= (bytes_[n] ^ after[n]) & kept_[n];
    if (any == std::byte{0}) return "";
    for (std::size_t n = 0; n < bytes_.size(); ++n) {
        if (((bytes_[n] ^ after[n]) & kept_[n]) == std::byte{0}) continue;
        std::string zone;
        std::int64_t begin = 0;
        for (const auto& [at, name] : zones_)
            if (at <= static_cast<std::int64_t>(n)) zone = name, begin = at;
        return fmt::format("the launch changed byte {} {}{}", static_cast<std::int64_t>(n) - begin,
                           zone.compare(0, 3, "beh") == 0 || zone.compare(0, 3, "bef") == 0 ? "" : "of ", zone);
    }
    return "";
}

std::string Image::unequal(const std::vector<std::byte>& one, std::byte first, const std::vector<std::byte>& two,
                           std::byte second) const {
    std::string wrong;
    for (const Placed* p : {&o_, &lse_}) {
        if (p->at < 0) continue;
        const auto size = static_cast<std::size_t>(ir::size_in_bytes(p->dtype));
        const char* name = p == &o_ ? "o" : "lse";
        each(*p, [&](std::size_t n, std::size_t offset) {
            if (!wrong.empty() || std::memcmp(&one[offset], &two[offset], size) == 0) return;
            bool untouched = true;
            for (std::size_t k = 0; k < size; ++k)
                untouched = untouched && one[offset + k] == first && two[offset + k] == second;
            wrong = fmt::format("element {} of {} {}", n, name,
                                untouched ? "was not written" : "differs between two launches");
        });
    }
    return wrong;
}

Outputs Image::outputs(const std::vector<std::byte>& after) const {
    const auto read = [&](const Placed& p) {
        Array a{DType::F64, p.shape, {}};
        if (p.at < 0) return a;
        each(p, [&](std::size_t, std::size_t offset) { a.values.push_back(decode(&after[offset], p.dtype)); });
        return a;
    };
    Outputs out{read(o_), read(lse_)};
    if (lse_.at >= 0) out.lse.shape.pop_back();
    return out;
}

} // namespace cubridge::runtime
