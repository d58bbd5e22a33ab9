// Runs work on a thread with a stack of its own size, for texts that are made to overflow one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/unit/sample.h"
#include <cstddef>
#include <gtest/gtest.h>
#include <pthread.h>

namespace cubridge::ir {

using cubridge::test::kSanitized; // frames are several times larger then

/// Returns when the work is done. What it throws ends the program.
template <class F> void on_small_stack(std::size_t bytes, F work) {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
    pthread_t thread;
    const auto enter = [](void* work) -> void* {
        (*static_cast<F*>(work))();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, enter, &work), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    pthread_attr_destroy(&attributes);
}

} // namespace cubridge::ir
