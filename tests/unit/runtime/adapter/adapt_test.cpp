// The pipeline: stages, tiers, ends; one maker among threads; records that are no artifacts.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/json.h"
#include "cubridge/runtime/why.h"
#include "tests/unit/runtime/support.h"
#include <fstream>

namespace cubridge::runtime {
namespace {

using namespace testing_support;

class Adapt : public testing::Test {
protected:
    void SetUp() override {
        spec = parsed(kCausal);
        ASSERT_NE(spec, nullptr);
        store = folder.open();
        locks = std::make_unique<cache::Locks>(folder.path());
        compiler = std::make_shared<FakeCompiler>();
        options.compiler = compiler;
        options.store = store.get();
        options.locks = locks.get();
    }

    Folder folder;
    std::shared_ptr<const ir::Specification> spec;
    std::unique_ptr<cache::Store> store;
    std::unique_ptr<cache::Locks> locks;
    std::shared_ptr<FakeCompiler> compiler;
    AdaptOptions options;
};

TEST_F(Adapt, MakesAndStoresThenServes) {
    const auto made = adapt(spec, request_for(), options);
    ASSERT_EQ(made.status, Report::Status::Ready) << stages_of(made);
    EXPECT_EQ(made.reasons, 0u);
    EXPECT_EQ(stages_of(made), "lookup lock lookup choose transfer lower execute compile verify? store ");
    EXPECT_EQ(made.artifact->build.made_by, "rules");
    EXPECT_EQ(made.artifact->build.expert, "prefill_sm80");
    EXPECT_EQ(made.artifact->verification.level, Verified::Executor);
    EXPECT_EQ(made.stages[8].reason, made.artifact->verification.record);
    EXPECT_EQ(made.artifact->verification.record.find("executor: "), 0u) << made.artifact->verification.record;
    EXPECT_EQ(made.tier, "made");
    EXPECT_FALSE(made.joined);

    const auto again = adapt(spec, request_for(), options);
    ASSERT_TRUE(again.artifact);
    EXPECT_EQ(again.tier, "store");
    EXPECT_EQ(stages_of(again), "lookup ");
    EXPECT_EQ(again.artifact->id, made.artifact->id);
    EXPECT_EQ(again.artifact->plan, made.artifact->plan);
    EXPECT_EQ(again.artifact->build, made.artifact->build);
    EXPECT_EQ(again.artifact->cubin, made.artifact->cubin);
    EXPECT_EQ(compiler->compiles, 1);
}

TEST_F(Adapt, TheGenericKernelIsMadeWhereRulesRefuse) {
    const auto made = adapt(spec, generic_request(), options);
    ASSERT_EQ(made.status, Report::Status::Fallback) << stages_of(made);
    EXPECT_EQ(made.reasons, why::kVariant | why::kUnverified);
    EXPECT_EQ(stages_of(made), "lookup lock lookup choose transfer? generic compile verify? store ");
    EXPECT_NE(made.stages[4].reason.find("bf16 or fp16"), std::string::npos) << made.stages[4].reason;
    EXPECT_EQ(made.stages[7].reason, "compiled, not run");
    EXPECT_EQ(made.artifact->build.made_by, "generic");
    EXPECT_EQ(made.artifact->build.expert, "");
    EXPECT_EQ(made.artifact->program, "");

    const auto again = adapt(spec, generic_request(), options);
    EXPECT_EQ(stages_of(again), "lookup ");
    EXPECT_EQ(again.status, Report::Status::Fallback);
    EXPECT_EQ(again.artifact->id, made.artifact->id);
    EXPECT_EQ(compiler->compiles, 1);
}

TEST_F(Adapt, WorksWithNothingButACompiler) {
    AdaptOptions alone;
    alone.compiler = compiler;
    const auto report = adapt(spec, request_for(), alone);
    EXPECT_EQ(report.status, Report::Status::Ready);
    EXPECT_EQ(stages_of(report), "lookup? choose transfer lower execute compile verify? store? ");
}

TEST_F(Adapt, ServesTheStoreWithoutACompiler) {
    auto stored_only = options;
    stored_only.compiler = nullptr;
    const auto missing = adapt(spec, request_for(), stored_only);
    EXPECT_EQ(missing.status, Report::Status::Rejected);
    EXPECT_EQ(missing.reasons, why::kNotStored | why::kNoCompiler);
    EXPECT_EQ(missing.error->kind, "no_compiler");
    (void)adapt(spec, request_for(), options);
    (void)adapt(spec, generic_request(), options);
    EXPECT_EQ(adapt(spec, request_for(), stored_only).status, Report::Status::Ready);
    EXPECT_EQ(adapt(spec, generic_request(), stored_only).status, Report::Status::Fallback);
}

TEST_F(Adapt, SaysWhyItFailed) {
    compiler->fails = true;
    const auto failed = adapt(spec, request_for(), options);
    EXPECT_EQ(failed.status, Report::Status::Failed);
    EXPECT_EQ(failed.error->kind, "compile");
    EXPECT_EQ(failed.log, "kernel.cu(1): error");
    EXPECT_EQ(stages_of(failed), "lookup lock lookup choose transfer lower execute compile! generic compile! ");
    EXPECT_EQ(stages_of(adapt(spec, generic_request(), options)),
              "lookup lock lookup choose transfer? generic compile! ");
    compiler->fails = false;

    options.cancelled = [] { return true; };
    EXPECT_EQ(adapt(spec, request_for(), options).error->kind, "cancelled");
    options.cancelled = nullptr;
    options.deadline = std::chrono::steady_clock::now();
    EXPECT_EQ(adapt(spec, request_for(), options).error->kind, "deadline");
    options.deadline = cache::Deadline::max();
    options.printer = [](const ir::Specification&, const ir::Request&) -> ir::Result<ir::GenericKernel> {
        throw std::runtime_error("torn");
    };
    EXPECT_EQ(adapt(spec, request_for(), options).error->kind, "internal");
}

TEST_F(Adapt, SpillsOnlyWarn) {
    compiler->spills = 8;
    const auto report = adapt(spec, request_for(), options);
    ASSERT_TRUE(report.artifact);
    ASSERT_FALSE(report.warnings.empty());
    EXPECT_NE(report.warnings.back().find("spills"), std::string::npos);
}

TEST_F(Adapt, OneMakerAmongThreads) {
    compiler->pause = std::chrono::milliseconds(50);
    std::vector<std::thread> threads;
    std::atomic<int> served{0}, joined{0};
    for (int k = 0; k < 16; ++k)
        threads.emplace_back([&] {
            const auto report = adapt(spec, request_for(), options);
            served += report.artifact.has_value();
            joined += report.joined;
        });
    for (auto& t : threads) t.join();
    EXPECT_EQ(served, 16);
    EXPECT_EQ(compiler->compiles, 1);
}

TEST_F(Adapt, ARecordThatIsNoArtifactIsSetAside) {
    cache::Record record;
    record.key = request_key(*spec, request_for());
    record.build = "x";
    record.arch = "sm_90a";
    record.made_by = "rules";
    record.rank = 99;
    record.metadata = "{}";
    cache::seal(record);
    ASSERT_TRUE(store->publish(record));
    const auto report = adapt(spec, request_for(), options);
    ASSERT_TRUE(report.artifact);
    EXPECT_EQ(report.tier, "made");
    EXPECT_FALSE(store->load(record.id));
}

TEST_F(Adapt, AnotherTextOfTheSameSubjectIsServed) {
    const auto made = adapt(spec, request_for(), options);
    const auto other = parsed(std::string("# respelled\n") + kCausal);
    const auto served = adapt(other, request_for(), options);
    EXPECT_EQ(served.tier, "store");
    EXPECT_EQ(served.artifact->id, made.artifact->id);
}

TEST_F(Adapt, AKernelOfANarrowerTextIsNotServed) {
    auto narrow = options;
    narrow.printer = [](const ir::Specification& s, const ir::Request& r) {
        auto kernel = ir::generic_kernel(s, r);
        using ir::launch::Code;
        if (kernel)
            kernel->plan.conditions.push_back({ir::launch::Condition::Kind::Equal, Code::size(ir::launch::Size::MaxQ),
                                               Code::size(ir::launch::Size::MaxKv), "Sq == Sk"});
        return kernel;
    };
    (void)adapt(parsed(std::string("# narrower\n") + kCausal), request_for(), narrow);
    const auto made = adapt(spec, request_for(), options);
    EXPECT_EQ(made.tier, "made");
    EXPECT_EQ(adapt(spec, request_for(), options).artifact->id, made.artifact->id);
}

TEST_F(Adapt, ReportIsJson) {
    const auto report = adapt(spec, request_for(), options);
    const auto json = Json::parse(report.json(spec.get(), request_for()));
    ASSERT_TRUE(json);
    for (const char* name : {"status", "error", "variant", "request_key", "artifact", "arch", "made_by", "tier",
                             "expert", "stages", "cubin_bytes", "entries", "warnings"})
        EXPECT_NE(json->find(name), nullptr) << name;
    EXPECT_EQ(*json->find("status")->string(), "ready");
    EXPECT_EQ(*json->find("made_by")->string(), "rules");
    EXPECT_EQ(*json->find("expert")->string(), "prefill_sm80");
    EXPECT_EQ(*json->find("artifact")->string(), report.artifact->id.hex());
    EXPECT_EQ(*json->find("entries")->items()->front().find("registers")->integer(), 40);

    const auto generic = adapt(spec, generic_request(), options);
    const auto other = Json::parse(generic.json(spec.get(), generic_request()));
    EXPECT_EQ(*other->find("status")->string(), "fallback");
    EXPECT_EQ(*other->find("made_by")->string(), "generic");
    EXPECT_TRUE(other->find("expert")->is_null());

    Report bare;
    bare.error = ir::Error{"syntax", "no", {3, 7, 3, 8}, "yes"};
    const auto failed = Json::parse(bare.json(nullptr, {}));
    EXPECT_EQ(*failed->find("status")->string(), "failed");
    EXPECT_EQ(*failed->find("error")->find("line")->integer(), 3);
    EXPECT_TRUE(failed->find("variant")->is_null());
}

TEST_F(Adapt, SizesThatNobodyGave) {
    ir::Request request;
    request.arch = "sm_90a";
    int q = 0, kv = 0;
    std::vector<std::string> notes;
    const auto completed = complete(*spec, request, q, kv, notes);
    ASSERT_TRUE(completed);
    EXPECT_EQ(completed->head_dim, 128);
    EXPECT_EQ(completed->head_dim_v, 128);
    EXPECT_EQ(completed->group, 4);
    EXPECT_EQ(q, 32);
    EXPECT_EQ(kv, 8);
    EXPECT_EQ(notes.size(), 2u);
}

} // namespace
} // namespace cubridge::runtime
