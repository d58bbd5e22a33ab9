// What the tests of workers share. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/worker.h"
#include "runtime/worker/worker_compiler.h"
#include <csignal>
#include <dirent.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cubridge::runtime::testing_worker {

using namespace std::chrono_literals;
using worker::Clock;
using worker::Workers;

inline WorkerSettings settings() {
    WorkerSettings s;
    s.file = CUBRIDGE_CLI;
    s.processes = 1;
    return s;
}

inline CompileJob good_job() {
    CompileJob job;
    job.arch = "sm_90a";
    job.source = "extern \"C\" __global__ void scale(float* x, int n) {\n"
                 "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                 "    if (i < n) x[i] = 3.0f * x[i] + x[i] * x[i];\n}\n";
    return job;
}

/// Keeps NVRTC's front end busy for minutes, in little memory; it looks at no callback meanwhile.
inline CompileJob endless_job() {
    auto job = good_job();
    job.source += "constexpr int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n";
    for (int k = 0; k < 4000; ++k)
        job.source += "static_assert(fib(26) == 121393 && " + std::to_string(k) + " >= 0, \"\");\n";
    return job;
}

/// Descriptors of this process.
inline std::set<int> descriptors() {
    std::set<int> all;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        all.insert(std::stoi(entry.path().filename()));
    return all;
}

/// Whether this process has a child, dead or alive, that nobody waited for.
inline bool has_child() {
    siginfo_t info{};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

inline std::chrono::milliseconds since(Clock::time_point begin) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
}

/// No test leaves a descriptor or a child behind.
class WorkerTest : public testing::Test {
protected:
    void SetUp() override {
        if (auto nvrtc = open_nvrtc(); !nvrtc) GTEST_SKIP() << nvrtc.fault().text();
        before_ = descriptors().size();
    }
    void TearDown() override {
        if (IsSkipped()) return;
        EXPECT_EQ(descriptors().size(), before_);
        EXPECT_FALSE(has_child());
    }

private:
    std::size_t before_ = 0;
};

/// A script that is started as a worker: what a program that is none might do.
class Script {
public:
    explicit Script(const std::string& body, const std::string& bytes = {}) {
        static int number = 0;
        folder_ = std::filesystem::temp_directory_path() /
                  ("cubridge-worker-" + std::to_string(getpid()) + "-" + std::to_string(++number));
        std::filesystem::create_directory(folder_);
        std::ofstream(folder_ / "bytes", std::ios::binary) << bytes;
        std::ofstream(file()) << "#!/bin/sh\nbytes=" << (folder_ / "bytes").string() << "\n" << body << "\n";
        chmod(file().c_str(), 0700);
    }
    ~Script() { std::filesystem::remove_all(folder_); }
    Script(const Script&) = delete;
    Script& operator=(const Script&) = delete;
    std::string file() const { return (folder_ / "worker").string(); }

private:
    std::filesystem::path folder_;
};

} // namespace cubridge::runtime::testing_worker
