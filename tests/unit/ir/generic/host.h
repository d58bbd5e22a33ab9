// Runs printed kernels on the host: the very text, compiled by the host compiler behind a small prelude in which a
// block is one thread, or a few real ones with a real barrier. Many kernels share one compilation.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/kernel_abi.h"
#include "ir/generic/generic.h"
#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace cubridge::ir::generic::test {

inline const char* host_prelude() {
    return R"cpp(
#include <cmath>
#include <cstring>
#include <pthread.h>
#include <thread>
#include <vector>
#define __device__
#define __global__
#define __shared__ static
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(x)
struct host_dim { int x, y, z; };
static thread_local host_dim threadIdx, blockIdx;
static host_dim gridDim;
static pthread_barrier_t host_barrier;
static inline void __syncthreads() { if (CB_THREADS > 1) pthread_barrier_wait(&host_barrier); }
static inline float __uint_as_float(unsigned u) { float f; std::memcpy(&f, &u, 4); return f; }
static inline unsigned __float_as_uint(float f) { unsigned u; std::memcpy(&u, &f, 4); return u; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
static inline float rsqrtf(float a) { return 1.0f / sqrtf(a); }
#define CB_ENTRY static
template <class A> static void host_launch(void (*kernel)(A), const void* args, int grid) {
    gridDim = {grid, 1, 1};
    pthread_barrier_init(&host_barrier, nullptr, CB_THREADS);
    std::vector<std::thread> threads;
    const auto work = [=](int t) {
        threadIdx = {t, 0, 0};
        for (int b = 0; b < grid; ++b) {
            blockIdx = {b, 0, 0};
            kernel(*static_cast<const A*>(args));
            __syncthreads();
        }
    };
    for (int t = 1; t < CB_THREADS; ++t) threads.emplace_back(work, t);
    work(0);
    for (auto& t : threads) t.join();
    pthread_barrier_destroy(&host_barrier);
}
)cpp";
}

class HostKernels {
public:
    explicit HostKernels(int threads = 1) : threads_(threads) {}
    HostKernels(const HostKernels&) = delete;
    HostKernels& operator=(const HostKernels&) = delete;
    ~HostKernels() {
        if (library_ != nullptr) dlclose(library_);
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    int add(const Kernel& k) {
        kernels_.push_back(k);
        return static_cast<int>(kernels_.size()) - 1;
    }

    const Kernel& kernel(int k) const { return kernels_[static_cast<std::size_t>(k)]; }

    /// One compilation of all that was added.
    bool build(const std::string& flags = "-O1") {
        folder_ = std::filesystem::path(::testing::TempDir()) /
                  ("cubridge_generic_" + std::to_string(getpid()) + "_" + std::to_string(serial()++));
        std::filesystem::create_directories(folder_);
        std::ofstream out(folder_ / "kernels.cpp");
        out << "#define CB_THREADS " << threads_ << "\n" << host_prelude();
        for (std::size_t n = 0; n < kernels_.size(); ++n) {
            const std::string id = std::to_string(n);
            out << "namespace k" << id << " {\n" << kernels_[n].cuda << "}\n";
            out << "extern \"C\" void run" << id << "(int entry, const void* args, int grid) {\n";
            for (std::size_t e = 0; e < kernels_[n].plan.entries.size(); ++e)
                out << "    if (entry == " << e << ") host_launch<k" << id << "::cb_args>(k" << id
                    << "::" << kernels_[n].plan.entries[e].name << ", args, grid);\n";
            out << "}\n";
        }
        out.close();
        const char* compiler = std::getenv("CXX") != nullptr ? std::getenv("CXX") : "c++";
        const std::string source = (folder_ / "kernels.cpp").string(), binary = (folder_ / "kernels.so").string();
        const std::string command = std::string(compiler) +
                                    " -std=c++17 -w -Wno-psabi -ffp-contract=off -fPIC -shared -pthread " + flags +
                                    " '" + source + "' -o '" + binary + "'";
        if (std::system(command.c_str()) != 0) return false;
        library_ = dlopen(binary.c_str(), RTLD_NOW | RTLD_LOCAL);
        return library_ != nullptr;
    }

    /// Launches every entry as the plan says, with poison in the workspace. `args.workspace` is ours.
    void run(int k, const abi::cb_args& given, const launch::Sizes& sizes) {
        abi::cb_args args = given;
        const launch::Plan& plan = kernel(k).plan;
        const auto bytes = plan.workspace.evaluate(sizes);
        ASSERT_TRUE(bytes.has_value()) << plan.workspace.text();
        constexpr std::size_t guard = 64;
        std::vector<double> memory(static_cast<std::size_t>(*bytes) / 8 + guard, std::nan(""));
        args.workspace = memory.data();
        const auto entry =
            reinterpret_cast<void (*)(int, const void*, int)>(dlsym(library_, ("run" + std::to_string(k)).c_str()));
        ASSERT_NE(entry, nullptr);
        for (std::size_t e = 0; e < plan.entries.size(); ++e) {
            const auto grid = plan.entries[e].grid[0].evaluate(sizes);
            ASSERT_TRUE(grid.has_value()) << plan.entries[e].grid[0].text();
            if (*grid > 0) entry(static_cast<int>(e), &args, static_cast<int>(*grid));
        }
        for (std::size_t n = memory.size() - guard; n < memory.size(); ++n)
            ASSERT_TRUE(std::isnan(memory[n])) << "written beyond the workspace";
    }

private:
    static int& serial() {
        static int n = 0;
        return n;
    }
    int threads_;
    std::vector<Kernel> kernels_;
    std::filesystem::path folder_;
    void* library_ = nullptr;
};

} // namespace cubridge::ir::generic::test
