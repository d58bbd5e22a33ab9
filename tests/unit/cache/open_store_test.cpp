// Which place is taken, and what happens where there is none to write.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/cache/open_store.h"
#include "support.h"
#include <csignal>
#include <sys/resource.h>

namespace cubridge::cache {
namespace {

constexpr std::int64_t EXT4 = 0xEF53;

class OpenStore : public testing::Test {
protected:
    void expect_memory(OpenOptions options, Trouble trouble) {
        Heard heard;
        options.warn = heard.sink();
        const auto store = open_store(std::move(options));
        EXPECT_EQ(store->place().folder, "");
        EXPECT_NE(store->place().reason, "");
        EXPECT_GE(heard.count(trouble), 1) << heard.text();
        EXPECT_EQ(store->publish(make_record(1)).code, Code::IN_MEMORY);
        EXPECT_EQ(store->find(key_of(1)), make_record(1));
        EXPECT_EQ(store->stats().write_failures, 1);
        EXPECT_EQ(store->stats().writes, 0);
        EXPECT_EQ(store->stats().entries, 1);
    }
    TemporaryFolder folder_;
};

TEST_F(OpenStore, MemoryByWishIsNoTrouble) {
    Heard heard;
    const auto store = open_store(in_folder("", &heard));
    EXPECT_EQ(store->publish(make_record(1)).code, Code::OK);
    EXPECT_EQ(store->stats().writes, 1);
    EXPECT_EQ(store->stats().write_failures, 0);
    EXPECT_EQ(store->place().reason, "");
    EXPECT_EQ(heard.size(), 0u);
}

TEST_F(OpenStore, FoldersInTheirOrder) {
    OpenOptions options;
    options.environment = {folder_.path() + "/xdg", folder_.path()};
    EXPECT_EQ(open_store(options)->place().folder, folder_.path() + "/xdg/cubridge");
    options.environment.xdg_cache_home = "relative";
    EXPECT_EQ(open_store(options)->place().folder, folder_.path() + "/.cache/cubridge");
    options.environment.home = folder_.path() + "/nobody-made-this";
    EXPECT_EQ(open_store(options)->place().folder, "/var/tmp/cubridge-" + std::to_string(geteuid()));
    EXPECT_TRUE(files_in(folder_.path()).empty()) << "nothing is made by opening";
    options.environment.home = folder_.path();
    const auto store = open_store(options);
    EXPECT_EQ(store->publish(make_record(1)).code, Code::OK);
    EXPECT_EQ(mode_of(folder_.path() + "/.cache/cubridge/store-1.db"), 0600u);
    EXPECT_EQ(mode_of(folder_.path() + "/.cache"), 0700u);
}

TEST_F(OpenStore, ARelativeFolderStaysWhereItWas) {
    const int result = in_child([&] {
        if (chdir(folder_.path().c_str()) != 0) return 1;
        const auto store = open_store(in_folder("a/../store/"));
        if (chdir("/") != 0) return 2;
        return store->publish(make_record(1)).code == Code::OK && store->place().folder == folder_.store() ? 0 : 3;
    });
    EXPECT_EQ(result, 0);
    EXPECT_TRUE(std::filesystem::exists(folder_.file()));
}

TEST_F(OpenStore, NetworkFileSystemsAreRefused) {
    for (const std::int64_t type : {0x6969LL, 0xFE534D42LL, 0xFF534D42LL, 0x517BLL, 0x00C36400LL, 0x0BD00BD0LL,
                                    0x47504653LL, 0x65735546LL, 0x01021997LL, 0x5346414FLL, 0x19830326LL}) {
        auto options = in_folder(folder_.store());
        options.file_system = [type](const std::string&) { return type; };
        expect_memory(options, Trouble::NETWORK_FILE_SYSTEM);
        // On machines where f_type is a signed 32-bit value the high ones come out negative.
        options.file_system = [type](const std::string&) { return std::int64_t{static_cast<std::int32_t>(type)}; };
        expect_memory(options, Trouble::NETWORK_FILE_SYSTEM);
    }
    EXPECT_FALSE(std::filesystem::exists(folder_.store()));
}

TEST_F(OpenStore, ANetworkHomeIsSkippedForALocalPlace) {
    OpenOptions options;
    Heard heard;
    options.environment = {"", folder_.path()};
    options.warn = heard.sink();
    options.file_system = [&](const std::string& path) { return path.starts_with(folder_.path()) ? 0x6969 : EXT4; };
    EXPECT_EQ(open_store(options)->place().folder, "/var/tmp/cubridge-" + std::to_string(geteuid()));
    EXPECT_EQ(heard.count(Trouble::NETWORK_FILE_SYSTEM), 1);
    EXPECT_EQ(heard.size(), 1u) << heard.text();
}

TEST_F(OpenStore, UnknownAndLocalFileSystemsAreFine) {
    auto options = in_folder(folder_.store());
    options.file_system = [](const std::string&) { return std::nullopt; };
    EXPECT_EQ(open_store(options)->place().folder, folder_.store());
    for (const std::int64_t type :
         {EXT4, std::int64_t{0x58465342}, std::int64_t{0x01021994}, std::int64_t{0x794c7630}}) {
        options.file_system = [type](const std::string&) { return type; };
        EXPECT_EQ(open_store(options)->place().folder, folder_.store());
    }
}

TEST_F(OpenStore, FoldersOfOthersAreRefused) {
    for (const mode_t mode : {0770u, 0707u, 0777u, 01777u}) {
        std::filesystem::create_directory(folder_.store());
        chmod(folder_.store().c_str(), mode);
        expect_memory(in_folder(folder_.store()), Trouble::UNTRUSTED);
        EXPECT_TRUE(files_in(folder_.store()).empty());
    }
    chmod(folder_.store().c_str(), 0700);
    if (geteuid() != 0) return; // only root can give a folder away
    ASSERT_EQ(chown(folder_.store().c_str(), 65534, 65534), 0);
    expect_memory(in_folder(folder_.store()), Trouble::UNTRUSTED);
    std::filesystem::create_symlink(folder_.path(), folder_.path() + "/link");
    ASSERT_EQ(lchown((folder_.path() + "/link").c_str(), 65534, 65534), 0);
    expect_memory(in_folder(folder_.path() + "/link"), Trouble::UNTRUSTED);
}

TEST_F(OpenStore, AFolderThatBecomesUnsafeIsNoLongerUsed) {
    Heard heard;
    const auto store = open_store(in_folder(folder_.store(), &heard));
    EXPECT_EQ(store->publish(make_record(1)).code, Code::OK);
    chmod(folder_.store().c_str(), 0777);
    EXPECT_FALSE(store->find(key_of(1)));
    EXPECT_EQ(store->publish(make_record(2)).code, Code::IN_MEMORY);
    EXPECT_TRUE(store->find(key_of(2)));
    EXPECT_EQ(heard.count(Trouble::UNTRUSTED), 1);
    chmod(folder_.store().c_str(), 0700);
    EXPECT_TRUE(store->find(key_of(1)));
}

TEST_F(OpenStore, ALinkOfOursIsFollowed) {
    std::filesystem::create_directory(folder_.path() + "/disk");
    chmod((folder_.path() + "/disk").c_str(), 0700);
    std::filesystem::create_symlink(folder_.path() + "/disk", folder_.store());
    const auto store = open_store(in_folder(folder_.store()));
    EXPECT_EQ(store->publish(make_record(1)).code, Code::OK);
    EXPECT_TRUE(store->find(key_of(1)));
    EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/disk/store-1.db"));
}

TEST_F(OpenStore, PlacesThatCantBeMade) {
    spill(folder_.path() + "/file", "x");
    expect_memory(in_folder(folder_.path() + "/file/store"), Trouble::UNWRITABLE);
    expect_memory(in_folder(folder_.path() + "/file"), Trouble::UNWRITABLE);
    expect_memory(in_folder("/dev/null/store"), Trouble::UNWRITABLE);
    std::filesystem::create_symlink("/nowhere", folder_.path() + "/dangling");
    expect_memory(in_folder(folder_.path() + "/dangling"), Trouble::UNWRITABLE);
}

TEST_F(OpenStore, APlaceThatOnlyLooksWritable) { // to root, /proc does until something is made there
    Heard heard;
    const auto store = open_store(in_folder("/proc/cubridge/store", &heard));
    EXPECT_EQ(store->publish(make_record(1)).code, Code::IN_MEMORY);
    EXPECT_EQ(store->publish(make_record(2)).code, Code::IN_MEMORY);
    EXPECT_EQ(store->find(key_of(1)), make_record(1));
    EXPECT_EQ(heard.size(), 1u) << heard.text();
    EXPECT_EQ(store->stats().write_failures, 2);
}

TEST_F(OpenStore, AFolderThatVanishesIsMadeAgain) {
    const auto store = open_store(in_folder(folder_.store()));
    EXPECT_EQ(store->publish(make_record(1)).code, Code::OK);
    std::filesystem::remove_all(folder_.store());
    EXPECT_FALSE(store->find(key_of(1)));
    EXPECT_EQ(store->publish(make_record(1)).code, Code::OK);
    EXPECT_TRUE(store->find(key_of(1)));
}

TEST_F(OpenStore, ReadOnlyByWishWritesNothing) {
    {
        const auto store = open_store(in_folder(folder_.store()));
        ASSERT_TRUE(store->publish(make_record(1)));
    }
    const auto before = slurp(folder_.file());
    Heard heard;
    auto options = in_folder(folder_.store(), &heard);
    options.read_only = true;
    options.clock = [] { return std::int64_t{1} << 33; }; // long after the last use
    const auto store = open_store(options);
    EXPECT_EQ(store->find(key_of(1)), make_record(1));
    EXPECT_EQ(store->publish(make_record(2)).code, Code::IN_MEMORY);
    EXPECT_EQ(store->find(key_of(2)), make_record(2));
    EXPECT_EQ(store->quarantine(make_record(1).id, "x").code, Code::READ_ONLY);
    EXPECT_EQ(store->pin(make_record(1).id, true).code, Code::READ_ONLY);
    EXPECT_EQ(store->verify().checked, 2);
    EXPECT_EQ(store->stats().write_failures, 0);
    EXPECT_EQ(heard.size(), 0u) << heard.text();
    EXPECT_EQ(slurp(folder_.file()), before);
    EXPECT_EQ(files_in(folder_.store()), std::vector<std::string>{"store-1.db"});
}

TEST_F(OpenStore, AReadOnlyPlaceIsServedToThoseWhoCantWriteIt) {
    {
        const auto store = open_store(in_folder(folder_.store()));
        for (int i = 0; i < 3; ++i) ASSERT_TRUE(store->publish(make_record(i)));
    }
    chmod(folder_.path().c_str(), 0755);
    chmod(folder_.store().c_str(), geteuid() == 0 ? 0755 : 0555);
    chmod(folder_.file().c_str(), geteuid() == 0 ? 0644 : 0444);
    const auto before = slurp(folder_.file());
    const int result = as_nobody([&] {
        Heard heard;
        const auto store = open_store(in_folder(folder_.store(), &heard));
        if (!store->place().read_only || store->place().folder != folder_.store()) return 1;
        for (int i = 0; i < 3; ++i)
            if (store->find(key_of(i)) != make_record(i)) return 2;
        if (store->publish(make_record(9)).code != Code::IN_MEMORY || !store->find(key_of(9))) return 3;
        if (heard.size() != 1 || heard.count(Trouble::UNWRITABLE) != 1) return 4;
        if (store->verify().checked != 4 || store->stats().entries != 4) return 5;
        return 0;
    });
    EXPECT_EQ(result, 0);
    EXPECT_EQ(slurp(folder_.file()), before);
    EXPECT_EQ(files_in(folder_.store()), std::vector<std::string>{"store-1.db"});
    chmod(folder_.store().c_str(), 0700);
}

TEST_F(OpenStore, ADamagedReadOnlyPlaceIsAMiss) {
    std::filesystem::create_directory(folder_.store());
    spill(folder_.file(), std::string(8192, 'x'));
    chmod(folder_.path().c_str(), 0755);
    chmod(folder_.file().c_str(), 0444);
    chmod(folder_.store().c_str(), 0555);
    const int result = as_nobody([&] {
        Heard heard;
        const auto store = open_store(in_folder(folder_.store(), &heard));
        if (store->find(key_of(1)) || store->find(key_of(2))) return 1;
        if (!store->publish(make_record(1)) || !store->find(key_of(1))) return 2;
        return heard.count(Trouble::CORRUPT) == 1 ? 0 : 3;
    });
    EXPECT_EQ(result, 0);
    EXPECT_EQ(files_in(folder_.store()), std::vector<std::string>{"store-1.db"});
    chmod(folder_.store().c_str(), 0700);
}

TEST_F(OpenStore, AFolderThatCantBeWrittenNorHasAnything) {
    chmod(folder_.path().c_str(), 0555);
    const int result = as_nobody([&] {
        Heard heard;
        const auto store = open_store(in_folder(folder_.store(), &heard));
        if (!store->place().folder.empty()) return 1;
        if (store->publish(make_record(1)).code != Code::IN_MEMORY || !store->find(key_of(1))) return 2;
        return heard.size() == 1 && heard.count(Trouble::UNWRITABLE) == 1 ? 0 : 3;
    });
    EXPECT_EQ(result, 0);
    chmod(folder_.path().c_str(), 0700);
}

// A disk fills up at any point: no file of the child may grow beyond `limit` bytes.
int with_file_limit(std::uint64_t limit, const std::function<int()>& work) {
    return in_child([&] {
        signal(SIGXFSZ, SIG_IGN);
        const rlimit most{limit, limit};
        if (setrlimit(RLIMIT_FSIZE, &most) != 0) return 252;
        return work();
    });
}

TEST_F(OpenStore, AFullDiskFromTheStart) {
    for (const std::uint64_t limit : {0u, 100u, 4096u, 20000u, 40000u}) {
        const int result = with_file_limit(limit, [&] {
            std::int64_t now = 1764600000;
            Heard heard;
            auto options = in_folder(folder_.store(), &heard);
            options.clock = [&] { return now; };
            const auto store = open_store(options);
            for (int i = 0; i < 3; ++i)
                if (store->publish(make_record(i, 60000)).code != Code::IN_MEMORY) return 1;
            for (int i = 0; i < 3; ++i)
                if (store->find(key_of(i)) != make_record(i, 60000)) return 2;
            if (store->stats().write_failures != 3 || store->stats().writes != 0) return 3;
            if (heard.count(Trouble::WRITE_FAILED) != 1) return 4;
            now += 3601;
            if (!store->publish(make_record(5, 60000)) || heard.count(Trouble::WRITE_FAILED) != 2) return 5;
            return heard.count(Trouble::CORRUPT) == 0 ? 0 : 6;
        });
        EXPECT_EQ(result, 0) << "limit " << limit;
        // When there is room again, the place is as good as new.
        const auto store = open_store(in_folder(folder_.store()));
        EXPECT_EQ(store->publish(make_record(1)).code, Code::OK);
        EXPECT_EQ(store->find(key_of(1)), make_record(1));
        EXPECT_EQ(files_in(folder_.store()), std::vector<std::string>{"store-1.db"});
        std::filesystem::remove_all(folder_.store());
    }
}

TEST_F(OpenStore, ADiskThatFillsUpLaterServesWhatItHas) {
    {
        const auto store = open_store(in_folder(folder_.store()));
        for (int i = 0; i < 4; ++i) ASSERT_EQ(store->publish(make_record(i, 9000)).code, Code::OK);
    }
    for (const std::uint64_t limit : {0u, 1000u, 32768u, 50000u, 70000u, 100000u}) {
        const int result = with_file_limit(limit, [&] {
            Heard heard;
            const auto store = open_store(in_folder(folder_.store(), &heard));
            for (int i = 0; i < 4; ++i)
                if (store->find(key_of(i)) != make_record(i, 9000)) return 1;
            if (store->publish(make_record(50, 150000)).code != Code::IN_MEMORY) return 2;
            if (store->find(key_of(50)) != make_record(50, 150000)) return 3;
            for (int i = 0; i < 4; ++i)
                if (store->find(key_of(i)) != make_record(i, 9000)) return 4;
            if (heard.count(Trouble::WRITE_FAILED) != 1 || heard.size() != 1) return 5;
            return 0;
        });
        EXPECT_EQ(result, 0) << "limit " << limit;
        const auto store = open_store(in_folder(folder_.store()));
        EXPECT_TRUE(store->verify().outcome);
        EXPECT_EQ(store->verify().checked, 4);
        EXPECT_TRUE(files_in(folder_.store(), "store-1.db.bad-").empty());
    }
}

TEST_F(OpenStore, AWarningThatThrowsHurtsNobody) {
    auto options = in_folder("/dev/null/store");
    options.warn = [](const Warning&) { throw 1; };
    const auto store = open_store(options);
    EXPECT_TRUE(store->publish(make_record(1)));
}

} // namespace
} // namespace cubridge::cache
