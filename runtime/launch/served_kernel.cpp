// Launching: the argument block filled, every number known, then one driver call a grid.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/served_kernel.h"
#include "runtime/launch/block.h"
#include "runtime/launch/check.h"
#include <algorithm>
#include <climits>
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

using ir::abi::cb_operand;

/// The operands of `plan` with bound values filled in, by the caller's operands.
void fill_own(const ir::launch::Plan& plan, const LaunchArgs& args,
              std::array<cb_operand, ir::abi::kMaxOperands>& own) {
    std::size_t given = 0;
    for (std::size_t k = 0; k < plan.operands.size(); ++k) {
        const auto& operand = plan.operands[k];
        own[k] = cb_operand{};
        if (operand.bound) {
            own[k].value = operand.value;
        } else if (given < args.operands.size()) {
            own[k] = args.operands[given++];
        }
    }
}

void put_operand_sizes(ir::launch::Sizes& sizes, const cb_operand* operands, std::size_t count) {
    sizes.operand.resize(count);
    for (std::size_t k = 0; k < count; ++k)
        std::copy(std::begin(operands[k].size), std::end(operands[k].size), sizes.operand[k].begin());
}

/// The grid of an entry; a zero anywhere: it is skipped.
Verdict grid_of(const ir::launch::Entry& entry, const ir::launch::Sizes& sizes, LaunchShape& shape) {
    static constexpr std::array<std::int64_t, 3> kMost = {INT_MAX, 65535, 65535};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const auto blocks = entry.grid[axis].evaluate(sizes);
        if (!blocks || *blocks < 0 || *blocks > kMost[axis])
            return {Status::Unsupported, fmt::format("the grid of {} does not fit these sizes", entry.name)};
        shape.grid[axis] = static_cast<unsigned>(*blocks);
        shape.block[axis] = static_cast<unsigned>(entry.block[axis]);
    }
    shape.shared_bytes = static_cast<unsigned>(entry.shared_bytes);
    return {};
}

} // namespace

ServedKernel::ServedKernel(std::unique_ptr<State> state) : state_(std::move(state)) {}
ServedKernel::~ServedKernel() = default;

const std::string& ServedKernel::id() const {
    return state_->id;
}
const std::string& ServedKernel::variant() const {
    return state_->artifact.subject;
}
const std::string& ServedKernel::report() const {
    return state_->report;
}
int ServedKernel::made() const {
    const auto& by = state_->artifact.build.made_by;
    return by == "rules" ? 0 : by == "model" ? 1 : 2;
}
int ServedKernel::from() const {
    return state_->stored ? 1 : 0;
}
int ServedKernel::verified() const {
    const auto level = state_->artifact.verification.level;
    return level == Verified::Gpu ? 0 : level == Verified::Executor ? 1 : -1;
}
float ServedKernel::error_ratio() const {
    return static_cast<float>(state_->artifact.verification.error_ratio);
}
bool ServedKernel::exact() const {
    return made() != 2;
}

Verdict ServedKernel::workspace(const LaunchArgs& args, std::size_t& bytes) const {
    const auto& s = *state_;
    if (auto v = check_counts(s.request, args); !v) return v;
    const int processors =
        s.loaded.context != nullptr ? s.loaded.context->device().multiprocessors : kMostMultiprocessors;
    auto sizes = sizes_of(s.request, args, processors);
    std::array<cb_operand, ir::abi::kMaxOperands> own, theirs;
    fill_own(s.binding.plan, args, own);
    for (std::size_t k = 0; k < s.binding.source.size(); ++k)
        theirs[k] = own[static_cast<std::size_t>(s.binding.source[k])];
    put_operand_sizes(sizes, theirs.data(), s.binding.source.size());
    const auto needed = s.artifact.plan.workspace.evaluate(sizes);
    if (!needed || *needed < 0) return {Status::Unsupported, "the workspace for these sizes overflows"};
    bytes = static_cast<std::size_t>(*needed);
    return {};
}

Verdict ServedKernel::launch(const LaunchArgs& args, CUstream_st* stream) const {
    const auto& s = *state_;
    if (s.loaded.context == nullptr)
        return {Status::Unsupported, "the kernel was made for " + s.artifact.arch + " and is loaded on no device"};
    if (auto v = check_counts(s.request, args); !v) return v;
    // Kept by the thread: after its first launch of so many operands nothing is allocated any more.
    static thread_local ir::launch::Sizes sizes;
    sizes.value = sizes_of(s.request, args, s.loaded.context->device().multiprocessors).value;
    std::array<cb_operand, ir::abi::kMaxOperands> own;
    fill_own(s.binding.plan, args, own);
    put_operand_sizes(sizes, own.data(), s.binding.plan.operands.size());
    if (auto v = check_launch(s.binding.plan, s.request, args, sizes); !v) return v;

    if (exact() && (args.k_scale.data != nullptr || args.v_scale.data != nullptr))
        return {Status::Unsupported, "args.k_scale and v_scale are read by the generic kernel only"};

    ir::abi::cb_args block{};
    block.q = args.q, block.k = args.k, block.v = args.v, block.o = args.o, block.lse = args.lse;
    block.k_scale = args.k_scale, block.v_scale = args.v_scale;
    for (std::size_t k = 0; k < s.binding.source.size(); ++k)
        block.operand[k] = own[static_cast<std::size_t>(s.binding.source[k])];
    put_operand_sizes(sizes, block.operand, s.binding.source.size());
    block.requests = args.requests, block.heads_kv = args.heads_kv, block.head_begin = args.head_begin;
    block.heads_q = args.heads_kv * s.request.group;
    block.max_q = args.max_q, block.max_kv = args.max_kv, block.total_q = args.total_q;
    block.flags = args.flags;
    block.seq_lens_k = args.seq_lens_k;
    block.workspace = args.workspace;

    const auto bytes = s.artifact.plan.workspace.evaluate(sizes);
    if (!bytes || *bytes < 0) return {Status::Unsupported, "the workspace for these sizes overflows"};
    if (static_cast<std::uint64_t>(*bytes) > args.workspace_size)
        return {Status::Unsupported, fmt::format("the launch needs {} bytes of workspace, args.workspace_size is {}",
                                                 *bytes, args.workspace_size)};
    if (*bytes > 0 && args.workspace == nullptr) return {Status::Misuse, "args.workspace is NULL"};
    if (*bytes > 0 && reinterpret_cast<std::uintptr_t>(args.workspace) % 256 != 0)
        return {Status::Misuse, "args.workspace is not aligned to 256 bytes"};

    const auto& plan = s.artifact.plan;
    const auto& entries = plan.entries;
    std::array<LaunchShape, ir::launch::kMaxEntries> shapes;
    for (std::size_t k = 0; k < entries.size(); ++k)
        if (auto v = grid_of(entries[k], sizes, shapes[k]); !v) return v;
    const auto idle = [&](std::size_t k) {
        const auto& grid = shapes[k].grid;
        return grid[0] == 0 || grid[1] == 0 || grid[2] == 0;
    };
    std::size_t first = 0;
    while (first < entries.size() && idle(first)) ++first;
    if (first == entries.size()) return {};
    place_ticket(plan, *bytes, block);
    if (auto v = encode_maps(s.loaded.context->cuda(), plan, s.request, &s, block); !v) return v;
    if (const auto done = zero_ticket(*s.loaded.context, block, stream); !done)
        return {Status::Cuda, done.fault().text()};
    void* parameters[] = {&block};
    for (std::size_t k = first; k < entries.size(); ++k) {
        if (idle(k)) continue;
        const auto done = runtime::launch(*s.loaded.context, s.loaded.kernels[k], shapes[k], parameters, stream);
        if (!done) return {Status::Cuda, done.fault().text()};
    }
    return {};
}

} // namespace cubridge::runtime
