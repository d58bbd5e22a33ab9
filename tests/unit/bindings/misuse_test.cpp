// Every function's misuse, and what structs of other sizes mean.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <cubridge.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

class Misuse : public testing::Test {
protected:
    void SetUp() override {
        config.store = "";
        config.verify = CUBRIDGE_VERIFY_EXECUTOR;
        config.workers = -1;
        ASSERT_EQ(cubridge_open(&config, &context), CUBRIDGE_OK) << cubridge_message();
        source.function = "causal";
        ASSERT_EQ(cubridge_parse(context, &source, &spec), CUBRIDGE_OK) << cubridge_message();
        request.spec = spec;
        request.device = -1;
        request.head_dim = 64;
        std::strcpy(request.arch, "sm_90a");
    }
    void TearDown() override { cubridge_close(context); }

    cubridge_config config = CUBRIDGE_INIT(cubridge_config);
    cubridge_source source = CUBRIDGE_INIT(cubridge_source);
    cubridge_request request = CUBRIDGE_INIT(cubridge_request);
    cubridge_result result = CUBRIDGE_INIT(cubridge_result);
    cubridge_context* context = nullptr;
    const cubridge_spec* spec = nullptr;
};

TEST_F(Misuse, Open) {
    cubridge_context* other = nullptr;
    EXPECT_EQ(cubridge_open(&config, nullptr), CUBRIDGE_MISUSE);
    auto c = config;
    c.struct_size = 0;
    EXPECT_EQ(cubridge_open(&c, &other), CUBRIDGE_MISUSE);
    c = config;
    c.verify = 2;
    EXPECT_EQ(cubridge_open(&c, &other), CUBRIDGE_MISUSE);
    c = config;
    c.workers = -2;
    EXPECT_EQ(cubridge_open(&c, &other), CUBRIDGE_MISUSE);
    const cubridge_llm llm = CUBRIDGE_INIT(cubridge_llm);
    const auto unbuilt = [&](const char* field, auto set) {
        auto given = config;
        set(given);
        EXPECT_EQ(cubridge_open(&given, &other), CUBRIDGE_UNSUPPORTED);
        EXPECT_NE(std::string(cubridge_message()).find(field), std::string::npos) << cubridge_message();
    };
    unbuilt("remote", [](cubridge_config& g) { g.remote = "https://x"; });
    unbuilt("trusted_keys", [](cubridge_config& g) { g.trusted_keys = "/x"; });
    unbuilt("llm", [&](cubridge_config& g) { g.llm = &llm; });
    EXPECT_EQ(other, nullptr);
}

TEST_F(Misuse, NullsEverywhere) {
    const cubridge_spec* out = nullptr;
    cubridge_progress progress = CUBRIDGE_INIT(cubridge_progress);
    cubridge_args args = CUBRIDGE_INIT(cubridge_args);
    cubridge_info info = CUBRIDGE_INIT(cubridge_info);
    size_t bytes = 0;
    EXPECT_EQ(cubridge_parse(nullptr, &source, &out), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_parse(context, nullptr, &out), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_parse(context, &source, nullptr), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_operand_name(nullptr, 0), nullptr);
    EXPECT_EQ(cubridge_get_kernel(nullptr, &request, &result), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_get_kernel(context, nullptr, &result), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_get_kernel(context, &request, nullptr), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_poll(nullptr, 1, &progress), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_poll(context, 1, &progress), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_wait(nullptr, 1, 0), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_wait(context, 1, 0), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_cancel(nullptr, 1), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_cancel(context, 1), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_workspace(nullptr, &request, &args, &bytes), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_workspace(context, nullptr, &args, &bytes), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_workspace(context, &request, nullptr, &bytes), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_workspace(context, &request, &args, nullptr), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_launch(nullptr, &args, nullptr), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_describe(nullptr, &info), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_seal(nullptr, 1), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_seal(context, 2), CUBRIDGE_MISUSE);
    EXPECT_EQ(cubridge_stats(nullptr, nullptr, 0), 0u);
    EXPECT_EQ(cubridge_generation(nullptr), 0u);
    EXPECT_GT(cubridge_generation(context), 0u);
    EXPECT_GT(cubridge_stats(context, nullptr, 0), 30u);
    EXPECT_EQ(cubridge_wait(context, 1, 0), CUBRIDGE_MISUSE);
    EXPECT_STRNE(cubridge_message(), "");
}

TEST_F(Misuse, Parse) {
    const cubridge_spec* out = nullptr;
    const auto status = [&](const cubridge_source& s) { return cubridge_parse(context, &s, &out); };
    auto s = source;
    s.function = nullptr;
    EXPECT_EQ(status(s), CUBRIDGE_MISUSE);
    s.function = "no such";
    EXPECT_EQ(status(s), CUBRIDGE_BAD_SPEC);
    s = source;
    s.text = " {\"graph\": []}";
    EXPECT_EQ(status(s), CUBRIDGE_BAD_SPEC);
    EXPECT_NE(std::string(cubridge_message()).find("exported graphs are not built yet"), std::string::npos);
    s = source;
    s.param_count = 1;
    EXPECT_EQ(status(s), CUBRIDGE_MISUSE);
    const auto with = [&](cubridge_param p) {
        s = source;
        s.params = &p;
        s.param_count = 1;
        return status(s);
    };
    EXPECT_EQ(with({nullptr, CUBRIDGE_CONSTANT, 0, 1}), CUBRIDGE_MISUSE);
    EXPECT_EQ(with({"x", 3, 0, 1}), CUBRIDGE_MISUSE);
    EXPECT_EQ(with({"x", CUBRIDGE_OPERAND, 10, 1}), CUBRIDGE_MISUSE);
    EXPECT_EQ(with({"x", CUBRIDGE_CONSTANT, CUBRIDGE_F32, 1}), CUBRIDGE_MISUSE);
    EXPECT_EQ(with({"x", CUBRIDGE_CONSTANT, 0, 1}), CUBRIDGE_BAD_SPEC); // the text has no x
    const cubridge_param twice[] = {{"x", 0, 0, 1}, {"x", 0, 0, 2}};
    s.params = twice;
    s.param_count = 2;
    EXPECT_EQ(status(s), CUBRIDGE_MISUSE);
}

TEST_F(Misuse, Requests) {
    const auto status = [&](auto change) {
        auto r = request;
        change(r);
        return cubridge_get_kernel(context, &r, &result);
    };
    EXPECT_EQ(status([](cubridge_request& r) { r.spec = nullptr; }), CUBRIDGE_MISUSE);
    EXPECT_EQ(status([](cubridge_request& r) { r.head_dim = 0; }), CUBRIDGE_MISUSE);
    EXPECT_EQ(status([](cubridge_request& r) { r.mode = 3; }), CUBRIDGE_MISUSE);
    EXPECT_EQ(status([](cubridge_request& r) { r.flags = 2; }), CUBRIDGE_MISUSE);
    EXPECT_EQ(status([](cubridge_request& r) { r.struct_size = 8; }), CUBRIDGE_MISUSE);
    EXPECT_EQ(status([](cubridge_request& r) { std::memset(r.arch, 'x', sizeof r.arch); }), CUBRIDGE_MISUSE);

    cubridge_context* other = nullptr;
    const cubridge_spec* foreign = nullptr;
    ASSERT_EQ(cubridge_open(&config, &other), CUBRIDGE_OK);
    ASSERT_EQ(cubridge_parse(other, &source, &foreign), CUBRIDGE_OK);
    EXPECT_EQ(status([&](cubridge_request& r) { r.spec = foreign; }), CUBRIDGE_MISUSE);
    cubridge_close(other);
}

TEST_F(Misuse, LargerStructsMustBeZeroBeyond) {
    struct Newer {
        cubridge_request request;
        std::int64_t more;
    } newer{request, 0};
    newer.request.struct_size = sizeof newer;
    EXPECT_EQ(cubridge_get_kernel(context, &newer.request, &result), CUBRIDGE_OK);
    newer.more = 1;
    EXPECT_EQ(cubridge_get_kernel(context, &newer.request, &result), CUBRIDGE_MISUSE);
    struct NewerResult {
        cubridge_result result;
        std::int64_t more;
    } answer{result, 7};
    answer.result.struct_size = sizeof answer;
    EXPECT_EQ(cubridge_get_kernel(context, &request, &answer.result), CUBRIDGE_OK);
    EXPECT_EQ(answer.more, 7);
    EXPECT_EQ(answer.result.struct_size, sizeof answer);
    answer.result.struct_size = 4;
    EXPECT_EQ(cubridge_get_kernel(context, &request, &answer.result), CUBRIDGE_MISUSE);
}

TEST_F(Misuse, Forked) {
    const pid_t child = fork();
    if (child == 0) {
        bool right = cubridge_get_kernel(context, &request, &result) == CUBRIDGE_FORKED;
        right = right && cubridge_wait(context, 1, 0) == CUBRIDGE_FORKED && cubridge_stats(context, nullptr, 0) == 0;
        cubridge_close(context);
        cubridge_context* fresh = nullptr;
        right = right && cubridge_open(&config, &fresh) == CUBRIDGE_OK;
        right = right && cubridge_parse(fresh, &source, &request.spec) == CUBRIDGE_OK;
        right = right && cubridge_get_kernel(fresh, &request, &result) == CUBRIDGE_OK;
        cubridge_close(fresh);
        _exit(right ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

} // namespace
