// What the experts share, whatever a warp's tile looks like: numbers, tensors, rows and columns, key tiles. An expert says
// before it is included how its values lie in threads: R rows an agent (a constant of the kernel), warp_row(), ROWS, COLS,
// TILE, FRAGMENTS, ROW, CID. SPDX-License-Identifier: Apache-2.0
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct bf16 { unsigned short bits; };
struct f16 { unsigned short bits; };
constexpr float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;
#define FN static __device__ __forceinline__
#define MEMBER __device__ __forceinline__
#define INF __int_as_float(0x7f800000)
#define UNROLL _Pragma("unroll")
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
FN float tanh_small(float y, float by = 1.f) { // by * tanh y where |y| <= 0.5: to 7e-7 of itself
    const float t = y * y;
    return y * fmaf(t, fmaf(t, fmaf(t, -0.04440222680568695f * by, 0.13190296292304993f * by), -0.33326318860054016f * by), 0.999999463558197f * by);
}
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
struct Slice { // of every `step`-th row from `low`: those are what first and end count
    void* data; i64 at, row; int first, end, step = 1, low = 0;
    MEMBER int last(int limit) const { return min(end, step == 1 ? limit : cdiv(limit - low, step)); } // of a tensor with `limit` rows
};
FN Slice every(const Slice& s, int step) {
    if (step == 1) return s;
    const int low = s.first % step;
    return {s.data, s.at + low * s.row, s.row * step, s.first / step, cdiv(s.end - low, step), step, low};
}
struct Tensor { // heads are counted from the model's first: h0 is this rank's first
    const cb_tensor& t; const int h0;
    MEMBER Tensor(const cb_tensor& tensor, int first_head) : t(tensor), h0(first_head) {}
    MEMBER Slice rows(int b, int h, int first, int end, int step = 1) const { return every({t.data, b * t.outer + (h - h0) * t.head, t.row, first, end}, step); }
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
    MEMBER Slice rows(int b, int h, int first, int end, int step = 1) const { return every({(void*)o.data, begin() + axis(0, b) + axis(1, h), o.stride[2], first, end}, step); }
};
template <class T, int N> struct Work { // of this launch, row major; `end` goes past it
    T* p; i64 size[N];
    template <class... I> MEMBER Work(void* workspace, i64& end, I... sizes) : p((T*)((char*)workspace + end)), size{sizes...} {
        i64 bytes = sizeof(T);
        UNROLL for (int k = 0; k < N; ++k) bytes *= size[k];
        end += (bytes + 255) / 256 * 256;
    }
    template <class... I> MEMBER T& operator()(I... index) const { i64 at = 0; int k = 0; ((at = at * size[k] + max((i64)0, min((i64)index, size[k] - 1)), ++k), ...); return p[at]; }
    MEMBER Slice rows(int b, int h, int first, int end, int step = 1) const { return every({p, (b * size[1] + h) * size[2] * (N > 3 ? size[N - 1] : 1), N > 3 ? size[N - 1] : 1, first, end}, step); }
};

// ---- Values to global memory, straight from registers
template <class T, int R, int C, int N> FN void store_tile(const Slice& to, int limit, const float (&x)[N]) {
    constexpr int MT = N / (cdiv(C, 16) * 8);
    const int lane = lane_id(), last = to.last(limit);
    UNROLL for (int r = 0; r < 2 * MT; ++r) {
        const int row = to.first + warp_row() + 8 * r + lane / 4;
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
template <class T, int R, int M> FN void store_rows(const Slice& to, int limit, const float (&x)[M]) {
    const int last = to.last(limit);
    UNROLL for (int r = 0; r < M; ++r) {
        const int row = to.first + warp_row() + 8 * r + lane_id() / 4;
        if (row < last && (lane_id() & 3) == 0) narrow((T*)to.data + to.at + row * to.row, x[r]);
    }
}

// ---- Rows and columns
struct Rows { int first; MEMBER explicit Rows(int i) : first(i + warp_row() + lane_id() / 4) {} MEMBER int operator[](int r) const { return first + 8 * r; } };
struct Cols {
    int first; float low;
    MEMBER explicit Cols(int j) : first(j + 2 * (lane_id() & 3)), low((float)first) {}
    static MEMBER constexpr int offset(int c) { return 8 * (c / 2) + c % 2; }
    MEMBER int operator[](int c) const { return first + offset(c); }
    MEMBER float real(int c) const { return low + (float)offset(c); }
    MEMBER int after(int x) const { return max(x, -(1 << 30)) - first; } // to be compared with an offset: no overflow
    MEMBER float before(int c, int x) const { return (float)(x - first) - (float)offset(c); }
};
template <int N> FN void logistic_of(float (&x)[N]) { // 1 / (1 + 2^x), two by one reciprocal; what is below 2^-63 becomes that
    UNROLL for (int e = 0; e < N; e += 2) {
        const float a = exp2_fast(fminf(x[e], 63.f)) + 1.f, b = exp2_fast(fminf(x[e + 1], 63.f)) + 1.f, both = rcp_fast(a * b);
        x[e] = x[e] != x[e] ? x[e] : b * both;
        x[e + 1] = x[e + 1] != x[e + 1] ? x[e + 1] : a * both;
    }
}
FN float logistic_small(float x) { return rcp_fast(exp2_fast(x) + 1.f); }
template <int N> FN void logistic_small(float (&x)[N]) { // where |x| <= 31: no product of four overflows, and none is NaN
    static_assert(N % 4 == 0, "pairs of columns of two rows");
    UNROLL for (int e = 0; e < N; e += 4) {
        float a[4];
        UNROLL for (int k = 0; k < 4; ++k) a[k] = exp2_fast(x[e + k]) + 1.f;
        const float ab = a[0] * a[1], cd = a[2] * a[3], all = rcp_fast(ab * cd), of_ab = all * cd, of_cd = all * ab;
        UNROLL for (int k = 0; k < 4; ++k) x[e + k] = a[k ^ 1] * (k < 2 ? of_ab : of_cd);
    }
}
struct Lane { // the columns of a tile, one a lane
    int first;
    MEMBER int offset(int k) const { return 32 * k; }
    MEMBER int operator[](int k) const { return first + 32 * k; }
    MEMBER float real(int k) const { return (float)(first + 32 * k); }
    MEMBER int after(int x) const { return max(x, -(1 << 30)) - first; }
    MEMBER float before(int k, int x) const { return (float)(x - first - 32 * k); }
};
FN float from_lane(float x, int lane) { return __shfl_sync(~0u, x, lane); }
FN int from_lane(int x, int lane) { return __shfl_sync(~0u, x, lane); }
FN bool from_lane(bool x, int lane) { return __shfl_sync(~0u, (int)x, lane) != 0; }
template <int C, class T, int N, class F> FN void columns_of(T (&to)[N], const Cols& j, const F& value) { // what is read once a column
    const int in_group = 2 * (lane_id() & 3);
    const Lane lanes = {j.first - in_group + lane_id()};
    T mine[cdiv(C, 32)];
    UNROLL for (int k = 0; k < cdiv(C, 32); ++k) mine[k] = value(lanes, k);
    UNROLL for (int c = 0; c < N; ++c) to[c] = from_lane(mine[min(c / 8, cdiv(C, 32) - 1)], (Cols::offset(c) & 31) + in_group);
}
FN float quad_max(float x) { x = fmaxf(x, __shfl_xor_sync(~0u, x, 1)); return fmaxf(x, __shfl_xor_sync(~0u, x, 2)); }
FN float quad_sum(float x) { x += __shfl_xor_sync(~0u, x, 1); return x + __shfl_xor_sync(~0u, x, 2); }
template <int M, int N> FN void row_max_of(float (&m)[M], const float (&x)[N]) { // of whole rows; in two chains each
    float a[M][2];
    UNROLL for (int r = 0; r < M; ++r) a[r][0] = a[r][1] = -INF;
    UNROLL for (int e = 0; e < N; ++e) { const int r = (e >> 2) % (M / 2) * 2 + (e >> 1 & 1); a[r][e & 1] = fmaxf(a[r][e & 1], x[e]); }
    UNROLL for (int r = 0; r < M; ++r) m[r] = quad_max(fmaxf(a[r][0], a[r][1]));
}
template <int M, int N> FN void row_sum_of(float (&m)[M], const float (&x)[N]) { // what this thread holds
    float a[M][2];
    UNROLL for (int r = 0; r < M; ++r) a[r][0] = a[r][1] = 0.f;
    UNROLL for (int e = 0; e < N; ++e) { const int r = (e >> 2) % (M / 2) * 2 + (e >> 1 & 1); a[r][e & 1] += x[e]; }
    UNROLL for (int r = 0; r < M; ++r) m[r] = a[r][0] + a[r][1];
}

// ---- Fragments of mma.sync
template <class T> struct Fragment { u32 bits; };
FN void ldmatrix(u32 (&r)[4], u32 at) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory"); }
FN void ldmatrix_transposed(u32 (&r)[4], u32 at) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory"); }
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

// ---- Key tiles
FN int key_length(const cb_args& args, int b) { return args.seq_lens_k ? args.seq_lens_k[b] : args.max_kv; }
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
template <class Words> struct Picked { // key tiles whose classes are bits of words of 32: the last tile first. Of more tiles a bit
    int count, step, total, open, before, last; u32 left, whole; // stands for `step`. A word is opened by Words::load
    MEMBER void word(int w) { open = w, static_cast<Words*>(this)->load(w); }
    MEMBER void rewind() {
        before = 0, last = -1, left = 0, whole = 0, open = 0;
        if (count > 0) word((count - 1) / step / 32);
    }
    MEMBER int length() const { return total; }
    MEMBER void pick(int k, int& n, bool& m) {
        if (k < last) rewind();
        last = k;
        int bit = 0, size = 1;
        while (true) { // `before` tiles have been passed; `left` are the bits of the open word that have not
            while (left == 0 && open > 0) word(open - 1);
            if (left == 0) break;
            bit = 31 - __clz(left), size = min(step, count - (open * 32 + bit) * step);
            if (k < before + size) break;
            left &= ~(1u << bit);
            before += size;
        }
        n = left == 0 ? 0 : (open * 32 + bit) * step + size - 1 - (k - before);
        m = left == 0 || !(whole >> bit & 1);
    }
};
struct Classes : Picked<Classes> { // decided one a lane, the loads of four words at once; 1024 bits at most
    u32 some, every; // lane l keeps word l
    MEMBER Classes() {}
    template <class F> MEMBER Classes(int tiles, const F& decide) : some(0), every(0) {
        count = tiles, step = max(cdiv(tiles, 1024), 1), total = 0;
        const int top = count > 0 ? (count - 1) / step : 0; // the last bit, which may stand for fewer
        for (int w = 0; w < cdiv(count, 32 * step); w += 4) {
            bool s[4], e[4];
            UNROLL for (int k = 0; k < 4; ++k) s[k] = false, e[k] = true;
            for (int t = 0; t < step; ++t) UNROLL for (int k = 0; k < 4; ++k) {
                const int n = ((w + k) * 32 + lane_id()) * step + t;
                bool x, y;
                decide(min(n, count - 1), x, y);
                s[k] = s[k] | (x & (n < count)), e[k] = e[k] & (y | (n >= count));
            }
            UNROLL for (int k = 0; k < 4; ++k) {
                const u32 a = __ballot_sync(~0u, s[k]), b = __ballot_sync(~0u, e[k]);
                if (lane_id() == w + k) some = a, every = b;
                total += __popc(a) * step;
                if (w + k == top / 32 && (a >> (top & 31) & 1)) total -= (top + 1) * step - count;
            }
        }
        total = max(total, 1);
        rewind();
    }
    MEMBER void load(int w) { left = __shfl_sync(~0u, some, w), whole = __shfl_sync(~0u, every, w); }
};
template <class F> FN Classes classify(int count, const F& f) { return {count, f}; }
