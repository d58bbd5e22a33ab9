// The instructions that a kernel may use. SPDX-License-Identifier: Apache-2.0
#include "runtime/gate/ptx.h"
#include <algorithm>
#include <iterator>

namespace cubridge::runtime::gates {
namespace {

// Parts of an opcode, separated by dots: alternatives by |, one that may be left out begins with ?, a * is any digits.
// INT, BITS, REAL and ANY are types.
constexpr std::string_view patterns[] = {
    // registers
    "mov.ANY|pred",
    "selp.ANY",
    "prmt.b32.?f4e|b4e|rc8|ecl|ecr|rc16",
    "setp.eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan.?and|or|xor.?ftz.ANY",
    "cvt.?rn|rz|rm|rp|rna|rni|rzi|rmi|rpi.?relu.?ftz.?sat|satfinite.ANY|f16x2|bf16x2|tf32|e4m3x2|e5m2x2.ANY|f16x2|"
    "e4m3x2|e5m2x2",
    // integers and bits
    "add|sub.?sat.INT",
    "mul|mad.lo|hi|wide.?sat.INT",
    "div|rem.INT",
    "min|max.?ftz.?NaN.ANY|f16x2|bf16x2",
    "abs|neg.?ftz.ANY|f16x2|bf16x2",
    "and|or|xor|not.BITS|pred",
    "shl.BITS",
    "shr.BITS|INT",
    "shf.l|r.wrap|clamp.b32",
    "lop3.b32",
    "popc|clz|brev.BITS",
    "bfind.?shiftamt.INT",
    "bfe.INT",
    "bfi.BITS",
    // reals
    "add|sub|mul.?rn|rz|rm|rp.?ftz.?sat.REAL|f16x2|bf16x2",
    "fma|mad.rn|rz|rm|rp.?ftz.?sat|relu.REAL|f16x2|bf16x2",
    "div.full|approx|rn|rz|rm|rp.?ftz.f32|f64",
    "rcp|sqrt.approx|rn|rz|rm|rp.?ftz.f32|f64",
    "rsqrt|lg2|sin|cos.approx.?ftz.f32",
    "ex2|tanh.approx.?ftz.f32|f16|f16x2|bf16|bf16x2",
    "copysign.f32|f64",
    // products
    "mma.sync.aligned.m16n8k8|m16n8k16|m16n8k32.row.col.f32|f16|s32.f16|bf16|tf32|e4m3|e5m2|s8|u8.f16|bf16|tf32|e4m3|"
    "e5m2|s8|u8."
    "f32|f16|s32",
    "wgmma.mma_async.sync.aligned.m64n*k8|m64n*k16|m64n*k32.f32|f16|s32.f16|bf16|tf32|e4m3|e5m2|s8|u8.f16|bf16|tf32|"
    "e4m3|e5m2|s8|"
    "u8",
    "wgmma.fence|commit_group|wait_group.sync.aligned",
    "ldmatrix.sync.aligned.m8n8.x1|x2|x4.?trans.shared|shared::cta.b16",
    "stmatrix.sync.aligned.m8n8.x1|x2|x4.?trans.shared|shared::cta.b16",
    "movmatrix.sync.aligned.m8n8.trans.b16",
    // copies
    "cp.async.ca|cg.shared|shared::cta.global",
    "cp.async.commit_group|wait_group|wait_all",
    "cp.async.mbarrier.arrive.?noinc.shared|shared::cta.b64",
    "cp.async.bulk.shared::cluster|shared::cta.global.mbarrier::complete_tx::bytes",
    "cp.async.bulk.global.shared::cta.bulk_group",
    "cp.async.bulk.tensor.*d.shared::cluster|shared::cta.global.?tile.mbarrier::complete_tx::bytes",
    "cp.async.bulk.tensor.*d.global.shared::cta.?tile.bulk_group",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group.?read",
    "fence.proxy.async.?shared::cta|global",
    "fence.mbarrier_init.release.cluster",
    // agreement within a block
    "bar.sync|arrive",
    "barrier.?cta.sync|arrive.?aligned",
    "bar.warp.sync",
    "mbarrier.init|inval.shared|shared::cta.b64",
    "mbarrier.arrive.?expect_tx.?release.?cta.shared|shared::cta.b64",
    "mbarrier.try_wait|test_wait.?parity.?acquire.?cta.shared|shared::cta.b64",
    "shfl.sync.up|down|bfly|idx.b32",
    "vote.sync.all|any|uni.pred",
    "vote.sync.ballot.b32",
    "match.any|all.sync.b32|b64",
    "redux.sync.add|min|max|and|or|xor.s32|u32|b32",
    "elect.sync",
    "setmaxnreg.inc|dec.sync.aligned.u32",
    // memory
    "ld.shared|shared::cta.?v2|v4.ANY",
    "ld.global.?nc.?L1::no_allocate.?v2|v4.ANY",
    "st.shared|shared::cta|global.?v2|v4.ANY",
};

constexpr std::string_view atomic_patterns[] = {
    "atom.?relaxed|acquire|release|acq_rel.?cta|gpu.global.add|exch|cas|min|max|inc|dec|and|or|xor.u32|s32|b32|u64|b64",
    "red.?relaxed|release.?cta|gpu.global.add|min|max|inc|dec|and|or|xor.u32|s32|b32|u64|b64",
    "fence.acq_rel.cta|gpu",
};

std::string_view head(std::string_view text, char mark) {
    return text.substr(0, text.find(mark));
}
std::string_view tail(std::string_view text, char mark) {
    const auto at = text.find(mark);
    return at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
}

bool is_type(std::string_view part, std::string_view kinds, std::string_view widths) {
    return part.size() > 1 && kinds.find(part[0]) != kinds.npos &&
           (" " + std::string(widths) + " ").find(" " + std::string(part.substr(1)) + " ") != std::string::npos;
}

/// Whether `part` is one of the alternatives.
bool fits(std::string_view part, std::string_view alternatives) {
    for (; !alternatives.empty(); alternatives = tail(alternatives, '|')) {
        const auto one = head(alternatives, '|');
        if (one == "INT" || one == "ANY")
            if (is_type(part, "us", "16 32 64")) return true;
        if (one == "BITS" || one == "ANY")
            if (is_type(part, "b", "16 32 64")) return true;
        if (one == "REAL" || one == "ANY")
            if (is_type(part, "f", "16 32 64") || part == "bf16") return true;
        if (one == "ANY" && is_type(part, "usb", "8")) return true;
        const auto star = one.find('*');
        if (star == one.npos) {
            if (part == one) return true;
            continue;
        }
        const auto before = one.substr(0, star), after = one.substr(star + 1);
        if (part.size() <= before.size() + after.size() || part.substr(0, before.size()) != before ||
            part.substr(part.size() - after.size()) != after)
            continue;
        const auto middle = part.substr(before.size(), part.size() - before.size() - after.size());
        if (middle.size() <= 3 && middle.find_first_not_of("0123456789") == middle.npos) return true;
    }
    return false;
}

/// `opcode` and `pattern` are followed by what was not read yet, without its dot.
bool matches(std::string_view opcode, std::string_view pattern) {
    if (pattern.empty()) return opcode.empty();
    const auto want = head(pattern, '.'), rest = tail(pattern, '.');
    const bool optional = want[0] == '?';
    if (!opcode.empty() && fits(head(opcode, '.'), optional ? want.substr(1) : want) &&
        matches(tail(opcode, '.'), rest))
        return true;
    return optional && matches(opcode, rest);
}

} // namespace

std::string instead_of(std::string_view opcode, bool atomics) {
    if (opcode.empty() || opcode.back() == '.' || opcode.find("..") != opcode.npos) return "an instruction";
    std::string family, all;
    const auto look = [&](std::string_view pattern) {
        if (matches(opcode, pattern)) return true;
        if (fits(head(opcode, '.'), head(pattern, '.'))) family += (family.empty() ? "" : ", ") + std::string(pattern);
        for (auto names = head(pattern, '.'); !names.empty(); names = tail(names, '|')) {
            const auto name = " " + std::string(head(names, '|')) + " ";
            if ((" " + all + " ").find(name) == std::string::npos)
                all += (all.empty() ? "" : " ") + name.substr(1, name.size() - 2);
        }
        return false;
    };
    for (const auto pattern : patterns)
        if (look(pattern)) return {};
    if (atomics)
        for (const auto pattern : atomic_patterns)
            if (look(pattern)) return {};
    return "these are: " + (family.empty() ? all : family);
}

} // namespace cubridge::runtime::gates
