// What checking a program and running it costs when a kernel is made: 8 shapes in 3 schedules (operations late; early;
// the load role starved), at the constants of the executor. `bench_executor PROGRAM.py...`. Prints one JSON object a
// program. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/execute.h"
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>

namespace {

using namespace cubridge::ir;
using Clock = std::chrono::steady_clock;

constexpr int kRepeats = 20;

cuir::Memory random(std::mt19937& rng, std::vector<std::int64_t> shape) {
    cuir::Memory m{std::move(shape), {}, false};
    std::size_t n = 1;
    for (const auto e : m.shape) n *= static_cast<std::size_t>(e);
    std::normal_distribution<double> normal;
    for (std::size_t k = 0; k < n; ++k) m.values.push_back(normal(rng));
    return m;
}

std::vector<cuir::Run> runs(const cuir::Program& program) {
    const auto* kernel = program.main();
    const bool portable = kernel->constant("WG") == nullptr;
    std::vector<cuir::Run> out;
    std::mt19937 rng(1);
    for (const auto& [sq, sk] : {std::pair{1, 1}, {4, 3}, {9, 14}, {13, 7}, {5, 0}, {17, 17}, {13, 21}, {8, 9}}) {
        cuir::Run run;
        run.sizes = {{"B", 1}, {"Hq", 2}, {"Hk", 1}, {"Sq", sq}, {"Sk", sk}, {"D", 3}, {"Dv", 3}};
        run.constants = {{"BM", portable ? 8 : 4}, {"BN", 3}, {"ST", 2}};
        run.inputs["Q"] = random(rng, {1, 2, sq, 3});
        run.inputs["K"] = random(rng, {1, 1, sk, 3});
        run.inputs["V"] = random(rng, {1, 1, sk, 3});
        run.inputs["scale"] = {{}, {0.7}, false};
        for (const auto policy : {cuir::Run::Policy::Late, cuir::Run::Policy::Early, cuir::Run::Policy::Starve}) {
            run.policy = policy;
            run.starved = portable ? "math" : "load";
            out.push_back(run);
        }
    }
    return out;
}

double ms_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

} // namespace

int main(int argc, char** argv) {
    for (int k = 1; k < argc; ++k) {
        std::ifstream in(argv[k]);
        const std::string text{std::istreambuf_iterator<char>(in), {}};
        const auto program = cuir::read(text);
        if (!in || !program || !program->main()) {
            std::fprintf(stderr, "%s: no program\n", argv[k]);
            return 1;
        }
        const auto trial = runs(*program);
        std::int64_t steps = 0;
        for (const auto& run : trial) {
            const auto out = cuir::execute(*program, run);
            if (!out.findings.empty()) {
                std::fprintf(stderr, "%s: %s\n", argv[k], out.findings[0].text().c_str());
                return 1;
            }
            steps += out.steps;
        }
        auto begin = Clock::now();
        for (int r = 0; r < kRepeats; ++r) (void)cuir::check(*program);
        const double check_ms = ms_since(begin) / kRepeats;
        const cuir::Reference none = [](const cuir::Run&) { return std::map<std::string, cuir::Memory>{}; };
        begin = Clock::now();
        for (int r = 0; r < kRepeats; ++r) (void)cuir::verify(*program, {trial, 1e-9}, none);
        const double trial_ms = ms_since(begin) / kRepeats;
        std::printf(
            "{\"program\": \"%s\", \"runs\": %zu, \"steps_per_run\": %lld, \"check_ms\": %.2f, \"trial_ms\": %.2f}\n",
            program->main()->attribute("expert").c_str(), trial.size(),
            static_cast<long long>(steps / static_cast<std::int64_t>(trial.size())), check_ms, trial_ms);
    }
}
