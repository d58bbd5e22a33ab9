// SPDX-License-Identifier: Apache-2.0
#include "cubridge/cache/lock.h"
#include "support.h"
#include <atomic>
#include <csignal>
#include <thread>

namespace cubridge::cache {
namespace {

using namespace std::chrono_literals;

Deadline in(std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() + time;
}

/// With a folder, and without.
class LocksTest : public testing::TestWithParam<bool> {
protected:
    TemporaryFolder folder_;
    Locks locks_{GetParam() ? folder_.store() : std::string()};
};

TEST_P(LocksTest, OneHolderAtATime) {
    auto lock = locks_.try_lock(key_of(1));
    ASSERT_TRUE(lock);
    EXPECT_EQ(lock.shared(), GetParam());
    EXPECT_FALSE(locks_.try_lock(key_of(1)));
    EXPECT_TRUE(locks_.try_lock(key_of(2))) << "another key";
    auto moved = std::move(lock);
    EXPECT_FALSE(lock);
    EXPECT_FALSE(locks_.try_lock(key_of(1)));
    moved.release();
    EXPECT_TRUE(locks_.try_lock(key_of(1))) << "and given back at once, as it is not kept";
    EXPECT_TRUE(locks_.try_lock(key_of(1)));
}

TEST_P(LocksTest, WaitsUntilItsDeadline) {
    const auto held = locks_.try_lock(key_of(1));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(locks_.lock(key_of(1), in(60ms)).result, Wait::TIMED_OUT);
    const auto waited = std::chrono::steady_clock::now() - start;
    EXPECT_GE(waited, 55ms);
    EXPECT_LT(waited, 2s);
    EXPECT_EQ(locks_.lock(key_of(1), in(-1s)).result, Wait::TIMED_OUT);
    EXPECT_EQ(locks_.lock(key_of(2), in(-1s)).result, Wait::HELD) << "what is free needs no time";
}

TEST_P(LocksTest, CanBeCancelled) {
    const auto held = locks_.try_lock(key_of(1));
    std::atomic<bool> stop{false};
    std::thread canceller([&] {
        std::this_thread::sleep_for(30ms);
        stop = true;
    });
    EXPECT_EQ(locks_.lock(key_of(1), in(60s), [&] { return stop.load(); }).result, Wait::CANCELLED);
    canceller.join();
}

TEST_P(LocksTest, ExcludesThreads) {
    std::atomic<int> inside{0}, wrong{0}, turns{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 10; ++i) {
                auto waited = locks_.lock(key_of(1), in(60s));
                if (waited.result != Wait::HELD || ++inside != 1) ++wrong;
                ++turns;
                --inside;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(turns, 60);
}

TEST_P(LocksTest, SlotsCount) {
    auto first = locks_.try_slot(2), second = locks_.try_slot(2);
    EXPECT_TRUE(first);
    EXPECT_TRUE(second);
    EXPECT_FALSE(locks_.try_slot(2));
    EXPECT_EQ(locks_.slot(2, in(20ms)).result, Wait::TIMED_OUT);
    EXPECT_EQ(locks_.slot(2, in(60s), [] { return true; }).result, Wait::CANCELLED);
    EXPECT_TRUE(locks_.try_lock(key_of(1))) << "slots and keys are apart";
    first.release();
    auto waited = locks_.slot(2, in(1s));
    EXPECT_EQ(waited.result, Wait::HELD);
    waited.lock.release();
    second.release();
    EXPECT_TRUE(locks_.try_slot(0)) << "at least one";
}

TEST_P(LocksTest, MayBeHeldLongerThanTheObject) {
    Lock lock;
    {
        Locks brief(GetParam() ? folder_.store() : std::string());
        lock = brief.try_lock(key_of(3));
    }
    EXPECT_TRUE(lock);
    EXPECT_EQ(static_cast<bool>(locks_.try_lock(key_of(3))), !GetParam());
}

TEST_P(LocksTest, AChildDoesNotGiveBackItsParentsLock) {
    auto lock = std::make_unique<Lock>(locks_.try_lock(key_of(1)));
    EXPECT_EQ(in_child([&] {
                  lock.reset();
                  return 0;
              }),
              0);
    EXPECT_FALSE(locks_.try_lock(key_of(1)));
    // And a child that lives on, with the parent's descriptor open, doesn't keep it.
    const pid_t child = start_child([] {
        pause();
        return 0;
    });
    lock.reset();
    EXPECT_TRUE(locks_.try_lock(key_of(1)));
    kill(child, SIGKILL);
    await_child(child);
}

INSTANTIATE_TEST_SUITE_P(Places, LocksTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "folder" : "memory"; });

TEST(Locks, FilesAndModes) {
    TemporaryFolder folder;
    const int result = in_child([&] {
        umask(0);
        Locks locks(folder.store());
        const auto key = locks.try_lock(key_of(1));
        const auto slot = locks.try_slot(2);
        if (mode_of(folder.store()) != 0700 || mode_of(folder.store() + "/lock") != 0700) return 1;
        if (mode_of(folder.store() + "/lock/" + key_of(1).hex(16)) != 0600) return 2;
        if (mode_of(folder.store() + "/lock/slot.0") != 0600) return 3;
        return slurp(folder.store() + "/lock/slot.0").starts_with("pid " + std::to_string(getpid())) ? 0 : 4;
    });
    EXPECT_EQ(result, 0);
}

TEST(Locks, WithoutAPlaceToWriteTheyHoldAmongThreads) {
    Locks locks("/dev/null/store");
    const auto lock = locks.try_lock(key_of(1));
    EXPECT_TRUE(lock);
    EXPECT_FALSE(lock.shared());
    EXPECT_FALSE(locks.try_lock(key_of(1)));
    // A child has none of its parent's threads: what they held is free there.
    EXPECT_EQ(in_child([&] { return locks.try_lock(key_of(1)) ? 0 : 1; }), 0);
}

TEST(Locks, AFolderOfOthersIsNotWrittenTo) {
    TemporaryFolder folder;
    std::filesystem::create_directory(folder.store());
    chmod(folder.store().c_str(), 0777);
    Locks locks(folder.store());
    const auto lock = locks.try_lock(key_of(1));
    EXPECT_TRUE(lock);
    EXPECT_FALSE(lock.shared());
    EXPECT_FALSE(std::filesystem::exists(folder.store() + "/lock/" + key_of(1).hex(16)));
}

TEST(Locks, WhenTheHolderDiesTheNextOneHasIt) {
    TemporaryFolder folder;
    Locks locks(folder.store());
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = start_child([&] {
        const auto lock = locks.try_lock(key_of(1));
        const auto slot = locks.try_slot(1);
        if (!lock || !slot || write(ready[1], "x", 1) != 1) return 1;
        pause();
        return 2;
    });
    char byte;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    EXPECT_FALSE(locks.try_lock(key_of(1)));
    EXPECT_FALSE(locks.try_slot(1));
    kill(child, SIGKILL);
    EXPECT_EQ(await_child(child), 1000 + SIGKILL);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(locks.lock(key_of(1), in(10s)).result, Wait::HELD);
    EXPECT_EQ(locks.slot(1, in(10s)).result, Wait::HELD);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);
    close(ready[0]);
    close(ready[1]);
}

TEST(Locks, OneMakerAmongProcesses) {
    // Each of 12 processes wants the kernel; who gets the lock and finds none makes it. A third of the makers die over
    // it.
    TemporaryFolder folder;
    const auto start = std::chrono::steady_clock::now();
    std::vector<pid_t> children;
    for (int c = 0; c < 12; ++c)
        children.push_back(start_child([&folder, c] {
            Locks locks(folder.store());
            const auto store = open_store(in_folder(folder.store()));
            const auto waited = locks.lock(key_of(1), in(30s));
            if (waited.result != Wait::HELD) return 1;
            if (store->find(key_of(1))) return 0;
            std::this_thread::sleep_for(20ms);
            if (c % 3 == 0) kill(getpid(), SIGKILL);
            return store->publish(make_record(1, 1000, 1, c)).code == Code::OK ? 3 : 2;
        }));
    int made = 0, served = 0, died = 0;
    for (const auto child : children) {
        const int result = await_child(child);
        made += result == 3;
        served += result == 0;
        died += result == 1000 + SIGKILL;
    }
    EXPECT_EQ(made, 1);
    EXPECT_EQ(made + served + died, 12);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

} // namespace
} // namespace cubridge::cache
