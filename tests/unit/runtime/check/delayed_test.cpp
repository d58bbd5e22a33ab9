// Launches with delays on a driver that only counts: seeds, the load beside, what a difference and a hang come to.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/adapter/references.h"
#include "runtime/check/given.h"
#include "tests/unit/runtime/support.h"
#include <algorithm>
#include <dlfcn.h>
#include <fstream>
#include <set>
#include <sstream>

namespace cubridge::runtime {
namespace {

using namespace testing_support;

class DelayedTest : public testing::Test {
protected:
    void SetUp() override {
        std::filesystem::create_directories(folder.path());
        const std::string file = folder.path() + "/libcuda.so.1";
        std::filesystem::copy_file(CUBRIDGE_FAKE_CUDA, file);
        const auto driver = Driver::open(file.c_str());
        ASSERT_TRUE(driver) << driver.fault().message;
        library = dlopen(file.c_str(), RTLD_NOW);
        ASSERT_NE(library, nullptr);
        spec = parsed(kCausal);
        ASSERT_NE(spec, nullptr);
        AdaptOptions how;
        how.compiler = std::make_shared<FakeCompiler>();
        const auto report = adapt(spec, request, how);
        ASSERT_TRUE(report.artifact);
        References references(*spec, request, how.compiler);
        ASSERT_TRUE(references.ready());
        kernels.kernel = {report.artifact->cubin, report.artifact->plan};
        kernels.exact = references.exact();
        kernels.delayed = kernels.kernel;
        kernels.by_rules = true;
        kernels.expert = "prefill_sm90";
        options.driver = *driver;
        options.compiler = how.compiler;
        options.delayed = 20;
    }
    void TearDown() override {
        if (library != nullptr) dlclose(library);
    }
    CheckReport run(const std::string& behaviour) {
        std::ofstream(folder.path() + "/behaviour") << behaviour;
        reinterpret_cast<void (*)(int)>(dlsym(library, "fake_reset"))(0);
        Case c;
        c.number = 1;
        c.Sq = c.Sk = 40;
        EXPECT_TRUE(set_heads(*spec, 1, 2, c));
        return check_given(spec, request, options, {{c}, kernels});
    }
    /// Lines of the log that begin so, without it.
    std::vector<std::string> logged(const std::string& begin) const {
        std::istringstream in(reinterpret_cast<const char* (*)()>(dlsym(library, "fake_log"))());
        std::vector<std::string> out;
        for (std::string line; std::getline(in, line);)
            if (line.rfind(begin, 0) == 0) out.push_back(line.substr(begin.size()));
        return out;
    }

    Folder folder;
    void* library = nullptr;
    std::shared_ptr<const ir::Specification> spec;
    ir::Request request = request_for("sm_90a", 64);
    UnitKernels kernels;
    CheckOptions options;
};

std::vector<std::string> about_delays(const CheckReport& r) {
    std::vector<std::string> out;
    for (const auto& f : r.failures)
        if (f.find("with delays: ") != f.npos) out.push_back(f);
    return out;
}

TEST_F(DelayedTest, EveryLaunchHasASeedOfItsOwn) {
    const auto r = run("zeros"); // the float64 build's numbers are wrong under this driver: that says nothing here
    EXPECT_EQ(r.delayed, 20);
    EXPECT_TRUE(about_delays(r).empty()) << about_delays(r)[0];
    std::set<std::string> seeds;
    for (const auto& line : logged("launch "))
        if (const auto at = line.find(" seed "); at != line.npos) seeds.insert(line.substr(at));
    EXPECT_EQ(seeds.size(), 20U);
    EXPECT_EQ(logged("company ").size(), 20U) << "beside each launch, since it ends at once here";
    const auto warps = logged("company ");
    EXPECT_GT(std::set<std::string>(warps.begin(), warps.end()).size(), 3U);
}

TEST_F(DelayedTest, ADifferenceNamesCaseAndSeed) {
    const auto r = run("late");
    EXPECT_EQ(r.delayed, 0);
    const auto lines = about_delays(r);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0].rfind("case 1: ", 0), 0U) << lines[0];
    EXPECT_NE(lines[0].find(", seed "), std::string::npos) << lines[0];
    EXPECT_NE(lines[0].find("element 0 of o differs"), std::string::npos) << lines[0];
    const auto again = about_delays(run("late")); // its number is the only thing that a run goes by
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again[0], lines[0]);
}

TEST_F(DelayedTest, AHangNamesTheSeedAndIsLeftBehind) {
    options.longest_launch = std::chrono::milliseconds(50);
    const auto r = run("stuck");
    ASSERT_TRUE(r.error);
    EXPECT_EQ(r.error->kind, "hang");
    EXPECT_NE(r.error->message.find("launch 1, seed "), std::string::npos) << r.error->message;
    EXPECT_EQ(about_delays(r).size(), 1U);
}

TEST_F(DelayedTest, WithoutThemNothingElseRuns) {
    options.delayed = 0;
    kernels.delayed.reset();
    const auto r = run("zeros");
    EXPECT_EQ(r.delayed, 0);
    EXPECT_TRUE(logged("company ").empty());
    options.delayed = 20;
    kernels.not_delayed = "no margin";
    const auto unable = run("zeros");
    EXPECT_NE(std::find(unable.not_done.begin(), unable.not_done.end(), "delays: no margin"), unable.not_done.end());
}

} // namespace
} // namespace cubridge::runtime
