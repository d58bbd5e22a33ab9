// Many processes, one store: one adaptation a kernel, whoever dies. With TEST_PROCESSES=full 16 x 8, with
// TEST_ROUNDS=50 as many rounds of kill -9. SPDX-License-Identifier: Apache-2.0
#include "cubridge/cache/open_store.h"
#include "cubridge/runtime/compiler.h"
#include "tests/unit/sample.h"
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

/// A folder for a store and for what makers print.
class Processes : public testing::Test {
protected:
    void SetUp() override {
        if (!cubridge::runtime::open_nvrtc()) GTEST_SKIP() << "no NVRTC: nothing can be made";
        folder = std::filesystem::temp_directory_path() / ("cubridge-processes-" + std::to_string(getpid()));
        std::filesystem::remove_all(folder);
        std::filesystem::create_directory(folder);
    }
    void TearDown() override {
        std::error_code ignored;
        if (!folder.empty()) std::filesystem::remove_all(folder, ignored);
    }

    struct Maker {
        pid_t pid = 0;
        std::string output;
    };
    Maker start(const std::string& store, int first, int count, const char* how = nullptr) {
        static int number = 0;
        Maker m;
        m.output = (folder / ("out" + std::to_string(number++))).string();
        const std::string from = std::to_string(first), to = std::to_string(count);
        m.pid = fork();
        if (m.pid == 0) {
            const int out = ::open(m.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
            ::dup2(out, 1);
            ::execl(CUBRIDGE_MAKER, CUBRIDGE_MAKER, store.c_str(), from.c_str(), to.c_str(), how, nullptr);
            ::_exit(127);
        }
        return m;
    }
    struct End {
        int status = -1;
        std::string text;
        int made = 0, stored = 0, nvrtc = 0;
    };
    static End end(const Maker& m) {
        End e;
        waitpid(m.pid, &e.status, 0);
        std::ifstream file(m.output);
        std::getline(file, e.text);
        std::sscanf(e.text.c_str(), "made=%d store=%d nvrtc=%d", &e.made, &e.stored, &e.nvrtc);
        return e;
    }
    std::string store(const std::string& name = "store") const { return (folder / name).string(); }
    static int setting(const char* name, int otherwise) {
        const char* value = std::getenv(name);
        return value == nullptr ? otherwise : std::string(value) == "full" ? -1 : std::atoi(value);
    }

    std::filesystem::path folder;
};

TEST_F(Processes, OneAdaptationAKernel) {
    const bool full = setting("TEST_PROCESSES", 0) == -1;
    const int processes = full ? 16 : 4, variants = full ? 8 : 4;
    std::vector<Maker> makers;
    for (int k = 0; k < processes; ++k) makers.push_back(start(store(), 0, variants));
    int made = 0;
    for (const auto& m : makers) {
        const auto e = end(m);
        EXPECT_EQ(e.status, 0) << e.text;
        made += e.made;
    }
    EXPECT_EQ(made, variants);
}

TEST_F(Processes, WhatIsStoredNeedsNoCompiler) {
    for (const char* how : {static_cast<const char*>(nullptr), "generic"}) {
        ASSERT_EQ(end(start(store(), 0, 2, how)).made, 2);
        const auto e = end(start(store(), 0, 2, how));
        EXPECT_EQ(e.status, 0) << e.text;
        EXPECT_EQ(e.made, 0);
        EXPECT_EQ(e.stored, 2);
        EXPECT_EQ(e.nvrtc, 0);
    }
}

TEST_F(Processes, KilledMakersLoseNothing) {
    const int rounds = setting("TEST_ROUNDS", cubridge::test::all_cases() ? 10 : 2);
    std::mt19937 random(7);
    auto began = Clock::now();
    ASSERT_EQ(end(start(store("alone"), 0, 3)).made, 3);
    const auto alone = Clock::now() - began;
    for (int round = 0; round < rounds; ++round) {
        const std::string where = store("round" + std::to_string(round));
        const auto doomed = start(where, 0, 3);
        const auto other = start(where, 0, 3);
        std::this_thread::sleep_for(alone * (random() % 100) / 100);
        ::kill(doomed.pid, SIGKILL);
        (void)end(doomed);
        const auto e = end(other);
        ASSERT_EQ(e.status, 0) << "round " << round << ": " << e.text;
        const auto last = end(start(where, 0, 3, "cached")); // every kernel is there, and whole
        ASSERT_EQ(last.status, 0) << "round " << round << ": " << last.text;
        ASSERT_EQ(last.stored, 3);
        cubridge::cache::OpenOptions options;
        options.folder = where;
        const auto verification = cubridge::cache::open_store(std::move(options))->verify();
        EXPECT_EQ(verification.checked, 3);
        EXPECT_TRUE(verification.bad.empty());
    }
}

TEST_F(Processes, AReadOnlyOrCorruptStoreIsServedFromMemory) {
    if (geteuid() == 0) {
        // root writes anywhere: a plain file in the folder's place can't be written into by anybody
        std::ofstream(store()) << "no folder";
    } else {
        std::filesystem::create_directory(store());
        ::chmod(store().c_str(), 0500);
    }
    const auto e = end(start(store(), 0, 1));
    EXPECT_EQ(e.status, 0) << e.text;
    EXPECT_EQ(e.made, 1);
    EXPECT_EQ(end(start("/proc/cubridge", 0, 1)).made, 1);

    ASSERT_EQ(end(start(store("bad"), 0, 1)).made, 1);
    std::ofstream(store("bad") + "/store-1.db", std::ios::in | std::ios::out).write("this is no database at all", 26);
    std::filesystem::remove(store("bad") + "/store-1.db-wal");
    const auto again = end(start(store("bad"), 0, 1));
    EXPECT_EQ(again.status, 0) << again.text;
    EXPECT_EQ(again.made, 1);
    EXPECT_EQ(end(start(store("bad"), 0, 1)).stored, 1);
}

} // namespace
