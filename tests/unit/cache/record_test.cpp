// SPDX-License-Identifier: Apache-2.0
#include "support.h"

namespace cubridge::cache {
namespace {

TEST(Record, IdCoversAllContent) {
    const auto original = make_record(1);
    const std::vector<std::function<void(Record&)>> changes = {
        [](Record& r) { r.build += "x"; },
        [](Record& r) { r.arch = "sm_80"; },
        [](Record& r) { r.made_by = "model"; },
        [](Record& r) { ++r.rank; },
        [](Record& r) { r.metadata += " "; },
        [](Record& r) { r.blobs[0].bytes[7] = static_cast<char>(r.blobs[0].bytes[7] ^ 1); },
        [](Record& r) { r.blobs[0].name = "cubix"; },
        [](Record& r) { r.blobs.pop_back(); },
        [](Record& r) { std::swap(r.blobs[0], r.blobs[1]); },
        [](Record& r) { std::swap(r.build, r.arch); },
    };
    for (std::size_t i = 0; i < changes.size(); ++i) {
        auto changed = original;
        changes[i](changed);
        EXPECT_NE(content_id(changed), original.id) << "change " << i;
    }
}

TEST(Record, IdDoesNotCoverWhereAndWhen) {
    auto record = make_record(1);
    const auto id = record.id;
    record.key = key_of(2);
    record.created += 100;
    EXPECT_EQ(content_id(record), id);
    EXPECT_NE(binding(key_of(1), id, record.created), binding(key_of(2), id, record.created));
}

TEST(Record, IdIsAFormat) { // a change of this value is a new format: see docs/store.md
    Record record;
    record.build = "b";
    record.arch = "sm_90a";
    record.made_by = "generic";
    record.rank = 3;
    record.metadata = "{}";
    record.blobs = {{"cubin", "abc"}};
    const auto expected = Digester("cubridge-record-1")
                              .field("b")
                              .field("sm_90a")
                              .field("generic")
                              .number(3)
                              .field("{}")
                              .number(1)
                              .field("cubin")
                              .number(3)
                              .field(sha256("abc"))
                              .finish();
    EXPECT_EQ(content_id(record), expected);
    EXPECT_EQ(expected.hex(16), "9f17d410fbfa5a5d");
}

TEST(Record, FindsBlobsByName) {
    const auto record = make_record(1);
    ASSERT_NE(record.blob("source"), nullptr);
    EXPECT_EQ(record.blob("source")->name, "source");
    EXPECT_EQ(record.blob("plan"), nullptr);
}

} // namespace
} // namespace cubridge::cache
