// What an expert can be made into for a variant, in the order of what a model says it costs.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/candidate.h"
#include "ir/cost/cost.h"
#include <algorithm>
#include <cmath>

namespace cubridge::ir {
namespace {

/// What the model may be wrong by: present choices are measured ones.
constexpr double kModelError = 0.2;
constexpr std::size_t kMost = 4;

/// Sizes, and integers that masks read: a scalar's own value; what only a launch knows is taken to be a quarter of the
/// keys.
cost::Numbers numbers_of(const Specification& specification, const Request& request, const Shape& shape) {
    const int group = std::max(1, request.group);
    const std::int64_t heads_kv = shape.heads_kv > 0 ? shape.heads_kv : std::max(1, 32 / group);
    cost::Numbers out{
        {"B", shape.batch}, {"Hk", heads_kv}, {"Hq", heads_kv * group}, {"Sq", shape.rows}, {"Sk", shape.keys}};
    const auto order = specification.order();
    for (std::size_t k = 0; k < order.size(); ++k) {
        const auto& input = specification.inputs()[static_cast<std::size_t>(order[k])];
        if (is_float(input.dtype)) continue;
        const bool bound = input.rank == 0 && input.fate == Input::Fate::Bound;
        if (bound && !(std::fabs(input.value) < 0x1p62)) continue; // of no length: unknown
        out["x" + std::to_string(k) + (input.rank == 0 ? "" : "[]")] =
            bound ? static_cast<std::int64_t>(input.value) : shape.keys / 4;
    }
    return out;
}

struct Made {
    Configuration configuration;
    cuir::Program program;
};

Result<Made> made(const Specification& specification, const Request& request, const std::string& name,
                  const cost::Numbers& numbers) {
    const auto candidate = Candidate::transfer(specification, request, name);
    if (!candidate) return candidate.error();
    auto program = cuir::read(candidate->program());
    if (!program) return program.error();
    Made out;
    out.program = std::move(*program);
    auto& c = out.configuration;
    c.name = name;
    if (const auto* main = out.program.main())
        if (const auto keys = main->constant("BN")) c.keys = static_cast<int>(keys->integer);
    if (const auto cost = cost::cost_of(out.program, numbers)) {
        c.us = cost->us;
        c.order = cost->order;
        c.tiles = std::llround(cost->tiles);
        c.masked = std::llround(cost->masked);
        c.guessed = cost->guessed;
    }
    return out;
}

} // namespace

Result<std::vector<Configuration>> Candidate::configurations(const Specification& specification, const Request& request,
                                                             const Shape& shape) {
    const auto experts = Candidate::experts(specification, request);
    if (!experts) return experts.error();
    try {
        const auto numbers = numbers_of(specification, request, shape);
        std::vector<Made> all;
        Error refused;
        const auto add = [&](const std::string& name) {
            auto one = made(specification, request, name, numbers);
            if (!one) return refused = one.error(), false;
            const bool known = std::any_of(all.begin(), all.end(),
                                           [&](const Made& m) { return cuir::equal(m.program, one->program); });
            if (!known) all.push_back(std::move(*one));
            return true;
        };
        for (const auto& expert : *experts) {
            if (!all.empty() && expert.rfind(all[0].configuration.name + "/", 0) != 0) break;
            if (!add(expert) || all.size() != 1) continue;
            const auto& own = all[0].configuration.order;
            if (!own.empty()) (void)add(expert + (own == "by_head" ? "/heaviest_first" : "/by_head"));
        }
        if (all.empty()) return refused;
        std::vector<Configuration> out;
        for (auto& m : all) out.push_back(std::move(m.configuration));
        if (std::all_of(out.begin(), out.end(), [](const auto& c) { return c.us > 0; })) {
            const auto cheaper = [](const auto& a, const auto& b) { return a.us < b.us; };
            const auto best = std::min_element(out.begin(), out.end(), cheaper);
            const bool strong = best->us < out[0].us * (1 - kModelError);
            std::stable_sort(out.begin() + (strong ? 0 : 1), out.end(), cheaper);
        }
        if (out.size() > kMost) out.resize(kMost);
        return out;
    } catch (const Failure& f) {
        return f.error;
    } catch (const std::exception& e) {
        return Error{
            "internal", std::string("listing configurations failed: ") + e.what(), {}, "please report the text"};
    }
}

Result<std::vector<std::string>> Candidate::in_turn(const Specification& specification, const Request& request) {
    auto out = experts(specification, request);
    if (!out) return out;
    const auto all = configurations(specification, request);
    if (!all) return out; // transfer says why, one by one
    const auto& best = all->front().name;
    if (best.find('/') != best.npos) out->insert(out->begin(), best);
    return out;
}

} // namespace cubridge::ir
