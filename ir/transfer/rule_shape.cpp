// Head dims, element type and tile sizes. SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/probe.h"
#include "ir/transfer/rules.h"
#include <algorithm>

namespace cubridge::ir::transfer {
namespace {

/// Rows, keys and warps of a tile by the larger head dim: what fits the registers of a thread, and KB of shared memory.
struct Tile {
    int head_dim, bm, bn, warps, shared;
};
constexpr Tile kTiles[] = {
    {64, 128, 128, 4, 48}, {128, 128, 64, 4, 64}, {192, 128, 64, 8, 96}, {256, 128, 64, 8, 128}, {256, 64, 32, 4, 64}};

int shared_of(const std::string& arch) {
    for (const char* small : {"sm_86", "sm_89", "sm_12"})
        if (arch.rfind(small, 0) == 0) return 99;
    return 160;
}

bool may_be_empty(const Part& p) {
    return p.empty != Part::Empty::Never || p.weights.kind != Weights::Kind::Softmax;
}

} // namespace

void check_request(const Launch& l) {
    const Request& r = l.target.request;
    if (r.layout != Request::Layout::Dense) refuse("ragged and paged layouts are not what the expert loads");
    if (r.q_dtype != r.kv_dtype || r.q_dtype != r.o_dtype || (r.q_dtype != DType::BF16 && r.q_dtype != DType::F16))
        refuse(std::string("element types other than one of bfloat16 and float16: ") + torch_name(r.q_dtype) + ", " +
               torch_name(r.kv_dtype) + ", " + torch_name(r.o_dtype));
    if (l.head_dim % 8 != 0 || l.head_dim_v % 8 != 0)
        refuse("head dims " + std::to_string(l.head_dim) + " and " + std::to_string(l.head_dim_v) +
               " are no multiples of 8, which 16-byte copies take");
    if (r.alignment < 16) refuse("tensors are aligned to " + std::to_string(r.alignment) + " bytes; copies take 16");
    if (l.head_dim > 256 || l.head_dim_v > 256)
        refuse("head dims above 256: " + std::to_string(l.head_dim) + " and " + std::to_string(l.head_dim_v));
    if (r.empty_rows == Request::EmptyRows::Zero) { // as rules make them: weighted sums of nothing are 0
        const double of_zeros = probe(l.pool, l.v.out, [](int n) { return n >= kOutput && n < kLse ? 0.0 : 0.7; });
        if (of_zeros != 0 && std::any_of(l.v.parts.begin(), l.v.parts.end(), may_be_empty))
            refuse("rows without keys are to be 0, and the output adds something to their weighted sum");
        for (const Part& p : l.v.parts)
            if (p.empty == Part::Empty::NaN && p.keep != l.v.parts[0].keep)
                refuse("rows without keys are to be 0, and one part of several has no keys where another does");
    }
    for (const Part& p : l.v.parts)
        if (p.inner && !(p.inner->kind == Kind::Dim && p.inner->number == dims::D))
            refuse("a dot product over something else than the head dim");
}

void shape(Work& w) {
    const Launch& l = w.launch;
    const auto set = [&](const std::string& n, int value) {
        const NodePtr old = w.kernel.constant(n);
        if (!old) refuse("the expert has no constant " + n);
        if (old->kind == syntax::Kind::Int && old->integer == value) return false;
        auto node = std::make_shared<syntax::Node>();
        node->kind = syntax::Kind::Int;
        node->integer = value;
        set_constant(w.kernel, n, node);
        return true;
    };
    const bool own_d = !set("D", l.head_dim), own_dv = !set("Dv", l.head_dim_v);
    bool changed = !own_d || !own_dv;
    for (const Tile& t : kTiles) {
        if (!changed) break; // the expert's own tile
        if (t.head_dim < std::max(l.head_dim, l.head_dim_v) || t.shared > shared_of(l.target.request.arch)) continue;
        for (const auto& [n, v] : {std::pair{"BM", t.bm}, {"BN", t.bn}, {"W", t.warps}})
            if (w.kernel.constant(n)) changed = set(n, v) || changed;
        break;
    }
    if (changed) w.applied("tile sizes");
    const char* elem = short_name(l.target.request.q_dtype);
    if (!w.kernel.constant("elem") || text(w.kernel.constant("elem")) != elem) {
        set_constant(w.kernel, "elem", name(elem));
        w.applied("element type");
    }
}

} // namespace cubridge::ir::transfer
