// What kernels for sm_90a share: barriers with phases, shared memory in swizzled cells, the copy engine, wgmma, registers that
// move between warpgroups. After common.cuh, whose layout of values is that of wgmma here. SPDX-License-Identifier: Apache-2.0
// ---- What is the same in all lanes: redux writes a uniform register, so that branches and descriptors stay uniform too.
FN int same(int x) { int y; asm volatile("redux.sync.or.b32 %0, %1, 0xffffffff;" : "=r"(y) : "r"(x)); return y; }

// ---- Barriers. A barrier with phases counts warps; phase -1 is complete from the start.
struct Barrier { u32 at; };
FN void wait(Barrier b, int phase) {
    u32 done;
    do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(b.at), "r"(phase & 1) : "memory");
    } while (!done);
}
FN void arrive(Barrier b) { __syncwarp(); if (lane_id() == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b.at) : "memory"); }
FN void expect(Barrier b, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b.at), "r"(bytes) : "memory"); }
struct NamedBarrier { int id; };
struct NamedBarriers { int first; MEMBER explicit NamedBarriers(int id) : first(id) {} MEMBER NamedBarrier operator[](int k) const { return {first + k}; } };
FN void sync(NamedBarrier b, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(b.id), "r"(threads) : "memory"); }
FN void arrive(NamedBarrier b, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(b.id), "r"(threads) : "memory"); }

// ---- Shared memory: a cell is panels of 64 columns, 128 bytes a row, 16-byte chunks exchanged as the 128-byte swizzle does.
struct Smem {
    u32 next;
    MEMBER u32 take(u32 bytes, u32 alignment) { const u32 at = (next + alignment - 1) / alignment * alignment; next = at + bytes; return at; }
    MEMBER u32 barriers(int n, int arrivals) {
        const u32 at = take(8 * n, 8);
        if (threadIdx.x == 0)
            for (int k = 0; k < n; ++k) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at + 8 * k), "r"(arrivals) : "memory");
        return at;
    }
};
template <int N> struct Barriers {
    u32 at;
    MEMBER Barriers(Smem& smem, int arrivals) : at(smem.barriers(N, arrivals)) {}
    MEMBER Barrier operator[](int k) const { return {at + 8 * k}; }
    MEMBER operator Barrier() const { return {at}; }
};
template <class T, int H, int C> struct Cell {
    typedef T type; static constexpr int kRows = H, kColumns = C, kPanel = H * 128, kPanels = cdiv(C, 64), kBytes = kPanels * kPanel;
    u32 base;
    MEMBER u32 address(int row, int chunk) const { return base + (chunk >> 3) * kPanel + row * 128 + (((chunk & 7) ^ (row & 7)) << 4); }
};
template <class T, int H, int C, int N, int... M> struct Cells { // N groups of cells
    typedef Cells<T, H, C, M...> Part;
    typedef Cell<T, H, C> One;
    static constexpr int kCells = N * Part::kCells;
    u32 base;
    MEMBER Part operator[](int k) const { return {base + k * Part::kCells * One::kBytes}; }
};
template <class T, int H, int C, int N> struct Cells<T, H, C, N> {
    typedef Cell<T, H, C> One;
    static constexpr int kCells = N;
    u32 base;
    MEMBER One operator[](int k) const { return {base + k * One::kBytes}; }
};
template <class T, int H, int C, int... N> struct Shared : Cells<T, H, C, N...> {
    MEMBER explicit Shared(Smem& smem) : Cells<T, H, C, N...>{smem.take(Cells<T, H, C, N...>::kCells * Cell<T, H, C>::kBytes, 1024)} {}
};
template <class T, int H, int C> struct Transposed { Cell<T, H, C> of; };
template <class T, int H, int C> FN Transposed<T, H, C> transposed(const Cell<T, H, C>& x) { return {x}; }

// ---- Movement by the copy engine. A map has two dims with the stride of a row: coordinates kFar - n + r and n lead to row r,
// and the first is out of bounds from row n on, whatever n is (docs/kernel-abi.md; kFar wraps away in the last dim). Where
// rows are taken by steps, so are those of the map, from `low` on, and n counts them. K and V may have a map of each kind.
constexpr int kFar = 1 << 30;
struct Box : Slice { const cb_map* map; int h, y; }; // y: of row 0
struct Mapped : Tensor {
    const cb_map &map, &steps; const int of_rows, of_heads; // what a request adds to either coordinate
    MEMBER Mapped(const cb_args& args, int which, const cb_tensor& tensor, int first_head)
        : Tensor(tensor, first_head), map(args.map[which]), steps(args.map[which == 1 || which == 2 ? which + 3 : which]), of_rows(args.map_rows[which]), of_heads(args.map_heads[which]) {}
    MEMBER Box rows(int b, int h, int first, int end, int step = 1) const { return {Tensor::rows(b, h, first, end, step), step == 1 ? &map : &steps, h - h0 + b * of_heads, b * of_rows}; }
};
template <class T, int H, int C> FN void load_box(u32 to, const Box& from, int first, int limit, Barrier full) {
    const int n = max(from.last(limit), 0), y = from.y + n * from.step + from.low;
    UNROLL for (int k = 0; k < cdiv(C, 64); ++k)
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
                     ::"r"(to + k * H * 128), "l"(from.map), "r"(full.at), "r"(64 * k), "r"(kFar - n + first), "r"(from.h), "r"(y), "r"(kFar) : "memory");
}
template <class T, int H, int C> FN void copy_async(const Cell<T, H, C>& to, const Box& from, int limit, Barrier full) {
    if (lane_id() == 0) {
        expect(full, Cell<T, H, C>::kBytes);
        load_box<T, H, C>(to.base, from, from.first, limit, full);
    }
    __syncwarp();
}
template <class T, int H, int C, int N> FN void copy_async(const Cells<T, H, C, N>& to, const Box& from, int limit, Barrier full) {
    if (lane_id() == 0) {
        expect(full, N * Cell<T, H, C>::kBytes);
        UNROLL for (int g = 0; g < N; ++g) load_box<T, H, C>(to[g].base, from, from.first + g * H, limit, full);
    }
    __syncwarp();
}
template <class T, int H, int C> FN void copy_async(const Box& to, int limit, const Cell<T, H, C>& from) {
    if (lane_id() == 0) {
        const int n = max(to.last(limit), 0), y = to.y + n * to.step + to.low;
        UNROLL for (int k = 0; k < cdiv(C, 64); ++k)
            asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];"
                         ::"l"(to.map), "r"(from.base + k * H * 128), "r"(64 * k), "r"(kFar - n + to.first), "r"(to.h), "r"(y), "r"(kFar) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
    __syncwarp();
}
template <int N> FN void wait_stores() { if (lane_id() == 0) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); __syncwarp(); }
FN void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
template <class T, int H, int C, int N> FN void store(const Cell<T, H, C>& to, const float (&x)[N]) { // a warp's own rows
    const int row = warp_row() + (lane_id() & 15);
    UNROLL for (int k = 0; k < cdiv(C, 16); ++k)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to.address(row, 2 * k + (lane_id() >> 4))), "r"(pack2<T>(x[8 * k], x[8 * k + 1])),
                     "r"(pack2<T>(x[8 * k + 2], x[8 * k + 3])), "r"(pack2<T>(x[8 * k + 4], x[8 * k + 5])), "r"(pack2<T>(x[8 * k + 6], x[8 * k + 7])) : "memory");
}

// ---- Products. A matrix descriptor: start / 16, leading offset / 16 << 16, then stride 1024 bytes and the 128-byte swizzle,
// which are the same for all: low words are what is passed around and advanced.
FN u32 descriptor(u32 address, u32 leading) { return (address & 0x3FFFF) >> 4 | (leading >> 4) << 16; }
FN void gemm_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
FN void gemm_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
#include "wgmma.cuh"
template <class T, int H, int C, int W, int N> FN void gemm_async(float (&x)[N], const Cell<T, H, C>& A, const Transposed<T, W, C>& B) {
    static_assert(H == 64 && 2 * N == W && W % 16 == 0, "64 rows a warpgroup");
    const u32 a = descriptor(A.base, 16), b = descriptor(B.of.base, 16);
    gemm_fence();
    UNROLL for (int k = 0; k < cdiv(C, 16); ++k)
        Step<T>::shared(x, a + k / 4 * (H * 8) + k % 4 * 2, b + k / 4 * (W * 8) + k % 4 * 2, k != 0 ? 1 : 0);
    gemm_commit();
}
template <class T, int M, int H, int C, int N> FN void gemm_async(float (&x)[N], const Fragment<T> (&A)[M], const Cell<T, H, C>& B, bool add) {
    static_assert(4 * M == H && N == TILE(C), "the weights of a tile");
    const u32 b = descriptor(B.base, Cell<T, H, C>::kPanel);
    gemm_fence();
    UNROLL for (int k = 0; k < H / 16; ++k) {
        const u32 a[4] = {A[4 * k].bits, A[4 * k + 1].bits, A[4 * k + 2].bits, A[4 * k + 3].bits};
        Step<T>::registers(x, a, b + k * 128, k != 0 || add ? 1 : 0);
    }
    gemm_commit();
}
// The waits name what becomes readable, so that no use of it moves above them.
template <int N> FN void readable(float (&x)[N]) { UNROLL for (int e = 0; e < N; ++e) asm volatile("" : "+f"(x[e])::"memory"); }
template <class T, int M> FN void readable(Fragment<T> (&A)[M]) { UNROLL for (int k = 0; k < M; ++k) asm volatile("" : "+r"(A[k].bits)::"memory"); }
template <int PENDING, class... X> FN void wait_gemm(X&... x) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
    (readable(x), ...);
}
// The same product by each warp alone, for its 16 rows (mma.sync has the accumulators of wgmma): small rather than fast.
template <class T, int H, int C, int W, int N> FN void gemm(float (&x)[N], const Cell<T, H, C>& A, const Transposed<T, W, C>& B) {
    const int lane = lane_id();
    UNROLL for (int e = 0; e < N; ++e) x[e] = 0.f;
    _Pragma("unroll 1") for (int k = 0; k < cdiv(C, 16); ++k) {
        u32 a[4], b[4];
        ldmatrix(a, A.address(warp_row() + (lane & 15), 2 * k + (lane >> 4)));
        const u32 row = B.of.address((lane & 7) + (lane >> 4) * 8, 2 * k + (lane >> 3 & 1));
        UNROLL for (int n = 0; n < W / 16; ++n) {
            ldmatrix(b, row + n * 16 * 128);
            mma<T>(x + 8 * n, a, b[0], b[1]);
            mma<T>(x + 8 * n + 4, a, b[2], b[3]);
        }
    }
    __syncwarp();
}

// ---- Roles. Registers are moved between warpgroups, not warps.
FN void begin_roles() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); __syncthreads(); }
template <int N> FN void fewer_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> FN void more_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }
