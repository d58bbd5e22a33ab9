// A file in margin form, for the tests of lowering: the form of an expert, with a preamble of declarations only.
// SPDX-License-Identifier: Apache-2.0
#define PRELUDE(args) const int B = args.requests

//| @kernel(arch="sm_80", expert="prefill_sm80", ctas="items")
//| def attention(
extern "C" __global__ void __launch_bounds__(128, 2) attention(const __grid_constant__ cb_args args) {
    PRELUDE(args);
//|     Q: elem[B, Hq, Sq, D],
    const Tensor Q(args.q);
//|     K: elem[B, Hk, Sk, D],
    const Tensor K(args.k);
//|     V: elem[B, Hk, Sk, Dv],
    const Tensor V(args.v);
//|     Out: elem[B, Hq, Sq, Dv],
    const Tensor Out(args.o);
//|     Lse: f32[B, Hq, Sq],
    const Tensor Lse(args.lse);
//|     *, BM=128, BN=64, ST=1, W=4, D=128, Dv=128, elem=bf16):
    constexpr int BM = 128, BN = 64, ST = 1, W = 4, D = 128, Dv = 128;
    using elem = bf16;
//|     R = BM // W                                             # query rows of one warp
    const int R = BM / W;
//|     G = Hq // Hk                                            # query heads that share a key head
    const int G = Hq / Hk;
//|     unit = LOG2E / sqrt(D)                                  # a score times unit is a power of two
    const float unit = LOG2E / sqrtf((float)D);
//|     Qs = alloc(shared, (W, R, D), elem)                     # later stages the output
    const Shared<elem, D> Qs(smem.take<elem>(W * R, D), R);
//|     Ks = alloc(shared, (ST, BN, D), elem)
    const Shared<elem, D> Ks(smem.take<elem>(ST * BN, D), BN);
//|     Vs = alloc(shared, (ST, BN, Dv), elem)
    const Shared<elem, Dv> Vs(smem.take<elem>(ST * BN, Dv), BN);
//|     everyone = named_barrier(W)
    constexpr int everyone = 1;
//|     def key_tiles(b, h, i0, i1):                            # ranges of key tiles for rows i0 <= i < i1, and: needs a mask?
    auto key_tiles = [&](int b, int h, int i0, int i1) {
//|         whole = Sk // BN
        const int whole = Sk / BN;
//|         return [(whole, cdiv(Sk, BN), True), (0, whole, False)]
        return Ranges<2>{{whole, 0}, {cdiv(Sk, BN), whole}, {true, false}};
//|         # end
    };
//|     def attend(S, row_max, row_sum, b, h, i0, n, masked):
    auto attend = [&](const float (&S)[TILE(BN)], const float (&row_max)[ROWS], float (&row_sum)[ROWS], int b, int h, int i0, int n, bool masked, float (&p)[TILE(BN)], float (&new_max)[ROWS], float (&shrink)[ROWS]) {
//|         i, j = rows(i0, R), cols(n * BN, BN)
        const Rows i(i0);
        const Cols j(n * BN);
//|         x = S
        float x[TILE(BN)];
        EACH(e, x) x[e] = S[e];
//|         if masked:
        if (masked) {
//|             x = where(j < Sk, x, -inf)
            EACH(e, x) x[e] = j[CID(e)] < Sk ? x[e] : -INF;
//|             # end
        }
//|         new_max = maximum(row_max, x.amax(-1))
        {
            float part[ROWS];
            row_max_of(part, x);
            EACH_ROW(r) new_max[r] = fmaxf(row_max[r], part[r]);
        }
//|         ref = where(new_max == -inf, 0.0, new_max)          # a row without a key so far: no NaN
        float ref[ROWS];
        EACH_ROW(r) ref[r] = new_max[r] == -INF ? 0.0f : new_max[r];
//|         shrink = exp2(row_max * unit - ref * unit)
        EACH_ROW(r) shrink[r] = exp2_fast(row_max[r] * unit - ref[r] * unit);
//|         p = exp2(x * unit - ref * unit)
        EACH(e, p) p[e] = exp2_fast(x[e] * unit - ref[ROW(e)] * unit);
//|         row_sum = row_sum * shrink + p.sum(-1)
        {
            float part[ROWS];
            row_sum_of(part, p);
            EACH_ROW(r) row_sum[r] = row_sum[r] * shrink[r] + part[r];
        }
//|         return p, new_max, row_sum, shrink
//|         # end
    };
//|     with role("math", warps=W, registers=255) as g:
    if (const int g = threadIdx.x / 32; g < W) {
        static_assert(32 * W * 255 <= 65536, "registers");
//|         S = alloc(register, (R, BN), f32)
        float S[TILE(BN)];
//|         P = alloc(register, (R, BN), elem)
        Fragment P[FRAGMENTS(BN)];
//|         acc = alloc(register, (R, Dv), f32)
        float acc[TILE(Dv)];
//|         for b, h, m in bind(B, Hq, cdiv(Sq, BM), order="by_head"):
        int b, h, m;
        for (Items items(args, BM, by_head); items.next(b, h, m, Sq, Sk);) {
//|             i0 = m * BM + g * R
            const int i0 = m * BM + g * R;
//|             tiles = key_tiles(b, h, m * BM, minimum((m + 1) * BM, Sq))
            const auto tiles = key_tiles(b, h, m * BM, min((m + 1) * BM, Sq));
//|             row_max, row_sum = full(R, -inf), full(R, 0.0)
            float row_max[ROWS];
            EACH_ROW(r) row_max[r] = -INF;
            float row_sum[ROWS];
            EACH_ROW(r) row_sum[r] = 0.0f;
//|             acc[:] = 0.0
            EACH(e, acc) acc[e] = 0.0f;
//|             n, masked = pick(tiles, 0)
            int n; bool masked;
            tiles.pick(0, n, masked);
//|             copy_async(Q[b, h, m * BM:(m + 1) * BM], Qs)
            copy_async(Qs, Q.rows(b, h, m * BM, (m + 1) * BM), Sq);
//|             copy_async(K[b, h // G, n * BN:(n + 1) * BN], Ks[0])
            copy_async(Ks[0], K.rows(b, h / G, n * BN, (n + 1) * BN), Sk);
//|             for k in range(length(tiles)):
            for (int k = 0; k < tiles.length(); ++k) {
//|                 s = k % ST
                const int s = k % ST;
//|                 n, masked = pick(tiles, k)
                tiles.pick(k, n, masked);
//|                 wait(Ks[s])                                 # this warp's share of K, and of Q
                wait_copies<0>();
//|                 sync(everyone)                              # everyone's share; and all have read the V before
                bar_sync(everyone, 32 * W);
//|                 copy_async(V[b, h // G, n * BN:(n + 1) * BN], Vs[s])
                copy_async(Vs[s], V.rows(b, h / G, n * BN, (n + 1) * BN), Sk);
//|                 gemm(Qs[g], Ks[s].T, out=S)
                gemm(S, Qs[g], transposed(Ks[s]));
//|                 wait(Vs[s])
                wait_copies<0>();
//|                 sync(everyone)                              # V is whole; and all have read this K
                bar_sync(everyone, 32 * W);
//|                 if k + 1 < length(tiles):
                if (k + 1 < tiles.length()) {
//|                     y, unused = pick(tiles, k + 1)
                    int y; bool unused;
                    tiles.pick(k + 1, y, unused);
//|                     copy_async(K[b, h // G, y * BN:(y + 1) * BN], Ks[(k + 1) % ST])
                    copy_async(Ks[(k + 1) % ST], K.rows(b, h / G, y * BN, (y + 1) * BN), Sk);
//|                     # end
                }
//|                 p, row_max, row_sum, shrink = attend(S, row_max, row_sum, b, h, i0, n, masked)
                float p[TILE(BN)]; float shrink[ROWS];
                {
                    float new_max[ROWS];
                    attend(S, row_max, row_sum, b, h, i0, n, masked, p, new_max, shrink);
                    EACH_ROW(r) row_max[r] = new_max[r];
                }
//|                 acc[:] = acc * shrink
                EACH(e, acc) acc[e] = acc[e] * shrink[ROW(e)];
//|                 P[:] = p
                pack(P, p);
//|                 gemm(P, Vs[s], add=acc)
                gemm_add(acc, P, Vs[s]);
//|                 # end
            }
//|             total = complete(row_sum)                       # adds up what each thread holds of a row
            float total[ROWS];
            EACH_ROW(r) total[r] = quad_sum(row_sum[r]);
//|             inv = where(total > 0.0, 1.0 / total, 0.0)      # a row without a key gives 0
            float inv[ROWS];
            EACH_ROW(r) inv[r] = total[r] > 0.0f ? rcp_fast(total[r]) : 0.0f;
//|             lse = where(total > 0.0, (row_max * unit + log2(total)) * LN2, -inf)
            float lse[ROWS];
            EACH_ROW(r) lse[r] = total[r] > 0.0f ? (row_max[r] * unit + log2f(total[r])) * LN2 : -INF;
//|             Lse[b, h, i0:i0 + R] = lse
            store_rows(Lse.rows(b, h, i0, i0 + R), Sq, lse);
//|             acc[:] = acc * inv
            EACH(e, acc) acc[e] = acc[e] * inv[ROW(e)];
//|             Qs[g][:] = acc
            store(Qs[g], acc);
//|             copy(Qs[g], Out[b, h, i0:i0 + R])
            copy(Out.rows(b, h, i0, i0 + R), Sq, Qs[g]);
//|             sync(everyone)                                  # all have read their rows of Q and of the output
            bar_sync(everyone, 32 * W);
//|             # end
        }
//|         # end
    }
//|     # end
}
