// What a plan asks the compiler for: the kernel and its float64 build. Needs NVRTC, no GPU.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/builtin.h"
#include "runtime/check/kernels.h"
#include <gtest/gtest.h>

using namespace cubridge;
using namespace cubridge::runtime;

namespace {

TEST(CheckKernels, AllBuildsOfEachUnitCompile) {
    auto compiler = open_nvrtc();
    if (!compiler) GTEST_SKIP() << compiler.fault().text();
    CheckOptions options;
    options.compiler = *compiler;
    options.delayed = 1;
    int measured = 0;
    for (const char* name : {"prefix_lm", "sink"}) {
        SCOPED_TRACE(name);
        ir::Source source;
        source.text = std::string(find_built_in(name)->text);
        const auto spec = ir::Specification::parse(source);
        ASSERT_TRUE(spec);
        ir::Request request;
        request.head_dim = request.head_dim_v = 64;
        request.group = 4;
        auto plan = make_check_plan(**spec, request, options);
        ASSERT_TRUE(plan);
        plan->units.resize(2);
        for (const UnitKernels& k : make_kernels(*spec, plan->units, "sm_90a", options)) {
            EXPECT_FALSE(k.error) << k.error->message << "\n" << k.error->hint;
            EXPECT_FALSE(k.kernel.cubin.empty());
            EXPECT_FALSE(k.exact.cubin.empty());
            EXPECT_EQ(k.by_rules, k.baseline.has_value()) << k.reason;
            EXPECT_EQ(k.by_rules, k.delayed.has_value()) << k.not_delayed;
            if (k.delayed) {
                EXPECT_EQ(k.delayed->plan, k.kernel.plan);
                EXPECT_NE(k.delayed->cubin, k.kernel.cubin);
            }
            if (k.baseline) {
                EXPECT_FALSE(k.baseline->cubin.empty());
                EXPECT_EQ(k.baseline->plan.writes_lse, k.exact.plan.writes_lse);
                ++measured;
            } else {
                EXPECT_EQ(k.kernel.plan.entries.size(), k.exact.plan.entries.size());
            }
        }
    }
    EXPECT_GT(measured, 0) << "not one kernel by rules";
}

TEST(CheckKernels, WithoutACompilerEachUnitSaysSo) {
    CheckOptions options;
    options.compiler = no_compiler({"no_compiler", "there is none"});
    ir::Source source;
    source.text = std::string(find_built_in("causal")->text);
    const auto spec = ir::Specification::parse(source);
    ASSERT_TRUE(spec);
    Unit unit;
    unit.request.head_dim = unit.request.head_dim_v = 8;
    const auto kernels = make_kernels(*spec, {unit}, "sm_90a", options);
    ASSERT_TRUE(kernels[0].error);
    EXPECT_EQ(kernels[0].error->kind, "no_compiler");
}

} // namespace
