// What each CUresult means, and how it reads.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver/errors.h"
#include <gtest/gtest.h>
#include <set>

namespace cubridge::runtime {
namespace {

TEST(Errors, ABadArtifactIsNoLostContext) {
    for (const int code : {200, 209, 218, 221, 222})
        EXPECT_EQ(trouble_of(static_cast<CUresult>(code)), Trouble::Artifact) << code;
    for (const int code : {700, 702, 710, 714, 715, 716, 717, 718, 719})
        EXPECT_EQ(trouble_of(static_cast<CUresult>(code)), Trouble::ContextLost) << code;
    for (int code = 900; code <= 908; ++code)
        EXPECT_EQ(trouble_of(static_cast<CUresult>(code)), Trouble::Capture) << code;
    for (const int code : {34, 100, 803, 804})
        EXPECT_EQ(trouble_of(static_cast<CUresult>(code)), Trouble::NoDevice) << code;
    EXPECT_EQ(trouble_of(CUDA_SUCCESS), Trouble::None);
    EXPECT_EQ(trouble_of(CUDA_ERROR_OUT_OF_MEMORY), Trouble::Memory);
    EXPECT_EQ(trouble_of(CUDA_ERROR_NOT_READY), Trouble::Busy);
    EXPECT_EQ(trouble_of(CUDA_ERROR_INVALID_VALUE), Trouble::Other);
    EXPECT_EQ(trouble_of(static_cast<CUresult>(998)), Trouble::Other);
}

TEST(Errors, TextNamesTheCallTheCodeAndTheRemedy) {
    const auto fault = driver_fault(CUDA_ERROR_NO_BINARY_FOR_GPU, "cuLibraryLoadData");
    EXPECT_EQ(fault.kind, "artifact");
    EXPECT_EQ(fault.code, 209);
    EXPECT_EQ(fault.message, "cuLibraryLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU (209)");
    EXPECT_EQ(fault.hint, "the cubin was made for another architecture: make one for this GPU");
    EXPECT_EQ(fault.text(), fault.message + "; " + fault.hint);
    EXPECT_EQ(driver_fault(static_cast<CUresult>(998), "cuInit").message, "cuInit: CUresult 998 (998)");
    EXPECT_EQ(name_of(CUDA_ERROR_UNKNOWN), "CUDA_ERROR_UNKNOWN");
    EXPECT_EQ(name_of(CUDA_SUCCESS), "CUDA_SUCCESS");
}

TEST(Errors, EveryCodeHasANameAndAHint) {
    std::set<std::string> names;
    int known = 0;
    for (int code = 1; code <= 999; ++code) {
        const auto name = name_of(static_cast<CUresult>(code));
        EXPECT_TRUE(names.insert(name).second) << name;
        known += name.find("CUDA_ERROR_") == 0;
        EXPECT_NE(driver_fault(static_cast<CUresult>(code), "x").hint, "") << code;
    }
    EXPECT_GE(known, 50);
}

} // namespace
} // namespace cubridge::runtime
