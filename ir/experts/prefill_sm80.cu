// The portable expert: attention forward in the manner of FlashAttention-2, for sm_80 and up, in plain CUDA C++ with PTX.
// Its margin (the lines that begin with //|) is its CuIR: who does what, when data moves, what waits for what. See
// docs/cuir.md for the language and docs/lowering.md for the form. What stands before the first margin line is helpers;
// the argument block (docs/kernel-abi.md) is printed before it.
//
// Layout of a warp's values, which printing rules know by name only. Elements of a tile of C columns lie in a thread as
// x[e], e = (n * MT + m) * 4 + c: column group n of 8, row group m of 16 (MT = R / 16 of them), corner c as mma.sync
// has its accumulators. ROW(e) is the row slot, CID(e) the column slot: slot r is row 8 r + lane / 4 of the warp's rows,
// slot c is column 8 (c / 2) + c % 2 + 2 (lane % 4) of the tile. SPDX-License-Identifier: Apache-2.0
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct bf16 { unsigned short bits; };
struct f16 { unsigned short bits; };
constexpr int kThreads = 256; // at most; all 65536 registers are then 255 a thread
constexpr float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;
#define FN static __device__ __forceinline__
#define MEMBER __device__ __forceinline__
#define INF __int_as_float(0x7f800000)
#define UNROLL _Pragma("unroll")
#define ROWS (R / 8)
#define COLS(C) (cdiv(C, 16) * 4)
#define TILE(C) (R / 16 * cdiv(C, 16) * 8)
#define FRAGMENTS(C) (R / 16 * cdiv(C, 16) * 4)
#define ROW(e) (((e) >> 2) % (R / 16) * 2 + (((e) >> 1) & 1))
#define CID(e) ((e) / (R / 4) * 2 + ((e) & 1))
#define EACH(e, x) UNROLL for (int e = 0; e < (int)(sizeof(x) / sizeof(x[0])); ++e)
#define EACH_ROW(r) UNROLL for (int r = 0; r < ROWS; ++r)
#define EACH_COL(c, C) UNROLL for (int c = 0; c < COLS(C); ++c)
static __host__ __device__ __forceinline__ constexpr int cdiv(int a, int b) { return (a + b - 1) / b; }
FN int lane_id() { return threadIdx.x % 32; }
FN int uniform(int x) { return __shfl_sync(~0u, x, 0); }
FN u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// ---- Numbers
FN int floor_div(int a, int b) { return b == 0 ? 0 : a / b - (a % b != 0 && (a % b < 0) != (b < 0)); } // Python's
FN int mod(int a, int b) { return b == 0 ? 0 : a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0); }
FN int clamp(int x, int lo, int hi) { return min(max(x, lo), hi); }
FN int bounded(int x) { return clamp(x, -(1 << 29), 1 << 29); } // what an operand brings to a sum: beyond all lengths, and no overflow
FN int bounded(i64 x) { return (int)max(min(x, (i64)1 << 29), -((i64)1 << 29)); }
FN float exp2_fast(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
FN float log2_fast(float x) { float y; asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
FN float rcp_fast(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
FN float tanh_fast(float x) { float y; asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
FN float sigmoid(float x) { return rcp_fast(1.f + exp2_fast(x * -LOG2E)); }
template <class T> FN u32 pack2(float lo, float hi);
template <> MEMBER u32 pack2<bf16>(float lo, float hi) { u32 d; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo)); return d; }
template <> MEMBER u32 pack2<f16>(float lo, float hi) { u32 d; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo)); return d; }
FN float widen(float x) { return x; }
FN float widen(double x) { return (float)x; }
FN float widen(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
FN float widen(f16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y; }
FN int widen(int x) { return x; }
FN int widen(i64 x) { return (int)max(min(x, (i64)0x7fffffff), -(i64)0x7fffffff - 1); }
FN int widen(short x) { return x; }
FN int widen(signed char x) { return x; }
FN int widen(unsigned char x) { return x; }
FN bool widen(bool x) { return x; }
template <class T> FN void narrow(T* p, float x);
template <> MEMBER void narrow<float>(float* p, float x) { *p = x; }
template <> MEMBER void narrow<bf16>(bf16* p, float x) { p->bits = (unsigned short)pack2<bf16>(x, 0.f); }
template <> MEMBER void narrow<f16>(f16* p, float x) { p->bits = (unsigned short)pack2<f16>(x, 0.f); }

// ---- Global memory. Strides are 64-bit; a slice of rows clips: loads give 0 beyond its end, stores vanish.
struct Slice { void* data; i64 at, row; int first, end; };
struct Tensor { // heads are counted from the model's first: h0 is this rank's first
    const cb_tensor& t; const int h0;
    MEMBER Tensor(const cb_tensor& tensor, int first_head) : t(tensor), h0(first_head) {}
    MEMBER Slice rows(int b, int h, int first, int end) const { return {t.data, b * t.outer + (h - h0) * t.head, t.row, first, end}; }
    template <class T> MEMBER T* element(int b, int h, int i, int d = 0) const { return (T*)t.data + (b * t.outer + (h - h0) * t.head + i * t.row + d); }
};
template <class T, int N> struct Operand { // of the variant; an index out of range is clamped; of rank 0: x()
    const cb_operand& o; const int& request;
    MEMBER Operand(const cb_operand& operand, const int& b) : o(operand), request(b) {}
    MEMBER int size(int axis) const { return (int)o.size[axis]; }
    MEMBER i64 begin() const { return o.begin ? (i64)o.begin[request] : request * o.per_request; }
    MEMBER i64 axis(int k, i64 index) const { return max((i64)0, min(index, o.size[k] - 1)) * o.stride[k]; }
    template <class... I> MEMBER auto operator()(I... index) const {
        typedef decltype(widen(T{})) V;
        if (N == 0 && o.data == nullptr) return (V)o.value;
        i64 at = begin();
        int k = 0;
        ((at += axis(k++, index)), ...);
        return (V)widen(((const T*)o.data)[at]);
    }
    template <class... I> MEMBER Slice span(I... index) const { // indices, then first and end along the last axis
        const int at[] = {index...};
        i64 from = begin();
        UNROLL for (int k = 0; k < N - 1; ++k) from += axis(k, at[k]);
        return {(void*)o.data, from, o.stride[N - 1], at[N - 1], (int)min((i64)at[N], o.size[N - 1])};
    }
    MEMBER Slice rows(int b, int h, int first, int end) const { return {(void*)o.data, begin() + axis(0, b) + axis(1, h), o.stride[2], first, end}; }
};
template <class T, int N> struct Work { // of this launch, row major; `end` goes past it
    T* p; i64 size[N];
    template <class... I> MEMBER Work(void* workspace, i64& end, I... sizes) : p((T*)((char*)workspace + end)), size{sizes...} {
        i64 bytes = sizeof(T);
        UNROLL for (int k = 0; k < N; ++k) bytes *= size[k];
        end += (bytes + 255) / 256 * 256;
    }
    template <class... I> MEMBER T& operator()(I... index) const { i64 at = 0; int k = 0; ((at = at * size[k] + max((i64)0, min((i64)index, size[k] - 1)), ++k), ...); return p[at]; }
    MEMBER Slice rows(int b, int h, int first, int end) const { return {p, (b * size[1] + h) * size[2] * (N > 3 ? size[N - 1] : 1), N > 3 ? size[N - 1] : 1, first, end}; }
};

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
    const int last = min(from.end, limit), row0 = (int)threadIdx.x / kChunks;
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
    const int last = min(to.end, limit);
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
template <class T, int R, int C, int N> FN void store_tile(const Slice& to, int limit, const float (&x)[N]) {
    constexpr int MT = R / 16;
    const int lane = lane_id(), last = min(to.end, limit);
    UNROLL for (int r = 0; r < R / 8; ++r) {
        const int row = to.first + 8 * r + lane / 4;
        if (row >= last) continue;
        T* const p = (T*)to.data + to.at + row * to.row + (lane & 3) * 2;
        UNROLL for (int n = 0; n < C / 8; ++n) {
            const int e = (n * MT + r / 2) * 4 + r % 2 * 2;
            if constexpr (sizeof(T) == 2)
                *(u32*)(p + 8 * n) = pack2<T>(x[e], x[e + 1]);
            else
                narrow(p + 8 * n, x[e]), narrow(p + 8 * n + 1, x[e + 1]);
        }
    }
}
template <class T, int R> FN void store_rows(const Slice& to, int limit, const float (&x)[R / 8]) {
    const int last = min(to.end, limit);
    UNROLL for (int r = 0; r < R / 8; ++r) {
        const int row = to.first + 8 * r + lane_id() / 4;
        if (row < last && (lane_id() & 3) == 0) narrow((T*)to.data + to.at + row * to.row, x[r]);
    }
}

// ---- Rows and columns
struct Rows { int first; MEMBER explicit Rows(int i) : first(i + lane_id() / 4) {} MEMBER int operator[](int r) const { return first + 8 * r; } };
struct Cols {
    int first; float low;
    MEMBER explicit Cols(int j) : first(j + 2 * (lane_id() & 3)), low((float)first) {}
    MEMBER int operator[](int c) const { return first + 8 * (c / 2) + c % 2; }
    MEMBER float real(int c) const { return low + (float)(8 * (c / 2) + c % 2); }
};
FN float quad_max(float x) { x = fmaxf(x, __shfl_xor_sync(~0u, x, 1)); return fmaxf(x, __shfl_xor_sync(~0u, x, 2)); }
FN float quad_sum(float x) { x += __shfl_xor_sync(~0u, x, 1); return x + __shfl_xor_sync(~0u, x, 2); }
template <int M, int N> FN void row_max_of(float (&m)[M], const float (&x)[N]) { // of whole rows
    UNROLL for (int r = 0; r < M; ++r) m[r] = -INF;
    UNROLL for (int e = 0; e < N; ++e) { const int r = (e >> 2) % (M / 2) * 2 + (e >> 1 & 1); m[r] = fmaxf(m[r], x[e]); }
    UNROLL for (int r = 0; r < M; ++r) m[r] = quad_max(m[r]);
}
template <int M, int N> FN void row_sum_of(float (&m)[M], const float (&x)[N]) { // what this thread holds
    UNROLL for (int r = 0; r < M; ++r) m[r] = 0.f;
    UNROLL for (int e = 0; e < N; ++e) { const int r = (e >> 2) % (M / 2) * 2 + (e >> 1 & 1); m[r] += x[e]; }
}

// ---- Products
template <class T> struct Fragment { u32 bits; };
FN void ldmatrix(u32 (&r)[4], u32 at) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory"); }
FN void ldmatrix_transposed(u32 (&r)[4], u32 at) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory"); }
// Where a lane's row of a fragment lies: pairs of chunks differ from each other by an exchange within 128 bytes, a constant
// beyond; so does everything else from one address a lane.
template <int PITCH> struct Lines {
    u32 at;
    MEMBER Lines(u32 base, int row, int half) : at(base + row * PITCH + ((half ^ (row & 7)) << 4)) {}
    MEMBER u32 operator()(int rows, int pair) const { return (at ^ ((pair & 3) << 5)) + (pair >> 2) * 128 + rows * PITCH; }
};
template <class T> FN void mma(float* c, const u32 (&a)[4], u32 b0, u32 b1);
template <> MEMBER void mma<bf16>(float* c, const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <> MEMBER void mma<f16>(float* c, const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <class T, int N, int M> FN void pack(Fragment<T> (&P)[M], const float (&x)[N]) {
    static_assert(N == 2 * M, "a fragment holds two weights");
    UNROLL for (int k = 0; k < M; ++k) P[k].bits = pack2<T>(x[2 * k], x[2 * k + 1]);
}
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

// ---- Work and key tiles
FN int key_length(const cb_args& args, int b) { return args.seq_lens_k ? args.seq_lens_k[b] : args.max_kv; }
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
        h = bh % count + args.head_begin;
        Sq = args.max_q;
        Sk = key_length(args, b);
        at += gridDim.x;
        return true;
    }
};
template <int N> struct Ranges { // of key tiles, the highest first; an empty list still has one tile, which is masked
    int begin[N], end[N]; bool masked[N];
    MEMBER int length() const { int n = 0; UNROLL for (int k = 0; k < N; ++k) n += max(end[k] - begin[k], 0); return max(n, 1); }
    MEMBER void pick(int k, int& n, bool& m) const {
        n = 0, m = true;
        bool found = false;
        UNROLL for (int r = 0; r < N; ++r) {
            const int count = max(end[r] - begin[r], 0);
            if (!found && k < count) n = end[r] - 1 - k, m = masked[r], found = true;
            k -= count;
        }
    }
};
template <class F> struct Classes { // key tiles decided one a lane, the loads of four words of 32 at once; picked in order
    F decide; int count, total, open, before, last; u32 some, every, left, whole; // lane l keeps word l
    MEMBER Classes(int tiles, const F& f) : decide(f), count(tiles), total(0), some(0), every(0) {
        for (int w = 0; w < cdiv(count, 32); w += 4) {
            bool s[4], e[4];
            UNROLL for (int k = 0; k < 4; ++k) {
                const int n = (w + k) * 32 + lane_id();
                decide(min(n, count - 1), s[k], e[k]);
                s[k] = s[k] & (n < count);
            }
            UNROLL for (int k = 0; k < 4; ++k) {
                const u32 a = __ballot_sync(~0u, s[k]), b = __ballot_sync(~0u, e[k]);
                total += __popc(a);
                if (lane_id() == w + k) some = a, every = b;
            }
        }
        total = max(total, 1);
        rewind();
    }
    MEMBER void word(int w) {
        open = w;
        if (w < 32) {
            left = __shfl_sync(~0u, some, w), whole = __shfl_sync(~0u, every, w);
            return;
        }
        bool s, e; // more than 1024 tiles: made again
        const int n = w * 32 + lane_id();
        decide(min(n, count - 1), s, e);
        left = __ballot_sync(~0u, s & (n < count)), whole = __ballot_sync(~0u, e);
    }
    MEMBER void rewind() {
        before = 0, last = -1, left = 0, open = 0;
        if (count > 0) word(cdiv(count, 32) - 1);
    }
    MEMBER int length() const { return total; }
    MEMBER void pick(int k, int& n, bool& m) {
        if (k < last) rewind();
        last = k;
        while (true) { // `before` tiles have been passed; `left` are those of the open word that have not
            while (left == 0 && open > 0) word(open - 1);
            if (before == k || left == 0) break;
            left &= ~(0x80000000u >> __clz(left));
            ++before;
        }
        const int bit = 31 - __clz(left);
        n = left == 0 ? 0 : open * 32 + bit;
        m = left == 0 || !(whole >> bit & 1);
    }
};
template <class F> FN Classes<F> classify(int count, const F& f) { return {count, f}; }

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
            EACH(e, x) x[e] = (j[CID(e)] < Sk) ? x[e] : -INF;
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
