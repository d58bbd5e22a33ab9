// The stage that runs what was made: what passes, what is wrong, and what nobody could run.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/why.h"
#include "tests/unit/runtime/support.h"

namespace cubridge::runtime {
namespace {

using namespace testing_support;

/// Says what it is told of kernels from experts, and that all others pass.
class FakeVerifier final : public Verifier {
public:
    Outcome<VerifyResult> verify(const VerifyJob& job) override {
        jobs.push_back(job);
        names.clear();
        for (const auto& o : job.kernel.plan.operands) names.push_back(o.name);
        if (absent) return Fault{"busy", "the GPU is somebody else's", "name another"};
        VerifyResult out;
        out.passed = generic_wrong ? false : job.program.empty() || !rules_wrong;
        out.cases = 21;
        out.seed = 5;
        out.ratio = 1.25;
        out.device = "Fake";
        out.against_text = 6;
        out.driver = 13000;
        if (job.seed != 0) out.seed = job.seed;
        if (!out.passed) out.failures = {"case 3: row 7 is off"};
        return out;
    }
    Outcome<std::string> arch() override { return gpu; }
    Outcome<Confinement> confinement() override { return Confinement{}; }

    bool absent = false, rules_wrong = false, generic_wrong = false;
    std::string gpu = "sm_80";
    std::vector<VerifyJob> jobs;
    std::vector<std::string> names;
};

class Verify : public testing::Test {
protected:
    void SetUp() override {
        spec = parsed(kCausal);
        ASSERT_NE(spec, nullptr);
        store = folder.open();
        options.compiler = compiler;
        options.store = store.get();
        options.verifier = verifier;
        options.verified = true;
    }
    /// The record of an artifact as a library wrote it that kept no more of a verification than its text.
    cache::Record older(const Artifact& artifact) {
        auto record = artifact.to_record();
        auto metadata = Json::object();
        const auto all = Json::parse(record.metadata);
        for (const auto& [name, value] : *all->members()) {
            if (name == "asked") continue;
            if (name != "verification") {
                metadata.add(name, value);
                continue;
            }
            auto verification = Json::object();
            for (const auto& [n, v] : *value.members())
                if (n != "gpu") verification.add(n, v);
            metadata.add(name, std::move(verification));
        }
        record.metadata = metadata.text();
        std::erase_if(record.blobs, [](const auto& blob) { return blob.name == "text"; });
        cache::seal(record);
        return record;
    }

    static std::string reason(const Report& report, const std::string& name) {
        for (const auto& s : report.stages)
            if (s.name == name) return s.reason;
        return "no such stage";
    }

    Folder folder;
    std::shared_ptr<const ir::Specification> spec;
    std::unique_ptr<cache::Store> store;
    std::shared_ptr<FakeCompiler> compiler = std::make_shared<FakeCompiler>();
    std::shared_ptr<FakeVerifier> verifier = std::make_shared<FakeVerifier>();
    AdaptOptions options;
};

TEST_F(Verify, WhatPassesIsServedFromThenOn) {
    const auto made = adapt(spec, request_for(), options);
    EXPECT_EQ(stages_of(made), "lookup choose transfer lower execute compile verify store ");
    ASSERT_EQ(made.status, Report::Status::Ready);
    const auto& v = made.artifact->verification;
    EXPECT_EQ(v.level, Verified::Gpu);
    EXPECT_EQ(v.error_ratio, 1.25);
    EXPECT_NE(v.record.find("gpu: 21 cases, seed 5, error 1.25 of 2 (Fake)"), std::string::npos) << v.record;
    EXPECT_NE(v.record.find("executor: "), std::string::npos) << v.record;
    ASSERT_EQ(verifier->jobs.size(), 1u);
    const auto& job = verifier->jobs[0];
    EXPECT_FALSE(job.exact.cubin.empty());
    ASSERT_TRUE(job.baseline);
    EXPECT_EQ(job.program, made.artifact->program);
    EXPECT_EQ(compiler->compiles, 3); // it, the float64 build and the baseline

    const auto again = adapt(spec, request_for(), options);
    EXPECT_EQ(stages_of(again), "lookup ");
    EXPECT_EQ(again.artifact->verification.level, Verified::Gpu);
    EXPECT_EQ(verifier->jobs.size(), 1u);
}

TEST_F(Verify, AWrongKernelGivesWayToTheGenericOne) {
    verifier->rules_wrong = true;
    const auto report = adapt(spec, request_for(), options);
    EXPECT_EQ(stages_of(report), "lookup choose transfer lower execute compile verify! generic compile verify store ");
    EXPECT_EQ(reason(report, "verify"), "gpu: case 3: row 7 is off");
    EXPECT_EQ(report.status, Report::Status::Fallback);
    EXPECT_EQ(report.reasons, +why::kVariant);
    EXPECT_EQ(report.artifact->build.made_by, "generic");
    EXPECT_EQ(report.artifact->verification.level, Verified::Gpu);
    EXPECT_FALSE(verifier->jobs.back().baseline);

    verifier->generic_wrong = true;
    options.store = nullptr;
    const auto none = adapt(spec, request_for(), options);
    ASSERT_TRUE(none.error);
    EXPECT_EQ(none.error->kind, "verify");
    EXPECT_FALSE(none.artifact);
}

TEST_F(Verify, WhatCanNotBeRunIsKeptAndNoAnswer) {
    verifier->absent = true;
    const auto made = adapt(spec, request_for(), options);
    EXPECT_EQ(stages_of(made), "lookup choose transfer lower execute compile verify? store ");
    EXPECT_EQ(made.status, Report::Status::Rejected);
    EXPECT_EQ(made.reasons, +why::kUnverified);
    ASSERT_TRUE(made.error);
    EXPECT_EQ(made.error->kind, "unverified");
    EXPECT_NE(made.error->message.find("the GPU is somebody else's"), std::string::npos);
    EXPECT_FALSE(made.artifact);

    // Who does not insist takes it.
    AdaptOptions lenient = options;
    lenient.verified = false;
    EXPECT_EQ(adapt(spec, request_for(), lenient).status, Report::Status::Ready);
    // Nor is it an answer where nothing can be run or made.
    AdaptOptions alone;
    alone.store = store.get();
    alone.verified = true;
    const auto missing = adapt(spec, request_for(), alone);
    EXPECT_EQ(missing.status, Report::Status::Rejected);
    EXPECT_NE(missing.reasons & why::kUnverified, 0u);

    // Later there is a GPU: what is stored is run, and not made again.
    verifier->absent = false;
    compiler->compiles = 0;
    const auto later = adapt(spec, request_for(), options);
    EXPECT_EQ(stages_of(later), "lookup verify store ");
    EXPECT_EQ(later.status, Report::Status::Ready);
    EXPECT_EQ(later.tier, "store");
    EXPECT_EQ(compiler->compiles, 2);
    EXPECT_EQ(stages_of(adapt(spec, request_for(), options)), "lookup ");
}

TEST_F(Verify, AStoredKernelThatIsWrongIsSetAside) {
    AdaptOptions lenient = options;
    lenient.verifier = nullptr;
    lenient.verified = false;
    const auto made = adapt(spec, request_for(), lenient);
    ASSERT_EQ(made.status, Report::Status::Ready);
    verifier->rules_wrong = true;
    const auto report = adapt(spec, request_for(), options);
    EXPECT_EQ(stages_of(report),
              "lookup verify! choose transfer lower execute compile verify! generic compile verify store ");
    EXPECT_FALSE(store->load(made.artifact->id));
    EXPECT_EQ(report.artifact->build.made_by, "generic");
}

TEST_F(Verify, WhatWasVerifiedIsKeptAsData) {
    const auto made = adapt(spec, request_for(), options);
    const auto record = store->load(made.artifact->id);
    ASSERT_TRUE(record);
    const auto back = Artifact::from_record(*record);
    ASSERT_TRUE(back) << back.error().message;
    const auto& gpu = back->verification.gpu;
    ASSERT_TRUE(gpu);
    EXPECT_TRUE(back->verification.stands());
    EXPECT_EQ(gpu->format, kVerification);
    EXPECT_EQ(gpu->cases, 21);
    EXPECT_EQ(gpu->against_text, 6);
    EXPECT_EQ(gpu->seed, 5u);
    EXPECT_EQ(gpu->device, "Fake");
    EXPECT_EQ(gpu->driver, 13000);
    EXPECT_GT(gpu->date, 1'700'000'000);
    ASSERT_TRUE(back->asked);
    EXPECT_EQ(back->asked->source.text, kCausal);
    EXPECT_EQ(back->to_record().id, record->id);
    const auto json = Json::parse(made.json(spec.get(), request_for()));
    ASSERT_TRUE(json);
    EXPECT_EQ(*json->find("verification")->find("gpu")->find("cases")->integer(), 21);
    EXPECT_EQ(*json->find("verification")->find("error_ratio")->number(), 1.25);

    const auto old = Artifact::from_record(older(*back));
    ASSERT_TRUE(old) << old.error().message;
    EXPECT_EQ(old->verification.level, Verified::Gpu);
    EXPECT_EQ(old->verification.format(), 0);
    EXPECT_FALSE(old->verification.stands());
    EXPECT_FALSE(old->asked);

    auto torn = *record;
    torn.metadata.replace(torn.metadata.find("\"against_text\""), 14, "\"against_texts\"");
    EXPECT_FALSE(Artifact::from_record(torn));
}

TEST_F(Verify, AllThatWasAskedForIsReadBack) {
    const auto text = parsed(kCausal);
    auto artifact = *adapt(text, request_for(), options).artifact;
    auto& asked = *artifact.asked;
    asked.source.text += "# \xff";
    asked.source.mask = "m";
    asked.source.settings["window"] = {ir::Setting::Kind::Constant, 0.1, {}, {}, {}};
    asked.source.settings["low"] = {ir::Setting::Kind::Constant, -std::numeric_limits<double>::infinity(), {}, {}, {}};
    asked.source.settings["bias"] = {ir::Setting::Kind::Operand, 0, ir::DType::BF16, 0, {"Hq", "257"}};
    asked.heads = 8;
    asked.request.o_dtype = ir::DType::F32;
    asked.request.rows = ir::Request::Rows::Tail;
    asked.request.lse = ir::Request::Lse::Log2;
    asked.request.page_size = 16;
    const auto back = Artifact::from_record(artifact.to_record());
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->to_record().id, artifact.to_record().id);
    EXPECT_EQ(back->asked->source.text, asked.source.text);
    const auto& settings = back->asked->source.settings;
    EXPECT_EQ(settings.at("window").value, 0.1);
    EXPECT_EQ(settings.at("low").value, -std::numeric_limits<double>::infinity());
    EXPECT_EQ(settings.at("bias").axes, asked.source.settings.at("bias").axes);
    EXPECT_EQ(settings.at("bias").rank, 0);
    EXPECT_EQ(settings.at("bias").dtype, ir::DType::BF16);
    EXPECT_EQ(settings.at("bias").kind, ir::Setting::Kind::Operand);
    EXPECT_EQ(back->asked->request.rows, ir::Request::Rows::Tail);
    EXPECT_EQ(back->asked->request.lse, ir::Request::Lse::Log2);
    EXPECT_EQ(back->asked->request.arch, "sm_80");
}

TEST_F(Verify, WhatAnOlderLibraryVerifiedIsRunAgainBeforeItServes) {
    const auto made = adapt(spec, request_for(), options);
    const auto old = older(*made.artifact);
    ASSERT_TRUE(store->replace(made.artifact->id, old));
    verifier->jobs.clear();

    verifier->absent = true; // no GPU just now: it is no answer, and stays
    const auto none = adapt(spec, request_for(), options);
    ASSERT_EQ(none.status, Report::Status::Rejected);
    EXPECT_NE(none.error->message.find("for an older library"), std::string::npos) << none.error->message;
    EXPECT_EQ(store->list().size(), 1u);
    EXPECT_EQ(store->list()[0].id, old.id);

    verifier->absent = false;
    const auto again = adapt(spec, request_for(), options);
    EXPECT_EQ(stages_of(again), "lookup verify store ");
    EXPECT_EQ(again.status, Report::Status::Ready);
    EXPECT_EQ(verifier->jobs.size(), 2u);
    const auto& record = again.artifact->verification.record;
    EXPECT_EQ(record.find("gpu: "), record.rfind("gpu: ")) << record;
    EXPECT_EQ(store->list().size(), 1u); // in its place
    EXPECT_TRUE(again.artifact->asked) << "the text that it was made from has come by";
    EXPECT_EQ(stages_of(adapt(spec, request_for(), options)), "lookup ");

    ASSERT_TRUE(store->replace(again.artifact->id, old));
    verifier->rules_wrong = true;
    const auto wrong = adapt(spec, request_for(), options);
    EXPECT_FALSE(store->load(old.id));
    EXPECT_EQ(wrong.artifact->build.made_by, "generic");
}

TEST_F(Verify, AStoredKernelIsRunFromItsRecord) {
    const auto made = adapt(spec, request_for(), options);
    const auto id = made.artifact->id;
    verifier->jobs.clear();
    const auto passed = verify_again(*store, id, compiler, *verifier, 77);
    ASSERT_EQ(passed.verdict, Rerun::Verdict::Passed) << passed.why;
    EXPECT_EQ(passed.seed, 77u);
    ASSERT_EQ(verifier->jobs.size(), 1u);
    EXPECT_EQ(verifier->jobs[0].program, made.artifact->program);
    EXPECT_EQ(verifier->jobs[0].kernel.cubin, made.artifact->cubin);
    EXPECT_TRUE(verifier->jobs[0].baseline);
    ASSERT_TRUE(passed.id);
    EXPECT_EQ(store->list().size(), 1u);
    EXPECT_FALSE(store->load(id));
    const auto renewed = Artifact::from_record(*store->load(*passed.id));
    ASSERT_TRUE(renewed);
    EXPECT_EQ(renewed->verification.gpu->seed, 77u);
    EXPECT_EQ(stages_of(adapt(spec, request_for(), options)), "lookup ");

    verifier->absent = true;
    const auto busy = verify_again(*store, *passed.id, compiler, *verifier);
    EXPECT_EQ(busy.verdict, Rerun::Verdict::NotRun);
    EXPECT_EQ(busy.why, "the GPU is somebody else's");
    EXPECT_EQ(busy.hint, "name another");
    verifier->absent = false;
    verifier->gpu = "sm_90a";
    EXPECT_EQ(verify_again(*store, *passed.id, compiler, *verifier).verdict, Rerun::Verdict::Elsewhere);
    verifier->gpu = "sm_80";
    EXPECT_TRUE(store->load(*passed.id));

    verifier->rules_wrong = true;
    const auto wrong = verify_again(*store, *passed.id, compiler, *verifier);
    EXPECT_EQ(wrong.verdict, Rerun::Verdict::Wrong);
    EXPECT_EQ(wrong.why, "gpu: case 3: row 7 is off");
    EXPECT_EQ(wrong.seed, 5u);
    EXPECT_FALSE(store->load(*passed.id));

    const auto old = older(*made.artifact);
    ASSERT_TRUE(store->publish(old));
    const auto textless = verify_again(*store, old.id, compiler, *verifier);
    EXPECT_EQ(textless.verdict, Rerun::Verdict::NotRun);
    EXPECT_NE(textless.why.find("does not hold its text"), std::string::npos) << textless.why;
    auto other = *made.artifact;
    other.asked->source.text.replace(other.asked->source.text.find("(j > i)"), 7, "(j < i)");
    const auto moved = other.to_record();
    ASSERT_TRUE(store->publish(moved));
    EXPECT_EQ(verify_again(*store, moved.id, compiler, *verifier).verdict, Rerun::Verdict::NotRun);
}

/// Another text of the same subject names its operands otherwise.
TEST_F(Verify, OperandsHaveTheNamesOfTheTextThatAsks) {
    const auto text = [](const std::string& name) {
        return parsed("import torch\n"
                      "def attention(q, k, v, " +
                      name +
                      "):\n"
                      "    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5\n"
                      "    j = torch.arange(k.size(2))\n"
                      "    return torch.softmax(s + " +
                      name + "[j], -1) @ v\n");
    };
    AdaptOptions lenient = options;
    lenient.verifier = nullptr;
    lenient.verified = false;
    ASSERT_EQ(adapt(text("bias"), request_for(), lenient).status, Report::Status::Ready);
    const auto report = adapt(text("offset"), request_for(), options);
    EXPECT_EQ(stages_of(report), "lookup verify store ");
    EXPECT_EQ(verifier->names, std::vector<std::string>{"offset"});
}

} // namespace
} // namespace cubridge::runtime
