// Helpers of the tests of CuIR. SPDX-License-Identifier: Apache-2.0
#include "programs.h"
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <sstream>

namespace cubridge::ir::cuir::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Memory random(std::mt19937& rng, std::vector<std::int64_t> shape) {
    Memory m{std::move(shape), {}, false};
    std::size_t n = 1;
    for (const auto e : m.shape) n *= static_cast<std::size_t>(e);
    std::normal_distribution<double> normal;
    for (std::size_t k = 0; k < n; ++k) m.values.push_back(normal(rng));
    return m;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
}

std::size_t find_line(const std::vector<std::string>& lines, const std::string& line, int nth) {
    for (std::size_t k = 0; k < lines.size(); ++k) {
        const auto at = lines[k].find_first_not_of(' ');
        if (at != std::string::npos && lines[k].compare(at, line.size(), line) == 0 && nth-- == 0) return k;
    }
    ADD_FAILURE() << "no line `" << line << "`";
    return 0;
}

} // namespace

std::string load(const std::string& name) {
    std::ifstream in("tests/corpus/cuir/" + name);
    EXPECT_TRUE(in) << name;
    return {std::istreambuf_iterator<char>(in), {}};
}

Program parse(const std::string& text) {
    auto p = read(text);
    EXPECT_TRUE(p) << (p ? "" : p.error().render(text));
    return p ? *p : Program{};
}

Run small(const Shape& s, Data data, int agents) {
    std::mt19937 rng(static_cast<unsigned>(s.sq * 100 + s.sk));
    constexpr std::int64_t d = 3;
    Run run;
    run.sizes = {{"B", s.b}, {"Hq", s.hq}, {"Hk", s.hk}, {"Sq", s.sq}, {"Sk", s.sk}, {"D", d}, {"Dv", d}};
    run.constants = {{"BM", 2 * agents}, {"BN", 3}};
    run.inputs["Q"] = random(rng, {s.b, s.hq, s.sq, d});
    run.inputs["K"] = random(rng, {s.b, s.hk, s.sk, d});
    run.inputs["V"] = random(rng, {s.b, s.hk, s.sk, d});
    run.inputs["scale"] = {{}, {0.7}, false};
    if (data == Data::OneHeadNaN)
        for (std::int64_t k = 0; k < s.sq * d; ++k)
            run.inputs["Q"].values[static_cast<std::size_t>(k)] = std::numeric_limits<double>::quiet_NaN();
    if (data == Data::Rising) // tiles are visited from the last key down
        for (std::int64_t k = 0; k < s.b * s.hk * s.sk * d; ++k)
            if (k / d % s.sk < s.sk / 2) run.inputs["K"].values[static_cast<std::size_t>(k)] *= 300;
    return run;
}

Result<std::map<std::string, Memory>> reference(const Run& run) {
    const auto& q = run.inputs.at("Q");
    const auto& k = run.inputs.at("K");
    const auto& v = run.inputs.at("V");
    const auto B = q.shape[0], H = q.shape[1], Sq = q.shape[2], D = q.shape[3], Hk = k.shape[1], Sk = k.shape[2],
               Dv = v.shape[3];
    const double scale =
        run.constants.count("scaled") != 0 ? run.inputs.at("scale").values[0] : 1 / std::sqrt(double(D));
    Memory out{{B, H, Sq, Dv}, {}, false}, lse{{B, H, Sq}, {}, false};
    for (std::int64_t b = 0; b < B; ++b)
        for (std::int64_t h = 0; h < H; ++h)
            for (std::int64_t i = 0; i < Sq; ++i) {
                const auto at = [](const Memory& m, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t w) {
                    return m.values[static_cast<std::size_t>(((x * m.shape[1] + y) * m.shape[2] + z) * m.shape[3] + w)];
                };
                const auto kv = h / (H / Hk);
                std::vector<double> s(static_cast<std::size_t>(Sk));
                double most = -kInf, sum = 0;
                for (std::int64_t j = 0; j < Sk; ++j) {
                    double x = 0;
                    for (std::int64_t d = 0; d < D; ++d) x += at(q, b, h, i, d) * at(k, b, kv, j, d);
                    s[static_cast<std::size_t>(j)] = x * scale;
                    most = std::isnan(x) || std::isnan(most) ? std::nan("") : std::max(most, x * scale);
                }
                for (auto& x : s) sum += x = std::exp(x - most);
                for (std::int64_t d = 0; d < Dv; ++d) {
                    double o = 0;
                    for (std::int64_t j = 0; j < Sk; ++j) o += s[static_cast<std::size_t>(j)] * at(v, b, kv, j, d);
                    out.values.push_back(Sk == 0 ? 0 : o / sum);
                }
                lse.values.push_back(most + std::log(sum));
            }
    return std::map<std::string, Memory>{{"Out", out}, {"Lse", lse}};
}

std::vector<Run> schedules(const Run& run, const std::vector<std::string>& roles, int seeds) {
    std::vector<Run> out;
    for (int seed = 0; seed < seeds; ++seed) {
        auto r = run;
        r.seed = static_cast<std::uint64_t>(seed);
        for (const auto policy : {Run::Policy::Late, Run::Policy::Early, Run::Policy::Random}) {
            r.policy = policy;
            out.push_back(r);
        }
        r.policy = Run::Policy::Starve;
        for (const auto& role : roles) {
            r.starved = role;
            out.push_back(r);
        }
    }
    return out;
}

Run friendly(Run run) {
    run.policy = Run::Policy::Early;
    run.seed = 0;
    return run;
}

std::string replace_line(const std::string& text, const std::string& line, int nth, const std::string& by) {
    auto lines = lines_of(text);
    const auto at = find_line(lines, line, nth);
    const auto indent = lines[at].find_first_not_of(' ');
    std::string out;
    for (std::size_t k = 0; k < lines.size(); ++k)
        if (k != at)
            out += lines[k] + "\n";
        else if (!by.empty())
            out += std::string(indent, ' ') + by + "\n";
    return out;
}

int line_of(const std::string& text, const std::string& line, int nth) {
    return static_cast<int>(find_line(lines_of(text), line, nth)) + 1;
}

} // namespace cubridge::ir::cuir::testing
