// NVRTC in this process: the conformance suite, the search, and what stands behind the gate.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler/nvrtc_compiler.h"
#include "tests/unit/runtime/compiler/compiler_conformance.h"
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace cubridge::runtime {
namespace {

class WithNvrtc : public testing::Test {
protected:
    void SetUp() override {
        auto opened = open_nvrtc();
        if (!opened) GTEST_SKIP() << opened.fault().text();
        compiler = *opened;
    }
    std::shared_ptr<Compiler> compiler;
};

TEST_F(WithNvrtc, Conforms) {
    conforms(*compiler);
}

TEST_F(WithNvrtc, NamesItsBuild) {
    const auto identity = *compiler->identity();
    EXPECT_EQ(identity.find("nvrtc 1"), 0u) << identity;
    const auto digest = identity.substr(identity.rfind(' ') + 1);
    EXPECT_EQ(digest.size(), 16u) << identity;
    EXPECT_EQ(digest.find_first_not_of("0123456789abcdef"), std::string::npos) << identity;
    EXPECT_NE(compiler->location().find("libnvrtc"), std::string::npos);
}

/// Registers of a product are used while it runs: the compiler puts a wait in, and says so.
TEST_F(WithNvrtc, SaysWhatBecameOfWarpgroups) {
    CompileJob job;
    job.arch = "sm_90a";
    job.source = R"(extern "C" __global__ void __launch_bounds__(128, 1) f(float* x, unsigned long long a) {
    float d[4] = {x[0], x[1], x[2], x[3]};
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("{ wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a));
    asm volatile("wgmma.commit_group.sync.aligned;");
    @
    x[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
})";
    for (const bool waits : {true, false}) {
        auto one = job;
        one.source.replace(one.source.find('@'), 1, waits ? "asm volatile(\"wgmma.wait_group.sync.aligned 0;\");" : "");
        const auto result = compiler->compile(one);
        ASSERT_TRUE(result) << result.fault().text();
        EXPECT_EQ(result->remarks.empty(), waits);
        for (const auto& r : result->remarks) EXPECT_EQ(r.rfind("(C75", 0), 0u) << r;
    }
}

TEST_F(WithNvrtc, LeavesTheStackLimitAlone) {
    rlimit before{}, during{};
    getrlimit(RLIMIT_STACK, &before);
    auto job = CompileJob{};
    job.arch = "sm_90a";
    job.source = "extern \"C\" __global__ void k(float* x) { x[0] = 1.0f; }\n";
    ASSERT_TRUE(compiler->compile(job));
    getrlimit(RLIMIT_STACK, &during);
    EXPECT_EQ(before.rlim_cur, during.rlim_cur);
}

TEST_F(WithNvrtc, GivesUpAtTheDeadline) {
    CompileJob job;
    job.arch = "sm_90a";
    job.source = "extern \"C\" __global__ void k(float* x, int n) {\n    float a = x[0];\n";
    for (int i = 0; i < 3000; ++i) job.source += "    a = a * x[a > 1.0f ? n : 3] + sinf(a);\n";
    job.source += "    x[1] = a;\n}\n";
    job.deadline = std::chrono::milliseconds(1);
    const auto result = compiler->compile(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "deadline") << result.fault().text();
}

/// The gate is off here: the cut of the log has to hold by itself.
TEST(NvrtcBehindTheGate, QuotesNoFileOfTheHost) {
    auto nvrtc = find_nvrtc({});
    if (!nvrtc) GTEST_SKIP() << nvrtc.fault().text();
    NvrtcCompiler compiler(*std::move(nvrtc), false);
    const auto secret = std::filesystem::temp_directory_path() / "cubridge-secret-test.h";
    std::ofstream(secret) << "secret_token_one = 1;\n#define leaked secret_token_two\n)\nint secret_token_three(\n";
    for (const std::string file : {"/etc/passwd", secret.c_str()}) {
        CompileJob job;
        job.arch = "sm_80";
        job.source = "#include \"" + file + "\"\nextern \"C\" __global__ void k() {}\n";
        const auto result = compiler.compile(job);
        ASSERT_FALSE(result);
        EXPECT_EQ(result.fault().kind, "compile");
        std::ifstream stream(file);
        for (std::string line; std::getline(stream, line);)
            if (line.size() > 2) {
                EXPECT_EQ(result.fault().detail.find(line), std::string::npos) << line;
            }
        EXPECT_EQ(result.fault().text().find("secret_token"), std::string::npos);
        EXPECT_EQ(result.fault().detail.find("root"), std::string::npos) << result.fault().detail;
    }
    std::filesystem::remove(secret);
}

TEST(NvrtcSearch, ANamedFileIsTheOnlyOne) {
    NvrtcSettings settings;
    settings.file = "/nonexistent/libnvrtc.so";
    auto opened = open_nvrtc(settings);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.fault().kind, "no_compiler");
    EXPECT_NE(opened.fault().message.find("/nonexistent/libnvrtc.so"), std::string::npos);
    EXPECT_NE(opened.fault().hint.find("CUBRIDGE_NVRTC"), std::string::npos);

    settings.file = "libc.so.6";
    opened = open_nvrtc(settings);
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.fault().message.find("lacks nvrtcVersion"), std::string::npos) << opened.fault().message;
}

TEST(NvrtcSearch, KnowsTheLayoutsOfTheWheels) {
    const auto beside = folders_beside("/p/torch/lib");
    const auto has = [&](const char* folder) {
        return std::find(beside.begin(), beside.end(), folder) != beside.end();
    };
    EXPECT_EQ(beside.front(), "/p/torch/lib");
    EXPECT_TRUE(has("/p/torch/lib/../../nvidia/cu13/lib"));
    EXPECT_TRUE(has("/p/torch/lib/../../nvidia/cuda_nvrtc/lib"));
    EXPECT_TRUE(has("/p/torch/lib/nvidia/cu13/lib"));
}

TEST(NoCompiler, AnswersWithItsReason) {
    const auto none = no_compiler(Fault{"whatever", "there is no NVRTC here", "install it"});
    const auto result = none->compile({});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "no_compiler");
    EXPECT_EQ(result.fault().text(), "there is no NVRTC here; install it");
    EXPECT_FALSE(none->identity());
    EXPECT_EQ(none->location(), "");
}

} // namespace
} // namespace cubridge::runtime
