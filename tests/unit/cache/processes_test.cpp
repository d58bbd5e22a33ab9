// Many processes on one store: at birth, in a hurry, and dying.
// SPDX-License-Identifier: Apache-2.0
#include "cache/fork_guard.h"
#include "support.h"
#include <atomic>
#include <csignal>
#include <cstring>
#include <set>
#include <sys/mman.h>
#include <thread>

namespace cubridge::cache {
namespace {

using namespace std::chrono_literals;

/// Numbers that children write and the parent reads after their death, whatever they died of.
class Shared {
public:
    static constexpr std::size_t COUNT = 4096;
    Shared()
        : values_(static_cast<std::atomic<int>*>(mmap(nullptr, COUNT * sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
    ~Shared() { munmap(values_, COUNT * sizeof(std::atomic<int>)); }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    std::atomic<int>& operator[](std::size_t i) { return values_[i]; }

private:
    std::atomic<int>* values_;
};

TEST(Processes, SixteenCreateAndPublishAtOnce) {
    for (int round = 0; round < 3; ++round) {
        TemporaryFolder folder;
        Shared gate;
        std::vector<pid_t> children;
        for (int c = 0; c < 16; ++c)
            children.push_back(start_child([&, c] {
                Heard heard;
                const auto store = open_store(in_folder(folder.store(), &heard));
                ++gate[0];
                while (gate[1] == 0) std::this_thread::yield();
                for (int i = 0; i < 8; ++i) {
                    const auto record = make_record(i, 20000, 1, c % 2 == 0 ? c : 0); // half of them the same content
                    if (store->publish(record).code != Code::OK) return 1;
                    const auto found = store->find(record.key);
                    if (!found || content_id(*found) != found->id) return 2;
                }
                return heard.size() == 0 ? 0 : 3;
            }));
        while (gate[0] < 16) std::this_thread::yield();
        gate[1] = 1;
        for (const auto child : children) EXPECT_EQ(await_child(child), 0);
        const auto store = open_store(in_folder(folder.store()));
        EXPECT_EQ(store->stats().entries, 8 * 8) << "seven odd salts and the common one";
        EXPECT_TRUE(store->verify().outcome);
        EXPECT_TRUE(store->verify().bad.empty());
        EXPECT_EQ(files_in(folder.store()), std::vector<std::string>{"store-1.db"});
    }
}

TEST(Processes, AllMeetADamagedFileAtOnce) {
    TemporaryFolder folder;
    std::filesystem::create_directory(folder.store());
    chmod(folder.store().c_str(), 0700);
    spill(folder.file(), std::string(30000, 'x'));
    chmod(folder.file().c_str(), 0600);
    std::vector<pid_t> children;
    for (int c = 0; c < 12; ++c)
        children.push_back(start_child([&, c] {
            const auto store = open_store(in_folder(folder.store()));
            store->find(key_of(0));
            if (store->publish(make_record(c)).code != Code::OK) return 1;
            return store->find(key_of(c)) == make_record(c) ? 0 : 2;
        }));
    for (const auto child : children) EXPECT_EQ(await_child(child), 0);
    const auto store = open_store(in_folder(folder.store()));
    EXPECT_EQ(store->verify().checked, 12);
    EXPECT_EQ(files_in(folder.store(), "store-1.db.bad-").size(), 1u) << "set aside once, and no good one with it";
}

TEST(Processes, KilledWhilePublishing) {
    // CUBRIDGE_KILL_ROUNDS=50 is the long run of the release; a folder per round, so that each begins with the
    // creation.
    const char* asked = std::getenv("CUBRIDGE_KILL_ROUNDS");
    const int rounds = asked ? std::atoi(asked) : 10;
    std::minstd_rand random(static_cast<unsigned>(getpid()));
    for (int round = 0; round < rounds; ++round) {
        TemporaryFolder folder;
        Shared acknowledged; // at [child]: how many of its publishes returned OK
        constexpr int CHILDREN = 4, STRIDE = 1000;
        std::vector<pid_t> children;
        for (int c = 0; c < CHILDREN; ++c)
            children.push_back(start_child([&, c] {
                const auto store = open_store(in_folder(folder.store()));
                for (int i = 0; i < STRIDE; ++i) {
                    if (store->publish(make_record(c * STRIDE + i, 30000)).code != Code::OK) return 1;
                    acknowledged[static_cast<std::size_t>(c)] = i + 1;
                    if (i % 5 == 4) store->quarantine(make_record(c * STRIDE + i, 30000).id, "a write of another kind");
                }
                return 0;
            }));
        for (const auto child : children) {
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 60000));
            kill(child, SIGKILL);
        }
        for (const auto child : children) EXPECT_EQ(await_child(child), 1000 + SIGKILL);

        Heard heard;
        const auto start = std::chrono::steady_clock::now();
        const auto store = open_store(in_folder(folder.store(), &heard));
        const auto verified = store->verify(); // quick_check, and each row's digests
        EXPECT_TRUE(verified.outcome) << verified.outcome.reason;
        EXPECT_TRUE(verified.bad.empty()) << "torn";
        for (int c = 0; c < CHILDREN; ++c) {
            const int count = acknowledged[static_cast<std::size_t>(c)];
            for (int i = 0; i < count; ++i) {
                if (i % 5 == 4) continue;
                EXPECT_TRUE(store->find(key_of(c * STRIDE + i))) << "lost " << i << " of " << count;
            }
        }
        EXPECT_EQ(store->publish(make_record(999999)).code, Code::OK);
        EXPECT_EQ(heard.size(), 0u) << heard.text();
        EXPECT_LT(std::chrono::steady_clock::now() - start, 5s) << "nobody waits for the dead";
        EXPECT_EQ(files_in(folder.store()), std::vector<std::string>{"store-1.db"});
    }
}

TEST(Processes, AForkBetweenCallsIsHarmless) {
    TemporaryFolder folder;
    const auto store = open_store(in_folder(folder.store()));
    ASSERT_EQ(store->publish(make_record(1)).code, Code::OK);
    EXPECT_EQ(in_child([&] {
                  if (store->find(key_of(1)) != make_record(1)) return 1;
                  return store->publish(make_record(2)).code == Code::OK ? 0 : 2;
              }),
              0);
    EXPECT_EQ(store->find(key_of(2)), make_record(2));
    EXPECT_EQ(store->publish(make_record(3)).code, Code::OK);
}

TEST(Processes, AForkInsideACallKeepsTheChildAway) {
    TemporaryFolder folder;
    const auto store = open_store(in_folder(folder.store()));
    const auto memory = open_store(in_folder(""));
    ASSERT_EQ(store->publish(make_record(1)).code, Code::OK);
    ASSERT_EQ(memory->publish(make_record(1)).code, Code::OK);
    std::atomic<int> inside{0}, leave{0};
    std::thread caller([&] {
        store->find(key_of(1), [&](const Summary&) {
            inside = 1;
            while (leave == 0) std::this_thread::sleep_for(1ms);
            return true;
        });
    });
    while (inside == 0) std::this_thread::sleep_for(1ms);
    const int result = in_child([&] {
        if (Visit().safe()) return 1;
        if (store->find(key_of(1)) || memory->find(key_of(1))) return 2;
        if (store->publish(make_record(2)).code != Code::UNAVAILABLE) return 3;
        if (!store->list().empty()) return 4;
        return in_child([&] { return store->find(key_of(1)) ? 5 : 0; }); // nor its own children
    });
    EXPECT_EQ(result, 0);
    leave = 1;
    caller.join();
    EXPECT_TRUE(store->find(key_of(1))) << "the parent goes on";
    EXPECT_EQ(in_child([&] { return store->find(key_of(1)) ? 0 : 1; }), 0) << "and so do later children";
}

TEST(Processes, ThePinOfOneHoldsForAll) {
    TemporaryFolder folder;
    const auto size = footprint(make_record(0, 1000));
    auto options = in_folder(folder.store());
    options.budget = 3 * size + 10;
    ASSERT_EQ(in_child([&] {
                  const auto store = open_store(options);
                  return store->publish(make_record(0)) && store->pin(make_record(0).id, true) ? 0 : 1;
              }),
              0);
    const auto store = open_store(options);
    for (int i = 1; i < 8; ++i) EXPECT_EQ(store->publish(make_record(i)).code, Code::OK);
    EXPECT_TRUE(store->find(key_of(0)));
    EXPECT_EQ(store->stats().entries, 3);
    EXPECT_EQ(store->stats().evicted, 5);
}

} // namespace
} // namespace cubridge::cache
