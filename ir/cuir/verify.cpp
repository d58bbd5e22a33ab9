// All runs of a trial against what the program is to compute. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/launch.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace cubridge::ir::cuir {
namespace {

bool same(const Memory& a, const Memory& b) { // bit by bit: NaN is equal to itself here
    return a.shape == b.shape && a.is_int == b.is_int && a.values.size() == b.values.size() &&
           (a.values.empty() || std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(double)) == 0);
}

/// Schedules do not change what is right.
bool same_question(const Run& a, const Run& b) {
    return a.sizes == b.sizes && a.inputs.size() == b.inputs.size() &&
           std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(),
                      [](const auto& x, const auto& y) { return x.first == y.first && same(x.second, y.second); });
}

std::string describe(const Run& run) {
    std::string out;
    for (const auto& [name, size] : run.sizes) out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, size);
    for (const auto& [name, value] : run.constants)
        if (!run.sizes.count(name)) out += fmt::format(" {}={}", name, value);
    for (const auto& [name, memory] : run.inputs)
        if (memory.shape.empty() && !memory.values.empty()) out += fmt::format(" {}={:.12g}", name, memory.values[0]);
    constexpr const char* names[] = {"late", "early", "random", "starve "};
    out += fmt::format(", {} CTAs, {}{}, seed {}", run.ctas, names[static_cast<int>(run.policy)],
                       run.policy == Run::Policy::Starve ? run.starved : "", run.seed);
    return out;
}

std::string place(const std::string& name, const std::vector<std::int64_t>& shape, std::size_t at) {
    std::string out;
    auto rest = static_cast<std::int64_t>(at);
    for (std::size_t k = shape.size(); k-- > 0; rest /= shape[k])
        out = std::to_string(rest % shape[k]) + (out.empty() ? "" : ", ") + out;
    return name + "[" + out + "]";
}

bool differs(double a, double b, double most) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) != std::isnan(b);
    if (std::isinf(a) || std::isinf(b)) return a != b;
    return std::fabs(a - b) > most;
}

std::optional<Finding> compare(const Program& program, const Outcome& got, const std::map<std::string, Memory>& want,
                               double tolerance) {
    for (const auto& [name, right] : want) {
        const auto it = got.outputs.find(name);
        if (it == got.outputs.end()) return Finding{"value", "", 0, 0, "the program has no output `" + name + "`"};
        const auto& mine = it->second;
        int line = 0;
        for (const auto& k : program.kernels)
            if (const auto* p = k.param(name)) line = p->line;
        if (mine.values.size() != right.values.size())
            return Finding{
                "value", "", line, 0,
                fmt::format("{} has {} elements, the reference {}", name, mine.values.size(), right.values.size())};
        double largest = 0;
        for (const double v : right.values)
            if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
        for (std::size_t k = 0; k < mine.values.size(); ++k)
            if (differs(mine.values[k], right.values[k], tolerance * largest))
                return Finding{"value", "", line, 0,
                               fmt::format("{} is {:.12g} and should be {:.12g}", place(name, mine.shape, k),
                                           mine.values[k], right.values[k])};
    }
    return std::nullopt;
}

} // namespace

std::vector<Finding> verify(const Program& program, const Trial& trial, const Reference& reference) {
    std::vector<Finding> out;
    const auto code = compile(program);
    if (!code->findings.empty()) return code->findings;
    const Run* asked = nullptr;
    std::map<std::string, Memory> want;
    for (const auto& run : trial.runs) {
        const auto found = [&](Finding f) {
            f.run = describe(run);
            out.push_back(std::move(f));
        };
        auto got = execute(*code, run);
        if (!got.findings.empty()) {
            found(std::move(got.findings.front()));
            continue;
        }
        if (!asked || !same_question(*asked, run)) {
            auto answer = reference(run);
            if (!answer) {
                found({"reference", "", 0, 0, answer.error().message});
                continue;
            }
            want = std::move(*answer);
            asked = &run;
        }
        if (auto f = compare(*code->program, got, want, trial.tolerance)) found(std::move(*f));
    }
    return out;
}

} // namespace cubridge::ir::cuir
