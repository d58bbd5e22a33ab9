// The driver where there is none, and what needs none.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/driver.h"
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace cubridge::runtime {
namespace {

TEST(Driver, ArchCarriesTheSuffixThatFastKernelsNeed) {
    EXPECT_EQ(arch_of(7, 5), "sm_75");
    EXPECT_EQ(arch_of(8, 0), "sm_80");
    EXPECT_EQ(arch_of(8, 9), "sm_89");
    EXPECT_EQ(arch_of(9, 0), "sm_90a");
    EXPECT_EQ(arch_of(10, 0), "sm_100a");
    EXPECT_EQ(arch_of(10, 3), "sm_103a");
    EXPECT_EQ(arch_of(12, 0), "sm_120a");
}

TEST(Driver, AnAbsentOneIsAClearError) {
    const auto driver = Driver::open("libcuda-that-nobody-has.so.1");
    ASSERT_FALSE(driver);
    EXPECT_EQ(driver.fault().kind, "no_driver");
    EXPECT_NE(driver.fault().message.find("libcuda-that-nobody-has.so.1"), std::string::npos);
    EXPECT_NE(driver.fault().hint.find("install the driver"), std::string::npos);
}

TEST(Driver, AnotherLibraryIsAClearError) {
    const auto driver = Driver::open("libc.so.6");
    ASSERT_FALSE(driver);
    EXPECT_EQ(driver.fault().kind, "no_driver");
    EXPECT_NE(driver.fault().message.find("lacks cuInit, cuDriverGetVersion"), std::string::npos)
        << driver.fault().message;
    EXPECT_NE(driver.fault().message.find("cuMemAlloc_v2"), std::string::npos) << driver.fault().message;
}

/// Where there is a driver, opening it leaves the process able to fork: nothing is initialised.
TEST(Driver, TheRealOneOpensOrSaysWhy) {
    const auto driver = Driver::open();
    if (driver) {
        const auto devices = (*driver)->devices();
        if (devices) {
            EXPECT_FALSE(devices->empty());
        } else {
            EXPECT_NE(devices.fault().hint, "");
        }
        const auto beyond = (*driver)->device(4096);
        EXPECT_FALSE(beyond);
    } else {
        EXPECT_EQ(driver.fault().kind, "no_driver");
        EXPECT_EQ(dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY), nullptr);
    }
}

} // namespace
} // namespace cubridge::runtime
