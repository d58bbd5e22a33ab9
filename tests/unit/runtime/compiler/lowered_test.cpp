// What lowering prints compiles, through the gate. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/runtime/compiler.h"
#include "tests/unit/ir/lower/hopper.h"
#include "tests/unit/ir/lower/orchestration.h"
#include <gtest/gtest.h>

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

    void compiles(const std::string& program, const char* arch,
                  const std::string& expert = lower::test::expert_text()) {
        const auto lowered = lower::test::lowered(program, expert);
        ASSERT_TRUE(lowered) << lower::test::message(lowered);
        CompileJob job;
        job.arch = arch;
        job.source = ir::abi::kernel_abi_text() + lowered->cuda;
        const auto result = compiler_->compile(job);
        ASSERT_TRUE(result) << result.fault().text();
        EXPECT_EQ(result->entries.size(), ir::cuir::read(program)->kernels.size());
    }

    std::shared_ptr<Compiler> compiler_;
};

TEST_F(LoweredTest, EditsOfOrchestrationCompile) {
    for (const auto& [name, program] : lower::test::orchestrations()) {
        SCOPED_TRACE(name);
        compiles(program, "sm_80");
    }
}

TEST_F(LoweredTest, EditsOfOrchestrationCompileForHopper) {
    for (const auto& [name, program] : lower::test::hopper_orchestrations()) {
        SCOPED_TRACE(name);
        compiles(program, "sm_90a", lower::test::hopper_text());
    }
}

TEST_F(LoweredTest, TransferredProgramsCompile) {
    for (const char* name :
         {"paper_global_sliding_window__0", "paper_sigmoid__0", "serving_alibi__default_slopes",
          "serving_cascade_merge_lse__prefix_in_bf16", "serving_differential_attention__norm_weight",
          "serving_document_packed_causal__0", "serving_gptoss_learned_sink__0", "serving_t5_relative_bias__0"}) {
        SCOPED_TRACE(name);
        compiles(lower::test::read_file(std::string("tests/corpus/transfer/") + name + ".py"), "sm_90a");
    }
}

} // namespace
} // namespace cubridge::runtime
