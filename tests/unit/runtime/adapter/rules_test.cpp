// The fast path of the pipeline: where it gives way to the generic kernel, what it leaves in the store, what it renews.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/candidate.h"
#include "cubridge/ir/program.h"
#include "cubridge/runtime/why.h"
#include "tests/unit/runtime/support.h"

namespace cubridge::runtime {
namespace {

using namespace testing_support;

constexpr char kMadeGeneric[] = "generic compile verify? store ";

class Rules : public testing::Test {
protected:
    void SetUp() override {
        spec = parsed(kCausal);
        ASSERT_NE(spec, nullptr);
        store = folder.open();
        compiler = std::make_shared<FakeCompiler>();
        options.compiler = compiler;
        options.store = store.get();
    }
    static const Stage& stage(const Report& report, const std::string& name) {
        static const Stage kNone;
        for (const auto& s : report.stages)
            if (s.name == name) return s;
        return kNone;
    }
    static bool warns(const Report& report, const std::string& text) {
        return std::any_of(report.warnings.begin(), report.warnings.end(),
                           [&](const std::string& w) { return w.find(text) != w.npos; });
    }
    static void is_generic(const Report& report) {
        EXPECT_EQ(report.status, Report::Status::Fallback);
        EXPECT_EQ(report.reasons, why::kVariant | why::kUnverified);
        EXPECT_FALSE(report.error);
        ASSERT_TRUE(report.artifact);
        EXPECT_EQ(report.artifact->build.made_by, "generic");
        EXPECT_EQ(report.artifact->verification.level, Verified::None);
        EXPECT_TRUE(report.artifact->expert_program.empty() && report.artifact->program.empty());
        EXPECT_EQ(report.artifact->plan.entries.front().name.find("cubridge_generic"), 0u);
    }
    /// A generic kernel in the store, as a library made it that had other rules or none.
    cache::Digest keep_older(const char* build) {
        AdaptOptions alone;
        alone.compiler = compiler;
        compiler->fails_on_rules = true;
        auto report = adapt(spec, request_for(), alone);
        compiler->fails_on_rules = false;
        compiler->compiles = 0;
        report.artifact->build.rules = build;
        const auto record = report.artifact->to_record();
        EXPECT_TRUE(store->publish(record));
        return record.id;
    }

    Folder folder;
    std::shared_ptr<const ir::Specification> spec;
    std::unique_ptr<cache::Store> store;
    std::shared_ptr<FakeCompiler> compiler;
    AdaptOptions options;
};

// ---- Giving way -----------------------------------------------------------------------------------------------------

TEST_F(Rules, NoRuleForTheText) {
    const auto report = adapt(parsed(R"(
import torch
def attention(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1), -1).cumsum(-1) @ v
)"),
                              request_for(), options);
    EXPECT_EQ(stages_of(report), std::string("lookup choose transfer? ") + kMadeGeneric);
    EXPECT_NE(stage(report, "transfer").reason.find("not recognised as attention"), std::string::npos)
        << stage(report, "transfer").reason;
    is_generic(report);
}

/// Five thousand keys at least: more steps than an execution is given.
TEST_F(Rules, AProgramThatIsNotExecutedToItsEnd) {
    const auto report = adapt(parsed(R"(
import torch
def attention(q, k, v):
    i = torch.arange(q.size(2))[:, None]
    j = torch.arange(k.size(2) // 5000 * 5000)[None, :]
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    return torch.softmax(s + torch.sin(i * j) + torch.cos(i + 3 * j), -1) @ v
)"),
                              request_for(), options);
    EXPECT_EQ(stages_of(report), std::string("lookup choose transfer lower execute! ") + kMadeGeneric);
    EXPECT_NE(stage(report, "execute").reason.find("the step limit is reached"), std::string::npos);
    EXPECT_TRUE(warns(report, stage(report, "execute").reason));
    is_generic(report);
}

/// Each softmax is a kernel of its own.
TEST_F(Rules, AProgramOfMoreKernelsThanALaunchHas) {
    const auto report = adapt(parsed(R"(
import torch
def attention(q, k, v):
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    i = torch.arange(q.size(2))[:, None]
    j = torch.arange(k.size(2))[None, :]
    out = 0
    for w in (1, 2, 3, 4, 5, 6, 7, 8, 9):
        out = out + torch.softmax(s.masked_fill(j > i + w, float("-inf")), -1) @ v * w
    return out
)"),
                              request_for(), options);
    EXPECT_EQ(stages_of(report), std::string("lookup choose transfer lower! ") + kMadeGeneric);
    EXPECT_NE(stage(report, "lower").reason.find("more kernels than one launch may enqueue"), std::string::npos);
    EXPECT_TRUE(warns(report, stage(report, "lower").reason));
    is_generic(report);
}

TEST_F(Rules, CudaThatDoesNotCompile) {
    compiler->fails_on_rules = true;
    const auto report = adapt(spec, request_for(), options);
    EXPECT_EQ(stages_of(report), std::string("lookup choose transfer lower execute compile! ") + kMadeGeneric);
    EXPECT_TRUE(warns(report, "the rules' kernel did not compile"));
    EXPECT_EQ(compiler->compiles, 2);
    is_generic(report);
    // The same rules are not tried on it again.
    compiler->fails_on_rules = false;
    const auto again = adapt(spec, request_for(), options);
    EXPECT_EQ(stages_of(again), "lookup ");
    EXPECT_EQ(again.artifact->id, report.artifact->id);
}

TEST_F(Rules, ExpertsAreTriedInTurn) {
    options.experts = {"prefill_none", "prefill_sm80", "prefill_sm80"};
    compiler->fails_next = 1;
    const auto report = adapt(spec, request_for(), options);
    EXPECT_EQ(stages_of(report),
              "lookup? transfer? transfer lower execute compile! transfer lower execute compile verify? store? ");
    EXPECT_EQ(report.stages[1].reason, "prefill_none: there is no expert `prefill_none`");
    EXPECT_EQ(stage(report, "compile").reason, "prefill_sm80: the source does not compile");
    EXPECT_TRUE(warns(report, "prefill_sm80: the source does not compile"));
    EXPECT_EQ(report.status, Report::Status::Ready);
    EXPECT_FALSE(report.error);
    EXPECT_EQ(report.reasons, 0u);
    EXPECT_EQ(report.artifact->build.expert, "prefill_sm80");
    EXPECT_EQ(report.artifact->verification.level, Verified::Executor);

    compiler->fails_next = 2;
    const auto generic = adapt(spec, request_for(), options);
    EXPECT_EQ(stages_of(generic), "lookup? transfer? transfer lower execute compile! transfer lower execute compile! "
                                  "generic compile verify? store? ");
    is_generic(generic);
}

/// Registers may not do where every element reads a value of its own: the next form is compiled meanwhile, and used if
/// need be.
TEST_F(Rules, TwoFormsAreCompiledTogether) {
    const auto table = parsed(R"(
import torch
def attention(q, k, v, bias):
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    i = torch.arange(q.size(2))[:, None]
    j = torch.arange(k.size(2))[None, :]
    return torch.softmax(s + bias[i, j], -1) @ v
)");
    ASSERT_NE(table, nullptr);
    options.store = nullptr;
    compiler->spills = 8;
    compiler->spills_at = "BN = 128";
    for (const int cores : {4, 3}) {
        SCOPED_TRACE(cores);
        options.cores = cores;
        compiler->compiles = 0;
        compiler->most_at_work = 0;
        compiler->meets = cores == 4 ? 2 : 0;
        const auto report = adapt(table, request_for("sm_90a", 128), options);
        EXPECT_EQ(stages_of(report), "lookup? choose transfer lower execute compile! transfer lower execute compile "
                                     "verify? store? ");
        EXPECT_TRUE(warns(report, "prefill_sm90: attention spills 0 bytes of stores and 8 of loads"));
        ASSERT_TRUE(report.artifact);
        EXPECT_EQ(report.artifact->build.expert, "prefill_sm90/96");
        EXPECT_EQ(compiler->compiles, 2);
        EXPECT_EQ(compiler->most_at_work, cores == 4 ? 2 : 1);
    }
    // Of one that will do, nothing is compiled for nothing.
    options.cores = 4;
    compiler->compiles = 0;
    compiler->spills = 0;
    compiler->meets = 0;
    EXPECT_EQ(adapt(spec, request_for("sm_90a", 128), options).status, Report::Status::Ready);
    EXPECT_EQ(compiler->compiles, 1);
}

/// A text that the compiler is not given is no end either; a compiler that has not the architecture is.
TEST_F(Rules, OnlyFaultsOfTheTextAreTheExperts) {
    options.experts = {"prefill_sm80", "prefill_sm80"};
    for (const char* kind : {"gate", "empty", "arch", "deadline"}) {
        SCOPED_TRACE(kind);
        compiler->kind = kind;
        compiler->fails_next = 1;
        const auto report = adapt(spec, request_for(), options);
        const bool goes_on = kind == std::string("gate") || kind == std::string("empty");
        EXPECT_EQ(report.artifact.has_value(), goes_on);
        EXPECT_EQ(report.error.has_value(), !goes_on);
        EXPECT_EQ(stage(report, "compile").verdict, Stage::Verdict::Failed);
        compiler->fails_next = 0;
    }
}

/// What an expert that somebody named gave is not what would be made without.
TEST_F(Rules, ANamedExpertLeavesTheStoreAlone) {
    const auto made = adapt(spec, request_for(), options);
    options.experts = {"prefill_sm80"};
    const auto named = adapt(spec, request_for(), options);
    EXPECT_EQ(named.tier, "made");
    EXPECT_EQ(compiler->compiles, 2);
    EXPECT_EQ(stage(named, "store").reason, "an expert is named");
    options.experts.clear();
    EXPECT_EQ(adapt(spec, request_for(), options).artifact->id, made.artifact->id);
    EXPECT_EQ(compiler->compiles, 2);
}

TEST_F(Rules, APrinterOfOnesOwnIsNotOverruled) {
    options.printer = [](const ir::Specification& s, const ir::Request& r) { return ir::generic_kernel(s, r); };
    const auto report = adapt(spec, request_for(), options);
    EXPECT_EQ(stages_of(report), std::string("lookup ") + kMadeGeneric);
    is_generic(report);
}

/// Each is asked after a stage that may take long.
TEST_F(Rules, AreCancelledBetweenStages) {
    options.store = nullptr;
    for (const std::string at : {"transfer", "lower"}) {
        SCOPED_TRACE(at);
        std::string last;
        options.progress = [&](const std::string& name) { last = name; };
        options.cancelled = [&] { return last == at; };
        const auto report = adapt(spec, request_for(), options);
        ASSERT_TRUE(report.error);
        EXPECT_EQ(report.error->kind, "cancelled");
        EXPECT_EQ(report.stages.back().name, at);
        EXPECT_EQ(compiler->compiles, 0);
    }
}

// ---- What is stored
// ---------------------------------------------------------------------------------------------------

TEST_F(Rules, AnArtifactKeepsItsPrograms) {
    const auto made = adapt(spec, request_for(), options);
    ASSERT_EQ(made.status, Report::Status::Ready);
    const Artifact& a = *made.artifact;
    const auto expert = ir::lift_program(ir::built_in_experts().front().text);
    ASSERT_TRUE(expert);
    EXPECT_EQ(a.expert_program, *expert);
    EXPECT_NE(a.program, a.expert_program);
    EXPECT_NE(a.difference.find("@@"), std::string::npos);
    EXPECT_EQ(a.build.rules.find(ir::candidate_version()), 0u) << a.build.rules;

    const auto record = store->load(a.id);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->made_by, "rules");
    for (const char* name : {"cubin", "plan", "cuda", "text", "expert", "cuir", "difference"})
        EXPECT_NE(record->blob(name), nullptr) << name;
    const auto back = Artifact::from_record(*record);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->expert_program, a.expert_program);
    EXPECT_EQ(back->program, a.program);
    EXPECT_EQ(back->difference, a.difference);
    EXPECT_EQ(back->build, a.build);
    EXPECT_EQ(back->plan, a.plan);
    EXPECT_EQ(back->places, a.places);
    EXPECT_EQ(back->verification.level, Verified::Executor);
    EXPECT_EQ(back->verification.record, a.verification.record);
    // What is stored is the program of the CUDA beside it.
    const auto lifted = ir::lift_program(back->cuda);
    ASSERT_TRUE(lifted) << lifted.error().message;
    EXPECT_EQ(*lifted, back->program);

    AdaptOptions generic;
    generic.compiler = compiler;
    for (const auto& blob : adapt(spec, generic_request(), generic).artifact->to_record().blobs)
        EXPECT_TRUE(blob.name == "cubin" || blob.name == "plan" || blob.name == "cuda" || blob.name == "text")
            << blob.name;
}

// ---- Renewing
// ---------------------------------------------------------------------------------------------------------

TEST_F(Rules, AnOlderGenericKernelIsRenewedByAMaker) {
    const auto older = keep_older("generic-1 abi-1");
    auto stored_only = options;
    stored_only.compiler = nullptr;
    const auto served = adapt(spec, request_for(), stored_only);
    EXPECT_EQ(served.tier, "store");
    EXPECT_EQ(served.artifact->id, older);
    EXPECT_EQ(served.status, Report::Status::Fallback);

    stored_only.renew = true; // whoever will make it asks so
    EXPECT_EQ(adapt(spec, request_for(), stored_only).error->kind, "no_compiler");

    const auto made = adapt(spec, request_for(), options);
    EXPECT_EQ(made.tier, "made");
    EXPECT_EQ(made.status, Report::Status::Ready);
    EXPECT_EQ(made.artifact->build.made_by, "rules");
    EXPECT_EQ(compiler->compiles, 1);

    stored_only.renew = false; // of two the better one
    EXPECT_EQ(adapt(spec, request_for(), stored_only).artifact->id, made.artifact->id);
    EXPECT_EQ(adapt(spec, request_for(), options).artifact->id, made.artifact->id);
    EXPECT_EQ(compiler->compiles, 1);
}

TEST_F(Rules, AnOlderKernelServesWhereNothingCanBeCompiled) {
    const auto older = keep_older("generic-1 abi-1 without rules-0");
    compiler->fails = true;
    const auto failed = adapt(spec, request_for(), options);
    options.compiler = no_compiler({"no_compiler", "there is none", "install it", 0, ""});
    for (const auto& report : {failed, adapt(spec, request_for(), options)}) {
        is_generic(report);
        EXPECT_EQ(report.artifact->id, older);
        EXPECT_EQ(report.tier, "store");
        EXPECT_TRUE(report.older);
        EXPECT_TRUE(warns(report, "was not renewed"));
        EXPECT_EQ(report.log, "");
    }
    options.cancelled = [] { return true; };
    EXPECT_EQ(adapt(spec, request_for(), options).error->kind, "cancelled");
}

TEST_F(Rules, OfALibraryWithTheSameRulesNothingIsRenewed) {
    compiler->fails_on_rules = true;
    const auto made = adapt(spec, request_for(), options);
    compiler->fails_on_rules = false;
    const auto served = adapt(spec, request_for(), options);
    EXPECT_EQ(served.tier, "store");
    EXPECT_EQ(served.artifact->id, made.artifact->id);
    EXPECT_FALSE(served.older);
}

} // namespace
} // namespace cubridge::runtime
