// Struct, environment, defaults.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/settings.h"
#include <gtest/gtest.h>

namespace cubridge::runtime {
namespace {

Settings from(std::vector<const char*> environment, Settings given = {}) {
    environment.push_back(nullptr);
    return complete_settings(std::move(given), environment.data());
}

TEST(Settings, Defaults) {
    const auto s = from({"HOME=/home/x", "PATH=/bin"});
    EXPECT_FALSE(s.store);
    EXPECT_EQ(*s.workers, 2);
    EXPECT_FALSE(s.executor);
    EXPECT_EQ(s.mode, Mode::Adapt);
    EXPECT_EQ(s.level, Level::Silent);
    EXPECT_EQ(s.places.home, "/home/x");
    EXPECT_TRUE(s.warnings.empty());
    EXPECT_TRUE(complete_settings({}, nullptr).warnings.empty());
}

TEST(Settings, ReadsTheEnvironment) {
    const auto s = from({"CUBRIDGE_STORE=none", "CUBRIDGE_STORE_MAX=3M", "CUBRIDGE_WORKERS=5",
                         "CUBRIDGE_VERIFY=executor", "CUBRIDGE_DEADLINE=7", "CUBRIDGE_LOG=info", "CUBRIDGE_MODE=cached",
                         "CUBRIDGE_NVRTC=/x", "CUBRIDGE_TRACE=/t", "CUBRIDGE_LLM_MODEL=m"});
    EXPECT_EQ(*s.store, "");
    EXPECT_EQ(s.store_max, 3 << 20);
    EXPECT_EQ(*s.workers, 5);
    EXPECT_TRUE(s.executor);
    EXPECT_EQ(s.deadline.count(), 7);
    EXPECT_EQ(s.level, Level::Info);
    EXPECT_TRUE(s.log_to_stderr);
    EXPECT_EQ(s.mode, Mode::Cached);
    EXPECT_EQ(s.nvrtc, "/x");
    EXPECT_EQ(s.trace, "/t");
    EXPECT_TRUE(s.warnings.empty());
}

TEST(Settings, TheStructWinsExceptOverTheMode) {
    Settings given;
    given.store = "/mine";
    given.workers = 3;
    given.log = [](Level, const std::string&) {};
    const auto s =
        from({"CUBRIDGE_STORE=/theirs", "CUBRIDGE_WORKERS=9", "CUBRIDGE_MODE=off", "CUBRIDGE_LOG=trace"}, given);
    EXPECT_EQ(*s.store, "/mine");
    EXPECT_EQ(*s.workers, 3);
    EXPECT_EQ(s.mode, Mode::Off);
    EXPECT_FALSE(s.log_to_stderr);
    EXPECT_EQ(s.level, Level::Trace);
}

TEST(Settings, BadValuesAreWarnings) {
    const auto s = from({"CUBRIDGE_MODE=fast", "CUBRIDGE_STORE_MAX=many", "CUBRIDGE_WORKERS=-2", "CUBRIDGE_VERIFY=no",
                         "CUBRIDGE_DEADLINE=0", "CUBRIDGE_LOG=loud", "CUBRIDGE_STROE=/x", "CUBRIDGE_REMOTE=https://x"});
    EXPECT_EQ(s.warnings.size(), 8u);
    EXPECT_EQ(s.mode, Mode::Adapt);
    EXPECT_EQ(*s.workers, 2);
    EXPECT_EQ(s.deadline.count(), 120);
}

} // namespace
} // namespace cubridge::runtime
