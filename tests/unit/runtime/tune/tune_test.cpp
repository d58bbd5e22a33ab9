// Choosing by measuring: who wins, what the store keeps and serves, what is no choice. SPDX-License-Identifier:
// Apache-2.0
#include "cubridge/runtime/tune.h"
#include "tests/unit/runtime/support.h"
#include <algorithm>

namespace cubridge::runtime {
namespace {

using namespace testing_support;

constexpr char kHere[] = "NVIDIA H200, 132 SMs";

/// Answers with what the test says.
class FakeMeasurer final : public Measurer {
public:
    std::string device() const override { return name; }
    Outcome<std::vector<Timing>> measure(const ir::Specification&, const ir::Request&, const ir::Shape& shape,
                                         std::span<const Artifact* const> artifacts) override {
        ++measured;
        asked = shape;
        if (fault) return *fault;
        std::vector<Timing> out;
        for (const Artifact* a : artifacts) {
            experts.push_back(a->build.expert);
            const auto it = times.find(a->build.expert);
            out.push_back(it == times.end() ? Timing{100, 0.01, 50, ""} : it->second);
        }
        return out;
    }

    std::string name = kHere;
    std::map<std::string, Timing> times;
    std::vector<std::string> experts;
    std::optional<Fault> fault;
    ir::Shape asked;
    int measured = 0;
};

class Tune : public testing::Test {
protected:
    void SetUp() override {
        spec = parsed(kCausal);
        ASSERT_NE(spec, nullptr);
        store = folder.open();
        compiler = std::make_shared<FakeCompiler>();
        options.compiler = compiler;
        options.store = store.get();
    }
    Report run() { return tune(spec, request, options, measurer, shape); }
    static std::string chosen(const Report& r) {
        if (!r.artifact || !r.artifact->tuning) return "";
        for (const auto& row : r.artifact->tuning->rows)
            if (row.chosen) return row.configuration.name;
        return "";
    }
    std::size_t kept() { return store->list().size(); }

    Folder folder;
    std::shared_ptr<const ir::Specification> spec;
    std::unique_ptr<cache::Store> store;
    std::shared_ptr<FakeCompiler> compiler;
    AdaptOptions options;
    FakeMeasurer measurer;
    ir::Request request = request_for("sm_90a", 128);
    ir::Shape shape{2, 1024, 1024, 8};
};

TEST_F(Tune, TheFastestIsKeptWithWhatWasMeasured) {
    measurer.times["prefill_sm90/64"] = {80, 0.02, 40, ""};
    const auto report = run();
    ASSERT_TRUE(report.artifact) << (report.error ? report.error->message : "");
    EXPECT_EQ(report.status, Report::Status::Ready);
    EXPECT_EQ(report.tier, "made");
    EXPECT_EQ(measurer.asked, shape);
    EXPECT_EQ(measurer.experts.size(), 4U);
    EXPECT_EQ(measurer.experts[0], "prefill_sm90") << "the first is what others are held against";
    EXPECT_EQ(chosen(report), "prefill_sm90/64");
    EXPECT_EQ(report.artifact->build.expert, "prefill_sm90/64");
    EXPECT_EQ(report.artifact->build.tuned, kHere);
    EXPECT_NE(report.artifact->verification.record.find("timed on NVIDIA H200, 132 SMs, not checked there"),
              std::string::npos)
        << report.artifact->verification.record;
    EXPECT_EQ(report.artifact->verification.level, Verified::Executor);
    EXPECT_EQ(stages_of(report), "transfer lower execute compile verify? measure store ");
    const auto json = Json::parse(report.json(spec.get(), request));
    ASSERT_TRUE(json && json->find("tuning") != nullptr);
    EXPECT_EQ(*json->find("tuning")->find("device")->string(), kHere);
    EXPECT_EQ(json->find("tuning")->find("configurations")->items()->size(), 4U);
    // As the store has it.
    const auto record = store->load(report.artifact->id);
    ASSERT_TRUE(record);
    const auto back = Artifact::from_record(*record);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->build, report.artifact->build);
    ASSERT_TRUE(back->tuning);
    EXPECT_EQ(back->tuning->shape, shape);
    EXPECT_EQ(chosen(report), "prefill_sm90/64");
    EXPECT_EQ(back->tuning->json(), report.artifact->tuning->json());
}

TEST_F(Tune, WithinTheSpreadThePresentChoiceStays) {
    measurer.times["prefill_sm90"] = {100, 0.06, 50, ""};
    measurer.times["prefill_sm90/64"] = {95, 0.01, 50, ""};     // its own spread would do, the first one's does not
    measurer.times["prefill_sm90/by_head"] = {92, 0.1, 50, ""}; // and the other way round
    EXPECT_EQ(chosen(run()), "prefill_sm90");
}

TEST_F(Tune, OnePerCentIsNoGainHoweverSteady) {
    measurer.times["prefill_sm90"] = {100, 0, 50, ""};
    measurer.times["prefill_sm90/64"] = {99.5, 0, 50, ""};
    EXPECT_EQ(chosen(run()), "prefill_sm90");
    folder.open()->quarantine(store->list().at(0).id, "the test wants another");
    measurer.times["prefill_sm90/64"] = {98.5, 0, 50, ""};
    EXPECT_EQ(chosen(run()), "prefill_sm90/64");
}

TEST_F(Tune, OfSeveralFasterOnesTheFastestWins) {
    measurer.times["prefill_sm90"] = {100, 0.01, 50, ""};
    measurer.times["prefill_sm90/by_head"] = {90, 0.01, 50, ""};
    measurer.times["prefill_sm90/96"] = {80, 0.01, 50, ""};
    measurer.times["prefill_sm90/64"] = {85, 0.01, 50, ""};
    EXPECT_EQ(chosen(run()), "prefill_sm90/96");
}

// ---- The store ------------------------------------------------------------------------------------------------------

TEST_F(Tune, APlainLookUpFindsTheTunedKernel) {
    const auto plain = adapt(spec, request, options);
    EXPECT_EQ(plain.artifact->build.expert, "prefill_sm90");
    measurer.times["prefill_sm90/64"] = {80, 0.01, 50, ""};
    const auto tuned = run();
    EXPECT_NE(tuned.artifact->id, plain.artifact->id);
    EXPECT_EQ(kept(), 2U);
    for (const char* device : {"", kHere}) {
        options.device = device;
        const auto again = adapt(spec, request, options);
        EXPECT_EQ(again.tier, "store");
        EXPECT_EQ(again.artifact->id, tuned.artifact->id);
    }
    // Also in another process, without a compiler.
    const auto other = folder.open();
    AdaptOptions only;
    only.store = other.get();
    EXPECT_EQ(adapt(spec, request, only).artifact->id, tuned.artifact->id);
}

/// Even where the present choice won: that was measured.
TEST_F(Tune, AnUntunedKernelDoesNotTakeItsPlace) {
    const auto tuned = run();
    EXPECT_EQ(chosen(tuned), "prefill_sm90");
    AdaptOptions alone = options;
    alone.store = nullptr;
    auto plain = adapt(spec, request, alone);
    ASSERT_TRUE(plain.artifact);
    plain.artifact->created = tuned.artifact->created + 1000;
    EXPECT_TRUE(store->publish(plain.artifact->to_record()));
    EXPECT_EQ(kept(), 2U);
    EXPECT_EQ(adapt(spec, request, options).artifact->id, tuned.artifact->id);
}

TEST_F(Tune, WhatIsTunedForTheDeviceAndTheShapeIsNotMeasuredAgain) {
    const auto first = run();
    const int compiles = compiler->compiles;
    const auto again = run();
    EXPECT_EQ(again.tier, "store");
    EXPECT_EQ(again.artifact->id, first.artifact->id);
    EXPECT_EQ(measurer.measured, 1);
    EXPECT_EQ(compiler->compiles, compiles);
    shape.keys = 2048;
    EXPECT_EQ(run().tier, "made");
    EXPECT_EQ(measurer.measured, 2);
}

TEST_F(Tune, WhatIsTunedOnAnotherDeviceGivesWay) {
    measurer.times["prefill_sm90/64"] = {80, 0.01, 50, ""};
    const auto here = run();
    options.device = "NVIDIA H20, 78 SMs";
    EXPECT_EQ(adapt(spec, request, options).artifact->id, here.artifact->id) << "it serves where there is no other";
    const auto plain = [&] {
        AdaptOptions alone = options;
        alone.store = nullptr;
        return *adapt(spec, request, alone).artifact;
    }();
    EXPECT_TRUE(store->publish(plain.to_record()));
    EXPECT_EQ(adapt(spec, request, options).artifact->build.expert, "prefill_sm90");
    measurer.name = options.device;
    measurer.times["prefill_sm90/96"] = {70, 0.01, 50, ""};
    EXPECT_EQ(chosen(run()), "prefill_sm90/96");
    EXPECT_EQ(adapt(spec, request, options).artifact->build.expert, "prefill_sm90/96");
    options.device = kHere;
    EXPECT_EQ(adapt(spec, request, options).artifact->id, here.artifact->id);
}

/// Another text of the subject finds it, too, though it has a kernel of its own.
TEST_F(Tune, AnotherTextOfTheSubjectIsServed) {
    const auto other = parsed(std::string(kCausal) + "\n# another text\n");
    const auto own = adapt(other, request, options);
    measurer.times["prefill_sm90/64"] = {80, 0.01, 50, ""};
    const auto tuned = run();
    EXPECT_EQ(adapt(other, request, options).artifact->id, tuned.artifact->id);
    EXPECT_NE(own.artifact->id, tuned.artifact->id);
}

TEST_F(Tune, ADamagedRecordOfTheMeasurementIsMadeAgain) {
    auto tuned = run();
    auto record = tuned.artifact->to_record();
    const auto at = record.metadata.find("\"device\":");
    ASSERT_NE(at, std::string::npos);
    record.metadata.replace(at, 9, "\"decive\":");
    cache::seal(record);
    const auto broken = Artifact::from_record(record);
    ASSERT_FALSE(broken);
    EXPECT_NE(broken.error().message.find("what was measured can't be read"), std::string::npos);
}

// ---- What is no choice ----------------------------------------------------------------------------------------------

TEST_F(Tune, WhatDoesNotCompileIsNoChoice) {
    options.workers = 1; // in their order
    compiler->fails_next = 1;
    measurer.times["prefill_sm90/64"] = {80, 0.01, 50, ""};
    const auto report = run();
    ASSERT_TRUE(report.artifact && report.artifact->tuning);
    const auto& rows = report.artifact->tuning->rows;
    EXPECT_EQ(measurer.experts.size(), rows.size() - 1);
    EXPECT_EQ(std::count_if(rows.begin(), rows.end(), [](const auto& r) { return !r.refused.empty(); }), 1);
    const auto refused = std::find_if(rows.begin(), rows.end(), [](const auto& r) { return !r.refused.empty(); });
    EXPECT_NE(refused->refused.find("the source does not compile"), std::string::npos) << refused->refused;
    EXPECT_EQ(refused->launches, 0);
}

/// Where the first can't be made, others have to beat what adapting makes instead.
TEST_F(Tune, ThePresentChoiceIsWhatAdaptingMakes) {
    options.workers = 1;
    compiler->fails_next = 1; // prefill_sm90
    measurer.times["prefill_sm90/96"] = {100, 0.05, 50, ""};
    measurer.times["prefill_sm90/64"] = {97, 0.01, 50, ""};
    measurer.times["prefill_sm90/by_head"] = {98, 0.01, 50, ""};
    const auto report = run();
    EXPECT_EQ(measurer.experts.front(), "prefill_sm90/96");
    EXPECT_EQ(chosen(report), "prefill_sm90/96");
    AdaptOptions plain = options;
    plain.store = nullptr;
    compiler->fails_next = 1;
    EXPECT_EQ(adapt(spec, request, plain).artifact->build.expert, "prefill_sm90/96");
}

TEST_F(Tune, WhatComputesSomethingElseNeverWins) {
    measurer.times["prefill_sm90/64"] = {1, 0, 0, "its output differs"};
    const auto report = run();
    EXPECT_EQ(chosen(report), "prefill_sm90");
    EXPECT_TRUE(std::any_of(report.warnings.begin(), report.warnings.end(), [](const std::string& w) {
        return w.find("prefill_sm90/64: its output differs") != w.npos;
    }));
}

TEST_F(Tune, WhereNothingIsToChooseFromItIsAdapted) {
    request = generic_request("sm_90a");
    const auto report = run();
    EXPECT_EQ(report.status, Report::Status::Fallback);
    EXPECT_EQ(measurer.measured, 0);
    EXPECT_NE(report.warnings.back().find("not tuned: there is nothing to choose from"), std::string::npos);
    request = request_for("sm_90a", 128);
    compiler->fails_on_rules = true;
    const auto none = run();
    EXPECT_EQ(none.status, Report::Status::Fallback);
    EXPECT_NE(none.warnings.back().find("not tuned: no configuration could be made"), std::string::npos);
}

TEST_F(Tune, AFaultOfTheGpuKeepsNothing) {
    measurer.fault = Fault{"memory", "a set of inputs takes 9000 MiB, 100 are free", "give a smaller --shape"};
    const auto report = run();
    ASSERT_TRUE(report.error);
    EXPECT_EQ(report.error->kind, "memory");
    EXPECT_EQ(report.error->hint, "give a smaller --shape");
    EXPECT_EQ(report.status, Report::Status::Failed);
    EXPECT_EQ(kept(), 0U);
}

TEST_F(Tune, OneMakerAtATime) {
    cache::Locks locks(folder.path());
    options.locks = &locks;
    auto held = locks.try_lock(request_key(*spec, request));
    ASSERT_TRUE(held);
    options.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    const auto report = run();
    ASSERT_TRUE(report.error);
    EXPECT_EQ(report.error->kind, "deadline");
    held.release();
    options.deadline = cache::Deadline::max();
    EXPECT_TRUE(run().artifact);
    EXPECT_TRUE(locks.try_lock(request_key(*spec, request)));
}

/// The default stays the model's first.
TEST_F(Tune, AdaptingMakesOneConfiguration) {
    const auto all = ir::Candidate::configurations(*spec, request);
    ASSERT_TRUE(all);
    const auto report = adapt(spec, request, options);
    EXPECT_EQ(compiler->compiles, 1);
    EXPECT_EQ(report.artifact->build.expert, all->front().name);
    EXPECT_FALSE(report.artifact->tuning);
    EXPECT_TRUE(report.artifact->build.tuned.empty());
}

} // namespace
} // namespace cubridge::runtime
