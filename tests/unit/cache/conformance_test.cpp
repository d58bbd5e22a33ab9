// What every store must do, whatever it is made of.
// SPDX-License-Identifier: Apache-2.0
#include "cache/local_store.h"
#include "support.h"
#include <thread>

namespace cubridge::cache {
namespace {

struct Given {
    std::string folder;
    std::int64_t budget;
    std::function<std::int64_t()> clock;
    std::function<void(const Warning&)> warn;
};
struct Kind {
    const char* name;
    std::function<std::unique_ptr<Store>(const Given&)> make;
};

std::unique_ptr<Store> open_at(const Given& given, std::string folder) {
    OpenOptions options;
    options.folder = std::move(folder);
    options.budget = options.memory_budget = given.budget;
    options.clock = given.clock;
    options.warn = given.warn;
    return open_store(options);
}

const Kind KINDS[] = {
    {"memory", [](const Given& given) { return std::make_unique<MemoryStore>(given.budget, given.clock); }},
    {"sqlite",
     [](const Given& given) {
         return std::make_unique<SqliteStore>(SqliteStore::Config{given.folder, given.budget, false, given.clock,
                                                                  std::make_shared<Warner>(given.warn, given.clock)});
     }},
    {"opened_on_disk", [](const Given& given) { return open_at(given, given.folder); }},
    {"opened_in_memory", [](const Given& given) { return open_at(given, ""); }},
};

class StoreConformance : public testing::TestWithParam<Kind> {
protected:
    std::unique_ptr<Store> make(std::int64_t budget = 1 << 20) {
        return GetParam().make({folder_.store(), budget, [this] { return now_.load(); }, heard_.sink()});
    }
    TemporaryFolder folder_;
    std::atomic<std::int64_t> now_{1764600000};
    Heard heard_;
};

TEST_P(StoreConformance, AnEmptyStoreAnswersEverything) {
    const auto store = make();
    EXPECT_FALSE(store->find(key_of(1)));
    EXPECT_FALSE(store->load(key_of(1)));
    EXPECT_TRUE(store->list().empty());
    EXPECT_EQ(store->verify().checked, 0);
    EXPECT_TRUE(store->verify().outcome);
    EXPECT_EQ(store->verify(key_of(1)).outcome.code, Code::MISSING);
    EXPECT_EQ(store->quarantine(key_of(1), "x").code, Code::MISSING);
    EXPECT_EQ(store->pin(key_of(1), true).code, Code::MISSING);
    EXPECT_EQ(store->touch(key_of(1)).code, Code::MISSING);
    EXPECT_EQ(store->stats().entries, 0);
    EXPECT_EQ(heard_.size(), 0u) << heard_.text();
}

TEST_P(StoreConformance, GivesBackWhatWasPublished) {
    const auto store = make();
    auto record = make_record(1, 70000);
    record.metadata = std::string("with\0zero", 9) + "\xff\xfe";
    record.blobs.push_back({std::string("na\0me", 5), std::string(3, '\0')});
    seal(record);
    EXPECT_EQ(store->publish(record).code, Code::OK);
    EXPECT_EQ(store->find(record.key), record);
    EXPECT_EQ(store->load(record.id), record);
    EXPECT_FALSE(store->find(key_of(2)));
    const auto list = store->list();
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].id, record.id);
    EXPECT_EQ(list[0].key, record.key);
    EXPECT_EQ(list[0].arch, record.arch);
    EXPECT_EQ(list[0].made_by, record.made_by);
    EXPECT_EQ(list[0].build, record.build);
    EXPECT_EQ(list[0].rank, record.rank);
    EXPECT_EQ(list[0].created, record.created);
    EXPECT_EQ(list[0].bytes, footprint(record));
    EXPECT_EQ(list[0].used, now_);
    EXPECT_FALSE(list[0].pinned);
    EXPECT_EQ(store->stats().writes, 1);
    EXPECT_EQ(store->stats().bytes, footprint(record));
    EXPECT_EQ(store->verify().checked, 1);
    EXPECT_TRUE(store->verify().bad.empty());
}

TEST_P(StoreConformance, PublishingAgainChangesNothing) {
    const auto store = make();
    const auto record = make_record(1);
    EXPECT_TRUE(store->publish(record));
    EXPECT_TRUE(store->publish(record));
    EXPECT_EQ(store->stats().writes, 1);
    EXPECT_EQ(store->stats().entries, 1);
}

TEST_P(StoreConformance, OneContentMayLieUnderTwoKeys) {
    const auto store = make();
    auto first = make_record(1), second = first;
    second.key = key_of(2);
    EXPECT_TRUE(store->publish(first));
    EXPECT_TRUE(store->publish(second));
    EXPECT_EQ(store->find(first.key), first);
    EXPECT_EQ(store->find(second.key), second);
    EXPECT_TRUE(store->quarantine(first.id, "both go"));
    EXPECT_FALSE(store->find(first.key));
    EXPECT_FALSE(store->find(second.key));
    EXPECT_EQ(store->stats().quarantined, 2);
}

TEST_P(StoreConformance, ServesTheBestOfAKey) {
    const auto store = make();
    const auto generic = make_record(1, 100, 1, 5), rules = make_record(1, 100, 2, 0),
               newer = make_record(1, 100, 2, 1);
    EXPECT_TRUE(store->publish(generic));
    EXPECT_EQ(store->find(key_of(1)), generic);
    EXPECT_TRUE(store->publish(newer));
    EXPECT_TRUE(store->publish(rules));
    EXPECT_EQ(store->find(key_of(1)), newer);
    EXPECT_EQ(store->find(key_of(1), [&](const Summary& s) { return s.rank == 1; }), generic);
    EXPECT_FALSE(store->find(key_of(1), [](const Summary&) { return false; }));
    EXPECT_TRUE(store->quarantine(newer.id, "refused by the driver"));
    EXPECT_EQ(store->find(key_of(1)), rules);
}

TEST_P(StoreConformance, AnAcceptThatThrowsIsAMiss) {
    const auto store = make();
    EXPECT_TRUE(store->publish(make_record(1)));
    EXPECT_FALSE(store->find(key_of(1), [](const Summary&) -> bool { throw 1; }));
    EXPECT_TRUE(store->find(key_of(1)));
}

TEST_P(StoreConformance, RefusesAnIdThatIsNotItsContents) {
    const auto store = make();
    auto record = make_record(1);
    record.blobs[0].bytes += "x";
    EXPECT_EQ(store->publish(record).code, Code::INVALID);
    EXPECT_FALSE(store->find(record.key));
}

TEST_P(StoreConformance, RefusesWhatIsLargerThanItsBudget) {
    const auto store = make(5000);
    const auto small = make_record(1, 2000);
    EXPECT_TRUE(store->publish(small));
    EXPECT_EQ(store->publish(make_record(2, 6000)).code, Code::TOO_LARGE);
    EXPECT_EQ(store->find(small.key), small) << "nothing was evicted for it";
}

TEST_P(StoreConformance, EvictsWhatWasUsedLongestAgo) {
    const auto size = footprint(make_record(0, 1000));
    const auto store = make(size * 3 + 10);
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(store->publish(make_record(i)));
        now_ += 10;
    }
    now_ += 3600; // a use within the hour isn't written
    EXPECT_TRUE(store->find(key_of(0)));
    now_ += 10;
    EXPECT_TRUE(store->publish(make_record(3)));
    EXPECT_TRUE(store->find(key_of(0)));
    EXPECT_FALSE(store->find(key_of(1)));
    EXPECT_TRUE(store->find(key_of(2)));
    EXPECT_TRUE(store->find(key_of(3)));
    EXPECT_EQ(store->stats().evicted, 1);
    EXPECT_LE(store->stats().bytes, size * 3 + 10);
}

TEST_P(StoreConformance, TouchIsAUse) {
    const auto store = make();
    const auto record = make_record(1);
    EXPECT_TRUE(store->publish(record));
    now_ += 7200;
    EXPECT_TRUE(store->touch(record.id));
    EXPECT_EQ(store->list()[0].used, now_);
}

TEST_P(StoreConformance, NeverEvictsPinned) {
    const auto size = footprint(make_record(0, 1000));
    const auto store = make(size * 2 + 10);
    EXPECT_TRUE(store->publish(make_record(0)));
    EXPECT_TRUE(store->pin(make_record(0).id, true));
    for (int i = 1; i < 5; ++i) {
        now_ += 10;
        EXPECT_TRUE(store->publish(make_record(i)));
    }
    EXPECT_TRUE(store->find(key_of(0)));
    EXPECT_TRUE(store->find(key_of(4)));
    EXPECT_EQ(store->list().size(), 2u);
    EXPECT_TRUE(store->pin(make_record(4).id, true));
    EXPECT_NE(store->publish(make_record(5)).code, Code::OK)
        << "a disk that is full of pinned records leaves it to memory";
    EXPECT_TRUE(store->find(key_of(0)));
    EXPECT_TRUE(store->find(key_of(4)));
    EXPECT_TRUE(store->pin(make_record(0).id, false));
    EXPECT_TRUE(store->publish(make_record(5)));
    EXPECT_FALSE(store->find(key_of(0)));
}

TEST_P(StoreConformance, QuarantinedIsGoneUntilMadeAgain) {
    const auto store = make();
    const auto record = make_record(1);
    EXPECT_TRUE(store->publish(record));
    EXPECT_TRUE(store->quarantine(record.id, "refused by the driver"));
    EXPECT_FALSE(store->find(record.key));
    EXPECT_FALSE(store->load(record.id));
    EXPECT_EQ(store->stats().entries, 0);
    EXPECT_EQ(store->stats().quarantined, 1);
    EXPECT_TRUE(store->publish(record));
    EXPECT_EQ(store->find(record.key), record);
}

TEST_P(StoreConformance, ARecordTakesAnothersPlace) {
    const auto store = make();
    auto record = make_record(1);
    EXPECT_TRUE(store->publish(record));
    auto elsewhere = record; // the same content under another key stays
    elsewhere.key = key_of(2);
    EXPECT_TRUE(store->publish(elsewhere));
    EXPECT_TRUE(store->pin(record.id, true));
    auto next = record;
    next.metadata += "more";
    seal(next);
    EXPECT_TRUE(store->replace(record.id, next));
    EXPECT_EQ(store->find(record.key), next);
    EXPECT_EQ(store->load(record.id), elsewhere);
    ASSERT_EQ(store->list().size(), 2u);
    for (const auto& s : store->list()) EXPECT_TRUE(s.pinned);
    EXPECT_EQ(store->stats().entries, 2);
    EXPECT_EQ(store->stats().quarantined, 0);
    EXPECT_EQ(store->stats().bytes, footprint(next) + footprint(elsewhere));
    EXPECT_TRUE(store->replace(next.id, next));
    EXPECT_EQ(store->find(next.key), next);
    EXPECT_TRUE(store->replace(key_of(9), make_record(3))); // nothing was there
    EXPECT_TRUE(store->find(make_record(3).key));
    EXPECT_EQ(store->forget(key_of(1), key_of(9)).code, Code::MISSING);
    EXPECT_EQ(heard_.size(), 0u) << heard_.text();
}

TEST_P(StoreConformance, ManyThreads) {
    const auto store = make(64 << 20);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 12; ++i) {
                const auto record = make_record(i % 6, 3000, t, t);
                if (store->publish(record).code != Code::OK) ++wrong;
                const auto found = store->find(record.key);
                if (!found || found->rank < t || content_id(*found) != found->id) ++wrong;
                if (!store->load(record.id)) ++wrong;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << heard_.text();
    EXPECT_EQ(store->stats().entries, 48);
    EXPECT_EQ(store->verify().checked, 48);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreConformance, testing::ValuesIn(KINDS),
                         [](const auto& info) { return std::string(info.param.name); });

} // namespace
} // namespace cubridge::cache
