// The Hopper expert: warp-specialised attention forward for sm_90a in plain CUDA C++ with PTX (TMA, wgmma, mbarrier,
// setmaxnreg). A warp decides work items and their key tiles, ahead of one that brings Q, K and V; two or three warpgroups
// compute, 64 rows each; a warp takes finished tiles out. The steps of all work items are one stream: the products with V of a step
// run beside the scores of the next, whichever item it belongs to. Its margin (the lines that begin with //|) is its CuIR:
// docs/cuir.md has the language, docs/lowering.md the form. What stands before the first margin line is helpers.
//
// Layout of a warpgroup's values: a warp holds 16 of its 64 rows. Elements of a tile of C columns lie in a thread as x[e],
// e = 4 n + c: column group n of 8, corner c as wgmma has its accumulators. Row slot r is row warp_row() + 8 r + lane / 4,
// column slot c is column 8 (c / 2) + c % 2 + 2 (lane % 4). SPDX-License-Identifier: Apache-2.0
#define ROWS 2
#define COLS(C) (cdiv(C, 16) * 4)
#define TILE(C) (cdiv(C, 16) * 8)
#define FRAGMENTS(C) (cdiv(C, 16) * 4)
#define ROW(e) (((e) >> 1) & 1)
#define CID(e) ((e) / 4 * 2 + ((e) & 1))
static __device__ __forceinline__ int warp_row() { return threadIdx.x / 32 % 4 * 16; } // an agent is a warpgroup
#include "common.cuh"

#include "hopper.cuh"
#include "stream.cuh"
template <int N> FN void thread_max_of(float (&m)[ROWS], const float (&x)[N]) { // of what this thread holds
    float a[ROWS][2];
    EACH_ROW(r) a[r][0] = a[r][1] = -INF;
    EACH(e, x) a[ROW(e)][e & 1] = fmaxf(a[ROW(e)][e & 1], x[e]);
    EACH_ROW(r) m[r] = fmaxf(a[r][0], a[r][1]);
}

//| @kernel(arch="sm_90a", expert="prefill_sm90", ctas="sms")
//| def attention(
extern "C" __global__ void __launch_bounds__(384, 1) attention(const __grid_constant__ cb_args args) {
    extern __shared__ __align__(1024) char raw[];
    Smem smem = {shared_address(raw)};
    const int B = args.requests, Hq = args.heads_q, Hk = args.heads_kv;
    const int warp = same(threadIdx.x / 32), warpgroup = warp / 4;
    int b = 0, h = 0, m = 0, Sq = args.max_q, Sk = args.max_kv;
//|     Q: elem[B, Hq, Sq, D],
    const Mapped Q(args, 0, args.q, args.head_begin);
//|     K: elem[B, Hk, Sk, D],
    const Mapped K(args, 1, args.k, args.head_begin / (Hq / Hk));
//|     V: elem[B, Hk, Sk, Dv],
    const Mapped V(args, 2, args.v, args.head_begin / (Hq / Hk));
//|     Out: elem[B, Hq, Sq, Dv],
    const Mapped Out(args, 3, args.o, args.head_begin);
//|     Lse: f32[B, Hq, Sq],
    const Tensor Lse(args.lse, args.head_begin);
//|     ticket: counter,
    int* const ticket = args.ticket;
//|     *, BM=128, BN=128, ST=2, QB=2, WG=2, D=128, Dv=128, SLACK=8.0, LIMIT=1.1529215e18, elem=bf16):
    constexpr int BM = 128, BN = 128, ST = 2, QB = 2, WG = 2, D = 128, Dv = 128;
    constexpr float SLACK = 8.0f;
    constexpr float LIMIT = 1.1529215e+18f;
    using elem = bf16;
//|     R = BM // WG
    constexpr int R = BM / WG;
//|     G = Hq // Hk
    const int G = Hq / Hk;
//|     unit = LOG2E / sqrt(D)                                  # a score times unit is a power of two
    const float unit = LOG2E / sqrtf((float)D);
//|     Qs = alloc(shared, (QB, WG, R, D), elem)                # a buffer that is used up stages the output of its rows
    const Shared<elem, R, D, QB, WG> Qs(smem);
//|     Ks = alloc(shared, (ST, BN, D), elem)
    const Shared<elem, BN, D, ST> Ks(smem);
//|     Vs = alloc(shared, (ST, BN, Dv), elem)
    const Shared<elem, BN, Dv, ST> Vs(smem);
//|     q_full, q_free = barrier(1, n=QB), barrier(1, n=QB)
    const Barriers<QB> q_full(smem, 1), q_free(smem, 1);
//|     o_full = barrier(1, n=QB * WG)                          # staged, by buffer and warpgroup
    const Barriers<QB * WG> o_full(smem, 4);
//|     k_full, k_free = barrier(1, n=ST), barrier(WG, n=ST)
    const Barriers<ST> k_full(smem, 1), k_free(smem, 4 * WG);
//|     v_full, v_free = barrier(1, n=ST), barrier(WG, n=ST)
    const Barriers<ST> v_full(smem, 1), v_free(smem, 4 * WG);
//|     turn = named_barrier(2, n=WG)
    const NamedBarriers turn(1);
//|     items = channel(4, takers=WG + 2)
    Channel<4> items(smem, 4 * WG + 2);
//|     begun = barrier(1)                                      # the load role has the last item that was decided
    const Barriers<1> begun(smem, 1);

//|     def key_tiles(b, h, i0, i1):
    auto key_tiles = [&](int b, int h, int i0, int i1) {
//|         whole = Sk // BN
        const int whole = Sk / BN;
//|         return [(whole, cdiv(Sk, BN), True), (0, whole, False)]
        return Ranges<2>{{whole, 0}, {cdiv(Sk, BN), whole}, {true, false}};
//|         # end
    };

//|     def scores(S, b, h, i0, n, masked):
    auto scores = [&](const float (&S)[TILE(BN)], int b, int h, int i0, int n, bool masked, float (&x)[TILE(BN)]) {
//|         i, j = rows(i0, R), cols(n * BN, BN)
        const Rows i(i0); const Cols j(n * BN);
//|         x = S
        EACH(e, x) x[e] = S[e];
//|         if masked:
        if (masked) {
//|             x = where(j < Sk, x, -inf)
            EACH(e, x) x[e] = (j.offset(CID(e)) < j.after(Sk)) ? x[e] : -INF;
//|             # end
        }
//|         return x
//|         # end
    };

//|     def refer(x, base, limit, row_sum):                     # moves the reference of rows that rose by more than SLACK
    auto refer = [&](const float (&x)[TILE(BN)], float (&base)[ROWS], float (&limit)[ROWS], float (&row_sum)[ROWS], float (&shrink)[ROWS], bool& moved, bool& ready) {
//|         shrink = full(R, 1.0)
        EACH_ROW(r) shrink[r] = 1.0f;
//|         moved = any(x * unit > limit)
        {
            float most[ROWS];
            thread_max_of(most, x);
            bool some = false;
            EACH_ROW(r) some = some | (most[r] * unit > limit[r]);
            moved = __any_sync(~0u, some);
        }
//|         if moved:
        if (moved) {
//|             top = x.amax(-1) * unit
            float top[ROWS];
            row_max_of(top, x);
            EACH_ROW(r) top[r] = top[r] * unit;
//|             up = top > limit
            bool up[ROWS];
            EACH_ROW(r) up[r] = top[r] > limit[r];
//|             shrink = where(up, where(limit == -inf, 0.0, exp2(base - top)), 1.0)
            EACH_ROW(r) shrink[r] = up[r] ? ((limit[r] == -INF) ? 0.f : exp2_fast(base[r] - top[r])) : 1.f;
//|             base = where(up, top, base)
            EACH_ROW(r) base[r] = up[r] ? top[r] : base[r];
//|             limit = where(up, top + SLACK, limit)
            EACH_ROW(r) limit[r] = up[r] ? top[r] + SLACK : limit[r];
//|             row_sum = row_sum * shrink
            EACH_ROW(r) row_sum[r] = row_sum[r] * shrink[r];
//|             # end
        }
//|         ready = not any(limit == -inf)                      # every row has a reference
        {
            bool some = false;
            EACH_ROW(r) some = some | (limit[r] == -INF);
            ready = !__any_sync(~0u, some);
        }
//|         return base, limit, row_sum, shrink, moved, ready
//|         # end
    };

//|     with role("decide", warps=1, registers=40):             # beside the copies, so that short items don't wait for it
    begin_roles();
    if (warpgroup == 0) fewer_registers<40>();
    if (warp == 0) {
//|         for w, (b, h, m) in enumerate(draw(ticket, B, Hq, cdiv(Sq, BM), order="by_head")):
        int w = 0;
        for (Draw<D + Dv> queue(args, ticket, BM, by_head); queue.next(b, h, m, Sq, Sk); ++w) {
//|             ranges = key_tiles(b, h, m * BM, minimum((m + 1) * BM, Sq))
            auto ranges = key_tiles(b, h, m * BM, min((m + 1) * BM, Sq));
//|             publish(items, (True, b, h, m, ranges))
            items.publish(true, b, h, m, ranges);
//|             wait(begun, w)                                  # what is drawn early can't be shared out when work runs out
            wait(begun[0], w);
//|             # end
        }
//|         publish(items, (False, 0, 0, 0, key_tiles(0, 0, 0, 0)))
        items.publish(false, 0, 0, 0, key_tiles(0, 0, 0, 0));
//|         # end
    }

//|     with role("load", warps=1, registers=40):
    if (warp == 1) { // its registers are those of its warpgroup: 40
//|         w, first = 0, 0                                     # item; step of the stream at which it begins
        int w = 0, first = 0;
//|         more, b, h, m, ranges = take(items)
        bool more; Taken<decltype(key_tiles(0, 0, 0, 0))> ranges;
        items.take(more, b, h, m, ranges);
        Sk = key_length(args, b);
//|         while more:
        while (more) {
//|             arrive(begun)
            arrive(begun[0]);
//|             y, q = divmod(w, QB)
            const int y = w / QB, q = w % QB;
//|             wait(q_free[q], y - 1)
            wait(q_free[q], y - 1);
//|             copy_async(Q[b, h, m * BM:(m + 1) * BM], Qs[q], signal=q_full[q])
            copy_async(Qs[q], Q.rows(b, h, m * BM, (m + 1) * BM), Sq, q_full[q]);
//|             n, before = 0, 0                                # tiles of this step and of the last one
            int n = 0, before = 0;
//|             for k in range(length(ranges) + 1):             # K goes one step ahead of V
            for (int k = 0, k_end = ranges.length() + 1; k < k_end; ++k) {
//|                 before = n
                before = n;
//|                 if k < length(ranges):
                if (k < ranges.length()) {
//|                     n, masked = pick(ranges, k)
                    bool masked;
                    ranges.pick(k, n, masked);
//|                     u, s = divmod(first + k, ST)
                    const int u = (first + k) / ST, s = (first + k) % ST;
//|                     wait(k_free[s], u - 1)
                    wait(k_free[s], u - 1);
//|                     copy_async(K[b, h // G, n * BN:(n + 1) * BN], Ks[s], signal=k_full[s])
                    copy_async(Ks[s], K.rows(b, h / G, n * BN, (n + 1) * BN), Sk, k_full[s]);
//|                     # end
                }
//|                 if k > 0:
                if (k > 0) {
//|                     u, s = divmod(first + k - 1, ST)
                    const int u = (first + k - 1) / ST, s = (first + k - 1) % ST;
//|                     wait(v_free[s], u - 1)
                    wait(v_free[s], u - 1);
//|                     copy_async(V[b, h // G, before * BN:(before + 1) * BN], Vs[s], signal=v_full[s])
                    copy_async(Vs[s], V.rows(b, h / G, before * BN, (before + 1) * BN), Sk, v_full[s]);
//|                     # end
                }
//|                 # end
            }
//|             first += length(ranges)
            first += ranges.length();
//|             w += 1
            ++w;
//|             more, b, h, m, ranges = take(items)
            items.take(more, b, h, m, ranges);
            Sk = key_length(args, b);
//|             # end
        }
//|         # end
    }

//|     with role("store", warps=1, registers=40):
    if (warp == 2) { // and its: 40
//|         w = 0
        int w = 0;
//|         more, b, h, m, ranges = take(items)
        bool more; Taken<decltype(key_tiles(0, 0, 0, 0))> ranges;
        items.take(more, b, h, m, ranges);
        Sk = key_length(args, b);
//|         while more:
        while (more) {
//|             y, q = divmod(w, QB)
            const int y = w / QB, q = w % QB;
//|             for g in range(WG):
            for (int g = 0; g < WG; ++g) {
//|                 wait(o_full[q * WG + g], y)
                wait(o_full[q * WG + g], y);
//|                 copy_async(Qs[q][g], Out[b, h, m * BM + g * R:m * BM + (g + 1) * R])
                copy_async(Out.rows(b, h, m * BM + g * R, m * BM + (g + 1) * R), Sq, Qs[q][g]);
//|                 # end
            }
//|             wait(Qs[q])                                     # the copies have read it
            wait_stores<0>();
//|             arrive(q_free[q])
            arrive(q_free[q]);
//|             w += 1
            ++w;
//|             more, b, h, m, ranges = take(items)
            items.take(more, b, h, m, ranges);
            Sk = key_length(args, b);
//|             # end
        }
//|         # end
    }

//|     with role("math", warpgroups=WG, registers=232) as g:
    if (warpgroup > 0) {
        more_registers<232>();
        const int g = warpgroup - 1;
//|         S = alloc(register, (R, BN), f32)
        float S[TILE(BN)];
//|         P = alloc(register, (R, BN), elem)
        Fragment<elem> P[FRAGMENTS(BN)];
//|         acc = alloc(register, (R, Dv), f32)
        float acc[TILE(Dv)];
//|         if g == WG - 1:
        if (g == WG - 1) {
//|             arrive(turn[0])                                 # the first turn is warpgroup 0's
            arrive(turn[0], 256);
//|             # end
        }
//|         w, it, k, q, u, s = 0, 0, 0, 0, 0, 0                # item, step, its step of the item, Q buffer, use and stage
        int w = 0, it = 0, k = 0, q = 0, u = 0, s = 0;
//|         more, b, h, m, ranges = take(items)
        bool more; Taken<decltype(key_tiles(0, 0, 0, 0))> ranges;
        items.take(more, b, h, m, ranges);
        Sk = key_length(args, b);
//|         busy = more
        const bool busy = more;
//|         if busy:
        int i0; float base[ROWS]; float limit[ROWS]; float row_sum[ROWS]; float shrink[ROWS]; bool ready;
        if (busy) {
//|             i0 = m * BM + g * R
            i0 = m * BM + g * R;
//|             base, limit, row_sum = full(R, 0.0), full(R, -inf), full(R, 0.0)
            EACH_ROW(r) base[r] = 0.f, limit[r] = -INF, row_sum[r] = 0.f;
//|             n, masked = pick(ranges, 0)
            int n; bool masked;
            ranges.pick(0, n, masked);
//|             wait(q_full[0], 0)
            wait(q_full[0], 0);
//|             wait(k_full[0], 0)
            wait(k_full[0], 0);
//|             gemm_async(Qs[0][g], Ks[0].T, out=S)
            gemm_async(S, Qs[0][g], transposed(Ks[0]));
//|             wait(S)
            wait_gemm<0>(S);
//|             arrive(k_free[0])
            arrive(k_free[0]);
//|             x = scores(S, b, h, i0, n, masked)
            float x[TILE(BN)];
            scores(S, b, h, i0, n, masked, x);
//|             base, limit, row_sum, shrink, moved, ready = refer(x, base, limit, row_sum)
            bool moved;
            refer(x, base, limit, row_sum, shrink, moved, ready);
//|             p = exp2(x * unit - base)
            float p[TILE(BN)];
            EACH(e, p) p[e] = exp2_fast(x[e] * unit - base[ROW(e)]);
//|             row_sum = row_sum + p.sum(-1)
            {
                float part[ROWS];
                row_sum_of(part, p);
                EACH_ROW(r) row_sum[r] = row_sum[r] + part[r];
            }
//|             P[:] = p
            pack(P, p);
//|             # end
        }
//|         while more:                                         # scores of this step beside P V of the one before, of any item
        bool start; float inv[ROWS];
        while (more) {
//|             t, v = s, u
            const int t = s, v = u;
//|             fresh = k + 1 == length(ranges)                 # the step before was its item's last
            const bool fresh = k + 1 == ranges.length();
//|             start = k == 0                                  # the step before was its item's first
            start = k == 0;
//|             k += 1
            ++k;
//|             old = q
            const int old = q;
//|             if fresh:
            if (fresh) {
//|                 total = complete(row_sum)
                float total[ROWS];
                EACH_ROW(r) total[r] = quad_sum(row_sum[r]);
//|                 inv = where(total > 0.0, 1.0 / total, 0.0)
                EACH_ROW(r) inv[r] = (total[r] > 0.f) ? rcp_fast(total[r]) : 0.f;
//|                 lse = where(total > 0.0, (base + log2(total)) * LN2, -inf)
                float lse[ROWS];
                EACH_ROW(r) lse[r] = (total[r] > 0.f) ? (base[r] + log2_fast(total[r])) * LN2 : -INF;
//|                 Lse[b, h, i0:i0 + R] = lse
                store_rows<float, R>(Lse.rows(b, h, i0, i0 + R), Sq, lse);
//|                 more, b, h, m, ranges = take(items)
                items.take(more, b, h, m, ranges);
                Sk = key_length(args, b);
//|                 if not more:
                if (!more) {
//|                     break
                    break;
//|                     # end
                }
//|                 w += 1
                ++w;
//|                 k = 0
                k = 0;
//|                 y, q = divmod(w, QB)
                const int y = w / QB;
                q = w % QB;
//|                 i0 = m * BM + g * R
                i0 = m * BM + g * R;
//|                 base, limit, row_sum = full(R, 0.0), full(R, -inf), full(R, 0.0)
                EACH_ROW(r) base[r] = 0.f, limit[r] = -INF, row_sum[r] = 0.f;
//|                 wait(q_full[q], y)
                wait(q_full[q], y);
//|                 # end
            }
//|             n, masked = pick(ranges, k)
            int n; bool masked;
            ranges.pick(k, n, masked);
//|             it += 1
            ++it;
//|             u, s = divmod(it, ST)
            u = it / ST, s = it % ST;
//|             wait(k_full[s], u)
            wait(k_full[s], u);
//|             sync(turn[g])
            sync(turn[g], 256);
//|             gemm_async(Qs[q][g], Ks[s].T, out=S)
            gemm_async(S, Qs[q][g], transposed(Ks[s]));
//|             wait(v_full[t], v)
            wait(v_full[t], v);
//|             gemm_async(P, Vs[t], out=acc, add=not start)
            gemm_async(acc, P, Vs[t], !start);
//|             arrive(turn[(g + 1) % WG])
            arrive(turn[(g + 1) % WG], 256);
//|             wait(S)
            wait_gemm<1>(S);
//|             x = scores(S, b, h, i0, n, masked)
            float x[TILE(BN)];
            scores(S, b, h, i0, n, masked, x);
//|             exact = fresh or not ready
            const bool exact = fresh || !ready;
//|             moved = False
            bool moved = false;
//|             if exact:
            if (exact) {
//|                 base, limit, row_sum, shrink, moved, ready = refer(x, base, limit, row_sum)
                refer(x, base, limit, row_sum, shrink, moved, ready);
//|                 # end
            }
//|             p = exp2(x * unit - base)
            float p[TILE(BN)];
            EACH(e, p) p[e] = exp2_fast(x[e] * unit - base[ROW(e)]);
//|             wait(acc)
            wait_gemm<0>(acc, P);
//|             arrive(v_free[t])
            arrive(v_free[t]);
//|             if fresh:                                       # that was the last P V of the item before
            if (fresh) {
//|                 acc[:] = acc * inv
                EACH(e, acc) acc[e] = acc[e] * inv[ROW(e)];
//|                 Qs[old][g][:] = acc
                store(Qs[old][g], acc);
//|                 fence(Qs[old][g])
                fence_async();
//|                 arrive(o_full[old * WG + g])
                arrive(o_full[old * WG + g]);
//|                 # end
            }
//|             part = p.sum(-1)
            float part[ROWS];
            row_sum_of(part, p);
//|             if not exact and any(part > LIMIT):             # the reference was too low: this tile again, with a search
            bool vote0;
            {
                bool some = false;
                EACH_ROW(r) some = some | (part[r] > LIMIT);
                vote0 = __any_sync(~0u, some);
            }
            if (!exact && vote0) {
//|                 gemm(Qs[q][g], Ks[s].T, out=S)
                gemm(S, Qs[q][g], transposed(Ks[s]));
//|                 x = scores(S, b, h, i0, n, masked)
                scores(S, b, h, i0, n, masked, x);
//|                 base, limit, row_sum, shrink, moved, ready = refer(x, base, limit, row_sum)
                refer(x, base, limit, row_sum, shrink, moved, ready);
//|                 p = exp2(x * unit - base)
                EACH(e, p) p[e] = exp2_fast(x[e] * unit - base[ROW(e)]);
//|                 part = p.sum(-1)
                row_sum_of(part, p);
//|                 # end
            }
//|             arrive(k_free[s])                               # only now: the tile might have been needed again
            arrive(k_free[s]);
//|             row_sum = row_sum + part
            EACH_ROW(r) row_sum[r] = row_sum[r] + part[r];
//|             P[:] = p
            pack(P, p);
//|             if moved and not fresh:
            if (moved && !fresh) {
//|                 acc[:] = acc * shrink
                EACH(e, acc) acc[e] = acc[e] * shrink[ROW(e)];
//|                 # end
            }
//|             # end
        }
//|         if busy:                                            # the last P V of the stream
        if (busy) {
//|             wait(v_full[s], u)
            wait(v_full[s], u);
//|             gemm_async(P, Vs[s], out=acc, add=not start)
            gemm_async(acc, P, Vs[s], !start);
//|             wait(acc)
            wait_gemm<0>(acc, P);
//|             arrive(v_free[s])
            arrive(v_free[s]);
//|             acc[:] = acc * inv
            EACH(e, acc) acc[e] = acc[e] * inv[ROW(e)];
//|             Qs[q][g][:] = acc
            store(Qs[q][g], acc);
//|             fence(Qs[q][g])
            fence_async();
//|             arrive(o_full[q * WG + g])
            arrive(o_full[q * WG + g]);
//|             # end
        }
//|         # end
    }
//|     # end
}
