// Where the gates stand: at compilers, and before artifacts of a model.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/artifact.h"
#include "cubridge/runtime/worker.h"
#include "runtime/gate/foreign.h"
#include "tests/unit/runtime/gate/refused.h"
#include "tests/unit/runtime/support.h"

namespace cubridge::runtime {
namespace {

using namespace testing_support;
using refused::In;

CompileJob foreign_job(const std::string& body) {
    CompileJob job;
    job.arch = "sm_90a";
    job.source = refused::whole({"", In::Body, body, "", 0}).first;
    job.foreign = true;
    job.declared = refused::declared();
    return job;
}

/// What stood behind the gate was asked so often.
struct Behind {
    int calls = 0;
    Outcome<CompileResult> operator()() {
        ++calls;
        CompileResult result;
        result.cubin.resize(64);
        return result;
    }
};

TEST(Foreign, IsNotCompiledWhereItsTextMayNotBe) {
    Behind behind;
    const auto call = [&](const CompileJob& job) { return gates::guarded(job, [&] { return behind(); }); };
    EXPECT_EQ(call(foreign_job("__trap();")).fault().kind, "gate");
    auto job = foreign_job("");
    job.options = {"--define-macro=static="};
    EXPECT_EQ(call(job).fault().kind, "gate");
    job.options.clear();
    job.declared.kernels.clear();
    EXPECT_EQ(call(job).fault().kind, "gate");
    EXPECT_EQ(behind.calls, 0);
    EXPECT_EQ(call(foreign_job("")).fault().message, "cubin: elf: it is torn, or no cubin");
    EXPECT_EQ(behind.calls, 1);
    job = foreign_job("__trap();");
    job.foreign = false; // the library's own
    EXPECT_TRUE(call(job));
}

TEST(Foreign, PassesTheGatesAtCompilers) {
    auto opened = open_nvrtc();
    if (!opened) GTEST_SKIP() << opened.fault().text();
    WorkerSettings settings;
    settings.file = CUBRIDGE_CLI;
    settings.processes = 1;
    const std::shared_ptr<Compiler> in_worker = open_worker(settings);
    for (const auto& compiler : {*opened, in_worker}) {
        const auto good = compiler->compile(foreign_job("((float*)args.o.data)[threadIdx.x] = 1.f;"));
        EXPECT_TRUE(good) << good.fault().text();
        const auto text = compiler->compile(foreign_job("__trap();"));
        ASSERT_FALSE(text);
        EXPECT_NE(text.fault().message.find(": call: `__trap` ends the kernel"), std::string::npos);
        auto job =
            foreign_job("float x[3000];\nfor (int i = 0; i < 3000; ++i) x[(i * 7) % 3000] = (float)args.max_q + i;\n"
                        "((float*)args.o.data)[0] = x[args.max_kv];");
        const auto cubin = compiler->compile(job);
        ASSERT_FALSE(cubin);
        EXPECT_EQ(cubin.fault().message.rfind("cubin: launch: ", 0), 0u) << cubin.fault().text();
    }
}

class ForeignArtifact : public testing::Test {
protected:
    void SetUp() override {
        auto opened = open_nvrtc();
        if (!opened) GTEST_SKIP() << opened.fault().text();
        AdaptOptions options;
        options.compiler = *opened;
        auto report = adapt(parsed(kCausal), request_for(), options);
        ASSERT_TRUE(report.artifact);
        artifact_ = std::move(*report.artifact);
        ASSERT_EQ(artifact_.build.made_by, "rules");
        artifact_.build.made_by = "model";
        artifact_.build.model = "some";
    }
    /// Why it leaves no store.
    std::string why() const {
        const auto read = Artifact::from_record(artifact_.to_record());
        return read ? "" : read.error().message;
    }
    Artifact artifact_;
};

TEST_F(ForeignArtifact, IsReadWhereItPassesTheGates) {
    EXPECT_EQ(why(), "");
    const auto good = artifact_;
    artifact_.cuda.insert(artifact_.cuda.find("const int B ="), "__trap(); ");
    EXPECT_NE(why().find("it does not pass the gates: line "), std::string::npos) << why();
    artifact_ = good;
    artifact_.plan.entries[0].block[0] = 512;
    EXPECT_NE(why().find("launch_bounds: "), std::string::npos) << why();
    artifact_ = good;
    const std::string_view bytes(reinterpret_cast<const char*>(artifact_.cubin.data()), artifact_.cubin.size());
    const auto name = bytes.find(std::string("\0attention\0", 11));
    ASSERT_NE(name, bytes.npos);
    artifact_.cubin[name + 1] = std::byte{'A'};
    EXPECT_NE(why().find("cubin: kernel: "), std::string::npos) << why();
    artifact_.build.made_by = "rules"; // its text passed in the tests of the rules
    EXPECT_EQ(why(), "");
}

} // namespace
} // namespace cubridge::runtime
