// What the compiler's report says against a kernel. SPDX-License-Identifier: Apache-2.0
#include "runtime/adapter/gate.h"
#include <gtest/gtest.h>

namespace cubridge::runtime {
namespace {

class GateTest : public testing::Test {
protected:
    GateTest() {
        ir::launch::Entry table, main;
        table.name = "table";
        main.name = "attention";
        artifact.plan.entries = {table, main};
        artifact.entries.resize(2);
        artifact.entries[0].name = "attention"; // in the order of compiling
        artifact.entries[1].name = "table";
    }
    std::string refused() const { return gate(artifact, warpgroups, remarks).refused; }

    Artifact artifact;
    std::vector<std::string> warpgroups, remarks;
};

TEST_F(GateTest, EveryEntryIsThere) {
    EXPECT_EQ(refused(), "");
    artifact.entries.pop_back();
    EXPECT_EQ(refused(), "the compiler reports no entry table");
}

TEST_F(GateTest, SpillsAreSaidAndOfWarpgroupsRefused) {
    artifact.entries[0].spill_stores = 8;
    artifact.entries[0].spill_loads = 12;
    artifact.entries[0].stack = 16;
    EXPECT_EQ(refused(), "");
    EXPECT_EQ(gate(artifact, {}, {}).warnings,
              std::vector<std::string>{"attention spills 8 bytes of stores and 12 of loads"});
    warpgroups = {"attention"};
    EXPECT_EQ(refused(), "attention spills 8 bytes of stores and 12 of loads");
    artifact.entries[0].spill_stores = artifact.entries[0].spill_loads = 0;
    EXPECT_EQ(refused(), "attention has a stack frame of 16 bytes");
    artifact.entries[0].stack = 0;
    artifact.entries[1].stack = 16; // of another kernel of the same launch
    EXPECT_EQ(refused(), "");
}

TEST_F(GateTest, RemarksAreRefusedWhereWarpgroupsAre) {
    remarks = {"(C7510) wgmma.mma_async instructions are serialized"};
    EXPECT_EQ(refused(), "");
    warpgroups = {"attention"};
    EXPECT_EQ(refused(), "ptxas: (C7510) wgmma.mma_async instructions are serialized");
}

} // namespace
} // namespace cubridge::runtime
