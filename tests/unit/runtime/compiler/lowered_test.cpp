// What lowering prints compiles, through the gate. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/runtime/compiler.h"
#include "ir/lower/delays.h"
#include "tests/unit/ir/lower/hopper.h"
#include "tests/unit/ir/lower/orchestration.h"
#include "tests/unit/sample.h"
#include <gtest/gtest.h>
#include <tuple>

namespace cubridge::runtime {
namespace {

namespace lower = ir::lower;

class LoweredTest : public testing::Test {
protected:
    void SetUp() override {
        auto opened = open_nvrtc();
        if (!opened) GTEST_SKIP() << opened.fault().text();
        compiler_ = *opened;
    }

    std::vector<CompiledEntry> compiles(const std::string& program, const char* arch,
                                        const std::string& expert = lower::test::expert_text()) {
        const auto lowered = lower::test::lowered(program, expert);
        EXPECT_TRUE(lowered) << lower::test::message(lowered);
        if (!lowered) return {};
        CompileJob job;
        job.arch = arch;
        job.source = ir::abi::kernel_abi_text() + lowered->cuda;
        const auto result = compiler_->compile(job);
        EXPECT_TRUE(result) << result.fault().text();
        if (!result) return {};
        EXPECT_EQ(result->entries.size(), ir::cuir::read(program)->kernels.size());
        return result->entries;
    }

    std::shared_ptr<Compiler> compiler_;
};

TEST_F(LoweredTest, EditsOfOrchestrationCompile) {
    test::Sample sample(4);
    for (const auto& [name, program] : lower::test::orchestrations()) {
        if (sample.skips()) continue;
        SCOPED_TRACE(name);
        compiles(program, "sm_80");
    }
}

TEST_F(LoweredTest, EditsOfOrchestrationCompileForHopper) {
    test::Sample sample;
    for (const auto& [name, program] : lower::test::hopper_orchestrations()) {
        if (sample.skips()) continue;
        SCOPED_TRACE(name);
        compiles(program, "sm_90a", lower::test::hopper_text());
    }
}

TEST_F(LoweredTest, TransferredProgramsCompile) {
    test::Sample sample;
    for (const char* name :
         {"paper_global_sliding_window__0", "paper_sigmoid__0", "serving_alibi__default_slopes",
          "serving_cascade_merge_lse__prefix_in_bf16", "serving_differential_attention__norm_weight",
          "serving_document_packed_causal__0", "serving_gptoss_learned_sink__0", "serving_t5_relative_bias__0"}) {
        if (sample.skips()) continue;
        SCOPED_TRACE(name);
        compiles(lower::test::read_file(std::string("tests/corpus/transfer/") + name + ".py"), "sm_90a");
    }
}

// Delays stand where a warp may be late: no product is serialised for one, and registers are still given out by hand.
TEST_F(LoweredTest, DelaysCompile) {
    test::Sample sample(4);
    const auto compiles_with_delays = [&](const std::string& program, const char* arch, const std::string& expert) {
        const auto p = ir::cuir::read(program);
        if (!p || sample.skips()) return; // the record of a refusal
        const auto lowered = lower::lower(expert, *p);
        ASSERT_TRUE(lowered) << lower::test::message(lowered);
        const auto delayed = lower::with_delays(lowered->cuda);
        ASSERT_TRUE(delayed) << delayed.error().message;
        CompileJob job;
        job.arch = arch;
        job.source = ir::abi::kernel_abi_text() + *delayed;
        const auto result = compiler_->compile(job);
        ASSERT_TRUE(result) << result.fault().text() << result.fault().detail;
        EXPECT_TRUE(result->remarks.empty()) << result->remarks[0];
    };
    for (const auto& [folder, name, arch] :
         {std::tuple("transfer_sm90/", "serving_t5_relative_bias__0", "sm_90a"),
          std::tuple("transfer_sm90/", "serving_dqk_ne_dv__64_to_256", "sm_90a"),
          std::tuple("transfer_sm90/", "serving_differential_attention__norm_weight", "sm_90a"),
          std::tuple("transfer/", "serving_document_packed_causal__0", "sm_80")}) {
        SCOPED_TRACE(std::string(folder) + name);
        compiles_with_delays(lower::test::read_file("tests/corpus/" + std::string(folder) + name + ".py"), arch,
                             arch == std::string("sm_80") ? lower::test::expert_text() : lower::test::hopper_text());
    }
}

// Registers beside products of warpgroups are given out by hand: what reads a matrix has to do with those that are
// left.
TEST_F(LoweredTest, MatricesSpillNothing) {
    test::Sample sample;
    for (const auto& [type, value] :
         {std::pair("f32", "x0[b, h, i, j] * LOG2E + S * unit"), std::pair("bf16", "x0[b, h, i, j] * LOG2E + S * unit"),
          std::pair("f16", "x0[b, h, i, j - 3] * LOG2E + S * unit"),
          std::pair("bool", "where((j <= i) & x0[b, h, i, j], S, -inf)")})
        for (const auto& [expert, arch] :
             {std::pair(lower::test::hopper_text(), "sm_90a"), std::pair(lower::test::expert_text(), "sm_80")}) {
            if (sample.skips()) continue;
            SCOPED_TRACE(std::string(type) + " " + arch);
            const auto read = lower::test::edited(lower::test::program_text(expert), "        x = S\n",
                                                  std::string("        x = ") + value + "\n");
            const auto result = compiles(
                lower::test::edited(read, "    Lse: f32[B, Hq, Sq],\n",
                                    "    Lse: f32[B, Hq, Sq],\n    x0: " + std::string(type) + "[B, Hq, Sq, Sk],\n"),
                arch, expert);
            ASSERT_EQ(result.size(), 1u);
            if (expert == lower::test::expert_text()) continue;
            EXPECT_EQ(result[0].spill_stores + result[0].spill_loads, 0);
        }
}

} // namespace
} // namespace cubridge::runtime
