// Ranges of a request's fields.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/registry/admit.h"
#include "cubridge/runtime/why.h"
#include <bit>
#include <cctype>
#include <cstring>
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

constexpr std::array<ir::DType, 10> kTypes = {ir::DType::BF16, ir::DType::F16,  ir::DType::BF16, ir::DType::F32,
                                              ir::DType::E4M3, ir::DType::E5M2, ir::DType::I8,   ir::DType::I32,
                                              ir::DType::I64,  ir::DType::Bool};

ir::DType type_of(std::int32_t number) {
    return kTypes[static_cast<std::size_t>(number)];
}

Verdict misuse(const char* field, std::int64_t value, const char* wanted) {
    return {Status::Misuse, fmt::format("request.{} is {}: {}", field, value, wanted)};
}

/// "sm_" digits, then at most one letter.
bool is_arch(std::string_view arch) {
    if (!arch.starts_with("sm_")) return false;
    arch.remove_prefix(3);
    if (!arch.empty() && (arch.back() == 'a' || arch.back() == 'f')) arch.remove_suffix(1);
    if (arch.empty() || arch.size() > 4) return false;
    for (const char c : arch)
        if (c < '0' || c > '9') return false;
    return true;
}

} // namespace

std::string arch_of(const Query& query) {
    return {query.arch.data(), strnlen(query.arch.data(), query.arch.size())};
}

Verdict admit(const Query& q, std::uint32_t& reasons, std::string& why) {
    struct Range {
        const char* field;
        std::int64_t value, least, most;
    };
    const Range ranges[] = {{"device", q.device, -1, 1023},
                            {"q_dtype", q.q_dtype, 1, 9},
                            {"kv_dtype", q.kv_dtype, 1, 9},
                            {"o_dtype", q.o_dtype, 1, 9},
                            {"head_dim", q.head_dim, 1, 65536},
                            {"head_dim_v", q.head_dim_v, 1, 65536},
                            {"group", q.group, 1, 65536},
                            {"heads", q.heads, 0, 1 << 20},
                            {"layout", q.layout, 0, 2},
                            {"page_size", q.page_size, 0, 1 << 20},
                            {"phase", q.phase, 0, 2},
                            {"rows", q.rows, 0, 1},
                            {"empty_rows", q.empty_rows, 0, 1},
                            {"lse", q.lse, 0, 2},
                            {"alignment", q.alignment, 1, 4096},
                            {"flags", q.flags, 0, 1}};
    for (const auto& r : ranges)
        if (r.value < r.least || r.value > r.most)
            return misuse(r.field, r.value, fmt::format("{} to {} are known", r.least, r.most).c_str());
    if (!std::has_single_bit(static_cast<unsigned>(q.alignment)))
        return misuse("alignment", q.alignment, "a power of two is wanted");
    if (q.heads % q.group != 0) return misuse("heads", q.heads, "it must be a multiple of group");
    if (q.layout != 2 && q.page_size != 0) return misuse("page_size", q.page_size, "only the paged layout has pages");
    if (q.layout == 2 && q.page_size == 0) return misuse("page_size", q.page_size, "the paged layout needs it");
    const std::string arch = arch_of(q);
    if (arch.size() == q.arch.size() || (!arch.empty() && !is_arch(arch)))
        return {Status::Misuse, "request.arch is no architecture: \"sm_90a\" is one"};
    if (arch.empty() && q.device < 0) return {Status::Misuse, "request.arch must be set where request.device is -1"};

    const auto refuse = [&](std::uint32_t bit, const std::string& text) {
        reasons |= bit;
        why += fmt::format("{}{}: {}", why.empty() ? "" : "\n", why::names(bit), text);
    };
    for (const auto type : {q.q_dtype, q.kv_dtype, q.o_dtype})
        if (!ir::is_float(type_of(type)) && (reasons & why::kDtype) == 0)
            refuse(why::kDtype, fmt::format("{} is no type of q, k, v or o", ir::short_name(type_of(type))));
    if (q.layout != 0) refuse(why::kLayout, "only the dense layout is built in this version");
    if (q.text->specification().heads() != 0 && q.heads == 0)
        refuse(why::kHeads, "the text computes with the number of query heads: set request.heads");
    return {};
}

ir::Request request_of(const Query& q, const std::string& arch) {
    ir::Request r;
    r.q_dtype = type_of(q.q_dtype), r.kv_dtype = type_of(q.kv_dtype), r.o_dtype = type_of(q.o_dtype);
    r.head_dim = q.head_dim, r.head_dim_v = q.head_dim_v;
    r.group = q.group;
    r.heads = q.text->specification().heads() != 0 ? q.heads : 0;
    r.layout = static_cast<ir::Request::Layout>(q.layout);
    r.page_size = q.page_size;
    r.phase = static_cast<ir::Request::Phase>(q.phase);
    r.rows = static_cast<ir::Request::Rows>(q.rows);
    r.empty_rows = static_cast<ir::Request::EmptyRows>(q.empty_rows);
    r.lse = static_cast<ir::Request::Lse>(q.lse);
    r.alignment = q.alignment;
    r.flags = q.flags;
    r.arch = arch;
    return r;
}

} // namespace cubridge::runtime
