// Checks of a launch.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/check.h"
#include <climits>
#include <cmath>
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

using ir::abi::cb_operand;
using ir::abi::cb_tensor;
using ir::launch::Condition;

Verdict misuse(std::string message) {
    return {Status::Misuse, std::move(message)};
}
Verdict unsupported(std::string message) {
    return {Status::Unsupported, std::move(message)};
}

/// A stride along an axis of one element is never used, and frameworks put anything there.
Verdict check_tensor(const char* name, const cb_tensor& t, int element, int alignment, std::int64_t outer,
                     std::int64_t rows, std::int64_t heads) {
    if (outer == 0 || rows == 0 || heads == 0) return {};
    if (t.data == nullptr) return misuse(fmt::format("args.{}.data is NULL", name));
    if (reinterpret_cast<std::uintptr_t>(t.data) % static_cast<unsigned>(alignment) != 0)
        return unsupported(fmt::format("args.{}.data is not aligned to the request's {} bytes", name, alignment));
    const auto stride = [&](const char* axis, std::int64_t value, std::int64_t size) -> Verdict {
        // Bytes of a stride, modulo the alignment: the product itself may not fit.
        if (size <= 1 || value % alignment * element % alignment == 0) return {};
        return unsupported(
            fmt::format("args.{}.{} = {} elements is not a multiple of the request's alignment, {} bytes", name, axis,
                        value, alignment));
    };
    if (auto v = stride("outer", t.outer, outer); !v) return v;
    if (auto v = stride("row", t.row, rows); !v) return v;
    return stride("head", t.head, heads);
}

Verdict check_value(const ir::launch::Operand& o, double value) {
    if (ir::is_float(o.dtype)) return {};
    const double most = o.dtype == ir::DType::Bool ? 1 : o.dtype == ir::DType::I32 ? INT32_MAX : 9007199254740992.0;
    if (std::trunc(value) == value && value <= most && value >= -most - 1) return {};
    return unsupported(
        fmt::format("operand {} is of type {}, which has no value {}", o.name, ir::short_name(o.dtype), value));
}

/// An operand whose rows are copied like those of k and v.
Verdict check_copied(const ir::launch::Operand& o, const cb_operand& given) {
    const int element = ir::size_in_bytes(o.dtype);
    const auto aligned = [&](std::int64_t elements) { return elements % o.alignment * element % o.alignment == 0; };
    if (reinterpret_cast<std::uintptr_t>(given.data) % static_cast<unsigned>(o.alignment) != 0 ||
        given.begin != nullptr || !aligned(given.per_request))
        return unsupported(fmt::format("operand {} or a request's copy of it is not aligned to {} bytes, which this "
                                       "kernel copies at a time",
                                       o.name, o.alignment));
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(o.rank); ++axis) {
        const bool last = axis + 1 == static_cast<std::size_t>(o.rank);
        const std::int64_t stride = given.stride[axis];
        if (given.size[axis] > 1 && !(last ? stride == 1 : aligned(stride)))
            return unsupported(fmt::format("the stride {} of operand {} along axis {} is not {}", stride, o.name, axis,
                                           last ? "1" : fmt::format("a multiple of {} bytes", o.alignment)));
    }
    return {};
}

Verdict check_operand(const ir::launch::Operand& o, const cb_operand& given, const ir::launch::Sizes& sizes) {
    if (given.data == nullptr && o.rank == 0) return check_value(o, given.value);
    bool empty = false;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(o.rank); ++axis) {
        const auto least = o.least[axis].evaluate(sizes);
        if (!least) return unsupported(fmt::format("the least size of operand {} overflows", o.name));
        const std::int64_t size = given.size[axis];
        if (size < 0) return misuse(fmt::format("operand {} has a negative size {}", o.name, size));
        empty = empty || size == 0;
        if (size < *least)
            return unsupported(fmt::format("operand {} has {} elements along axis {}, this launch reads {}", o.name,
                                           size, axis, *least));
    }
    if (given.data == nullptr && !empty)
        return misuse(fmt::format("operand {} is a tensor and its data is NULL", o.name));
    if (reinterpret_cast<std::uintptr_t>(given.data) % static_cast<unsigned>(ir::size_in_bytes(o.dtype)) != 0)
        return unsupported(fmt::format("the data of operand {} is not aligned to its elements", o.name));
    return o.alignment == 0 ? Verdict{} : check_copied(o, given);
}

Verdict check_condition(const Condition& c, const ir::launch::Sizes& sizes) {
    const auto left = c.left.evaluate(sizes), right = c.right.evaluate(sizes);
    if (!left || !right) return unsupported(fmt::format("the condition {} overflows for these sizes", c.text));
    const bool holds = c.kind == Condition::Kind::Equal     ? *left == *right
                       : c.kind == Condition::Kind::AtLeast ? *left >= *right
                                                            : *right != 0 && *left % *right == 0;
    if (holds) return {};
    return unsupported(fmt::format("the specification demands {}, this launch has {} and {}", c.text, *left, *right));
}

/// Fields that only other layouts read.
Verdict check_dense(const LaunchArgs& args) {
    const std::pair<const char*, const void*> fields[] = {{"cu_seqlens_q", args.cu_seqlens_q},
                                                          {"cu_seqlens_k", args.cu_seqlens_k},
                                                          {"first_k", args.first_k},
                                                          {"page_table", args.page_table},
                                                          {"page_begin", args.page_begin}};
    for (const auto& [name, value] : fields)
        if (value != nullptr) return misuse(fmt::format("args.{} is set, which the dense layout does not read", name));
    if (args.page_stride != 0) return misuse("args.page_stride is set, which the dense layout does not read");
    return {};
}

} // namespace

Verdict check_counts(const ir::Request& request, const LaunchArgs& args) {
    const std::pair<const char*, int> counts[] = {{"requests", args.requests},     {"heads_kv", args.heads_kv},
                                                  {"head_begin", args.head_begin}, {"total_q", args.total_q},
                                                  {"max_q", args.max_q},           {"max_kv", args.max_kv}};
    for (const auto& [name, value] : counts)
        if (value < 0) return misuse(fmt::format("args.{} is negative", name));
    if (args.heads_kv == 0) return misuse("args.heads_kv is not set");
    if (args.heads_kv > INT_MAX / request.group) return unsupported("heads_kv * group does not fit 32 bits");
    if (args.head_begin % request.group != 0)
        return misuse(fmt::format("args.head_begin = {} is no multiple of the group of {} heads", args.head_begin,
                                  request.group));
    if (args.flags > 3) return misuse("args.flags has bits that this library does not know");
    return {};
}

ir::launch::Sizes sizes_of(const ir::Request& request, const LaunchArgs& args, int multiprocessors) {
    using ir::launch::Size;
    ir::launch::Sizes sizes;
    const bool dense = request.layout == ir::Request::Layout::Dense;
    sizes[Size::Requests] = args.requests;
    sizes[Size::HeadsKv] = args.heads_kv;
    sizes[Size::HeadsQ] = std::int64_t{args.heads_kv} * request.group;
    sizes[Size::MaxQ] = args.max_q;
    sizes[Size::MaxKv] = args.max_kv;
    sizes[Size::TotalQ] = dense ? std::int64_t{args.requests} * args.max_q : args.total_q;
    sizes[Size::HeadBegin] = args.head_begin;
    sizes[Size::SmCount] = multiprocessors;
    return sizes;
}

Verdict check_launch(const ir::launch::Plan& plan, const ir::Request& request, const LaunchArgs& args,
                     const ir::launch::Sizes& sizes) {
    using ir::launch::Size;
    if (auto v = check_dense(args); !v) return v;
    const std::int64_t b = args.requests, rows = args.max_q, keys = args.max_kv;
    const std::int64_t heads = sizes[Size::HeadsQ], heads_kv = args.heads_kv;
    const int q = ir::size_in_bytes(request.q_dtype), kv = ir::size_in_bytes(request.kv_dtype);
    const int a = request.alignment;
    if (auto v = check_tensor("q", args.q, q, a, b, rows, heads); !v) return v;
    if (auto v = check_tensor("k", args.k, kv, a, b, keys, heads_kv); !v) return v;
    if (auto v = check_tensor("v", args.v, kv, a, b, keys, heads_kv); !v) return v;
    if (auto v = check_tensor("o", args.o, ir::size_in_bytes(request.o_dtype), a, b, rows, heads); !v) return v;
    if (plan.writes_lse)
        if (auto v = check_tensor("lse", args.lse, 4, 4, b, rows, heads); !v) return v;
    if (!plan.writes_lse && args.lse.data != nullptr)
        return misuse("args.lse is set, but the request asked for no LSE and the text returns none");

    std::size_t given = 0;
    for (std::size_t k = 0; k < plan.operands.size(); ++k) {
        if (plan.operands[k].bound) continue;
        if (given == args.operands.size())
            return misuse(fmt::format("operand {} is missing: args.operand_count is {}", plan.operands[k].name, given));
        if (auto v = check_operand(plan.operands[k], args.operands[given++], sizes); !v) return v;
    }
    if (given != args.operands.size())
        return misuse(
            fmt::format("args.operand_count is {}, the specification has {} operands", args.operands.size(), given));
    for (const auto& condition : plan.conditions)
        if (auto v = check_condition(condition, sizes); !v) return v;
    return {};
}

} // namespace cubridge::runtime
