// The conformance suite of compilers.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/runtime/compiler/compiler_conformance.h"
#include <gtest/gtest.h>
#include <thread>

namespace cubridge::runtime {
namespace {

CompileJob job_for(const char* arch) {
    CompileJob job;
    job.arch = arch;
    job.source = "#include \"settings.h\"\n"
                 "extern \"C\" __global__ void scale(float* x, int n) {\n"
                 "    __shared__ float tile[64];\n"
                 "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                 "    tile[threadIdx.x & 63] = i < n ? x[i] : 0.0f;\n"
                 "    __syncthreads();\n"
                 "    if (i < n) x[i] = FACTOR * tile[(threadIdx.x + 1) & 63] + x[i] * x[i];\n"
                 "}\n";
    job.headers = {{"settings.h", "#define FACTOR 3.0f\n"}};
    return job;
}

void compiles_for_each_arch(Compiler& compiler) {
    std::vector<std::vector<std::byte>> cubins;
    for (const char* arch : {"sm_80", "sm_90", "sm_90a", "sm_120"}) {
        const auto result = compiler.compile(job_for(arch));
        ASSERT_TRUE(result) << arch << ": " << result.fault().text();
        ASSERT_GT(result->cubin.size(), 64u);
        EXPECT_EQ(result->cubin[0], std::byte{0x7f}); // an ELF
        EXPECT_EQ(result->cubin[1], std::byte{'E'});
        EXPECT_EQ(result->log, "");
        ASSERT_EQ(result->entries.size(), 1u) << arch;
        const auto& entry = result->entries[0];
        EXPECT_EQ(entry.name, "scale");
        EXPECT_GT(entry.registers, 0);
        EXPECT_EQ(entry.shared % 256, 0); // from sm_90 on a block has some of its own
        EXPECT_GE(entry.shared, 256);
        EXPECT_EQ(entry.barriers, 1);
        EXPECT_EQ(entry.spill_stores + entry.spill_loads, 0);
        EXPECT_GT(result->milliseconds, 0);
        for (const auto& other : cubins) EXPECT_NE(other, result->cubin) << arch;
        cubins.push_back(result->cubin);
    }
}

void is_reproducible(Compiler& compiler) {
    const auto once = compiler.compile(job_for("sm_90a"));
    ASSERT_TRUE(once);
    std::vector<std::thread> threads;
    std::vector<std::string> wrong(4);
    for (auto& said : wrong)
        threads.emplace_back([&] {
            const auto again = compiler.compile(job_for("sm_90a"));
            if (!again)
                said = again.fault().text();
            else if (again->cubin != once->cubin || again->compiler != once->compiler)
                said = "another cubin";
        });
    for (auto& thread : threads) thread.join();
    for (const auto& said : wrong) EXPECT_EQ(said, "");
}

void passes_options(Compiler& compiler) {
    auto job = job_for("sm_80");
    const auto contracted = compiler.compile(job);
    job.options = {"--fmad=false"};
    const auto apart = compiler.compile(job);
    ASSERT_TRUE(contracted);
    ASSERT_TRUE(apart) << apart.fault().text();
    EXPECT_NE(contracted->cubin, apart->cubin);
    job.options = {"--define-macro=UNUSED=1", "-lineinfo"};
    EXPECT_TRUE(compiler.compile(job));
}

void reports_spills(Compiler& compiler) {
    CompileJob job;
    job.arch = "sm_90a";
    job.options = {"--maxrregcount=24"};
    job.source = "extern \"C\" __global__ void a(float* x) {\n    float r[64];\n"
                 "#pragma unroll\n    for (int i = 0; i < 64; ++i) r[i] = x[i * 33];\n    __syncthreads();\n"
                 "#pragma unroll\n    for (int i = 0; i < 64; ++i) x[i * 7] = r[63 - i] * r[i];\n}\n"
                 "extern \"C\" __global__ void b(float* x) { x[threadIdx.x] = 1.0f; }\n";
    const auto result = compiler.compile(job);
    ASSERT_TRUE(result) << result.fault().text();
    ASSERT_EQ(result->entries.size(), 2u);
    for (const auto& entry : result->entries) {
        EXPECT_LE(entry.registers, 24);
        EXPECT_EQ(entry.spill_stores > 0, entry.name == "a") << entry.name;
        EXPECT_EQ(entry.stack > 0, entry.name == "a") << entry.name;
    }
}

void explains_failures(Compiler& compiler) {
    auto job = job_for("sm_90a");
    job.source += "__device__ int broken() { return undeclared; }\n";
    auto result = compiler.compile(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "compile");
    EXPECT_EQ(result.fault().message, "kernel.cu(9): error: identifier \"undeclared\" is undefined");
    EXPECT_NE(result.fault().detail.find("  __device__ int broken() { return undeclared; }\n"), std::string::npos);

    job.source = "extern \"C\" __global__ void k() { asm volatile(\"bogus.op;\"); }\n";
    result = compiler.compile(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "compile");
    EXPECT_NE(result.fault().detail.find("bogus"), std::string::npos);

    job = job_for("sm_90a");
    job.headers[0].text = "#define FACTOR undeclared_factor\n";
    result = compiler.compile(job);
    ASSERT_FALSE(result);
    EXPECT_NE(result.fault().message.find("undeclared_factor"), std::string::npos);

    for (const char* arch : {"sm_20", "sm_80a", "compute_90a", "native", ""}) {
        result = compiler.compile(job_for(arch));
        ASSERT_FALSE(result) << arch;
        EXPECT_EQ(result.fault().kind, "arch") << arch << ": " << result.fault().text();
        EXPECT_NE(result.fault().message.find(arch), std::string::npos);
        EXPECT_NE(result.fault().hint, "");
    }
    job = job_for("sm_80");
    job.options = {"--include-path=/etc"};
    result = compiler.compile(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "option");

    job = job_for("sm_80");
    job.source = "#include \"/etc/passwd\"\n" + job.source;
    result = compiler.compile(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "gate");
    EXPECT_EQ(result.fault().message.find("line 1: "), 0u);
}

void warns_about_the_source(Compiler& compiler) {
    auto job = job_for("sm_80");
    job.source += "#warning \"mind the gap\"\n";
    const auto result = compiler.compile(job);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->log.find("kernel.cu(9): warning"), 0u) << result->log;
}

/// A cubin without a kernel is none that anybody asked for, but the compiler does not judge that; no bytes at all is
/// "empty".
void survives_odd_sources(Compiler& compiler) {
    for (const char* source : {"", "\n", "// nothing", "__device__ int x;\n"}) {
        CompileJob job;
        job.arch = "sm_80";
        job.source = source;
        const auto result = compiler.compile(job);
        if (result) {
            EXPECT_TRUE(result->entries.empty()) << source;
            EXPECT_FALSE(result->cubin.empty()) << source;
        } else {
            EXPECT_EQ(result.fault().kind, "empty") << source;
        }
    }
}

} // namespace

void conforms(Compiler& compiler) {
    const auto identity = compiler.identity();
    ASSERT_TRUE(identity) << identity.fault().text();
    EXPECT_GT(identity->size(), 16u);
    EXPECT_EQ(*identity, *compiler.identity());
    EXPECT_NE(compiler.location(), "");
    compiles_for_each_arch(compiler);
    is_reproducible(compiler);
    passes_options(compiler);
    reports_spills(compiler);
    explains_failures(compiler);
    warns_about_the_source(compiler);
    survives_odd_sources(compiler);
}

} // namespace cubridge::runtime
