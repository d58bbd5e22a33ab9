// Faults put into an expert through its margin: the same edit of the program and of its CUDA. The executor must name
// each; a GPU shows most (docs/cuir.md). Used by unit tests (the executor's half) and by gpu_coupling (the GPU's).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/lower/lower.h"
#include <algorithm>
#include <string>
#include <vector>

namespace cubridge::tests {

struct MarginEdit {
    enum class Kind { Delete, Replace, MoveBefore, Delay } kind;
    std::string statement;         ///< margin text without indentation and comment
    int nth = 0;                   ///< which of equal ones
    std::string margin;            ///< Replace: the new statement
    std::vector<std::string> cuda; ///< Replace: its region; Delay: one line, put before the statement's region
    std::string other;             ///< MoveBefore
    int other_nth = 0;
    int count = 1; ///< segments moved together
};

struct MarginMutant {
    std::string name;
    std::vector<MarginEdit> edits;
    bool race = false; ///< only order is wrong: a GPU may be lucky
};

inline std::string bare(const std::string& margin) {
    std::string s = margin;
    if (const auto hash = s.find("  #"); hash != std::string::npos) s.resize(hash);
    s.erase(0, std::min(s.find_first_not_of(' '), s.size()));
    while (!s.empty() && s.back() == ' ') s.pop_back();
    return s;
}

/// The place of a statement; -1 where there is none.
inline std::ptrdiff_t find_segment(const ir::lower::Margin& m, const std::string& statement, int nth) {
    for (std::size_t k = 0; k < m.segments.size(); ++k)
        if (bare(m.segments[k].margin) == statement && nth-- == 0) return static_cast<std::ptrdiff_t>(k);
    return -1;
}

/// The mutated file; empty where an edit finds no place.
inline std::string mutated(const std::string& cuda, const MarginMutant& mutant) {
    auto m = ir::lower::take_apart(cuda);
    if (!m) return "";
    bool delayed = false;
    for (const auto& e : mutant.edits) {
        const auto at = find_segment(*m, e.statement, e.nth);
        if (at < 0) return "";
        auto& segment = m->segments[static_cast<std::size_t>(at)];
        switch (e.kind) {
        case MarginEdit::Kind::Delete: m->segments.erase(m->segments.begin() + at); break;
        case MarginEdit::Kind::Replace:
            segment.margin = segment.margin.substr(0, segment.margin.find_first_not_of(' ')) + e.margin;
            segment.cuda = e.cuda;
            break;
        case MarginEdit::Kind::MoveBefore: {
            const auto first = m->segments.begin() + at;
            const std::vector<ir::lower::Margin::Segment> moved(first, first + e.count);
            m->segments.erase(first, first + e.count);
            const auto to = find_segment(*m, e.other, e.other_nth);
            if (to < 0) return "";
            m->segments.insert(m->segments.begin() + to, moved.begin(), moved.end());
            break;
        }
        case MarginEdit::Kind::Delay:
            segment.cuda.insert(segment.cuda.begin(), e.cuda.begin(), e.cuda.end());
            delayed = true;
            break;
        }
    }
    if (delayed)
        m->preamble += "static __device__ __forceinline__ void delay(bool who, int clocks) { if (who) for (const long "
                       "long begin = clock64(); clock64() - begin < clocks;) {} }\n";
    return ir::lower::join(*m);
}

inline MarginEdit cut(std::string statement, int nth = 0) {
    return {MarginEdit::Kind::Delete, std::move(statement), nth, {}, {}, {}, 0, 1};
}
inline MarginEdit move_before(std::string statement, std::string other, int other_nth = 0, int count = 1) {
    return {MarginEdit::Kind::MoveBefore, std::move(statement), 0, {}, {}, std::move(other), other_nth, count};
}

/// Of the Hopper expert: faults of order alone.
inline std::vector<MarginMutant> hopper_mutants() {
    const std::string qk = "gemm_async(Qs[q][g], Ks[s].T, out=S)", pv = "gemm_async(P, Vs[t], out=acc, add=not start)";
    return {
        {"Q is not waited for", {cut("wait(q_full[q], y)")}, true},
        {"K is not waited for", {cut("wait(k_full[s], u)")}, true},
        {"V is not waited for", {cut("wait(v_full[t], v)")}, true},
        {"K is given back before it was read", {move_before("arrive(k_free[s])", qk)}, true},
        {"V is given back before it was read", {move_before("arrive(v_free[t])", pv)}, true},
        {"Q is loaded over an output that is still there", {cut("wait(q_free[q], y - 1)")}, true},
        {"K is loaded over a tile that others read", {cut("wait(k_free[s], u - 1)")}, true},
        {"V is loaded over a tile that others read", {cut("wait(v_free[s], u - 1)")}, true},
        {"a buffer is given back before its output was copied", {cut("wait(Qs[q])")}, true},
        {"the output is copied before it is there", {cut("wait(o_full[q * WG + g], y)")}, true},
        {"the output is copied past its fence", {cut("fence(Qs[old][g])")}, true},
    };
}

/// Of the portable expert.
inline std::vector<MarginMutant> margin_mutants() {
    using E = MarginEdit;
    const auto put = [](std::string s, std::string margin, std::vector<std::string> cuda, int nth = 0) {
        return E{E::Kind::Replace, std::move(s), nth, std::move(margin), std::move(cuda), {}, 0, 1};
    };
    const auto slow = [](std::string s, int nth = 0) { // one warp comes late to a statement
        return E{E::Kind::Delay, std::move(s), nth, {}, {"delay(g == 1, 60000);"}, {}, 0, 1};
    };
    const std::string wait_k = "wait(Ks[s])", wait_v = "wait(Vs[s])", sync = "sync(everyone)",
                      load_v = "copy_async(V[b, h // G, n * BN:(n + 1) * BN], Vs[s])",
                      load_k = "copy_async(K[b, h // G, y * BN:(y + 1) * BN], Ks[(k + 1) % ST])",
                      more = "if k + 1 < length(tiles):", qk = "gemm(Qs[g], Ks[s].T, out=S)",
                      pv = "gemm(P, Vs[s], add=acc)";
    return {
        {"K is not waited for", {cut(wait_k)}, true},
        {"V is not waited for", {cut(wait_v)}, true},
        {"K is read before others have loaded their share", {cut(sync, 0), slow(load_k)}, true},
        {"V is read before others have loaded their share", {cut(sync, 1), slow(load_v)}, true},
        {"the next item's Q is loaded over rows still to be written",
         {cut(sync, 2), slow("copy(Qs[g], Out[b, h, i0:i0 + R])")},
         true},
        {"V is loaded over a tile that others read", {move_before(load_v, sync, 0), slow(pv)}, true},
        {"K is loaded over a tile that others read", {move_before(more, wait_v, 0, 4), slow(qk)}, true},
        {"the next K is loaded over this one", {move_before(more, qk, 0, 4)}, true},
        {"P is multiplied before it is written", {move_before(pv, "P[:] = p")}, false},
        {"V is never loaded", {cut(load_v)}, false},
        {"the next K is never loaded", {cut(load_k)}, false},
        {"the tail of the keys is not visited",
         {put("return [(whole, cdiv(Sk, BN), True), (0, whole, False)]",
              "return [(whole, whole, True), (0, whole, False)]",
              {"        return Ranges<2>{{whole, 0}, {whole, whole}, {true, false}};"})},
         false},
        {"a partial tile is called full",
         {put("return [(whole, cdiv(Sk, BN), True), (0, whole, False)]",
              "return [(whole, cdiv(Sk, BN), False), (0, whole, False)]",
              {"        return Ranges<2>{{whole, 0}, {cdiv(Sk, BN), whole}, {false, false}};"})},
         false},
        {"the mask keeps a key too many",
         {put("x = where(j < Sk, x, -inf)", "x = where(j <= Sk, x, -inf)",
              {"            EACH(e, x) x[e] = (j[CID(e)] <= Sk) ? x[e] : -INF;"})},
         false},
        {"the tail is not masked",
         {put("x = where(j < Sk, x, -inf)", "x = S", {"            EACH(e, x) x[e] = S[e];"})},
         false},
        {"accumulators are not rescaled", {cut("acc[:] = acc * shrink")}, false},
        {"the rescale is inverted",
         {put("shrink = exp2(row_max * unit - ref * unit)", "shrink = exp2(ref * unit - row_max * unit)",
              {"        EACH_ROW(r) shrink[r] = exp2_fast(ref[r] * unit - row_max[r] * unit);"})},
         false},
        {"row sums are not rescaled",
         {put("row_sum = row_sum * shrink + p.sum(-1)", "row_sum = row_sum + p.sum(-1)",
              {"        float part[ROWS];", "        row_sum_of(part, p);",
               "        EACH_ROW(r) row_sum[r] = row_sum[r] + part[r];"})},
         false},
        {"a share of the row sum is taken for the sum",
         {put("total = complete(row_sum)", "total = row_sum",
              {"            float total[ROWS];", "            EACH_ROW(r) total[r] = row_sum[r];"})},
         false},
        {"a row without a key is divided by 0",
         {put("inv = where(total > 0.0, 1.0 / total, 0.0)", "inv = 1.0 / total",
              {"            float inv[ROWS];", "            EACH_ROW(r) inv[r] = rcp_fast(total[r]);"})},
         false},
        {"LSE in base 2",
         {put("lse = where(total > 0.0, (row_max * unit + log2(total)) * LN2, -inf)",
              "lse = where(total > 0.0, row_max * unit + log2(total), -inf)",
              {"            float lse[ROWS];",
               "            EACH_ROW(r) lse[r] = (total[r] > 0.f) ? row_max[r] * unit + log2_fast(total[r]) : -INF;"})},
         false},
        {"another key head",
         {put(load_k, "copy_async(K[b, h % Hk, y * BN:(y + 1) * BN], Ks[(k + 1) % ST])",
              {"                    copy_async<32 * W>(Ks[(k + 1) % ST], K.rows(b, h % Hk, y * BN, (y + 1) * BN), "
               "Sk);"})},
         false},
        {"all warps write the first one's rows",
         {put("i0 = m * BM + g * R", "i0 = m * BM", {"            const int i0 = m * BM;"})},
         false},
        {"the reference of an empty row is -inf",
         {put("ref = where(new_max == -inf, 0.0, new_max)", "ref = new_max",
              {"        float ref[ROWS];", "        EACH_ROW(r) ref[r] = new_max[r];"})},
         false},
        {"all warps multiply the first one's Q",
         {put(qk, "gemm(Qs[0], Ks[s].T, out=S)", {"                gemm(S, Qs[0], transposed(Ks[s]));"})},
         false},
        {"the output is not divided by the sum", {cut("acc[:] = acc * inv")}, false},
        {"V of the tile before",
         {put(load_v, "copy_async(V[b, h // G, (n - 1) * BN:n * BN], Vs[s])",
              {"                copy_async<32 * W>(Vs[s], V.rows(b, h / G, max(n - 1, 0) * BN, n * BN), Sk);"})},
         false},
    };
}

} // namespace cubridge::tests
