// Torn cubins never reach the driver.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/compiler.h"
#include "runtime/driver/elf.h"
#include <cstring>
#include <elf.h>
#include <gtest/gtest.h>
#include <random>

namespace cubridge::runtime {
namespace {

std::vector<std::byte> cubin_for(const char* arch) {
    const auto compiler = open_nvrtc();
    if (!compiler) return {};
    CompileJob job;
    job.arch = arch;
    job.source = "__device__ float table[1000]; __constant__ float c[4] = {1, 2, 3, 4};\n"
                 "extern \"C\" __global__ void k(float* x) { x[0] = table[threadIdx.x] + c[threadIdx.x & 3]; }\n";
    const auto result = (*compiler)->compile(job);
    return result ? result->cubin : std::vector<std::byte>{};
}

TEST(Elf, KnowsAWholeCubinFromATornOne) {
    for (const char* arch : {"sm_80", "sm_90a", "sm_120"}) {
        const auto cubin = cubin_for(arch);
        if (cubin.empty()) GTEST_SKIP() << "no NVRTC";
        EXPECT_TRUE(is_whole_elf(cubin)) << arch;
        for (std::size_t size = 0; size < cubin.size(); ++size)
            ASSERT_FALSE(is_whole_elf(std::span(cubin).first(size))) << arch << ' ' << size << " of " << cubin.size();
    }
}

TEST(Elf, ReadsNothingOutsideOfDamagedOnes) {
    const auto cubin = cubin_for("sm_90a");
    if (cubin.empty()) GTEST_SKIP() << "no NVRTC";
    std::mt19937 random(1);
    for (int round = 0; round < 20000; ++round) {
        auto damaged = cubin; // on the heap with no slack, so that a sanitizer sees one byte too many
        for (int i = 0; i < 4; ++i) damaged[random() % sizeof(Elf64_Ehdr)] = static_cast<std::byte>(random());
        (void)is_whole_elf(damaged);
    }
    EXPECT_FALSE(is_whole_elf(std::vector<std::byte>(4096, std::byte{'x'})));
    EXPECT_FALSE(is_whole_elf({}));
}

} // namespace
} // namespace cubridge::runtime
