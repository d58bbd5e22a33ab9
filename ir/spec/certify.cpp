// Comparing what was made of a text with the text itself. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/state.h"
#include "ir/spec/variant/match.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace cubridge::ir::spec {

namespace {

constexpr double kTolerance = 1e-11;
constexpr int kShapes = 6; ///< to be compared; more only where some of them cannot be evaluated

// Nothing, or the first place where the two differ.
std::string difference(const std::vector<Array>& text, const std::vector<Array>& other, bool forgive_nan) {
    for (std::size_t k = 0; k < text.size(); ++k) {
        if (text[k].shape != other[k].shape) return fmt::format("output {} has another shape", k);
        for (std::size_t m = 0; m < text[k].values.size(); ++m) {
            const double a = text[k].values[m], b = other[k].values[m];
            if (a != a && b != b) continue;
            if (forgive_nan && (a != a || b != b)) continue;
            if (a == b || std::fabs(a - b) <= kTolerance * std::max(1.0, std::fabs(a))) continue;
            return fmt::format("output {}, element {}: the text gives {}, it gives {}", k, m, a, b);
        }
    }
    return "";
}

std::string describe(const std::map<int, std::int64_t>& sizes) {
    std::string s;
    for (const auto& [d, n] : sizes) s += (s.empty() ? "" : " ") + dims::name(d) + "=" + std::to_string(n);
    return s;
}

struct Case {
    std::map<int, std::int64_t> sizes;
    std::vector<Argument> inputs;
    std::vector<Array> text;
};

// Cases on which the text can be evaluated. A draw that the text itself refuses (an index out of range, a division by
// zero) is drawn again with tamer values.
std::vector<Case> cases_of(const Specification::State& state, std::uint64_t seed) {
    std::vector<Case> out;
    std::optional<Error> refused;
    const auto all = small_sizes(state.scalar, seed);
    if (all.empty())
        fail("domain", "no sizes satisfy what the text demands", {},
             state.scalar.facts.empty() ? "" : "it demands " + state.scalar.facts.front().text);
    for (const auto& sizes : all) {
        if (static_cast<int>(out.size()) >= kShapes) break;
        for (int attempt = 0; attempt < 4; ++attempt) {
            Case c{sizes,
                   random_inputs(state.scalar, sizes,
                                 seed * 977 + out.size() * 31 + static_cast<std::uint64_t>(attempt),
                                 &state.scalar.pool->meter()),
                   {}};
            for (std::size_t k = 0; attempt > 0 && k < c.inputs.size(); ++k) {
                const Input& x = state.scalar.inputs[k];
                if (!c.inputs[k] || x.role == Input::Role::Query || x.role == Input::Role::Key ||
                    x.role == Input::Role::Value)
                    continue;
                if (attempt >= 1 && x.fate == Input::Fate::Bound) c.inputs[k]->values[0] = x.value;
                if (attempt >= 2 && !is_float(x.dtype))
                    for (double& v : c.inputs[k]->values) v = attempt == 2 ? std::fmod(v, 2) : 0;
            }
            try {
                c.text = evaluate_text(state, c.inputs, std::int64_t{1} << 22, &state.scalar.pool->meter());
                out.push_back(std::move(c));
                break;
            } catch (const Failure& f) {
                if (!refused) refused = f.error;
            }
        }
    }
    if (out.size() < 2) {
        if (refused) throw Failure{*refused};
        fail("domain", "the text cannot be evaluated on any small sizes");
    }
    return out;
}

} // namespace

int certify_scalar(const Specification::State& state, std::uint64_t seed) {
    const auto cases = cases_of(state, seed);
    for (const Case& c : cases) {
        const std::string d = difference(
            c.text, evaluate_outputs(state.scalar, state.scalar.out, c.inputs, &state.scalar.pool->meter()), false);
        if (!d.empty())
            fail("internal", "the text was misunderstood: at " + describe(c.sizes) + " " + d, {},
                 "please report the text; it is refused, not miscompiled");
    }
    return static_cast<int>(cases.size());
}

std::string certify_variant(const Specification::State& state, const std::vector<ScalarOutput>& out,
                            std::uint64_t seed) {
    for (const Case& c : cases_of(state, seed)) {
        // without any key at all a text may divide by their number
        const std::string d =
            difference(c.text, evaluate_outputs(state.scalar, out, c.inputs, &state.scalar.pool->meter()),
                       c.sizes.at(dims::Sk) == 0);
        if (!d.empty()) return "at " + describe(c.sizes) + " " + d;
    }
    return "";
}

std::optional<Part::Empty> find_empty(const Specification::State& state, const Variant& v) {
    constexpr Part::Empty candidates[] = {Part::Empty::Zero, Part::Empty::NaN, Part::Empty::Uniform};
    const Expr none = some_empty_row(v);
    const std::vector<Expr> rows{state.scalar.out[0].shape[0], state.scalar.out[0].shape[1],
                                 state.scalar.out[0].shape[2]};
    const std::vector<ScalarOutput> ask{{rows, v.pool->cast(Type::Real, none), DType::F32}};
    for (std::uint64_t seed = 1; seed <= 12; ++seed)
        for (const auto& sizes : small_sizes(state.scalar, seed)) {
            if (sizes.at(dims::Sk) == 0) continue;
            auto inputs = random_inputs(state.scalar, sizes, seed * 131, &state.scalar.pool->meter());
            for (std::size_t k = 0; k < inputs.size(); ++k) // small windows and lengths leave rows empty
                if (inputs[k] && k >= 3 && !is_float(state.scalar.inputs[k].dtype) && seed % 2 == 0)
                    for (double& x : inputs[k]->values) x = std::fmod(x, 2);
            const auto empty = evaluate_outputs(state.scalar, ask, inputs, &state.scalar.pool->meter())[0].values;
            if (std::none_of(empty.begin(), empty.end(), [](double x) { return x != 0; })) continue;
            std::vector<Array> text;
            try {
                text = evaluate_text(state, inputs, std::int64_t{1} << 22, &state.scalar.pool->meter());
            } catch (const Failure&) {
                continue;
            }
            for (const auto e : candidates)
                if (difference(text,
                               evaluate_outputs(state.scalar, variant::expand(state.scalar, v, e), inputs,
                                                &state.scalar.pool->meter()),
                               false)
                        .empty())
                    return e;
            return std::nullopt;
        }
    return Part::Empty::Never;
}

void join_branches(Scalar& scalar) {
    for (const auto& b : scalar.branches)
        for (std::size_t k = 0; k < scalar.out.size(); ++k)
            scalar.out[k].body =
                scalar.pool->select(b.when, scalar.pool->cast(Type::Real, b.out[k].body), scalar.out[k].body);
    scalar.branches.clear();
}

} // namespace cubridge::ir::spec
