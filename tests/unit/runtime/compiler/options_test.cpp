// Which options and architectures pass.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler/options.h"
#include <gtest/gtest.h>

namespace cubridge::runtime {
namespace {

std::string kind_of_refusal(const std::string& arch, const std::vector<std::string>& options,
                            const char* name = "kernel.cu") {
    CompileJob job;
    job.arch = arch;
    job.options = options;
    job.name = name;
    const auto outcome = check_options(job, {75, 80, 90, 100, 120});
    return outcome ? "" : outcome.fault().kind;
}

TEST(Options, TakesRealArchitecturesOnly) {
    for (const char* arch : {"sm_75", "sm_80", "sm_90", "sm_90a", "sm_100a", "sm_100f", "sm_120"})
        EXPECT_EQ(kind_of_refusal(arch, {}), "") << arch;
    for (const char* arch : {"", "sm_", "sm_70", "sm_900", "sm_90b", "sm_90aa", "sm_a", "sm_-80", "sm_80 ", "SM_80",
                             "compute_90a", "native", "sm_80 -I/", "lto_90", "sm_99999999999999999999"})
        EXPECT_EQ(kind_of_refusal(arch, {}), "arch") << arch;
}

TEST(Options, TakesNoneThatTouchesAFile) {
    for (const char* option : {"--fmad=false", "--use_fast_math", "--maxrregcount=168", "--define-macro=N=64",
                               "--define-macro=F(x)=x", "-lineinfo", "--ptxas-options=-O2", "--split-compile=2"})
        EXPECT_EQ(kind_of_refusal("sm_80", {option}), "") << option;
    for (const char* option : {"-I/",
                               "--include-path=/etc",
                               "-include",
                               "--pre-include=/etc/passwd",
                               "--options-file=/tmp/x",
                               "-optf",
                               "@/tmp/x",
                               "--pch",
                               "--pch-dir=/tmp",
                               "--create-pch=x",
                               "--time=/tmp/x",
                               "--fdevice-time-trace=/tmp/x",
                               "--std=c++20",
                               "--gpu-architecture=sm_80",
                               "-arch=sm_80",
                               "--modify-stack-limit=true",
                               "--ptxas-options=--options-file=/tmp/x",
                               "--ptxas-options=-O2 -v",
                               "-Xptxas",
                               "-v",
                               "--define-macro=",
                               "--define-macro=H=\"/etc/passwd\"",
                               "--define-macro=H=</etc/passwd>",
                               "--fmad=false\n-I/",
                               "--relocatable-device-code=true",
                               "--dlink-time-opt",
                               ""})
        EXPECT_EQ(kind_of_refusal("sm_80", {option}), "option") << option;
}

TEST(Options, TakesPlainNamesOnly) {
    for (const char* name : {"", "/etc/passwd", "a b", "x\n", "kernel(1).cu"})
        EXPECT_EQ(kind_of_refusal("sm_80", {}, name), "option") << name;
}

} // namespace
} // namespace cubridge::runtime
