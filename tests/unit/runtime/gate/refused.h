// Texts that may not be compiled, each with the rule and the line that must be named.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/runtime/gate.h"
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace cubridge::runtime::refused {

inline constexpr char kHead[] =
    "extern \"C\" __global__ void __launch_bounds__(128) k(const __grid_constant__ cb_args args) {\n";

enum class In { Body, Top, Abi, Whole }; ///< inside of a kernel, before one, before the argument block, all there is

struct Case {
    const char* what;
    In in;
    std::string text;
    const char* rule; ///< "": the tokenizer's or the include gate's refusal
    int line;         ///< from the case's own first one
};

inline Declared declared() {
    Declared out;
    out.kernels = {{"k", 128, 0, 0}};
    return out;
}

/// The text, and how many lines stand before the case's.
inline std::pair<std::string, int> whole(const Case& c) {
    const std::string abi = ir::abi::kernel_abi_text(), end = "}\n";
    const auto lines = static_cast<int>(std::count(abi.begin(), abi.end(), '\n'));
    switch (c.in) {
    case In::Body: return {abi + kHead + c.text + "\n" + end, lines + 1};
    case In::Top: return {abi + c.text + "\n" + kHead + end, lines};
    case In::Abi: return {c.text + "\n" + abi + kHead + end, 0};
    default: return {c.text, 0};
    }
}

inline std::string times(int n, const std::string& text) {
    std::string out;
    for (int i = 0; i < n; ++i) out += text;
    return out;
}

inline void is_refused(const Case& c) {
    const auto [text, before] = whole(c);
    const auto outcome = text_gate(text, declared());
    ASSERT_FALSE(outcome) << c.what << "\n" << c.text;
    EXPECT_EQ(outcome.fault().kind, "gate");
    auto with = fmt::format("line {}: ", before + c.line);
    if (*c.rule != 0) with += std::string(c.rule) + ": ";
    EXPECT_EQ(outcome.fault().message.substr(0, with.size()), with) << c.what << "\n" << outcome.fault().text();
}

inline std::string number(const testing::TestParamInfo<Case>& info) {
    return std::to_string(info.index);
}

} // namespace cubridge::runtime::refused
