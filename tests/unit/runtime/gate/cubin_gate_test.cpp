// What a cubin may hold, on cubins that NVRTC makes of texts that the text gate would not let through.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/candidate.h"
#include "cubridge/ir/generic.h"
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/runtime/compiler.h"
#include "runtime/driver/elf.h"
#include "tests/unit/runtime/support.h"
#include <random>

namespace cubridge::runtime {
namespace {

using namespace testing_support;

class CubinGate : public testing::Test {
protected:
    void SetUp() override {
        auto opened = open_nvrtc();
        if (!opened) GTEST_SKIP() << opened.fault().text();
        compiler_ = *opened;
        declared_.kernels = {{"k", 64, 0, 0}};
    }

    std::vector<std::byte> cubin_of(const std::string& cuda, const std::string& arch = "sm_90a") {
        CompileJob job;
        job.arch = arch;
        job.source = cuda;
        const auto result = compiler_->compile(job);
        if (!result) {
            ADD_FAILURE() << result.fault().text() << result.fault().detail;
            return {};
        }
        return result->cubin;
    }
    /// Of a kernel with this body, and what stands before it.
    std::string verdict(const std::string& before, const std::string& body, const std::string& bounds = "64") {
        const auto cubin =
            cubin_of(ir::abi::kernel_abi_text() + before + "extern \"C\" __global__ void __launch_bounds__(" + bounds +
                     ") k(const __grid_constant__ cb_args args) {\n" + body + "}\n");
        const auto outcome = cubin_gate(cubin, declared_, {"one"});
        return outcome ? "" : outcome.fault().message;
    }
    static void starts(const std::string& message, const std::string& with) {
        EXPECT_EQ(message.substr(0, with.size()), with) << message;
    }

    static constexpr char kStore[] = "((float*)args.o.data)[threadIdx.x] = 1.f;\n";
    std::shared_ptr<Compiler> compiler_;
    Declared declared_;
};

TEST_F(CubinGate, PassesWhatTheLibraryPrints) {
    const auto spec = parsed(kCausal);
    for (const char* arch : {"sm_80", "sm_90a"}) {
        SCOPED_TRACE(arch);
        auto request = request_for(arch);
        const auto experts = ir::Candidate::experts(*spec, request);
        ASSERT_TRUE(experts);
        for (const auto& expert : *experts) {
            if (expert.find('/') != expert.npos) continue;
            const auto candidate = ir::Candidate::transfer(*spec, request, expert);
            ASSERT_TRUE(candidate);
            const auto lowered = candidate->lower(*spec, request);
            ASSERT_TRUE(lowered);
            const auto& cuda = lowered->kernel.cuda;
            const auto outcome = both_gates(cuda, cubin_of(cuda, arch), declared_by(lowered->kernel.plan));
            EXPECT_TRUE(outcome) << expert << ": " << outcome.fault().text();
        }
        for (const bool f64 : {false, true}) {
            const auto generic = ir::generic_kernel(*spec, request, f64);
            const auto outcome =
                both_gates(generic->cuda, cubin_of(generic->cuda, arch), declared_by(generic->plan, true));
            EXPECT_TRUE(outcome) << outcome.fault().text();
        }
    }
}

/// Tables of numbers, functions of the compiler's own with tables.
TEST_F(CubinGate, PassesGenericKernelsWithTables) {
    const auto spec = parsed(R"(
import torch
def attention(q, k, v):
    t = torch.tensor([0.5, 1.25, -3.0, 7.0, 1.0, 2.0, 3.0, 9.0])
    i = torch.arange(q.size(-2))[:, None]
    j = torch.arange(k.size(-2))[None, :]
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    return torch.softmax(s + torch.sin(i - j) * t[j % 8], -1) @ v
)");
    ASSERT_NE(spec, nullptr);
    for (const bool f64 : {false, true}) {
        const auto generic = ir::generic_kernel(*spec, request_for("sm_90a"), f64);
        ASSERT_TRUE(generic);
        ASSERT_NE(generic->cuda.find("cb_table"), std::string::npos);
        const auto cubin = cubin_of(generic->cuda);
        const auto outcome = both_gates(generic->cuda, cubin, declared_by(generic->plan, true));
        EXPECT_TRUE(outcome) << outcome.fault().text();
        EXPECT_FALSE(text_gate(generic->cuda, declared_by(generic->plan)));
        EXPECT_FALSE(cubin_gate(cubin, declared_by(generic->plan), {}));
    }
}

TEST_F(CubinGate, RefusesMemoryThatOutlivesALaunch) {
    EXPECT_EQ(verdict("", kStore), "");
    starts(verdict("__device__ int seen;\n", "seen += 1;\n"), "cubin: memory: 4 bytes of memory that outlive a launch");
    starts(verdict("", "static int seen;\nseen += 1;\n"), "cubin: memory: 4 bytes of memory that outlive");
    starts(verdict("__device__ float table[3] = {1, 2, 3};\n", "table[threadIdx.x] += 1;\n"),
           "cubin: memory: `table`, 12 bytes");
    starts(verdict("__device__ int seen = 7;\n", "seen += 1;\n"), "cubin: memory: `seen`, 4 bytes");
    EXPECT_EQ(verdict("__device__ const int one = 1;\n", "((const int**)args.o.data)[0] = &one;\n"), "");
    starts(verdict("struct S { static constexpr int two = 2; };\n", "((const int**)args.o.data)[0] = &S::two;\n"),
           "cubin: memory: `_ZN1S3twoE`, 4 bytes");
    starts(verdict("__constant__ float table[3] = {1, 2, 3};\n", "((float*)args.o.data)[0] = table[threadIdx.x];\n"),
           "cubin: memory: 12 bytes of constants in bank 3");
}

TEST_F(CubinGate, RefusesWhatIsOutside) {
    starts(verdict("", "printf(\"%d\", (int)threadIdx.x);\n"), "cubin: "); // its string or its symbol
    starts(verdict("", "args.lse.data == nullptr ? free(args.o.data) : (void)0;\n"),
           "cubin: symbol: `free` is defined elsewhere");
    starts(verdict("", "((void**)args.o.data)[0] = malloc(4);\n"), "cubin: symbol: `malloc` is defined elsewhere");
}

/// A place that is given an address that no symbol of the cubin has.
TEST_F(CubinGate, RefusesRelocationsToNothing) {
    auto cubin =
        cubin_of(ir::abi::kernel_abi_text() + std::string("__device__ const int one = 1;\nextern \"C\" __global__ void "
                                                          "__launch_bounds__(64) k(const __grid_constant__ cb_args "
                                                          "args) { ((const int**)args.o.data)[0] = &one; }\n"));
    const auto elf = read_elf(cubin);
    ASSERT_TRUE(elf);
    ASSERT_FALSE(elf->relocations.empty());
    EXPECT_TRUE(cubin_gate(cubin, declared_, {"one"}));
    for (const auto& section : elf->sections) {
        if (section.type != SHT_RELA || section.bytes.empty()) continue;
        std::memset(cubin.data() + (section.bytes.data() - cubin.data()) + 12, 0, 4); // the symbol's number
        break;
    }
    starts(cubin_gate(cubin, declared_, {"one"}).fault().message, "cubin: symbol: .");
}

TEST_F(CubinGate, RefusesOtherKernels) {
    starts(verdict("extern \"C\" __global__ void other(int* x) { *x = 1; }\n", kStore),
           "cubin: kernel: code of `other`");
    declared_.kernels.push_back({"missing", 64, 0, 0});
    starts(verdict("", kStore), "cubin: kernel: the kernel `missing` is declared but not there");
}

TEST_F(CubinGate, RefusesMoreThanDeclared) {
    starts(verdict("", kStore, "32"), "cubin: launch: `k` may have 32 threads and is launched with 64");
    starts(verdict("", "__shared__ float x[600];\nx[threadIdx.x] = 1.f;\n__syncthreads();\n((float*)args.o.data)[0] = "
                       "x[63 - threadIdx.x];\n"),
           "cubin: launch: `k` takes ");
    starts(verdict("", "float x[2000];\nfor (int i = 0; i < 2000; ++i) x[(i * 7) % 2000] = (float)args.max_q + i;\n"
                       "((float*)args.o.data)[0] = x[args.max_kv];\n"),
           "cubin: launch: `k` takes 8000 bytes of stack, 4096 at most are declared");
    declared_.kernels[0].registers = 4;
    starts(verdict("", kStore), "cubin: launch: `k` takes ");
    declared_.kernels[0].registers = 255, declared_.kernels[0].barriers = 0;
    starts(verdict("", std::string("__syncthreads();\n") + kStore), "cubin: launch: `k` takes 1 barriers");
    declared_.kernels[0].shared = 232449;
    declared_.kernels[0].barriers = 16;
    starts(verdict("", kStore), "cubin: launch: `k` takes ");
}

TEST_F(CubinGate, RefusesAnotherParameter) {
    const auto cubin =
        cubin_of("extern \"C\" __global__ void __launch_bounds__(64) k(float* x, int n) { x[n] = 1; }\n");
    starts(cubin_gate(cubin, declared_, {}).fault().message, "cubin: abi: ");
    const auto none = cubin_of("extern \"C\" __global__ void __launch_bounds__(64) k() { __syncthreads(); }\n");
    starts(cubin_gate(none, declared_, {}).fault().message, "cubin: abi: `k` takes 0 parameters");
}

TEST_F(CubinGate, ReadsNothingOutsideOfDamagedOnes) {
    const auto cubin = cubin_of(ir::abi::kernel_abi_text() +
                                std::string("extern \"C\" __global__ void __launch_bounds__(64) "
                                            "k(const __grid_constant__ cb_args args) { ") +
                                kStore + "}\n");
    ASSERT_TRUE(cubin_gate(cubin, declared_, {}));
    std::mt19937 random(3);
    int refused = 0;
    for (int round = 0; round < 20000; ++round) {
        auto damaged = cubin;
        for (int i = 0; i < 4; ++i) damaged[random() % damaged.size()] = static_cast<std::byte>(random());
        refused += cubin_gate(damaged, declared_, {}) ? 0 : 1;
        damaged.resize(random() % (cubin.size() + 1));
        if (damaged.size() < cubin.size()) refused += cubin_gate(damaged, declared_, {}) ? 0 : 1;
    }
    EXPECT_GT(refused, 20000);
    EXPECT_FALSE(cubin_gate({}, declared_, {}));
}

} // namespace
} // namespace cubridge::runtime
