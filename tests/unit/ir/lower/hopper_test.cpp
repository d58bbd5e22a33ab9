// The Hopper program: what its statements print. SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/lower/hopper.h"
#include <gtest/gtest.h>

namespace cubridge::ir::lower {
namespace {

TEST(HopperTest, Dump) {
    std::puts(test::hopper_text().c_str());
}

} // namespace
} // namespace cubridge::ir::lower
