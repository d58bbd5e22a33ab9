// What a hit of cubridge_get_kernel() costs: p99 of the means over blocks of 64 calls, from 1 thread and from as many
// as there are cores. And what the first answer of a new process costs where the kernel is stored: `bench_get_kernel
// --stored STORE` is that process. Prints one JSON object. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cubridge.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBlock = 64, kBlocks = 20000;

void must(cubridge_status status) {
    if (status == CUBRIDGE_OK) return;
    std::fprintf(stderr, "cubridge: %s\n", cubridge_message());
    std::exit(1);
}

double ms_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::uint64_t figure(const cubridge_context* context, const char* name) {
    cubridge_stat stats[128];
    const std::size_t count = cubridge_stats(context, stats, 128);
    for (std::size_t k = 0; k < count && k < 128; ++k)
        if (std::strcmp(stats[k].name, name) == 0) return stats[k].value;
    return 0;
}

struct Fixture {
    cubridge_context* context = nullptr;
    cubridge_request request = CUBRIDGE_INIT(cubridge_request);
    double open_ms = 0, parse_ms = 0, kernel_ms = 0;

    explicit Fixture(const char* store) {
        auto begin = Clock::now();
        cubridge_config config = CUBRIDGE_INIT(cubridge_config);
        config.store = store;
        config.verify = CUBRIDGE_VERIFY_EXECUTOR;
        must(cubridge_open(&config, &context));
        open_ms = ms_since(begin);
        begin = Clock::now();
        cubridge_source source = CUBRIDGE_INIT(cubridge_source);
        source.function = "prefix_lm";
        must(cubridge_parse(context, &source, &request.spec));
        parse_ms = ms_since(begin);
        begin = Clock::now();
        request.device = -1;
        request.head_dim = 128;
        request.group = 4;
        std::strcpy(request.arch, "sm_90a");
        cubridge_result result = CUBRIDGE_INIT(cubridge_result);
        must(cubridge_get_kernel(context, &request, &result));
        if (result.outcome == CUBRIDGE_PENDING) {
            must(cubridge_wait(context, result.job, -1));
            must(cubridge_get_kernel(context, &request, &result));
        }
        if (result.kernel == nullptr) {
            std::fprintf(stderr, "no kernel: %s\n", cubridge_message());
            std::exit(1);
        }
        kernel_ms = ms_since(begin);
    }
    ~Fixture() { cubridge_close(context); }
};

/// Nanoseconds of a call, one mean a block.
std::vector<double> blocks(Fixture& f) {
    std::vector<double> out(kBlocks);
    cubridge_result result = CUBRIDGE_INIT(cubridge_result);
    for (auto& mean : out) {
        const auto begin = Clock::now();
        for (int k = 0; k < kBlock; ++k)
            if (cubridge_get_kernel(f.context, &f.request, &result) != CUBRIDGE_OK || result.kernel == nullptr)
                std::exit(1);
        mean = std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kBlock;
    }
    return out;
}

void print(const char* name, unsigned threads, std::vector<double> means) {
    std::sort(means.begin(), means.end());
    std::printf("\"%s\":{\"threads\":%u,\"p50_ns\":%.1f,\"p99_ns\":%.1f},", name, threads, means[means.size() / 2],
                means[means.size() * 99 / 100]);
}

std::vector<double> together(Fixture& f, unsigned threads) {
    std::vector<std::vector<double>> parts(threads);
    std::vector<std::thread> running;
    std::atomic<unsigned> ready{0};
    for (unsigned t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            ++ready;
            while (ready != threads) std::this_thread::yield();
            parts[t] = blocks(f);
        });
    for (auto& t : running) t.join();
    std::vector<double> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

bool nvrtc_mapped() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find("libnvrtc") != line.npos) return true;
    return false;
}

int stored(const char* store) {
    const auto begin = Clock::now();
    const Fixture f(store);
    std::printf("\"stored_in_new_process\":{\"total_ms\":%.3f,\"open_ms\":%.3f,\"parse_ms\":%.3f,\"kernel_ms\":%.3f,"
                "\"nvrtc_opened\":%s},",
                ms_since(begin), f.open_ms, f.parse_ms, f.kernel_ms, nvrtc_mapped() ? "true" : "false");
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string(argv[1]) == "--stored") return stored(argv[2]);
    const auto store = std::filesystem::temp_directory_path() / ("cubridge-bench-" + std::to_string(getpid()));
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    std::printf("{");
    {
        Fixture f(store.c_str());
        const auto nvrtc = static_cast<double>(figure(f.context, "compile_ms"));
        std::printf("\"made\":{\"open_ms\":%.3f,\"parse_ms\":%.3f,\"kernel_ms\":%.3f,\"nvrtc_ms\":%.0f,"
                    "\"all_but_nvrtc_ms\":%.0f,\"by_rules\":%s},",
                    f.open_ms, f.parse_ms, f.kernel_ms, nvrtc, f.open_ms + f.parse_ms + f.kernel_ms - nvrtc,
                    figure(f.context, "made_by_rules") == 1 ? "true" : "false");
        print("hit_one_thread", 1, blocks(f));
        print("hit_all_cores", cores, together(f, cores));
    }
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", argv[0], "--stored", store.c_str(), nullptr);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("\"cores\":%u}\n", cores);
    std::filesystem::remove_all(store);
    return status == 0 ? 0 : 1;
}
