// Head dims, element type and tile sizes. SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/probe.h"
#include "ir/transfer/rules.h"
#include <algorithm>

namespace cubridge::ir::transfer {
namespace {

/// Constants by the larger head dim.
struct Shape {
    int head_dim, shared; ///< at most; KB of shared memory
    std::vector<std::pair<const char*, int>> constants;
    int registers = 0, others = 0; ///< of a thread: of roles with warpgroups, and without; 0: the expert's own
};
/// One warp does it all: what fits the registers of a thread.
const Shape kTiles[] = {{64, 48, {{"BM", 128}, {"BN", 128}, {"W", 4}}},
                        {128, 64, {{"BM", 128}, {"BN", 64}, {"W", 4}}},
                        {192, 96, {{"BM", 128}, {"BN", 64}, {"W", 8}}},
                        {256, 128, {{"BM", 128}, {"BN", 64}, {"W", 8}}},
                        {256, 64, {{"BM", 64}, {"BN", 32}, {"W", 4}}}};
/// Warpgroups compute, of 64 rows each.
const Shape kWarpgroups[] = {{64, 160, {{"BM", 192}, {"BN", 96}, {"ST", 2}, {"QB", 2}, {"WG", 3}}, 160, 32},
                             {128, 160, {{"BM", 128}, {"BN", 128}, {"ST", 2}, {"QB", 2}, {"WG", 2}}, 232, 40},
                             {192, 160, {{"BM", 128}, {"BN", 96}, {"ST", 2}, {"QB", 1}, {"WG", 2}}, 232, 40},
                             {256, 160, {{"BM", 128}, {"BN", 80}, {"ST", 2}, {"QB", 1}, {"WG", 2}}, 232, 40}};

int shared_of(const std::string& arch) {
    for (const char* small : {"sm_86", "sm_89", "sm_12"})
        if (arch.rfind(small, 0) == 0) return 99;
    return 160;
}

constexpr double kMostF16 = 32768;

bool may_be_empty(const Part& p) {
    return p.empty != Part::Empty::Never || p.weights.kind != Weights::Kind::Softmax;
}

void registers(Work& w, int of_warpgroups, int others) {
    Work::each(
        w.kernel.body, [](const cuir::Statement& s) { return s.kind == cuir::Statement::Kind::With; },
        [&](const Spot& s) {
            auto node = std::make_shared<syntax::Node>(*s->node);
            auto call = std::make_shared<syntax::Node>(*node->items[0]);
            const bool computes = keyword(call, "warpgroups") != nullptr;
            for (auto& k : call->keywords)
                if (k.name == "registers") k.value = integer(computes ? of_warpgroups : others);
            node->items[0] = call;
            s->node = node;
        });
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
        set_constant(w.kernel, n, integer(value));
        return true;
    };
    const bool own_d = !set("D", l.head_dim), own_dv = !set("Dv", l.head_dim_v);
    bool changed = !own_d || !own_dv;
    const auto fitted = [&](const auto& shapes) {
        for (const Shape& t : shapes) {
            if (t.head_dim < std::max(l.head_dim, l.head_dim_v) || t.shared > shared_of(l.target.request.arch))
                continue;
            for (const auto& [n, v] : t.constants)
                if (w.kernel.constant(n)) changed = set(n, v) || changed;
            if (t.registers != 0) registers(w, t.registers, t.others);
            break;
        }
    };
    if (changed && w.kernel.constant("WG")) // else the expert's own tile
        fitted(kWarpgroups);
    else if (changed)
        fitted(kTiles);
    const NodePtr keys = w.kernel.constant("BN");
    if (l.target.keys != 0 && keys && keys->integer > l.target.keys) changed = set("BN", l.target.keys);
    // Of half the keys, scores leave registers to those who decide about tiles.
    if (l.target.keys == 64 && w.kernel.constant("WG"))
        w.kernel.constant("WG")->integer == 2 ? registers(w, 216, 72) : registers(w, 152, 56);
    if (changed) w.applied("tile sizes");
    const char* elem = short_name(l.target.request.q_dtype);
    if (!w.kernel.constant("elem") || text(w.kernel.constant("elem")) != elem) {
        set_constant(w.kernel, "elem", name(elem));
        w.applied("element type");
    }
    // a share of a sum bounds its weights, which become elements
    if (!w.at.overflow.empty() && l.target.request.q_dtype == DType::F16)
        set_constant(w.kernel, w.at.overflow, real(kMostF16));
}

} // namespace cubridge::ir::transfer
