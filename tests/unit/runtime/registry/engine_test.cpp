// The engine with a compiler that takes no time, or as much as a test wants: outcomes, jobs, races.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/driver.h"
#include "cubridge/runtime/engine.h"
#include "cubridge/runtime/why.h"
#include "tests/unit/runtime/support.h"
#include <cstring>
#include <mutex>
#include <sys/wait.h>

namespace cubridge::runtime {
namespace {

using namespace testing_support;
using Kind = Answer::Kind;

class EngineTest : public testing::Test {
protected:
    void SetUp() override {
        compiler = std::make_shared<FakeCompiler>();
        settings.compiler = compiler;
        settings.executor = true;
        settings.store = folder.path();
    }
    Engine& open() {
        EXPECT_TRUE(Engine::open(complete_settings(settings, nullptr), engine));
        text = parse(kCausal);
        return *engine;
    }
    const Text* parse(const std::string& source) {
        ir::Source s;
        s.text = source;
        const Text* out = nullptr;
        const auto v = engine->parse(s, out);
        EXPECT_TRUE(v) << v.message;
        return out;
    }
    Query query(int head_dim = 64) const {
        Query q;
        q.text = text;
        q.device = -1;
        std::memcpy(q.arch.data(), "sm_90a", 6);
        q.q_dtype = q.kv_dtype = q.o_dtype = 2;
        q.head_dim = q.head_dim_v = head_dim;
        return q;
    }
    Answer ask(const Query& q, Want want = Want::BestNow) {
        Answer a;
        const auto v = engine->get(q, want, a);
        EXPECT_TRUE(v) << v.message;
        return a;
    }
    Answer settled(const Query& q, Want want = Want::BestNow) {
        Answer a = ask(q, want);
        if (a.kind == Kind::Pending) (void)engine->wait(a.job, -1);
        return ask(q, want);
    }
    std::uint64_t figure(const char* name) const {
        for (const auto& f : engine->figures())
            if (std::strcmp(f.name, name) == 0) return f.value;
        ADD_FAILURE() << name;
        return 0;
    }

    Folder folder;
    std::shared_ptr<FakeCompiler> compiler;
    Settings settings;
    std::unique_ptr<Engine> engine;
    const Text* text = nullptr;
};

TEST_F(EngineTest, VerifyMustBeGivenUp) {
    settings.executor = false;
    const auto v = Engine::open(complete_settings(settings, nullptr), engine);
    EXPECT_EQ(v.status, Status::Unsupported);
    EXPECT_EQ(engine, nullptr);
}

TEST_F(EngineTest, PendingThenFallbackOrRejected) {
    open();
    const auto generation = engine->generation();
    const auto first = ask(query());
    EXPECT_EQ(first.kind, Kind::Pending);
    EXPECT_NE(first.job, 0u);
    EXPECT_TRUE(engine->wait(first.job, -1));
    EXPECT_GT(engine->generation(), generation);

    const auto best = ask(query());
    EXPECT_EQ(best.kind, Kind::Fallback);
    EXPECT_EQ(best.reasons, why::kVariant | why::kUnverified);
    EXPECT_EQ(best.job, 0u);
    ASSERT_NE(best.kernel, nullptr);
    EXPECT_EQ(best.kernel->made(), 2);
    EXPECT_EQ(best.kernel->verified(), -1);
    EXPECT_EQ(best.kernel->id().size(), 64u);
    EXPECT_EQ(ask(query(), Want::Cached).kernel, best.kernel);

    const auto exact = ask(query(), Want::Exact);
    EXPECT_EQ(exact.kind, Kind::Rejected);
    EXPECT_EQ(exact.kernel, nullptr);
    EXPECT_EQ(exact.reasons, why::kVariant | why::kUnverified);

    auto invariant = query();
    invariant.flags = 1;
    EXPECT_EQ(settled(invariant).kind, Kind::Rejected);
    EXPECT_NE(settled(invariant).reasons & why::kVariant, 0u);
    EXPECT_EQ(compiler->compiles, 1);
    EXPECT_EQ(figure("adaptations_ok"), 1u);
    EXPECT_EQ(figure("kernels_on_fallback"), 1u);
    EXPECT_EQ(figure("jobs_running"), 0u);
}

TEST_F(EngineTest, CachedStartsNoWork) {
    open();
    const auto cached = settled(query(), Want::Cached);
    EXPECT_EQ(cached.kind, Kind::Rejected);
    EXPECT_EQ(cached.reasons, why::kNotStored);
    EXPECT_EQ(compiler->compiles, 0);
    EXPECT_FALSE(std::filesystem::exists(folder.path()));
    EXPECT_EQ(settled(query()).kind, Kind::Fallback);
    EXPECT_EQ(ask(query(), Want::Cached).kind, Kind::Fallback);
}

TEST_F(EngineTest, AWishForMoreJoinsALookUp) {
    open();
    for (int n = 1; n < 40; ++n) {
        const auto cached = ask(query(n), Want::Cached);
        const auto best = ask(query(n));
        if (cached.kind == Kind::Pending && best.kind == Kind::Pending) (void)engine->wait(best.job, -1);
        EXPECT_EQ(settled(query(n)).kind, Kind::Fallback);
    }
    EXPECT_EQ(compiler->compiles, 39);
}

TEST_F(EngineTest, AStoredKernelServesASecondEngine) {
    open();
    EXPECT_EQ(settled(query()).kernel->from(), 0);
    const std::string id = settled(query()).kernel->id();
    engine.reset();
    settings.workers = -1;
    open();
    const auto stored = settled(query());
    ASSERT_EQ(stored.kind, Kind::Fallback);
    EXPECT_EQ(stored.kernel->from(), 1);
    EXPECT_EQ(stored.kernel->id(), id);
    EXPECT_EQ(settled(query(32)).reasons, why::kNotStored);
    EXPECT_EQ(figure("hits_store"), 1u);
}

TEST_F(EngineTest, ManyThreadsOneAdaptation) {
    compiler->pause = std::chrono::milliseconds(30);
    open();
    std::vector<std::thread> threads;
    std::atomic<int> served{0};
    for (int t = 0; t < 16; ++t)
        threads.emplace_back([&] {
            Answer a = ask(query());
            while (a.kind == Kind::Pending) {
                EXPECT_TRUE(engine->wait(a.job, -1));
                a = ask(query());
            }
            served += a.kind == Kind::Fallback;
        });
    for (auto& t : threads) t.join();
    EXPECT_EQ(served, 16);
    EXPECT_EQ(compiler->compiles, 1);
}

TEST_F(EngineTest, CancelledWorkCanBeAskedForAgain) {
    compiler->pause = std::chrono::milliseconds(100);
    open();
    const auto a = ask(query());
    EXPECT_TRUE(engine->cancel(a.job));
    EXPECT_EQ(engine->wait(a.job, 0).status, Status::Cancelled);
    const auto b = ask(query());
    EXPECT_EQ(b.kind, Kind::Pending);
    EXPECT_NE(a.job, b.job);
    EXPECT_TRUE(engine->wait(b.job, -1));
    EXPECT_TRUE(engine->cancel(b.job)); // over: nothing happens
    EXPECT_TRUE(engine->wait(b.job, 0));
    Progress p;
    EXPECT_TRUE(engine->poll(a.job, p));
    EXPECT_FALSE(p.running);
    EXPECT_EQ(p.status, Status::Cancelled);
    EXPECT_EQ(engine->poll(99, p).status, Status::Misuse);
    EXPECT_EQ(engine->wait(0, 0).status, Status::Misuse);
    EXPECT_EQ(engine->cancel(99).status, Status::Misuse);
}

TEST_F(EngineTest, WaitingEndsInTime) {
    compiler->pause = std::chrono::milliseconds(200);
    open();
    const auto a = ask(query());
    EXPECT_EQ(engine->wait(a.job, 1).status, Status::Timeout);
    EXPECT_TRUE(engine->wait(a.job, 1 << 30));
}

TEST_F(EngineTest, SealedNothingNewComes) {
    compiler->pause = std::chrono::milliseconds(50);
    open();
    EXPECT_EQ(settled(query()).kind, Kind::Fallback);
    const auto pending = ask(query(32));
    EXPECT_TRUE(engine->seal(true));
    EXPECT_EQ(engine->wait(pending.job, 0).status, Status::Cancelled);
    EXPECT_EQ(ask(query()).kind, Kind::Fallback);
    EXPECT_EQ(ask(query(32)).reasons, why::kSealed);
    EXPECT_EQ(figure("sealed"), 1u);
    EXPECT_TRUE(engine->seal(false));
    EXPECT_EQ(settled(query(32)).kind, Kind::Fallback);
}

TEST_F(EngineTest, ModeOffRejectsAll) {
    const char* environment[] = {"CUBRIDGE_MODE=off", nullptr};
    settings = complete_settings(settings, environment);
    open();
    EXPECT_EQ(ask(query()).kind, Kind::Rejected);
}

TEST_F(EngineTest, FailuresSayWhy) {
    compiler->fails = true;
    open();
    const auto a = ask(query());
    EXPECT_EQ(engine->wait(a.job, -1).status, Status::Internal);
    const auto failed = ask(query());
    EXPECT_EQ(failed.kind, Kind::Rejected);
    EXPECT_EQ(failed.reasons, why::kFailed);
    EXPECT_NE(failed.message.find("does not compile"), std::string_view::npos);

    settings.compiler = no_compiler({"no_compiler", "there is none", "install it", 0, ""});
    open();
    EXPECT_EQ(settled(query()).reasons, why::kNotStored | why::kNoCompiler);
}

TEST_F(EngineTest, RequestsThatAreNoneAndThoseThatNobodyMeets) {
    open();
    using Change = void (*)(Query&);
    const Change misused[] = {[](Query& q) { q.head_dim = 0; },
                              [](Query& q) { q.head_dim = -1; },
                              [](Query& q) { q.group = 0; },
                              [](Query& q) { q.layout = 3; },
                              [](Query& q) { q.page_size = 16; },
                              [](Query& q) { q.layout = 2; },
                              [](Query& q) { q.phase = 3; },
                              [](Query& q) { q.rows = 2; },
                              [](Query& q) { q.empty_rows = 2; },
                              [](Query& q) { q.lse = 3; },
                              [](Query& q) { q.alignment = 3; },
                              [](Query& q) { q.alignment = -16; },
                              [](Query& q) { q.flags = 2; },
                              [](Query& q) { q.q_dtype = 10; },
                              [](Query& q) { q.device = -2; },
                              [](Query& q) { q.arch = {}; },
                              [](Query& q) { q.arch = {"x"}; },
                              [](Query& q) { q.text = nullptr; },
                              [](Query& q) { q.heads = 3, q.group = 2; }};
    for (const auto change : misused) {
        auto q = query();
        change(q);
        Answer a;
        EXPECT_EQ(engine->get(q, Want::BestNow, a).status, Status::Misuse);
    }
    auto q = query();
    q.layout = 1;
    EXPECT_EQ(ask(q).reasons, why::kLayout);
    q.kv_dtype = 7;
    EXPECT_EQ(ask(q).reasons, why::kLayout | why::kDtype);
}

TEST_F(EngineTest, WithoutADriverADeviceIsRejected) {
    if (Driver::open()) GTEST_SKIP() << "there is a driver";
    open();
    auto q = query();
    q.device = 0;
    const auto a = ask(q);
    EXPECT_EQ(a.kind, Kind::Pending);
    EXPECT_EQ(engine->wait(a.job, -1).status, Status::Environment);
    EXPECT_EQ(ask(q).kind, Kind::Rejected);
    EXPECT_NE(ask(q).message.find("libcuda"), std::string_view::npos) << ask(q).message;
}

TEST_F(EngineTest, CallbacksComeOneAtATimeOnOurThreads) {
    std::mutex mutex;
    std::vector<std::string> lines;
    std::vector<Progress> progress;
    std::atomic<int> inside{0};
    std::atomic<Engine*> opened{nullptr};
    const auto caller = std::this_thread::get_id();
    settings.log = [&](Level, const std::string& line) {
        EXPECT_EQ(++inside, 1);
        EXPECT_NE(std::this_thread::get_id(), caller);
        const std::lock_guard lock(mutex);
        lines.push_back(line);
        --inside;
    };
    settings.notify = [&](const Progress& p) {
        EXPECT_EQ(++inside, 1);
        EXPECT_EQ(opened.load()->wait(p.job, 0).status, Status::Misuse);
        const std::lock_guard lock(mutex);
        progress.push_back(p);
        --inside;
    };
    const char* environment[] = {"CUBRIDGE_LOG=info", "CUBRIDGE_TYPO=1", nullptr};
    settings = complete_settings(settings, environment);
    ASSERT_TRUE(Engine::open(settings, engine));
    opened = engine.get();
    text = parse(kCausal);
    EXPECT_EQ(settled(query()).kind, Kind::Fallback);
    engine.reset();
    ASSERT_FALSE(progress.empty());
    EXPECT_FALSE(progress.back().running);
    EXPECT_EQ(progress.back().ready, 1u);
    std::string all;
    for (const auto& line : lines) all += line + "\n";
    for (const char* event : {"event=open", "CUBRIDGE_TYPO", "event=adapted", "event=fallback"})
        EXPECT_NE(all.find(event), std::string::npos) << all;
}

TEST_F(EngineTest, AChildOfForkKnowsIt) {
    open();
    EXPECT_FALSE(engine->forked());
    const pid_t child = fork();
    if (child == 0) {
        const bool knows = engine->forked();
        Engine::abandon(std::move(engine));
        _exit(knows ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_FALSE(engine->forked());
}

TEST_F(EngineTest, ClosingCancels) {
    compiler->pause = std::chrono::milliseconds(50);
    open();
    for (int n = 1; n < 20; ++n) (void)ask(query(n));
    engine.reset();
    EXPECT_LT(compiler->compiles, 8);
}

TEST_F(EngineTest, WorkspaceNeedsNoKernel) {
    open();
    LaunchArgs args;
    args.requests = 2, args.heads_kv = 4, args.max_q = 100, args.max_kv = 200;
    std::size_t before = 0, after = 0;
    ASSERT_TRUE(engine->workspace(query(), args, before));
    settled(query());
    ASSERT_TRUE(engine->workspace(query(), args, after));
    EXPECT_EQ(before, after);
    EXPECT_GT(before, 0u);
    args.max_q = -1;
    EXPECT_EQ(engine->workspace(query(), args, after).status, Status::Misuse);
}

} // namespace
} // namespace cubridge::runtime
