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
    /// One that only the generic kernel answers: no expert computes in float32.
    Query generic(int head_dim = 64) const {
        Query q = query(head_dim);
        q.q_dtype = q.kv_dtype = q.o_dtype = 3;
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

/// Unless it is told otherwise, an engine serves what a GPU has run.
TEST_F(EngineTest, KernelsAreRunBeforeTheyServe) {
    class Told final : public Verifier {
    public:
        explicit Told(const bool& present) : present_(present) {}
        Outcome<VerifyResult> verify(const VerifyJob&) override {
            if (!present_) return Fault{"no_device", "there is no GPU", "get one"};
            VerifyResult out;
            out.passed = true;
            return out;
        }
        Outcome<Confinement> confinement() override { return Confinement{}; }

    private:
        const bool& present_;
    };
    bool present = false;
    std::string named = "none";
    settings.executor = false;
    settings.verifier = [&](const std::string& device) {
        named = device;
        return std::make_shared<Told>(present);
    };
    static const char* const environment[] = {"CUBRIDGE_VERIFY_GPU=GPU-7", nullptr};
    ASSERT_TRUE(Engine::open(complete_settings(settings, environment), engine));
    text = parse(kCausal);
    const auto missing = settled(query());
    EXPECT_EQ(missing.kind, Kind::Rejected);
    EXPECT_EQ(missing.reasons, +why::kUnverified);
    EXPECT_NE(missing.message.find("there is no GPU; get one"), std::string_view::npos) << missing.message;
    EXPECT_EQ(named, "GPU-7");
    EXPECT_EQ(figure("verify_unavailable"), 1u);
    EXPECT_EQ(figure("kernels_loaded"), 0u);

    present = true; // in another process it would be asked for anew
    engine.reset();
    const int before = compiler->compiles;
    ASSERT_TRUE(Engine::open(complete_settings(settings, environment), engine));
    text = parse(kCausal);
    const auto served = settled(query());
    EXPECT_EQ(served.kind, Kind::Ready) << served.message;
    EXPECT_EQ(served.reasons, 0u);
    EXPECT_EQ(figure("verified_gpu"), 1u);
    EXPECT_EQ(compiler->compiles, before + 2); // what it is run against

    // What an older library verified is run again, on our threads, before it first serves.
    engine.reset();
    {
        const auto store = folder.open();
        ASSERT_EQ(store->list().size(), 1u);
        const auto id = store->list()[0].id;
        auto older = Artifact::from_record(*store->load(id));
        ASSERT_TRUE(older);
        older->verification.gpu.reset();
        ASSERT_TRUE(store->replace(id, older->to_record()));
    }
    for (const bool there : {false, true}) {
        present = there;
        ASSERT_TRUE(Engine::open(complete_settings(settings, environment), engine));
        text = parse(kCausal);
        EXPECT_EQ(ask(query(), Want::Cached).kind, Kind::Pending);
        const auto again = settled(query());
        EXPECT_EQ(again.kind, there ? Kind::Ready : Kind::Rejected) << again.message;
        EXPECT_EQ(figure(there ? "verified_gpu" : "verify_unavailable"), 1u);
        EXPECT_EQ(figure("adaptations_ok"), 0u) << "it is not made again";
        engine.reset();
    }
    ASSERT_TRUE(Engine::open(complete_settings(settings, environment), engine));
    text = parse(kCausal);
    EXPECT_EQ(settled(query()).kind, Kind::Ready);
    EXPECT_EQ(figure("verified_gpu"), 0u) << "once is enough";
}

TEST_F(EngineTest, PendingThenReadyForAll) {
    open();
    const auto generation = engine->generation();
    const auto first = ask(query());
    EXPECT_EQ(first.kind, Kind::Pending);
    EXPECT_NE(first.job, 0u);
    EXPECT_TRUE(engine->wait(first.job, -1));
    EXPECT_GT(engine->generation(), generation);

    const auto best = ask(query());
    EXPECT_EQ(best.kind, Kind::Ready);
    EXPECT_EQ(best.reasons, 0u);
    EXPECT_EQ(best.job, 0u);
    EXPECT_EQ(best.message, "");
    ASSERT_NE(best.kernel, nullptr);
    EXPECT_EQ(best.kernel->made(), 0);
    EXPECT_EQ(best.kernel->verified(), 1);
    EXPECT_EQ(best.kernel->id().size(), 64u);
    for (const auto want : {Want::Cached, Want::Exact}) {
        EXPECT_EQ(ask(query(), want).kind, Kind::Ready);
        EXPECT_EQ(ask(query(), want).kernel, best.kernel);
    }
    EXPECT_EQ(compiler->compiles, 1);
    EXPECT_EQ(figure("adaptations_ok"), 1u);
    EXPECT_EQ(figure("made_by_rules"), 1u);
    EXPECT_EQ(figure("made_by_generic"), 0u);
    EXPECT_EQ(figure("kernels_on_fallback"), 0u);
}

TEST_F(EngineTest, ExactAndBatchInvariantKernelsAreMadeToo) {
    open();
    EXPECT_EQ(ask(query(), Want::Exact).kind, Kind::Pending);
    EXPECT_EQ(settled(query(), Want::Exact).kind, Kind::Ready);
    auto invariant = query();
    invariant.flags = 1;
    EXPECT_EQ(settled(invariant, Want::Cached).reasons, why::kNotStored);
    EXPECT_EQ(settled(invariant).kind, Kind::Ready);
    EXPECT_EQ(compiler->compiles, 2);
    settings.workers = -1;
    open();
    EXPECT_EQ(settled(query(), Want::Exact).kind, Kind::Ready);
    EXPECT_EQ(settled(query(32), Want::Exact).reasons, why::kNotStored);
}

TEST_F(EngineTest, WhatRulesRefuseIsFallbackOrRejected) {
    open();
    const auto best = settled(generic());
    EXPECT_EQ(best.kind, Kind::Fallback);
    EXPECT_EQ(best.reasons, why::kVariant | why::kUnverified);
    EXPECT_EQ(best.job, 0u);
    ASSERT_NE(best.kernel, nullptr);
    EXPECT_EQ(best.kernel->made(), 2);
    EXPECT_EQ(best.kernel->verified(), -1);
    EXPECT_EQ(best.kernel->id().size(), 64u);
    EXPECT_EQ(ask(generic(), Want::Cached).kernel, best.kernel);

    const auto exact = ask(generic(), Want::Exact);
    EXPECT_EQ(exact.kind, Kind::Rejected);
    EXPECT_EQ(exact.kernel, nullptr);
    EXPECT_EQ(exact.reasons, why::kVariant | why::kUnverified);
    EXPECT_EQ(settled(generic(32), Want::Exact).kind, Kind::Rejected); // the first to be asked for it

    auto invariant = generic();
    invariant.flags = 1;
    EXPECT_EQ(settled(invariant).kind, Kind::Rejected);
    EXPECT_NE(settled(invariant).reasons & why::kVariant, 0u);
    EXPECT_EQ(compiler->compiles, 3);
    EXPECT_EQ(figure("adaptations_ok"), 3u);
    EXPECT_EQ(figure("made_by_generic"), 3u);
    EXPECT_EQ(figure("kernels_on_fallback"), 3u);
    EXPECT_EQ(figure("jobs_running"), 0u);
}

TEST_F(EngineTest, CachedStartsNoWork) {
    open();
    const auto cached = settled(query(), Want::Cached);
    EXPECT_EQ(cached.kind, Kind::Rejected);
    EXPECT_EQ(cached.reasons, why::kNotStored);
    EXPECT_EQ(compiler->compiles, 0);
    EXPECT_FALSE(std::filesystem::exists(folder.path()));
    EXPECT_EQ(settled(query()).kind, Kind::Ready);
    EXPECT_EQ(ask(query(), Want::Cached).kind, Kind::Ready);
    EXPECT_EQ(settled(generic()).kind, Kind::Fallback);
    EXPECT_EQ(ask(generic(), Want::Cached).kind, Kind::Fallback);
}

TEST_F(EngineTest, AWishForMoreJoinsALookUp) {
    open();
    for (int n = 1; n < 40; ++n) {
        const auto cached = ask(query(n), Want::Cached);
        const auto best = ask(query(n));
        if (cached.kind == Kind::Pending && best.kind == Kind::Pending) (void)engine->wait(best.job, -1);
        EXPECT_EQ(settled(query(n)).kind, n % 8 == 0 ? Kind::Ready : Kind::Fallback); // an expert copies 16 bytes
    }
    EXPECT_EQ(compiler->compiles, 39);
}

TEST_F(EngineTest, AStoredKernelServesASecondEngine) {
    open();
    EXPECT_EQ(settled(query()).kernel->from(), 0);
    EXPECT_EQ(settled(generic()).kernel->from(), 0);
    const std::string id = settled(query()).kernel->id();
    engine.reset();
    settings.workers = -1;
    open();
    const auto stored = settled(query());
    ASSERT_EQ(stored.kind, Kind::Ready);
    EXPECT_EQ(stored.kernel->from(), 1);
    EXPECT_EQ(stored.kernel->id(), id);
    EXPECT_EQ(settled(query(32)).reasons, why::kNotStored);
    EXPECT_EQ(settled(generic()).kind, Kind::Fallback);
    EXPECT_EQ(figure("hits_store"), 2u);
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
            served += a.kind == Kind::Ready;
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
    EXPECT_EQ(settled(query()).kind, Kind::Ready);
    EXPECT_EQ(settled(generic()).kind, Kind::Fallback);
    const auto pending = ask(query(32));
    EXPECT_TRUE(engine->seal(true));
    EXPECT_EQ(engine->wait(pending.job, 0).status, Status::Cancelled);
    EXPECT_EQ(ask(query()).kind, Kind::Ready);
    EXPECT_EQ(ask(generic()).kind, Kind::Fallback);
    EXPECT_EQ(ask(query(32)).reasons, why::kSealed);
    EXPECT_EQ(figure("sealed"), 1u);
    EXPECT_TRUE(engine->seal(false));
    EXPECT_EQ(settled(query(32)).kind, Kind::Ready);
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

TEST_F(EngineTest, TextsThatComputeWithTheNumberOfHeads) {
    open();
    text = parse(R"(
import torch
def attention(q, k, v):
    H = q.size(1)
    slopes = torch.tensor([2.0 ** (-8.0 * (h + 1) / H) for h in range(H)])
    group = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    i = torch.arange(q.size(2))[:, None]
    j = torch.arange(k.size(2))[None, :]
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5 - slopes[:, None, None] * (i - j).abs()
    return torch.softmax(s, -1) @ v
)");
    ASSERT_NE(text, nullptr);
    ASSERT_NE(text->specification().heads(), 0);
    EXPECT_EQ(ask(query()).reasons, why::kHeads);
    auto q = query();
    q.heads = 4;
    const auto four = settled(q);
    ASSERT_EQ(four.kind, Kind::Ready) << four.message;
    q.heads = 12;
    const auto twelve = settled(q);
    ASSERT_EQ(twelve.kind, Kind::Ready) << twelve.message;
    EXPECT_NE(four.kernel->id(), twelve.kernel->id());
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
    EXPECT_EQ(settled(query()).kind, Kind::Ready);
    EXPECT_EQ(settled(generic()).kind, Kind::Fallback);
    engine.reset();
    ASSERT_FALSE(progress.empty());
    EXPECT_FALSE(progress.back().running);
    EXPECT_EQ(progress.back().ready, 1u);
    std::string all;
    for (const auto& line : lines) all += line + "\n";
    for (const char* event : {"event=open", "CUBRIDGE_TYPO", "event=adapted", "event=fallback"})
        EXPECT_NE(all.find(event), std::string::npos) << all;
}

TEST_F(EngineTest, AStoreThatCannotBeWrittenIsSaidOnce) {
    std::atomic<int> said{0};
    settings.store = "/proc/cubridge";
    settings.log = [&](Level, const std::string& line) { said += line.find("event=store") != line.npos; };
    open();
    for (int n = 1; n < 3; ++n) EXPECT_EQ(settled(query(8 * n)).kind, Kind::Ready);
    for (int n = 1; n < 3; ++n) EXPECT_EQ(settled(query(n)).kind, Kind::Fallback);
    EXPECT_EQ(compiler->compiles, 4);
    engine.reset();
    EXPECT_EQ(said, 1);
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

TEST_F(EngineTest, WorkspaceNeedsNoKernelAndIsEnoughForAny) {
    open();
    // Tables of rules for `doc`, partial outputs for two softmaxes, statistics of the generic kernel.
    text = parse(R"(
import torch
def attention(q, k, v, doc):
    i = torch.arange(q.size(2))[:, None]
    j = torch.arange(k.size(2))[None, :]
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    s = s.masked_fill(doc[i] != doc[j], float("-inf"))
    return torch.softmax(s, -1) @ v - 0.5 * torch.softmax(s * 2, -1) @ v
)");
    LaunchArgs args;
    args.requests = 2, args.heads_kv = 4, args.max_q = 100, args.max_kv = 200;
    ir::abi::cb_operand doc{};
    doc.size[0] = 200, doc.stride[0] = 1;
    args.operands = {&doc, 1};
    std::size_t before = 0, after = 0;
    ASSERT_TRUE(engine->workspace(query(), args, before));
    ASSERT_EQ(settled(query()).kind, Kind::Ready);
    ASSERT_TRUE(engine->workspace(query(), args, after));
    EXPECT_GE(before, after);
    EXPECT_GT(after, 2u * 4 * 100 * 64 * 4) << "one softmax's output at least";

    compiler->fails_on_rules = true;
    ASSERT_TRUE(engine->workspace(query(32), args, before));
    ASSERT_EQ(settled(query(32)).kind, Kind::Fallback);
    ASSERT_TRUE(engine->workspace(query(32), args, after));
    EXPECT_GE(before, after);
    EXPECT_GT(after, 0u);
    args.max_q = -1;
    EXPECT_EQ(engine->workspace(query(), args, after).status, Status::Misuse);
}

/// What was made without the rules of this library is made again by those who may, and serves those who may not.
TEST_F(EngineTest, AnOlderGenericKernelIsRenewed) {
    open();
    compiler->fails_on_rules = true;
    const std::string newer = settled(query()).kernel->id();
    {
        const auto record = folder.open()->load(*cache::Digest::from_hex(newer));
        ASSERT_TRUE(record);
        auto artifact = *Artifact::from_record(*record);
        std::filesystem::remove_all(folder.path());
        artifact.build.rules = "generic-1 abi-1";
        ASSERT_TRUE(folder.open()->publish(artifact.to_record()));
    }
    settings.workers = -1;
    open();
    const auto served = settled(query());
    ASSERT_EQ(served.kind, Kind::Fallback);
    EXPECT_EQ(settled(query(), Want::Exact).kind, Kind::Rejected);
    const std::string older = served.kernel->id();
    EXPECT_NE(older, newer);

    settings.workers = 1;
    settings.compiler = no_compiler({"no_compiler", "there is none", "install it", 0, ""});
    open();
    const auto still = settled(query());
    ASSERT_EQ(still.kind, Kind::Fallback) << still.message;
    EXPECT_EQ(still.kernel->id(), older);
    EXPECT_EQ(figure("adaptations_failed"), 1u);

    compiler->fails_on_rules = false;
    settings.compiler = compiler;
    open();
    EXPECT_EQ(settled(query()).kind, Kind::Ready);
    EXPECT_EQ(figure("made_by_rules"), 1u);
}

} // namespace
} // namespace cubridge::runtime
