// What may be shown of a compile log, and what is read from it.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler/log.h"
#include <gtest/gtest.h>

namespace cubridge::runtime {
namespace {

CompileJob job() {
    CompileJob job;
    job.source = "int q() { return 1 }\n";
    job.headers = {{"ours.h", "int bad = ;\n"}};
    return job;
}

TEST(Log, KeepsMessagesAboutTheSourceAndItsHeaders) {
    const std::string log = "kernel.cu(1): error: expected a \";\"\n"
                            "  int q() { return 1 }\n"
                            "                     ^\n"
                            "          detected during instantiation of \"T t(T)\" at line 3\n"
                            "\n"
                            "ours.h(1): error: expected an expression\n"
                            "  int bad = ;\n"
                            "            ^\n"
                            "\n"
                            "2 errors detected in the compilation of \"kernel.cu\".\n";
    auto expected = log;
    for (auto at = expected.find("\n\n"); at != std::string::npos; at = expected.find("\n\n")) expected.erase(at, 1);
    EXPECT_EQ(cut_log(log, job()), expected);
}

TEST(Log, DropsWhatQuotesAnotherFile) {
    EXPECT_EQ(cut_log("/etc/passwd(1): error: identifier \"root\" is undefined\n"
                      "  root:x:0:0:root:/root:/bin/bash\n"
                      "  ^\n"
                      "          detected during: root:x\n",
                      job()),
              "");
    EXPECT_EQ(cut_log("kernel.cu(1): error: what\n"
                      "  root:x:0:0:root:/root:/bin/bash\n"
                      "  ^\n",
                      job()),
              "kernel.cu(1): error: what\n  ^\n");
    EXPECT_EQ(
        cut_log("root:x:0:0\n/tmp/kernel.cu(1): error: a\nkernel.cu.secret(1): b: c\nxkernel.cu(1): d: e\n", job()),
        "");
    EXPECT_EQ(cut_log("/a(1): x kernel.cu(1): error: y\n", job()), "");
}

TEST(Log, KeepsTheToolsAndDropsTheirReports) {
    EXPECT_EQ(cut_log("ptxas info    : 0 bytes gmem\nptxas         .     0 bytes stack frame\n"
                      "ptxas application ptx input, line 27; error   : Unknown modifier '.op'\n"
                      "nvrtc: error: unrecognized option --bogus found\n",
                      job()),
              "ptxas application ptx input, line 27; error   : Unknown modifier '.op'\n"
              "nvrtc: error: unrecognized option --bogus found\n");
}

TEST(Log, ReadsTheReportOfEachEntry) {
    const auto entries =
        entries_of("ptxas info    : 0 bytes gmem\n"
                   "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
                   "ptxas info    : Function properties for first\n"
                   "ptxas         .     400 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
                   "ptxas info    : Used 168 registers, used 16 barriers, 400 bytes cumulative stack size, "
                   "1024 bytes smem, 532 bytes cmem[0]\n"
                   "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
                   "ptxas info    : Function properties for second\n"
                   "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                   "ptxas info    : Used 10 registers, used 1 barriers\n"
                   "ptxas info    : Function properties for helper\n"
                   "    96 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n");
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].name, "first");
    EXPECT_EQ(entries[0].registers, 168);
    EXPECT_EQ(entries[0].stack, 400);
    EXPECT_EQ(entries[0].spill_stores, 8);
    EXPECT_EQ(entries[0].spill_loads, 12);
    EXPECT_EQ(entries[0].shared, 1024);
    EXPECT_EQ(entries[0].barriers, 16);
    EXPECT_EQ(entries[1].name, "second");
    EXPECT_EQ(entries[1].registers, 10);
    EXPECT_EQ(entries[1].stack, 0);
    EXPECT_EQ(entries[1].shared, 0);
}

TEST(Log, RemarksOnWarpgroupsOnceEach) {
    const std::string wait =
        "ptxas info    : (C7517) warpgroup.wait is injected in around line 53 by compiler to allow "
        "use of registers defined by GMMA in function 'attention'\n";
    const auto remarks = remarks_of(
        wait + wait +
        "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
        "insufficient register resources for the wgmma pipeline in the function 'attention'\n"
        "ptxas info    : setmaxnreg ignored to maintain minimum requirement\n"
        "ptxas info    : Potential Performance Loss: wgmma.mma_async instructions are serialized\n"
        "ptxas info    : (C7001) something else\n"
        "ptxas info    : (C75) no number\n"
        "kernel.cu(1): warning: wgmma serialized, (C7510), in a comment\n"
        "ptxas info    : Compiling entry function 'wgmma' for 'sm_90a'\n"
        "ptxas info    : Used 168 registers, used 16 barriers\n");
    ASSERT_EQ(remarks.size(), 4u);
    EXPECT_EQ(remarks[0], "(C7517) warpgroup.wait is injected in around line 53 by compiler to allow use of registers "
                          "defined by GMMA in function 'attention'");
    EXPECT_EQ(remarks[1].rfind("(C7511)", 0), 0u);
    EXPECT_EQ(remarks[2].rfind("setmaxnreg ignored", 0), 0u);
}

} // namespace
} // namespace cubridge::runtime
