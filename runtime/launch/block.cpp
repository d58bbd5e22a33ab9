// Tensor maps and the ticket of a launch.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/block.h"
#include "runtime/driver/errors.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

using ir::abi::cb_map;
using ir::launch::Map;

constexpr std::int64_t kUnit = 16;                          // bytes: addresses and strides are multiples
constexpr std::int64_t kFar = std::int64_t{1} << 30;        // rows of the second dim; steps of the last
constexpr std::int64_t kWrap = std::int64_t{1} << 34;       // kFar * kWrap is 2^64; rows are closer than that
constexpr std::int64_t kMostStride = std::int64_t{1} << 40; // bytes, exclusive
constexpr std::int64_t kMost = std::int64_t{1} << 31;       // coordinates are less
constexpr std::uint32_t kColumns = 64;                      // of a box: a panel of 128 bytes
constexpr std::size_t kKernels = 16;                        // whose maps a thread keeps

static_assert(sizeof(cb_map) == sizeof(CUtensorMap) && alignof(cb_map) >= alignof(CUtensorMap));

Verdict unsupported(std::string message) {
    return {Status::Unsupported, std::move(message)};
}

const ir::abi::cb_tensor& tensor_of(Map::Tensor t, const ir::abi::cb_args& block) {
    switch (t) {
    case Map::Tensor::Q: return block.q;
    case Map::Tensor::K: return block.k;
    case Map::Tensor::V: return block.v;
    case Map::Tensor::O: break;
    }
    return block.o;
}

struct Kept {
    MapNumbers numbers; ///< no rows: nothing is kept
    cb_map map{};
};

/// Of the calling thread. Whose maps they were doesn't matter: the numbers say all.
Kept& kept(const void* kernel, std::size_t place) {
    static thread_local std::array<std::array<Kept, std::size(ir::abi::cb_args{}.map)>, kKernels> all;
    return all[reinterpret_cast<std::uintptr_t>(kernel) / 64 % kKernels][place];
}

CUresult encode(const Symbols& cuda, const MapNumbers& n, cb_map& to) {
    static constexpr std::array<std::uint32_t, 5> kSteps = {1, 1, 1, 1, 1};
    const std::array<std::uint32_t, 5> box = {kColumns, n.rows, 1, 1, 1};
    CUtensorMap map;
    const auto code =
        cuda.cuTensorMapEncodeTiled(&map, n.half ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                    5, reinterpret_cast<void*>(n.address), n.dims.data(), n.strides.data(), box.data(),
                                    kSteps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                    n.wide ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    std::memcpy(&to, &map, sizeof to);
    return code;
}

} // namespace

Verdict numbers_of(const Map& map, const ir::Request& request, const ir::abi::cb_args& block, MapNumbers& out) {
    const bool keys = map.tensor == Map::Tensor::K || map.tensor == Map::Tensor::V;
    const bool of_v = map.tensor == Map::Tensor::V || map.tensor == Map::Tensor::O; // the head dim is that of v
    const auto dtype = keys ? request.kv_dtype : map.tensor == Map::Tensor::O ? request.o_dtype : request.q_dtype;
    const char* name = ir::launch::name(map.tensor);
    const auto element = static_cast<std::int64_t>(ir::size_in_bytes(dtype));
    if (element != 2) return unsupported(fmt::format("args.{} has no 16-bit elements, as this kernel copies", name));
    const auto& t = tensor_of(map.tensor, block);
    const std::int64_t rows = keys ? block.max_kv : block.max_q, requests = block.requests;
    const std::int64_t heads = std::max(keys ? block.heads_kv : block.heads_q, 1);
    const bool empty = rows == 0 || requests == 0;
    if (reinterpret_cast<std::uintptr_t>(t.data) % kUnit != 0)
        return unsupported(fmt::format("args.{}.data is not aligned to {} bytes, as this kernel copies", name, kUnit));

    const auto usable = [&](long long stride, std::int64_t most) {
        return stride >= 0 && stride < most / element && stride * element % kUnit == 0;
    };
    const auto wrong = [&](const char* axis, long long stride, const char* most) {
        return unsupported(fmt::format("args.{}.{} = {} elements: this kernel takes multiples of {} bytes below {}",
                                       name, axis, stride, kUnit, most));
    };
    // Bytes. That of an axis of one element is never used, and frameworks put anything there.
    const bool steps = !empty && requests > 1, one_head = empty || heads == 1, one_row = empty || rows == 1;
    if (steps && !usable(t.outer, kMostStride)) return wrong("outer", t.outer, "2^40");
    const std::int64_t furthest = kWrap / map.step; // rows of the map are further apart than the tensor's
    if (!one_row && (t.row == 0 || !usable(t.row, furthest)))
        return wrong("row", t.row, map.step == 1 ? "2^34, not 0" : "2^34 over its step, not 0");
    if (!one_head && !usable(t.head, kMostStride)) return wrong("head", t.head, "2^40");
    const std::int64_t outer = steps ? t.outer * element : 0;
    const std::int64_t row = !one_row ? t.row * element : outer > 0 && outer < furthest ? outer : kUnit;
    std::int64_t head = one_head ? kUnit : t.head * element;
    // How a request is reached: by rows, else by heads. One head leaves their stride to us.
    const std::int64_t others = std::max(requests - 1, std::int64_t{0});
    const auto fits = [&](std::int64_t per, std::int64_t count) {
        return per <= (kMost - 1 - count) / std::max(others, std::int64_t{1});
    };
    std::int64_t by = 0, bh = 0;
    if (outer % row == 0 && fits(outer / row, rows + map.step))
        by = outer / row;
    else if (one_head)
        head = outer, bh = 1;
    else if (head != 0 && outer % head == 0 && fits(outer / head, heads))
        bh = outer / head;
    else
        return unsupported(
            fmt::format("args.{}.outer = {} elements is no small multiple of row = {} or of head = {}, and "
                        "this kernel goes from request to request by those",
                        name, t.outer, t.row, t.head));

    const auto size = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
    out = {};
    // Nothing is read of a tensor without elements, but its address is none perhaps.
    out.address = reinterpret_cast<std::uintptr_t>(t.data != nullptr ? t.data : block.o.data);
    const int columns = of_v && request.head_dim_v != 0 ? request.head_dim_v : request.head_dim;
    out.dims = {size(columns), size(kFar), size(heads + others * bh), size(kMost), size(kMost)};
    out.strides = {size(row * map.step), size(head), size(row), size(kWrap - row * map.step)};
    out.rows = static_cast<std::uint32_t>(map.rows);
    out.by = static_cast<int>(by);
    out.bh = static_cast<int>(bh);
    out.wide = keys;
    out.half = dtype == ir::DType::F16;
    return {};
}

Verdict encode_maps(const Symbols& cuda, const ir::launch::Plan& plan, const ir::Request& request, const void* kernel,
                    ir::abi::cb_args& block) {
    if (plan.maps.empty()) return {};
    if (cuda.cuTensorMapEncodeTiled == nullptr)
        return unsupported(
            "the driver has no tensor maps (cuTensorMapEncodeTiled), which this kernel needs: update it");
    for (const auto& map : plan.maps) {
        MapNumbers numbers;
        if (auto v = numbers_of(map, request, block, numbers); !v) return v;
        const auto at = static_cast<std::size_t>(map.tensor);
        const bool keys = map.tensor == Map::Tensor::K || map.tensor == Map::Tensor::V;
        const bool alone = std::count_if(plan.maps.begin(), plan.maps.end(),
                                         [&](const Map& m) { return m.tensor == map.tensor; }) == 1;
        const std::size_t second = at + 3, place = keys && !alone && map.step > 1 ? second : at;
        auto& last = kept(kernel, place);
        if (!(last.numbers == numbers)) {
            last.numbers = {};
            if (const auto code = encode(cuda, numbers, last.map); code != CUDA_SUCCESS) {
                const bool refused = code == CUDA_ERROR_INVALID_VALUE || code == CUDA_ERROR_NOT_SUPPORTED;
                return {refused ? Status::Unsupported : Status::Cuda,
                        fmt::format("no tensor map of args.{}: {}", ir::launch::name(map.tensor),
                                    driver_fault(code, "cuTensorMapEncodeTiled").message)};
            }
            last.numbers = numbers;
        }
        block.map[place] = last.map;
        if (keys && alone) block.map[second] = last.map;
        block.map_rows[at] = numbers.by;
        block.map_heads[at] = numbers.bh;
    }
    return {};
}

void place_ticket(const ir::launch::Plan& plan, std::int64_t bytes, ir::abi::cb_args& block) {
    if (plan.ticket)
        block.ticket =
            reinterpret_cast<int*>(static_cast<std::byte*>(block.workspace) + bytes - ir::launch::kTicketBytes);
}

Outcome<void> zero_ticket(const Context& context, const ir::abi::cb_args& block, CUstream stream) {
    if (block.ticket == nullptr) return {};
    const auto at = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(block.ticket));
    if (const auto code = context.cuda().cuMemsetD32Async(at, 0, 2, stream); code != CUDA_SUCCESS)
        return driver_fault(code, "cuMemsetD32Async");
    return {};
}

} // namespace cubridge::runtime
