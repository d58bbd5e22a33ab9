// Readers beside writers: nothing is lost while the array grows.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/registry/table.h"
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

namespace cubridge::runtime {
namespace {

Query query(int n) {
    Query q;
    q.head_dim = n;
    return q;
}

TEST(Table, FindsWhatWasAdded) {
    Table table;
    EXPECT_EQ(table.find(query(1)), nullptr);
    Slot& slot = table.find_or_add(query(1));
    EXPECT_EQ(&table.find_or_add(query(1)), &slot);
    EXPECT_EQ(table.find(query(1)), &slot);
    EXPECT_EQ(slot.known.load()->kind, Known::Kind::Nothing);
    Query copy; // what lies beside its members is of no query
    std::memset(static_cast<void*>(&copy), 0xa5, sizeof copy);
    copy = query(1);
    EXPECT_EQ(table.find(copy), &slot);
    Known refused;
    refused.kind = Known::Kind::Refused;
    refused.message = "no";
    table.publish(slot, std::move(refused));
    EXPECT_EQ(slot.known.load()->message, "no");
}

TEST(Table, GrowsUnderReaders) {
    Table table;
    std::atomic<int> added{0};
    std::atomic<bool> lost{false};
    std::vector<std::thread> readers;
    for (int r = 0; r < 4; ++r)
        readers.emplace_back([&] {
            for (int n = 0; n < 4000;) {
                const int there = added.load(std::memory_order_acquire);
                for (int k = std::max(0, there - 50); k < there; ++k) {
                    const Slot* slot = table.find(query(k));
                    if (slot == nullptr || slot->query.head_dim != k) lost = true;
                }
                n = there;
            }
        });
    for (int n = 0; n < 4000; ++n) {
        table.find_or_add(query(n));
        added.store(n + 1, std::memory_order_release);
    }
    for (auto& t : readers) t.join();
    EXPECT_FALSE(lost);
}

} // namespace
} // namespace cubridge::runtime
