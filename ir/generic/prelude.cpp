// Conversions are bit arithmetic, the same text on the device and, in tests, on the host.
// SPDX-License-Identifier: Apache-2.0
#include "ir/generic/prelude.h"

namespace cubridge::ir::generic {

const char* prelude() {
    return R"cuda(
#define CB_FN static __device__ __forceinline__

// Python's // and %; a divisor of 0 gives 0.
CB_FN long long cb_floordiv(long long a, long long b) {
    if (b == 0) return 0;
    if (b == -1) return (long long)(0ull - (unsigned long long)a);
    const long long q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}
CB_FN long long cb_mod(long long a, long long b) {
    if (b == 0 || b == -1) return 0;
    const long long m = a % b;
    return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
CB_FN long long cb_ceildiv(long long a, long long b) { return -cb_floordiv(-a, b); }
CB_FN long long cb_roundup(long long a, long long b) { return cb_ceildiv(a, b) * b; }
CB_FN long long cb_clamp(long long i, long long n) { return i >= n ? (n > 0 ? n - 1 : 0) : (i < 0 ? 0 : i); }

// NaN wins.
template <class T> CB_FN T cb_min(T a, T b) { return a < b || a != a ? a : b; }
template <class T> CB_FN T cb_max(T a, T b) { return a > b || a != a ? a : b; }
CB_FN cb_real cb_inf() { return (cb_real)__uint_as_float(0x7f800000u); }
CB_FN cb_real cb_nan() { return (cb_real)__uint_as_float(0x7fc00000u); }
template <class T> CB_FN T cb_power(T x, int n) {
    T r = x;
    for (int k = 1; k < n; ++k) r *= x;
    return r;
}
// float32 as written, rounded where PyTorch rounds: it takes these exponents apart.
CB_FN float cb_pow_rn(float a, float b) {
    if (b == 0.5f) return __fsqrt_rn(a);
    if (b == -0.5f) return __fdiv_rn(1.0f, __fsqrt_rn(a));
    if (b == 2.0f) return __fmul_rn(a, a);
    if (b == 3.0f) return __fmul_rn(__fmul_rn(a, a), a);
    if (b == -2.0f) return __fdiv_rn(1.0f, __fmul_rn(a, a));
    return (float)pow((double)a, (double)b);
}
// To an integer, towards zero; NaN is 0, what is beyond 2^53 the end of int32.
template <class T> CB_FN long long cb_trunc(T x) {
    if (!(x >= (T)-9007199254740992.0)) return x != x ? 0 : -2147483648ll;
    return x <= (T)9007199254740992.0 ? (long long)x : 2147483647ll;
}

// Narrow floats: `fraction` bits below the hidden one, exponent bias `bias`; `inf` is the first code past the largest.
CB_FN float cb_widen(unsigned code, int fraction, int bias, unsigned inf, unsigned sign) {
    const unsigned m = code & (sign - 1u);
    const float scale = __uint_as_float((unsigned)(127 + 127 - bias) << 23); // 2^(127 - bias): subnormals come out right
    float f = __uint_as_float(m << (23 - fraction)) * scale;
    if (m >= inf) f = __uint_as_float(0x7f800000u | (m > inf || (sign == 0x80u && fraction == 3) ? 0x400000u : 0u));
    return code & sign ? -f : f;
}
CB_FN unsigned cb_narrow(float f, int fraction, int bias, unsigned inf, unsigned nan, unsigned sign) {
    const unsigned bits = __float_as_uint(f), a = bits & 0x7fffffffu, s = bits >> 31 ? sign : 0u;
    if (a > 0x7f800000u) return s | nan;
    unsigned code;
    if (a < (unsigned)(128 - bias) << 23) { // subnormal there: a whole number of its smallest step, rounded to even
        const float step = __uint_as_float((unsigned)(127 + bias - 1 + fraction) << 23);
        code = (unsigned)rintf(__uint_as_float(a) * step);
    } else {
        const int drop = 23 - fraction;
        const unsigned rounded = a + ((a >> drop & 1u) + (1u << (drop - 1)) - 1u);
        code = (rounded >> drop) - ((unsigned)(127 - bias) << fraction);
    }
    return s | (code < inf ? code : inf);
}

CB_FN float cb_get_f16(const void* p, long long i) { return cb_widen(((const unsigned short*)p)[i], 10, 15, 0x7c00u, 0x8000u); }
CB_FN float cb_get_bf16(const void* p, long long i) { return __uint_as_float((unsigned)((const unsigned short*)p)[i] << 16); }
CB_FN float cb_get_e4m3(const void* p, long long i) { return cb_widen(((const unsigned char*)p)[i], 3, 7, 0x7fu, 0x80u); }
CB_FN float cb_get_e5m2(const void* p, long long i) { return cb_widen(((const unsigned char*)p)[i], 2, 15, 0x7cu, 0x80u); }
CB_FN float cb_get_f32(const void* p, long long i) { return ((const float*)p)[i]; }
CB_FN double cb_get_f64(const void* p, long long i) { return ((const double*)p)[i]; }
CB_FN bool cb_get_bool(const void* p, long long i) { return ((const unsigned char*)p)[i] != 0; }
CB_FN long long cb_get_u8(const void* p, long long i) { return ((const unsigned char*)p)[i]; }
CB_FN long long cb_get_i8(const void* p, long long i) { return ((const signed char*)p)[i]; }
CB_FN long long cb_get_i16(const void* p, long long i) { return ((const short*)p)[i]; }
CB_FN long long cb_get_i32(const void* p, long long i) { return ((const int*)p)[i]; }
CB_FN long long cb_get_i64(const void* p, long long i) { return ((const long long*)p)[i]; }

CB_FN void cb_put_f16(void* p, long long i, cb_real x) { ((unsigned short*)p)[i] = (unsigned short)cb_narrow((float)x, 10, 15, 0x7c00u, 0x7e00u, 0x8000u); }
CB_FN unsigned cb_bits_bf16(float x) {
    const unsigned u = __float_as_uint(x);
    return ((u & 0x7fffffffu) > 0x7f800000u ? u | 0x400000u : u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
CB_FN void cb_put_bf16(void* p, long long i, cb_real x) { ((unsigned short*)p)[i] = (unsigned short)cb_bits_bf16((float)x); }
CB_FN void cb_put_e4m3(void* p, long long i, cb_real x) { ((unsigned char*)p)[i] = (unsigned char)cb_narrow((float)x, 3, 7, 0x7fu, 0x7fu, 0x80u); }
CB_FN void cb_put_e5m2(void* p, long long i, cb_real x) { ((unsigned char*)p)[i] = (unsigned char)cb_narrow((float)x, 2, 15, 0x7cu, 0x7fu, 0x80u); }
CB_FN void cb_put_f32(void* p, long long i, cb_real x) { ((float*)p)[i] = (float)x; }
CB_FN void cb_put_f64(void* p, long long i, cb_real x) { ((double*)p)[i] = (double)x; }

CB_FN float cb_round_f16(cb_real x) { return cb_widen(cb_narrow((float)x, 10, 15, 0x7c00u, 0x7e00u, 0x8000u), 10, 15, 0x7c00u, 0x8000u); }
CB_FN float cb_round_bf16(cb_real x) { return __uint_as_float(cb_bits_bf16((float)x) << 16); }

// The element of a paged tensor's row: pages hold `size` rows, the table's first entry holds row first_k.
CB_FN long long cb_paged(const cb_args& a, const cb_tensor& x, long long b, long long row, int size) {
    row -= a.first_k ? a.first_k[b] : 0;
    if (row < 0) row = 0;
    const long long at = a.page_begin ? a.page_begin[b] : b * a.page_stride;
    return a.page_table[at + row / size] * x.outer + row % size * x.row;
}

// Reductions of a block, in an order that the block's size alone decides. Every thread gets the result.
struct cb_sum { template <class T> CB_FN T of(T a, T b) { return a + b; } };
struct cb_prod { template <class T> CB_FN T of(T a, T b) { return a * b; } };
struct cb_least { template <class T> CB_FN T of(T a, T b) { return cb_min(a, b); } };
struct cb_most { template <class T> CB_FN T of(T a, T b) { return cb_max(a, b); } };
struct cb_any { template <class T> CB_FN T of(T a, T b) { return a || b; } };
struct cb_all { template <class T> CB_FN T of(T a, T b) { return a && b; } };
template <class R, class T> static __device__ T cb_block(T value, void* memory) {
    T* const all = (T*)memory;
    const int me = (int)threadIdx.x;
    __syncthreads();
    all[me] = value;
    for (int n = CB_THREADS; n > 1;) {
        const int half = (n + 1) / 2;
        __syncthreads();
        if (me < n / 2) all[me] = R::of(all[me], all[me + half]);
        n = half;
    }
    __syncthreads();
    return all[0];
}
)cuda";
}

std::string element(DType t) {
    return short_name(t);
}

} // namespace cubridge::ir::generic
