// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/pool.h"
#include <atomic>
#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

using cubridge::runtime::parallel;

TEST(Parallel, CallsEachOnce) {
    for (const int threads : {0, 1, 7}) {
        std::vector<std::atomic<int>> calls(100);
        parallel(calls.size(), threads, [&](std::size_t k) { ++calls[k]; });
        for (const auto& c : calls) EXPECT_EQ(c, 1);
    }
    parallel(0, 4, [](std::size_t) { FAIL(); });
}

TEST(Parallel, AnExceptionEndsIt) {
    EXPECT_THROW(parallel(1000, 4,
                          [](std::size_t k) {
                              if (k == 3) throw std::runtime_error("three");
                          }),
                 std::runtime_error);
}
