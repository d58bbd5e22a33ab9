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
        if (!out.passed) out.failures = {"case 3: row 7 is off"};
        return out;
    }
    Outcome<Confinement> confinement() override { return Confinement{}; }

    bool absent = false, rules_wrong = false, generic_wrong = false;
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
