// The portable expert: attention forward in the manner of FlashAttention-2, for sm_80 and up, in plain CUDA C++ with PTX.
// Its margin (the lines that begin with //|) is its CuIR: who does what, when data moves, what waits for what. See
// docs/cuir.md for the language and docs/lowering.md for the form. What stands before the first margin line is helpers;
// the argument block (docs/kernel-abi.md) is printed before it.
//
// Layout of a warp's values, which printing rules know by name only. Elements of a tile of C columns lie in a thread as
// x[e], e = (n * MT + m) * 4 + c: column group n of 8, row group m of 16 (MT = R / 16 of them), corner c as mma.sync
// has its accumulators. ROW(e) is the row slot, CID(e) the column slot: slot r is row 8 r + lane / 4 of the warp's rows,
// slot c is column 8 (c / 2) + c % 2 + 2 (lane % 4) of the tile. SPDX-License-Identifier: Apache-2.0
#define ROWS (R / 8)
#define COLS(C) (cdiv(C, 16) * 4)
#define TILE(C) (R / 16 * cdiv(C, 16) * 8)
#define FRAGMENTS(C) (R / 16 * cdiv(C, 16) * 4)
#define ROW(e) (((e) >> 2) % (R / 16) * 2 + (((e) >> 1) & 1))
#define CID(e) ((e) / (R / 4) * 2 + ((e) & 1))
constexpr int kThreads = 256; // at most; all 65536 registers are then 255 a thread
static __device__ __forceinline__ int warp_row() { return 0; } // an agent is a warp
#include "common.cuh"

// ---- Shared memory: cells of rows, 16 bytes the unit, exchanged within 128 so that neither copies nor ldmatrix conflict.
struct Smem { u32 next; MEMBER u32 take(u32 bytes) { const u32 at = next; next += (bytes + 127) / 128 * 128; return at; } };
template <class T, int H, int C> struct Cell {
    typedef T type; static constexpr int kRows = H, kColumns = C, kPitch = cdiv(C, 64) * 128;
    u32 base;
    MEMBER u32 address(int row, int chunk) const { return base + row * kPitch + ((chunk ^ (row & 7)) << 4); }
};
template <class T, int N, int H, int C> struct Shared : Cell<T, N * H, C> {
    MEMBER explicit Shared(Smem& smem) : Cell<T, N * H, C>{smem.take(N * H * Cell<T, H, C>::kPitch)} {}
    MEMBER Cell<T, H, C> operator[](int k) const { return {this->base + k * H * this->kPitch}; }
};
template <class T, int N, int C> struct SharedColumn { // column vectors, one a cell
    u32 base;
    MEMBER explicit SharedColumn(Smem& smem) : base(smem.take(N * C * sizeof(T))) {}
    struct Vector { typedef T type; static constexpr int kColumns = C; u32 at; MEMBER T operator()(int c) const { T x; const u32 a = at + (8 * (c / 2) + c % 2 + 2 * (lane_id() & 3)) * 4; asm volatile("ld.shared.b32 %0, [%1];" : "=r"((u32&)x) : "r"(a)); return x; } };
    MEMBER Vector operator[](int k) const { return {base + k * C * (u32)sizeof(T)}; }
};
template <class T, int H, int C> struct Transposed { Cell<T, H, C> of; };
template <class T, int H, int C> FN Transposed<T, H, C> transposed(const Cell<T, H, C>& x) { return {x}; }

// ---- Movement
FN void cp_async(u32 to, const void* from, int bytes) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory"); }
FN void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> FN void wait_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
FN void bar_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
template <int THREADS, class T, int H, int C> FN void copy_async(const Cell<T, H, C>& to, const Slice& from, int limit) {
    static_assert(C % 8 == 0 && sizeof(T) == 2, "rows are copied 16 bytes at a time");
    constexpr int kChunks = cdiv(C, 16) * 2; // columns that only fill up to 16 are zeros
    constexpr bool kEven = THREADS % kChunks == 0; // a thread then keeps its column and steps from row to row
    const int last = from.last(limit), row0 = (int)threadIdx.x / kChunks;
    const T* const begin = (const T*)from.data + from.at;
    const T* p = begin + (from.first + row0) * from.row + (int)threadIdx.x % kChunks * 8;
    UNROLL for (int k = 0; k < cdiv(H * kChunks, THREADS); ++k) {
        const int c = (int)threadIdx.x + k * THREADS, row = kEven ? row0 + k * (THREADS / kChunks) : c / kChunks, chunk = c % kChunks;
        if (H * kChunks % THREADS != 0 && c >= H * kChunks) break;
        if (!kEven) p = begin + (from.first + row) * from.row + chunk * 8;
        const bool there = from.first + row < last && (C % 16 == 0 || chunk < C / 8);
        cp_async(to.address(row, chunk), there ? p : begin, there ? 16 : 0);
        if (kEven) p += (THREADS / kChunks) * from.row;
    }
    commit_copies();
}
template <int THREADS, class V> FN void copy_async(const V& to, const Slice& from) { // of a column vector
    typedef typename V::type T;
    static_assert(sizeof(T) == 4, "4 bytes at a time");
    for (int c = threadIdx.x; c < V::kColumns; c += THREADS) {
        const bool there = from.first + c < from.end;
        const T* const p = (const T*)from.data + from.at + (there ? (from.first + c) * from.row : 0);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to.at + 4 * c), "l"(p), "r"(there ? 4 : 0) : "memory");
    }
    commit_copies();
}
template <class T, int H, int C> FN void copy(const Slice& to, int limit, const Cell<T, H, C>& from) { // by one warp
    constexpr int kChunks = C / 8;
    const int last = to.last(limit);
    T* const begin = (T*)to.data + to.at;
    __syncwarp();
    UNROLL for (int k = 0; k < cdiv(H * kChunks, 32); ++k) {
        const int c = lane_id() + k * 32, row = c / kChunks, chunk = c % kChunks;
        u32 x[4];
        if (to.first + row >= last || (H * kChunks % 32 != 0 && c >= H * kChunks)) continue;
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from.address(row, chunk)) : "memory");
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(begin + (to.first + row) * to.row + chunk * 8), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory");
    }
}
template <class T, int H, int C, int N> FN void store(const Cell<T, H, C>& to, const float (&x)[N]) { // a warp's own rows
    constexpr int MT = H / 16;
    const int lane = lane_id();
    UNROLL for (int n = 0; n < C / 8; ++n) UNROLL for (int r = 0; r < H / 8; ++r) {
        const int e = (n * MT + r / 2) * 4 + r % 2 * 2;
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(to.address(8 * r + lane / 4, n) + (lane & 3) * 4), "r"(pack2<T>(x[e], x[e + 1])) : "memory");
    }
}

// ---- Products
// Where a lane's row of a fragment lies: pairs of chunks differ from each other by an exchange within 128 bytes, a constant
// beyond; so does everything else from one address a lane.
template <int PITCH> struct Lines {
    u32 at;
    MEMBER Lines(u32 base, int row, int half) : at(base + row * PITCH + ((half ^ (row & 7)) << 4)) {}
    MEMBER u32 operator()(int rows, int pair) const { return (at ^ ((pair & 3) << 5)) + (pair >> 2) * 128 + rows * PITCH; }
};
template <class T, int MT, int M> FN void fragment(u32 (&a)[4], const Fragment<T> (&P)[M], int kk, int m) {
    UNROLL for (int half = 0; half < 2; ++half) UNROLL for (int r = 0; r < 2; ++r) a[2 * half + r] = P[((2 * kk + half) * MT + m) * 2 + r].bits;
}
template <class T, int H, int C, int W, int N> FN void gemm(float (&x)[N], const Cell<T, H, C>& A, const Transposed<T, W, C>& B) {
    constexpr int MT = H / 16;
    const int lane = lane_id();
    const Lines<Cell<T, H, C>::kPitch> of_a(A.base, lane & 15, lane >> 4);
    const Lines<Cell<T, H, C>::kPitch> of_b(B.of.base, (lane & 7) + (lane >> 4) * 8, lane >> 3 & 1);
    UNROLL for (int e = 0; e < N; ++e) x[e] = 0.f;
    UNROLL for (int k = 0; k < cdiv(C, 16); ++k) {
        u32 a[MT][4];
        UNROLL for (int m = 0; m < MT; ++m) ldmatrix(a[m], of_a(16 * m, k));
        UNROLL for (int n = 0; n < W / 16; ++n) {
            u32 b[4];
            ldmatrix(b, of_b(16 * n, k));
            UNROLL for (int m = 0; m < MT; ++m) {
                mma<T>(x + (2 * n * MT + m) * 4, a[m], b[0], b[1]);
                mma<T>(x + ((2 * n + 1) * MT + m) * 4, a[m], b[2], b[3]);
            }
        }
    }
}
template <class T, int M, int C, int W, int N> FN void gemm(float (&x)[N], const Fragment<T> (&A)[M], const Transposed<T, W, C>& B) {
    constexpr int MT = M / (cdiv(C, 16) * 4);
    const int lane = lane_id();
    const Lines<Cell<T, W, C>::kPitch> of_b(B.of.base, (lane & 7) + (lane >> 4) * 8, lane >> 3 & 1);
    UNROLL for (int e = 0; e < N; ++e) x[e] = 0.f;
    UNROLL for (int k = 0; k < cdiv(C, 16); ++k) UNROLL for (int n = 0; n < W / 16; ++n) {
        u32 a[4], b[4];
        ldmatrix(b, of_b(16 * n, k));
        UNROLL for (int m = 0; m < MT; ++m) {
            fragment<T, MT>(a, A, k, m);
            mma<T>(x + (2 * n * MT + m) * 4, a, b[0], b[1]);
            mma<T>(x + ((2 * n + 1) * MT + m) * 4, a, b[2], b[3]);
        }
    }
}
template <class T, int M, int H, int C, int N> FN void gemm_add(float (&x)[N], const Fragment<T> (&A)[M], const Cell<T, H, C>& B) {
    constexpr int MT = M / (H / 16 * 4);
    const Lines<Cell<T, H, C>::kPitch> of_b(B.base, lane_id() & 15, lane_id() >> 4);
    UNROLL for (int k = 0; k < H / 16; ++k) UNROLL for (int n = 0; n < cdiv(C, 16); ++n) {
        u32 a[4], b[4];
        ldmatrix_transposed(b, of_b(16 * k, n));
        UNROLL for (int m = 0; m < MT; ++m) {
            fragment<T, MT>(a, A, k, m);
            mma<T>(x + (2 * n * MT + m) * 4, a, b[0], b[1]);
            mma<T>(x + ((2 * n + 1) * MT + m) * 4, a, b[2], b[3]);
        }
    }
}
template <class T, int M, int H, int C> FN void load(Fragment<T> (&A)[M], const Cell<T, H, C>& from) { // a warp's own rows
    constexpr int MT = H / 16;
    const Lines<Cell<T, H, C>::kPitch> of(from.base, lane_id() & 15, lane_id() >> 4);
    UNROLL for (int k = 0; k < cdiv(C, 16); ++k) UNROLL for (int m = 0; m < MT; ++m) {
        u32 a[4];
        ldmatrix(a, of(16 * m, k));
        UNROLL for (int half = 0; half < 2; ++half) UNROLL for (int r = 0; r < 2; ++r) A[((2 * k + half) * MT + m) * 2 + r].bits = a[2 * half + r];
    }
}

// ---- Work
enum Order { by_head, heaviest_first };
struct Items { // work items of this CTA
    const cb_args& args; const int rows, order, count; i64 at; // count: heads, where they are not those of q
    MEMBER Items(const cb_args& a, int BM, Order o, int heads = 0) : args(a), rows(cdiv(a.max_q, BM)), order(o), count(heads > 0 ? heads : a.heads_q), at(blockIdx.x) {}
    MEMBER bool next(int& b, int& h, int& m, int& Sq, int& Sk) {
        const i64 heads = (i64)args.requests * count;
        if (at >= heads * rows) return false;
        const int bh = (int)(order == by_head ? at / rows : at % heads);
        m = rows - 1 - (int)(order == by_head ? at % rows : at / heads);
        b = bh / count;
        h = bh % count + args.head_begin * (count / args.heads_q); // count may be T heads for one
        Sq = args.max_q;
        Sk = key_length(args, b);
        at += gridDim.x;
        return true;
    }
};

//| @kernel(arch="sm_80", expert="prefill_sm80", ctas="items")
//| def attention(
extern "C" __global__ void __launch_bounds__(kThreads) attention(const __grid_constant__ cb_args args) {
    extern __shared__ __align__(1024) char raw[];
    Smem smem = {shared_address(raw)};
    const int B = args.requests, Hq = args.heads_q, Hk = args.heads_kv;
    int b = 0, h = 0, m = 0, Sq = args.max_q, Sk = args.max_kv;
//|     Q: elem[B, Hq, Sq, D],
    const Tensor Q(args.q, args.head_begin);
//|     K: elem[B, Hk, Sk, D],
    const Tensor K(args.k, args.head_begin / (Hq / Hk));
//|     V: elem[B, Hk, Sk, Dv],
    const Tensor V(args.v, args.head_begin / (Hq / Hk));
//|     Out: elem[B, Hq, Sq, Dv],
    const Tensor Out(args.o, args.head_begin);
//|     Lse: f32[B, Hq, Sq],
    const Tensor Lse(args.lse, args.head_begin);
//|     *, BM=128, BN=64, ST=1, W=4, D=128, Dv=128, elem=bf16):
    constexpr int BM = 128, BN = 64, ST = 1, W = 4, D = 128, Dv = 128;
    using elem = bf16;
//|     R = BM // W                                             # query rows of one warp
    constexpr int R = BM / W;
//|     G = Hq // Hk                                            # query heads that share a key head
    const int G = Hq / Hk;
//|     unit = LOG2E / sqrt(D)                                  # a score times unit is a power of two
    const float unit = LOG2E / sqrtf((float)D);
//|     Qs = alloc(shared, (W, R, D), elem)                     # later stages the output
    const Shared<elem, W, R, D> Qs(smem);
//|     Ks = alloc(shared, (ST, BN, D), elem)
    const Shared<elem, ST, BN, D> Ks(smem);
//|     Vs = alloc(shared, (ST, BN, Dv), elem)
    const Shared<elem, ST, BN, Dv> Vs(smem);
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
        const Rows i(i0); const Cols j(n * BN);
//|         x = S
        float x[TILE(BN)];
        EACH(e, x) x[e] = S[e];
//|         if masked:
        if (masked) {
//|             x = where(j < Sk, x, -inf)
            EACH(e, x) x[e] = (j.offset(CID(e)) < j.after(Sk)) ? x[e] : -INF;
//|             # end
        }
//|         new_max = maximum(row_max, x.amax(-1))
        row_max_of(new_max, x);
        EACH_ROW(r) new_max[r] = fmaxf(row_max[r], new_max[r]);
//|         ref = where(new_max == -inf, 0.0, new_max)          # a row without a key so far: no NaN
        float ref[ROWS];
        EACH_ROW(r) ref[r] = (new_max[r] == -INF) ? 0.f : new_max[r];
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
    {
        static_assert(32 * W <= kThreads && R % 16 == 0 && BN % 16 == 0, "a warp owns whole fragments");
        const int g = uniform(threadIdx.x / 32);
//|         S = alloc(register, (R, BN), f32)
        float S[TILE(BN)];
//|         P = alloc(register, (R, BN), elem)
        Fragment<elem> P[FRAGMENTS(BN)];
//|         acc = alloc(register, (R, Dv), f32)
        float acc[TILE(Dv)];
//|         for b, h, m in bind(B, Hq, cdiv(Sq, BM), order="by_head"):
        for (Items items(args, BM, by_head); items.next(b, h, m, Sq, Sk);) {
//|             i0 = m * BM + g * R
            const int i0 = m * BM + g * R;
//|             copy_async(Q[b, h, m * BM:(m + 1) * BM], Qs)     # on its way while key tiles are decided
            copy_async<32 * W>(Qs, Q.rows(b, h, m * BM, (m + 1) * BM), Sq);
//|             tiles = key_tiles(b, h, m * BM, minimum((m + 1) * BM, Sq))
            auto tiles = key_tiles(b, h, m * BM, min((m + 1) * BM, Sq));
//|             row_max, row_sum = full(R, -inf), full(R, 0.0)
            float row_max[ROWS], row_sum[ROWS];
            EACH_ROW(r) row_max[r] = -INF, row_sum[r] = 0.f;
//|             acc[:] = 0.0
            EACH(e, acc) acc[e] = 0.f;
//|             n, masked = pick(tiles, 0)
            int n; bool masked;
            tiles.pick(0, n, masked);
//|             copy_async(K[b, h // G, n * BN:(n + 1) * BN], Ks[0])
            copy_async<32 * W>(Ks[0], K.rows(b, h / G, n * BN, (n + 1) * BN), Sk);
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
                copy_async<32 * W>(Vs[s], V.rows(b, h / G, n * BN, (n + 1) * BN), Sk);
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
                    copy_async<32 * W>(Ks[(k + 1) % ST], K.rows(b, h / G, y * BN, (y + 1) * BN), Sk);
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
            EACH_ROW(r) inv[r] = (total[r] > 0.f) ? rcp_fast(total[r]) : 0.f;
//|             lse = where(total > 0.0, (row_max * unit + log2(total)) * LN2, -inf)
            float lse[ROWS];
            EACH_ROW(r) lse[r] = (total[r] > 0.f) ? (row_max[r] * unit + log2_fast(total[r])) * LN2 : -INF;
//|             Lse[b, h, i0:i0 + R] = lse
            store_rows<float, R>(Lse.rows(b, h, i0, i0 + R), Sq, lse);
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
