// Damage, somebody else's files, modes and links: what lies under the store's name must never hurt, and never be served
// wrongly. SPDX-License-Identifier: Apache-2.0
#include "support.h"
#include <sqlite3.h>

namespace cubridge::cache {
namespace {

void sql(const std::string& file, const std::string& text) {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(file.c_str(), &handle), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(handle, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
    sqlite3_close(handle);
}

class StoreFileTest : public testing::Test {
protected:
    /// A store of a few records on disk, closed.
    void fill(int count = 4, std::size_t size = 9000) {
        const auto store = open_store(in_folder(folder_.store()));
        for (int i = 0; i < count; ++i) ASSERT_EQ(store->publish(make_record(i, size)).code, Code::OK);
    }
    /// Whatever lies there: nothing wrong is served, and afterwards the store takes and gives records again.
    void expect_heals(const std::string& what, int count = 4, std::size_t size = 9000) {
        Heard heard;
        const auto store = open_store(in_folder(folder_.store(), &heard));
        for (int i = 0; i < count; ++i) {
            const auto found = store->find(key_of(i));
            if (found) {
                EXPECT_EQ(*found, make_record(i, size)) << what;
            }
        }
        EXPECT_EQ(store->publish(make_record(100)).code, Code::OK) << what << "\n" << heard.text();
        for (int i = 0; i < count; ++i) EXPECT_EQ(store->publish(make_record(i, size)).code, Code::OK) << what;
        for (int i = 0; i < count; ++i) EXPECT_EQ(store->find(key_of(i)), make_record(i, size)) << what;
        EXPECT_EQ(store->find(key_of(100)), make_record(100)) << what;
        EXPECT_TRUE(store->verify().outcome) << what;
        EXPECT_LE(heard.count(Trouble::CORRUPT), 1) << heard.text();
        EXPECT_LE(heard.count(Trouble::QUARANTINED), 1) << heard.text();
        EXPECT_EQ(heard.size(),
                  static_cast<std::size_t>(heard.count(Trouble::CORRUPT) + heard.count(Trouble::QUARANTINED)))
            << heard.text();
    }
    void clear() { std::filesystem::remove_all(folder_.store()); }
    TemporaryFolder folder_;
};

TEST_F(StoreFileTest, ALookUpCreatesNothing) {
    const auto store = open_store(in_folder(folder_.store()));
    EXPECT_FALSE(store->find(key_of(1)));
    store->list();
    store->stats();
    store->verify();
    store->pin(key_of(1), true);
    EXPECT_FALSE(std::filesystem::exists(folder_.store()));
    std::filesystem::create_directory(folder_.store());
    ASSERT_EQ(chmod(folder_.store().c_str(), 0700), 0);
    EXPECT_FALSE(store->find(key_of(1)));
    EXPECT_TRUE(files_in(folder_.store()).empty());
}

TEST_F(StoreFileTest, NothingButTheDatabaseIsLeft) {
    fill();
    EXPECT_EQ(files_in(folder_.store()), std::vector<std::string>{"store-1.db"});
}

TEST_F(StoreFileTest, ModesWhateverTheUmask) {
    for (const mode_t mask : {0000u, 0277u, 0777u}) {
        const int result = in_child([&] {
            umask(mask);
            const auto store = open_store(in_folder(folder_.path() + "/a/store"));
            if (!store->publish(make_record(1))) return 1;
            // A reader in the middle keeps the log and the shared memory alive to be looked at.
            unsigned log = 0, shared = 0;
            store->find(key_of(1), [&](const Summary&) {
                log = mode_of(folder_.path() + "/a/store/store-1.db-wal");
                shared = mode_of(folder_.path() + "/a/store/store-1.db-shm");
                return false;
            });
            if (mode_of(folder_.path() + "/a") != 0700 || mode_of(folder_.path() + "/a/store") != 0700) return 2;
            if (mode_of(folder_.path() + "/a/store/store-1.db") != 0600) return 3;
            return log == 0600 && shared == 0600 ? 0 : 4;
        });
        EXPECT_EQ(result, 0) << std::oct << mask;
        std::filesystem::remove_all(folder_.path() + "/a");
    }
}

TEST_F(StoreFileTest, TruncatedAnywhere) {
    fill();
    const auto whole = slurp(folder_.file());
    ASSERT_GT(whole.size(), 40000u);
    std::vector<std::size_t> sizes = {0, 1, 64, 99, 100, 511, 512, 4095, 4096, 4097, whole.size() - 1};
    for (std::size_t size = 4096; size < whole.size(); size += 5120) sizes.push_back(size);
    for (const auto size : sizes) {
        clear();
        fill(0);
        std::filesystem::create_directories(folder_.store());
        chmod(folder_.store().c_str(), 0700);
        spill(folder_.file(), std::string_view(whole).substr(0, size));
        chmod(folder_.file().c_str(), 0600);
        expect_heals("truncated to " + std::to_string(size));
    }
}

TEST_F(StoreFileTest, BytesFlippedAnywhere) {
    fill(4, 3000);
    const auto whole = slurp(folder_.file());
    std::minstd_rand random(7);
    for (int round = 0; round < 60; ++round) {
        auto damaged = whole;
        // From 96 on: a flip in the numbers that say whose file it is makes it somebody else's, which is another test.
        const auto flips = round % 3 == 0 ? 40u : 1u;
        for (unsigned i = 0; i < flips; ++i) {
            const auto at = 96 + random() % (damaged.size() - 96);
            damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
        }
        clear();
        std::filesystem::create_directories(folder_.store());
        chmod(folder_.store().c_str(), 0700);
        spill(folder_.file(), damaged);
        chmod(folder_.file().c_str(), 0600);
        Heard heard;
        const auto store = open_store(in_folder(folder_.store(), &heard));
        for (int i = 0; i < 4; ++i) {
            const auto found = store->find(key_of(i));
            if (found) {
                EXPECT_EQ(*found, make_record(i, 3000)) << "round " << round;
            }
        }
        store->verify();
        for (int i = 0; i < 4; ++i) store->publish(make_record(i, 3000));
        EXPECT_TRUE(store->publish(make_record(100)));
        EXPECT_EQ(store->find(key_of(100)), make_record(100)) << "round " << round << heard.text();
    }
}

TEST_F(StoreFileTest, NotADatabase) {
    fill();
    spill(folder_.file(), std::string(20000, 'x'));
    expect_heals("garbage");
    EXPECT_EQ(files_in(folder_.store(), "store-1.db.bad-").size(), 1u);
}

TEST_F(StoreFileTest, KeepsOnlyTheNewestBadFiles) {
    fill();
    for (int i = 0; i < 5; ++i) {
        spill(folder_.file(), std::string(20000, 'x'));
        expect_heals("garbage");
    }
    EXPECT_EQ(files_in(folder_.store(), "store-1.db.bad-").size(), 2u);
}

TEST_F(StoreFileTest, OneBadRowIsSetAsideAndTheNextBestIsServed) {
    fill();
    {
        const auto store = open_store(in_folder(folder_.store()));
        ASSERT_TRUE(store->publish(make_record(0, 9000, 7)));
    }
    sql(folder_.file(), "UPDATE blob SET bytes = zeroblob(length(bytes)) WHERE name = 'cubin' AND entry = "
                        "(SELECT number FROM entry WHERE rank = 7)");
    Heard heard;
    const auto store = open_store(in_folder(folder_.store(), &heard));
    EXPECT_EQ(store->find(key_of(0)), make_record(0, 9000));
    EXPECT_EQ(store->stats().quarantined, 1);
    EXPECT_EQ(store->stats().entries, 4);
    EXPECT_EQ(heard.count(Trouble::QUARANTINED), 1);
    sql(folder_.file(), "UPDATE blob SET bytes = x'00' WHERE name = 'source'");
    for (int i = 0; i < 4; ++i) EXPECT_FALSE(store->find(key_of(i)));
    EXPECT_EQ(store->stats().quarantined, 5);
    EXPECT_EQ(heard.count(Trouble::QUARANTINED), 1) << "said once";
    EXPECT_EQ(heard.size(), 1u) << heard.text();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(store->publish(make_record(i, 9000)).code, Code::OK);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(store->find(key_of(i)), make_record(i, 9000));
}

TEST_F(StoreFileTest, EachColumnThatIsServedIsChecked) {
    for (const char* change : {"arch = 'sm_80'", "build = 'x'", "made_by = 'model'", "rank = 9", "metadata = x'00'",
                               "created = created + 1", "binding = zeroblob(32)", "id = zeroblob(32)", "id = x'00'"}) {
        clear();
        fill(1);
        sql(folder_.file(), std::string("UPDATE entry SET ") + change);
        const auto store = open_store(in_folder(folder_.store()));
        EXPECT_FALSE(store->find(key_of(0))) << change;
        EXPECT_EQ(store->stats().entries, 0) << change;
    }
    clear();
    fill(2);
    sql(folder_.file(), "UPDATE entry SET key = (SELECT key FROM entry WHERE number = 2) WHERE number = 1");
    const auto store = open_store(in_folder(folder_.store()));
    EXPECT_FALSE(store->find(key_of(0)));
    EXPECT_EQ(store->find(key_of(1)), make_record(1, 9000)) << "what was moved to its key is not served";
}

TEST_F(StoreFileTest, VerifyFindsAndSetsAside) {
    fill();
    sql(folder_.file(), "UPDATE blob SET bytes = x'00' WHERE name = 'cubin' AND entry = 2");
    const auto store = open_store(in_folder(folder_.store()));
    EXPECT_TRUE(store->verify(make_record(0, 9000).id).bad.empty());
    const auto result = store->verify();
    EXPECT_EQ(result.checked, 4);
    ASSERT_EQ(result.bad.size(), 1u);
    EXPECT_EQ(result.bad[0].id, make_record(1, 9000).id);
    EXPECT_NE(result.bad[0].reason.find("cubin"), std::string::npos);
    EXPECT_EQ(store->verify().checked, 3);
}

TEST_F(StoreFileTest, KeepsAFewQuarantinedRows) {
    fill(30, 100);
    const auto store = open_store(in_folder(folder_.store()));
    for (int i = 0; i < 30; ++i) EXPECT_TRUE(store->quarantine(make_record(i, 100).id, "test"));
    sql(folder_.file(),
        "CREATE TEMP TABLE expect(ok CHECK(ok)); INSERT INTO expect SELECT count(*) = 20 FROM quarantine; "
        "INSERT INTO expect SELECT count(*) = 60 FROM blob");
}

TEST_F(StoreFileTest, AnotherFormatIsLeftAlone) {
    for (const char* change : {"PRAGMA user_version = 2", "PRAGMA user_version = 0", "PRAGMA application_id = 1"}) {
        clear();
        fill();
        sql(folder_.file(), change);
        const auto before = slurp(folder_.file());
        Heard heard;
        const auto store = open_store(in_folder(folder_.store(), &heard));
        EXPECT_FALSE(store->find(key_of(1)));
        EXPECT_EQ(store->publish(make_record(50)).code, Code::IN_MEMORY);
        EXPECT_EQ(store->find(key_of(50)), make_record(50));
        EXPECT_EQ(heard.count(Trouble::UNKNOWN_FORMAT), 1) << heard.text();
        EXPECT_EQ(store->stats().write_failures, 1);
        EXPECT_EQ(slurp(folder_.file()), before) << change;
        EXPECT_EQ(files_in(folder_.store(), "store-1.db.bad-").size(), 0u);
    }
}

TEST_F(StoreFileTest, TablesThatAreNotOursAreCorrupt) {
    fill();
    sql(folder_.file(), "DROP TABLE blob");
    expect_heals("a table is gone");
}

TEST_F(StoreFileTest, ALostLogIsNoTrouble) {
    // A writer that dies leaves a log; here it is lost, too.
    const int result = in_child([&] {
        const auto store = open_store(in_folder(folder_.store()));
        for (int i = 0; i < 4; ++i)
            if (!store->publish(make_record(i, 9000))) return 1;
        store->find(key_of(0),
                    [&](const Summary&) -> bool { // while this reader is in, a second store can't fold the log
                        open_store(in_folder(folder_.store()))->publish(make_record(4, 9000));
                        kill(getpid(), SIGKILL);
                        return true;
                    });
        return 2;
    });
    ASSERT_EQ(result, 1000 + SIGKILL);
    ASSERT_GT(std::filesystem::file_size(folder_.file() + "-wal"), 0u);
    std::filesystem::remove(folder_.file() + "-wal");
    expect_heals("lost log", 5);
}

TEST_F(StoreFileTest, ALogWithoutItsDatabaseIsNotReplayed) {
    const int result = in_child([&] {
        const auto store = open_store(in_folder(folder_.store()));
        if (!store->publish(make_record(0, 9000))) return 1;
        store->find(key_of(0), [&](const Summary&) -> bool {
            open_store(in_folder(folder_.store()))->publish(make_record(4, 9000));
            kill(getpid(), SIGKILL);
            return true;
        });
        return 2;
    });
    ASSERT_EQ(result, 1000 + SIGKILL);
    std::filesystem::remove(folder_.file());
    expect_heals("stale log", 5);
    EXPECT_EQ(files_in(folder_.store(), "store-1.db.bad-").size(), 0u);
}

TEST_F(StoreFileTest, LeftoversOfACrashedCreatorAreSwept) {
    fill(0);
    std::filesystem::create_directories(folder_.store());
    chmod(folder_.store().c_str(), 0700);
    spill(folder_.file() + ".new", "half a database");
    spill(folder_.file() + ".new-wal", "half a log");
    expect_heals("leftovers");
    EXPECT_EQ(files_in(folder_.store()), std::vector<std::string>{"store-1.db"});
}

TEST_F(StoreFileTest, LinksAndOtherThingsUnderTheNameAreRefused) {
    fill();
    std::filesystem::rename(folder_.file(), folder_.path() + "/elsewhere");
    const std::vector<std::function<void()>> things = {
        [&] { std::filesystem::create_symlink(folder_.path() + "/elsewhere", folder_.file()); },
        [&] { std::filesystem::create_directory(folder_.file()); },
        [&] { ASSERT_EQ(mkfifo(folder_.file().c_str(), 0600), 0); },
    };
    for (const auto& thing : things) {
        std::filesystem::remove_all(folder_.file());
        thing();
        Heard heard;
        const auto store = open_store(in_folder(folder_.store(), &heard));
        EXPECT_FALSE(store->find(key_of(1)));
        EXPECT_EQ(store->publish(make_record(1)).code, Code::IN_MEMORY);
        EXPECT_EQ(heard.count(Trouble::UNTRUSTED), 1) << heard.text();
        EXPECT_GE(store->stats().untrusted_refused, 2);
    }
}

TEST_F(StoreFileTest, AFileThatOthersCanWriteIsRefused) {
    fill();
    for (const mode_t mode : {0620u, 0602u, 0666u}) {
        chmod(folder_.file().c_str(), mode);
        Heard heard;
        const auto store = open_store(in_folder(folder_.store(), &heard));
        EXPECT_FALSE(store->find(key_of(1)));
        EXPECT_EQ(heard.count(Trouble::UNTRUSTED), 1) << heard.text();
        EXPECT_EQ(store->stats().untrusted_refused, 2) << "the look-up and the gauges";
    }
    chmod(folder_.file().c_str(), 0600);
    EXPECT_TRUE(open_store(in_folder(folder_.store()))->find(key_of(1)));
}

TEST_F(StoreFileTest, ANoteOfUseIsKeptInTheLogAndFoldedLater) {
    fill();
    std::int64_t now = std::int64_t{1} << 33;
    auto options = in_folder(folder_.store());
    options.clock = [&] { return now; };
    const auto store = open_store(options);
    EXPECT_TRUE(store->find(key_of(2)));
    EXPECT_GT(std::filesystem::file_size(folder_.file() + "-wal"), 0u);
    EXPECT_EQ(store->list()[0].id, make_record(2, 9000).id);
    EXPECT_EQ(store->list()[0].used, now);
    EXPECT_EQ(store->publish(make_record(9)).code, Code::OK);
    EXPECT_EQ(files_in(folder_.store()), std::vector<std::string>{"store-1.db"});
    EXPECT_EQ(open_store(options)->list().size(), 5u);
}

TEST_F(StoreFileTest, NamesThatMeanSomethingInAUri) {
    const auto odd = folder_.path() + "/a b?mode=memory#x%41&\xc3\xa9";
    {
        const auto store = open_store(in_folder(odd));
        EXPECT_EQ(store->publish(make_record(1)).code, Code::OK);
    }
    EXPECT_TRUE(std::filesystem::exists(odd + "/store-1.db"));
    EXPECT_TRUE(open_store(in_folder(odd))->find(key_of(1)));
}

} // namespace
} // namespace cubridge::cache
