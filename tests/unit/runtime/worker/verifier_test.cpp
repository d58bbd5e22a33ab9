// Running kernels in a worker, on a driver that launches nothing and fails as it is told.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/driver.h"
#include "cubridge/runtime/verifier.h"
#include "runtime/adapter/references.h"
#include "runtime/worker/messages.h"
#include "tests/unit/runtime/support.h"
#include <csignal>
#include <fstream>
#include <sys/wait.h>

namespace cubridge::runtime {
namespace {

using namespace testing_support;
using namespace std::chrono_literals;

class VerifierTest : public testing::Test {
protected:
    void SetUp() override {
        std::filesystem::create_directories(folder.path());
        std::filesystem::copy_file(CUBRIDGE_FAKE_CUDA, folder.path() + "/libcuda.so.1");
        if (const char* value = std::getenv("LD_LIBRARY_PATH")) before = value;
        setenv("LD_LIBRARY_PATH", (folder.path() + (before.empty() ? "" : ":" + before)).c_str(), 1);
        settings.file = CUBRIDGE_CLI;
        settings.room = 1 << 20;
        spec = parsed(kCausal);
        ASSERT_NE(spec, nullptr);
        request = request_for("sm_90a", 64);
        AdaptOptions options;
        options.compiler = std::make_shared<FakeCompiler>();
        const auto report = adapt(spec, request, options);
        ASSERT_TRUE(report.artifact);
        References references(*spec, request, options.compiler);
        ASSERT_TRUE(references.ready());
        job.specification = spec;
        job.request = request;
        job.kernel = {report.artifact->cubin, report.artifact->plan};
        job.exact = references.exact();
        job.baseline = references.baseline();
        job.program = report.artifact->program;
        job.seed = 7;
        job.launch = 300ms;
    }
    void TearDown() override {
        before.empty() ? unsetenv("LD_LIBRARY_PATH") : setenv("LD_LIBRARY_PATH", before.c_str(), 1);
        siginfo_t info{};
        EXPECT_NE(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), 0) << "a child is left";
    }
    void behave(const std::string& word) const { std::ofstream(folder.path() + "/behaviour") << word; }

    Folder folder;
    std::string before;
    VerifierSettings settings;
    std::shared_ptr<const ir::Specification> spec;
    ir::Request request;
    VerifyJob job;
};

bool mentions(const VerifyResult& r, const std::string& what) {
    return std::any_of(r.failures.begin(), r.failures.end(),
                       [&](const std::string& f) { return f.find(what) != f.npos; });
}

TEST_F(VerifierTest, AKernelThatWritesNothingDoesNotPass) {
    const auto verifier = open_verifier(settings);
    for (int again = 0; again < 2; ++again) { // the process is kept
        const auto result = verifier->verify(job);
        ASSERT_TRUE(result) << result.fault().text();
        EXPECT_FALSE(result->passed);
        EXPECT_TRUE(mentions(*result, "was not written")) << result->record();
        EXPECT_EQ(result->seed, 7u);
        EXPECT_EQ(result->device, "Fake");
    }
    job.seed = 0;
    const auto fresh = verifier->verify(job);
    ASSERT_TRUE(fresh);
    EXPECT_NE(fresh->seed, 0u);
    EXPECT_EQ(*verifier->arch(), "sm_90a");
    const auto confinement = verifier->confinement();
    ASSERT_TRUE(confinement);
    EXPECT_TRUE(confinement->seccomp) << confinement->text();
}

TEST_F(VerifierTest, WhatAKernelDoesToItsProcessIsItsOwnFault) {
    const auto verifier = open_verifier(settings);
    const std::pair<const char*, const char*> kinds[] = {
        {"hang", "did not end within 300 ms"}, {"fault", "CUDA_ERROR_ILLEGAL_ADDRESS"}, {"crash", "the worker died"}};
    for (const auto& [how, says] : kinds) {
        SCOPED_TRACE(how);
        behave(how);
        const auto result = verifier->verify(job);
        ASSERT_TRUE(result) << result.fault().text();
        EXPECT_FALSE(result->passed);
        EXPECT_TRUE(mentions(*result, says)) << result->record();
        behave("");
        const auto next = verifier->verify(job); // in another process
        ASSERT_TRUE(next) << next.fault().text();
        EXPECT_TRUE(mentions(*next, "was not written")) << next->record();
    }
}

/// A kernel that is right, and a float64 build that writes nothing, or faults: another process each.
TEST_F(VerifierTest, WhatItIsHeldAgainstIsNotTheKernels) {
    const auto zero = parsed(kZero);
    ASSERT_NE(zero, nullptr);
    const auto printed = ir::generic_kernel(*zero, request);
    ASSERT_TRUE(printed) << printed.error().message;
    References references(*zero, request, std::make_shared<FakeCompiler>());
    ASSERT_TRUE(references.ready());
    job.specification = zero;
    job.kernel.plan = printed->plan;
    job.exact = references.exact();
    job.baseline.reset();
    job.program.clear();
    for (const auto& [how, says] :
         {std::pair("unlike", "the reference gives 0"), {"unlike_fault", "ILLEGAL_ADDRESS"}}) {
        SCOPED_TRACE(how);
        behave(how);
        const auto result = open_verifier(settings)->verify(job);
        ASSERT_FALSE(result) << result->record();
        EXPECT_EQ(result.fault().kind, "reference");
        EXPECT_NE(result.fault().message.find("the float64 build: "), std::string::npos) << result.fault().message;
        EXPECT_NE(result.fault().message.find(says), std::string::npos) << result.fault().message;
        EXPECT_FALSE(result.fault().hint.empty());
    }
}

TEST_F(VerifierTest, AllOfItEndsInTime) {
    const auto verifier = open_verifier(settings);
    ASSERT_TRUE(verifier->confinement()); // the process runs
    behave("sleep");
    job.deadline = 500ms;
    const auto begin = std::chrono::steady_clock::now();
    const auto result = verifier->verify(job);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s); // not the hundred that the launch takes
    ASSERT_TRUE(result) << result.fault().text();
    EXPECT_FALSE(result->passed);
    EXPECT_TRUE(mentions(*result, "took too long, and the worker was killed")) << result->record();
}

TEST_F(VerifierTest, WhatIsTheMachinesIsNoVerdict) {
    settings.room = std::size_t{8} << 30;
    auto result = open_verifier(settings)->verify(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "memory");
    EXPECT_NE(result.fault().message.find("4096 MiB free, and verifying wants 8192"), std::string::npos)
        << result.fault().message;

    settings.file = "/nonexistent/cubridge";
    result = open_verifier(settings)->verify(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "worker");

    settings.file = CUBRIDGE_CLI;
    std::filesystem::remove(folder.path() + "/libcuda.so.1");
    if (Driver::open()) GTEST_SKIP() << "this machine has a driver of its own";
    result = open_verifier(settings)->verify(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "no_driver");
}

TEST_F(VerifierTest, QuestionsTravelWhole) {
    worker::Question q;
    q.source = spec->source();
    q.source.settings["window"] = {ir::Setting::Kind::Constant, 64.5, {}, {}, {}};
    q.source.settings["bias"] = {ir::Setting::Kind::Operand, 0, ir::DType::BF16, 2, {"Hq", "257"}};
    q.heads = 8;
    q.request = request;
    q.request.rows = ir::Request::Rows::Tail;
    q.request.lse = ir::Request::Lse::Log2;
    q.kernel = job.kernel;
    q.exact = job.exact;
    q.baseline = job.baseline;
    q.tile_rows = 128;
    q.tile_keys = 96;
    q.stages = 2;
    q.seed = ~std::uint64_t{0};
    q.launch = 2s;
    const auto body = worker::write(q);
    worker::Question back;
    ASSERT_TRUE(worker::read(body, back));
    EXPECT_EQ(worker::write(back), body);
    EXPECT_EQ(back.source.settings.at("bias").axes, q.source.settings.at("bias").axes);
    EXPECT_EQ(back.request.rows, ir::Request::Rows::Tail);
    EXPECT_EQ(back.kernel.plan.text(), q.kernel.plan.text());
    for (std::size_t n = 0; n < body.size(); n += 97) {
        worker::Question torn;
        EXPECT_FALSE(worker::read(body.substr(0, n), torn)) << n;
    }

    worker::Answer a;
    a.result.passed = true;
    a.result.cases = 20;
    a.result.ratio = 1.5;
    a.result.failures = {"x"};
    a.result.driver = 13000;
    a.fault = {"busy", "y", "z", 3, "w"};
    a.spent = true;
    worker::Answer again;
    ASSERT_TRUE(worker::read(worker::write(a), again));
    EXPECT_EQ(worker::write(again), worker::write(a));
}

} // namespace
} // namespace cubridge::runtime
