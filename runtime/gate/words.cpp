// The lists. SPDX-License-Identifier: Apache-2.0
#include "runtime/gate/words.h"
#include <algorithm>
#include <map>

namespace cubridge::runtime::gates {
namespace {

constexpr std::string_view keywords =
    "alignas asm auto break case class const constexpr continue decltype default do else enum "
    "explicit extern false final for if inline noexcept nullptr operator private "
    "protected public return sizeof static static_assert static_cast struct switch template this "
    "true typedef typename using void volatile while alignof override";

constexpr std::string_view types =
    "bool char short int long unsigned signed float double size_t ptrdiff_t char2 char4 uchar2 uchar4 short2 short4 "
    "ushort2 "
    "ushort4 int2 int3 int4 uint2 uint3 uint4 float2 float3 float4 double2 longlong2 ulonglong2 dim3";

constexpr std::string_view attributes = "__device__ __host__ __global__ __shared__ __forceinline__ __noinline__ "
                                        "__launch_bounds__ __grid_constant__ __align__ __restrict__";

constexpr std::string_view builtins = "threadIdx blockIdx blockDim gridDim warpSize";

constexpr std::string_view functions =
    // of numbers, in float
    "abs fabsf fminf fmaxf fmodf fmaf sqrtf rsqrtf cbrtf expf exp2f exp10f expm1f logf log2f log10f log1pf powf sinf "
    "cosf tanf "
    "sinpif cospif asinf acosf atanf atan2f sinhf coshf tanhf asinhf acoshf atanhf erff erfcf erfinvf floorf ceilf "
    "truncf "
    "roundf rintf nearbyintf copysignf ldexpf scalbnf fdimf hypotf lrintf llrintf lroundf llroundf fdividef remainderf "
    // in double, and of any type
    "fabs fmin fmax fmod fma sqrt rsqrt cbrt exp exp2 exp10 expm1 log log2 log10 log1p pow sin cos tan sinpi cospi "
    "asin acos "
    "atan atan2 sinh cosh tanh asinh acosh atanh erf erfc erfinv floor ceil trunc round rint nearbyint copysign ldexp "
    "scalbn "
    "fdim hypot lrint llrint lround llround remainder min max isnan isinf isfinite signbit llabs labs umin umax "
    "__builtin_nanf __builtin_inff __builtin_nan __builtin_inf "
    // rounded as said
    "__fadd_rn __fadd_rz __fsub_rn __fsub_rz __fmul_rn __fmul_rz __fmaf_rn __fmaf_rz __fdiv_rn __fdiv_rz __frcp_rn "
    "__frcp_rz "
    "__fsqrt_rn __fsqrt_rz __frsqrt_rn __dadd_rn __dsub_rn __dmul_rn __fma_rn __ddiv_rn __drcp_rn __dsqrt_rn "
    "__fdividef "
    "__expf __exp10f __logf __log2f __log10f __powf __sinf __cosf __tanf __tanhf __saturatef "
    // bits and conversions
    "__int_as_float __uint_as_float __float_as_int __float_as_uint __longlong_as_double __double_as_longlong "
    "__double2hiint __double2loint __hiloint2double __float2int_rn __float2int_rz __float2int_rd __float2int_ru "
    "__float2uint_rn __float2uint_rz __float2uint_rd __float2uint_ru __float2ll_rn __float2ll_rz __int2float_rn "
    "__uint2float_rn __ll2float_rn __double2float_rn __double2float_rz __double2int_rn __double2int_rz __int2double_rn "
    "__popc __popcll __clz __clzll __ffs __ffsll __brev __brevll __byte_perm __funnelshift_l __funnelshift_r "
    "__funnelshift_lc __funnelshift_rc __mulhi __umulhi __mul64hi __umul64hi __mul24 __umul24 __sad __usad __dp4a "
    // the warp and the block
    "__shfl_sync __shfl_up_sync __shfl_down_sync __shfl_xor_sync __any_sync __all_sync __ballot_sync __match_any_sync "
    "__reduce_add_sync __reduce_min_sync __reduce_max_sync __reduce_and_sync __reduce_or_sync __reduce_xor_sync "
    "__syncwarp "
    "__syncthreads __syncthreads_or __syncthreads_and __syncthreads_count __threadfence __threadfence_block "
    // memory
    "__cvta_generic_to_shared __ldg __ldca __ldcg __ldcs __stwb __stcg __stcs "
    "make_char4 make_uchar4 make_short2 make_short4 make_ushort2 make_ushort4 make_int2 make_int3 make_int4 make_uint2 "
    "make_uint3 make_uint4 make_float2 make_float3 make_float4 make_double2 make_longlong2 make_ulonglong2";

constexpr std::string_view atomics = "atomicAdd atomicSub atomicExch atomicMin atomicMax atomicInc atomicDec atomicCAS "
                                     "atomicAnd atomicOr atomicXor";

struct Family {
    Reason reason;
    std::string_view words; ///< with a * at its end: whatever begins so and goes on with a capital or a digit
};
constexpr Family refused[] = {
    {{"call", "writes to the host's output"}, "printf vprintf fprintf sprintf puts putchar"},
    {{"call", "allocates memory"}, "malloc calloc realloc memalign alloca new delete"},
    {{"call", "moves memory of any kind"}, "memcpy memmove memset memcmp"},
    {{"call", "ends the kernel"},
     "assert abort exit terminate __trap __brkpt __exit __assertfail __assert_fail "
     "__builtin_trap __builtin_abort __builtin_unreachable"},
    {{"call", "waits for time"}, "__nanosleep nanosleep sleep usleep"},
    {{"call", "is the CUDA runtime or driver"}, "cuda* cu*"},
    {{"call", "reads memory that is not declared"}, "tex* surf* texture* surface*"},
    {{"identity", "tells kernels by the time"}, "clock clock64 globaltimer __clock __clock64 __globaltimer"},
    {{"identity", "tells where a kernel runs"},
     "__smid __nsmid __warpid __gridid __pm0 __pm1 __pm2 __pm3 __prof_trigger "
     "__activemask"},
    {{"macro", "may be a macro of the compiler's own"},
     "NULL NV_* CUDA_* CUDART_* CUDARTAPI CUDARTAPI_CDECL CU_* va_start va_end va_arg va_copy"},
    {{"keyword", "leaves the structure of the text"}, "goto"},
    {{"keyword", "needs a runtime"}, "throw try catch typeid dynamic_cast virtual co_await co_yield co_return"},
    {{"keyword", "makes a pointer of anything"}, "reinterpret_cast const_cast bit_cast union"},
    {{"keyword", "keeps state"}, "thread_local mutable register"},
    {{"keyword", "is not needed in a kernel"},
     "namespace friend export import module concept requires consteval constinit wchar_t char8_t char16_t char32_t and "
     "or not "
     "xor bitand bitor compl and_eq or_eq xor_eq not_eq offsetof main typeof"},
    {{"global", "is memory of the module"}, "__constant__ __managed__"},
    {{"keyword", "writes assembly in another spelling"}, "__asm __asm__"},
    {{"attribute", "changes what the compiler does with a name"}, "__attribute__ __attribute __declspec"},
};

template <class F> void each(std::string_view list, const F& f) {
    while (!list.empty()) {
        const auto end = std::min(list.find(' '), list.size());
        if (end > 0) f(list.substr(0, end));
        list.remove_prefix(std::min(end + 1, list.size()));
    }
}

struct Lists {
    std::map<std::string, Word, std::less<>> words;
    std::map<std::string, Reason, std::less<>> refused;
    std::map<std::string, Reason, std::less<>> families;
    std::set<std::string, std::less<>> all;

    Lists() {
        const auto add = [&](std::string_view list, Word kind) {
            each(list, [&](std::string_view w) { words.emplace(w, kind); });
        };
        add(keywords, Word::Keyword);
        add(types, Word::Type);
        add(attributes, Word::Attribute);
        add(builtins, Word::Builtin);
        add(functions, Word::Function);
        add(atomics, Word::Atomic);
        for (const auto& family : gates::refused)
            each(family.words, [&](std::string_view w) {
                if (w.back() == '*') {
                    families.emplace(w.substr(0, w.size() - 1), family.reason);
                } else {
                    words.emplace(w, Word::Refused);
                    refused.emplace(w, family.reason);
                }
            });
        for (const auto& [text, kind] : words) all.insert(text);
    }
};

const Lists& lists() {
    static const Lists all;
    return all;
}

const Reason* family_of(std::string_view text) {
    for (const auto& [begin, reason] : lists().families) {
        if (text.size() <= begin.size() || text.substr(0, begin.size()) != begin) continue;
        const char next = text[begin.size()];
        if ((next >= 'A' && next <= 'Z') || (next >= '0' && next <= '9')) return &reason;
    }
    return nullptr;
}

} // namespace

Word word(std::string_view text) {
    if (text.empty()) return Word::Own;
    const auto it = lists().words.find(text);
    if (it != lists().words.end()) return it->second;
    if (text[0] == '_' || family_of(text) != nullptr) return Word::Refused;
    if (text.size() > 6 && text.substr(0, 6) == "atomic" && text[6] >= 'A' && text[6] <= 'Z') return Word::Refused;
    return Word::Own;
}

Reason why_not(std::string_view text) {
    const auto it = lists().refused.find(text);
    if (it != lists().refused.end()) return it->second;
    if (const auto* reason = family_of(text)) return *reason;
    if (text[0] != '_') return {"atomic", "is not one of the atomics that a kernel may use"};
    return {"intrinsic", "is not one of those that a kernel may use"};
}

const std::set<std::string, std::less<>>& words() {
    return lists().all;
}

} // namespace cubridge::runtime::gates
