// The text that kernels contain, compiled by the host compiler, lays the block out as the library does.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/kernel_abi.h"
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

using namespace cubridge::ir::abi;

namespace {

TEST(KernelAbi, TextAndStructAgree) {
    std::string checks;
    const auto field = [&](const char* of, const char* name, std::size_t offset) {
        checks += std::string("static_assert(__builtin_offsetof(") + of + ", " + name +
                  ") == " + std::to_string(offset) + ", \"" + name + "\");\n";
    };
#define FIELD(s, f) field(#s, #f, offsetof(s, f))
    FIELD(cb_tensor, data), FIELD(cb_tensor, outer), FIELD(cb_tensor, row), FIELD(cb_tensor, head);
    FIELD(cb_scale, data), FIELD(cb_scale, request), FIELD(cb_scale, head);
    FIELD(cb_operand, data), FIELD(cb_operand, value), FIELD(cb_operand, size), FIELD(cb_operand, stride);
    FIELD(cb_operand, per_request), FIELD(cb_operand, begin);
    FIELD(cb_args, q), FIELD(cb_args, k), FIELD(cb_args, v), FIELD(cb_args, o), FIELD(cb_args, lse);
    FIELD(cb_args, k_scale), FIELD(cb_args, v_scale), FIELD(cb_args, operand), FIELD(cb_args, requests);
    FIELD(cb_args, heads_q), FIELD(cb_args, heads_kv), FIELD(cb_args, head_begin), FIELD(cb_args, max_q);
    FIELD(cb_args, max_kv), FIELD(cb_args, total_q), FIELD(cb_args, flags), FIELD(cb_args, cu_seqlens_q);
    FIELD(cb_args, cu_seqlens_k), FIELD(cb_args, seq_lens_k), FIELD(cb_args, first_k), FIELD(cb_args, page_table);
    FIELD(cb_args, page_begin), FIELD(cb_args, page_stride), FIELD(cb_args, workspace);
    FIELD(cb_args, ticket), FIELD(cb_args, map_rows), FIELD(cb_args, map_heads), FIELD(cb_args, map);
#undef FIELD
    checks += "static_assert(sizeof(cb_args) == " + std::to_string(sizeof(cb_args)) + ", \"size\");\n";
    checks += "static_assert(sizeof(cb_operand) == " + std::to_string(sizeof(cb_operand)) + ", \"size\");\n";
    checks += "static_assert(alignof(cb_args) == " + std::to_string(alignof(cb_args)) + ", \"alignment\");\n";
    const auto path = std::filesystem::path(::testing::TempDir()) / "cubridge_kernel_abi_text.cpp";
    std::ofstream(path) << kernel_abi_text() << checks;
    const char* compiler = std::getenv("CXX") != nullptr ? std::getenv("CXX") : "c++";
    EXPECT_EQ(std::system((std::string(compiler) + " -std=c++17 -fsyntax-only '" + path.string() + "'").c_str()), 0);
    std::filesystem::remove(path);
}

} // namespace
