// The argument block that every kernel of ours reads: ABI number 2 (docs/kernel-abi.md). One struct, passed by value.
// There is one definition: the macro's argument is compiled here, and its text is printed into each kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#define CUBRIDGE_KERNEL_ABI_DEFINE(...) __VA_ARGS__ inline constexpr char kKernelAbiDefinition[] = #__VA_ARGS__;

namespace cubridge::ir::abi {

inline constexpr int kKernelAbi = 2;

// clang-format off
CUBRIDGE_KERNEL_ABI_DEFINE(
struct cb_tensor { void* data; long long outer, row, head; };
struct cb_scale { const float* data; long long request, head; };
struct cb_operand {
    const void* data; double value; long long size[4], stride[4]; long long per_request; const int* begin;
};
struct alignas(128) cb_map { unsigned long long opaque[16]; };
struct cb_args {
    cb_tensor q, k, v, o, lse;
    cb_scale k_scale, v_scale;
    cb_operand operand[24];
    int requests, heads_q, heads_kv, head_begin, max_q, max_kv, total_q;
    unsigned int flags;
    const int* cu_seqlens_q; const int* cu_seqlens_k; const int* seq_lens_k; const int* first_k;
    const int* page_table; const int* page_begin; long long page_stride;
    void* workspace;
    int* ticket;
    int map_rows[4], map_heads[4];
    cb_map map[6];
};)
// clang-format on

inline constexpr int kMaxOperands = 24;
inline constexpr unsigned kZeroPadding = 1, kProgrammatic = 2; ///< bits of flags, as in cubridge.h

static_assert(sizeof(cb_args) <= 4096, "a kernel's parameters");
static_assert(sizeof(cb_operand) == 96 && offsetof(cb_args, operand) == 208, "docs/kernel-abi.md");
static_assert(offsetof(cb_args, requests) == 2512 && offsetof(cb_args, map_rows) == 2616, "docs/kernel-abi.md");
static_assert(sizeof(cb_map) == 128, "a CUtensorMap");
static_assert(alignof(cb_map) == 128, "of a CUtensorMap too");
static_assert(offsetof(cb_args, map) == 2688 && sizeof(cb_args) == 3456, "docs/kernel-abi.md");

/// The definition as CUDA text, one member group a line. Needs nothing before it.
const char* kernel_abi_text();

} // namespace cubridge::ir::abi
