// A disk that fills up, as a user of the C API sees it: kernels come from memory, and it is said once.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/compiler.h"
#include <csignal>
#include <cstring>
#include <cubridge.h>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

class FullDisk : public testing::Test {
protected:
    void SetUp() override {
        if (!cubridge::runtime::open_nvrtc()) GTEST_SKIP() << "no NVRTC: nothing can be made";
        folder = std::filesystem::temp_directory_path() / ("cubridge-full-disk-" + std::to_string(getpid()));
        std::filesystem::remove_all(folder);
    }
    void TearDown() override {
        std::error_code ignored;
        if (!folder.empty()) std::filesystem::remove_all(folder, ignored);
    }
    std::filesystem::path folder;
};

// The lines of a context's log, from any thread.
struct Log {
    std::mutex mutex;
    std::vector<std::string> lines;

    static void hear(void* user, std::int32_t, const char* line) {
        auto& log = *static_cast<Log*>(user);
        const std::lock_guard<std::mutex> hold(log.mutex);
        log.lines.emplace_back(line);
    }
    int count(const char* words) {
        const std::lock_guard<std::mutex> hold(mutex);
        int n = 0;
        for (const auto& line : lines) n += line.find(words) != std::string::npos ? 1 : 0;
        return n;
    }
};

std::uint64_t figure(const cubridge_context* context, const char* name) {
    cubridge_stat stats[128];
    const std::size_t count = cubridge_stats(context, stats, 128);
    for (std::size_t k = 0; k < count && k < 128; ++k)
        if (std::strcmp(stats[k].name, name) == 0) return stats[k].value;
    return 0;
}

// Asks for a kernel of this head dim until there is one.
cubridge_result kernel(cubridge_context* context, const cubridge_spec* spec, std::int32_t head_dim) {
    cubridge_request request = CUBRIDGE_INIT(cubridge_request);
    request.spec = spec;
    request.device = -1;
    request.head_dim = head_dim;
    std::strcpy(request.arch, "sm_90a");
    cubridge_result result = CUBRIDGE_INIT(cubridge_result);
    while (cubridge_get_kernel(context, &request, &result) == CUBRIDGE_OK && result.outcome == CUBRIDGE_PENDING)
        (void)cubridge_wait(context, result.job, -1);
    return result;
}

// The exit status of `work` in a process no file of which may grow beyond `limit` bytes. That SIGXFSZ is ignored is, as
// for whatever writes files, the application's to say.
int with_file_limit(rlim_t limit, const std::function<int()>& work) {
    const pid_t child = fork();
    if (child == 0) {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit most{limit, limit};
        _exit(setrlimit(RLIMIT_FSIZE, &most) != 0 ? 252 : work());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(FullDisk, KernelsComeFromMemoryAndItIsSaidOnce) {
    for (const rlim_t limit : {rlim_t{0}, rlim_t{20000}}) {
        const int status = with_file_limit(limit, [&] {
            Log log;
            cubridge_config config = CUBRIDGE_INIT(cubridge_config);
            const std::string store = folder.string();
            config.store = store.c_str();
            config.verify = CUBRIDGE_VERIFY_EXECUTOR;
            config.log = Log::hear;
            config.user = &log;
            cubridge_context* context = nullptr;
            if (cubridge_open(&config, &context) != CUBRIDGE_OK) return 1;
            cubridge_source source = CUBRIDGE_INIT(cubridge_source);
            source.function = "causal";
            const cubridge_spec* spec = nullptr;
            if (cubridge_parse(context, &source, &spec) != CUBRIDGE_OK) return 2;
            for (const std::int32_t head_dim : {32, 64, 128})
                if (kernel(context, spec, head_dim).outcome != CUBRIDGE_READY) return 3;
            if (figure(context, "adaptations_ok") != 3) return 4;
            for (const std::int32_t head_dim : {32, 64, 128}) // again: nothing is made twice
                if (kernel(context, spec, head_dim).kernel == nullptr) return 5;
            if (figure(context, "adaptations_ok") != 3) return 6;
            cubridge_close(context);
            return log.count("write_failed") == 1 ? 0 : 10 + log.count("write_failed");
        });
        EXPECT_EQ(status, 0) << "limit " << limit;
    }
    // With room again the same folder takes kernels.
    cubridge_config config = CUBRIDGE_INIT(cubridge_config);
    const std::string store = folder.string();
    config.store = store.c_str();
    config.verify = CUBRIDGE_VERIFY_EXECUTOR;
    for (const char* tier : {"adaptations_ok", "hits_store"}) {
        cubridge_context* context = nullptr;
        ASSERT_EQ(cubridge_open(&config, &context), CUBRIDGE_OK) << cubridge_message();
        cubridge_source source = CUBRIDGE_INIT(cubridge_source);
        source.function = "causal";
        const cubridge_spec* spec = nullptr;
        ASSERT_EQ(cubridge_parse(context, &source, &spec), CUBRIDGE_OK) << cubridge_message();
        EXPECT_EQ(kernel(context, spec, 64).outcome, CUBRIDGE_READY);
        EXPECT_EQ(figure(context, tier), 1u) << tier;
        cubridge_close(context);
    }
}

} // namespace
