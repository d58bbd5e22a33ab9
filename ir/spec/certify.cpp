// Comparing what was made of a text with the text itself. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/concrete.h"
#include "ir/spec/state.h"
#include "ir/spec/variant/match.h"
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <fmt/format.h>

namespace cubridge::ir::spec {

namespace {

constexpr double kTolerance = 1e-11;
constexpr std::int64_t kBudget = std::int64_t{1} << 22, kCrossingBudget = std::int64_t{1} << 17; ///< elements
constexpr int kShapes = 6; ///< to be compared; more only where some of them cannot be evaluated

// Where two evaluations differ.
struct Place {
    std::size_t output = 0, element = 0;
    bool shape = false; ///< another shape: no element
    double text = 0, other = 0;

    std::string describe() const {
        if (shape) return fmt::format("output {} has another shape", output);
        return fmt::format("output {}, element {}: the text gives {}, it gives {}", output, element, text, other);
    }
};

// Nothing, or the first place where the two differ.
std::optional<Place> difference(const std::vector<Array>& text, const std::vector<Array>& other, bool forgive_nan) {
    for (std::size_t k = 0; k < text.size(); ++k) {
        if (text[k].shape != other[k].shape) return Place{k, 0, true, 0, 0};
        for (std::size_t m = 0; m < text[k].values.size(); ++m) {
            const double a = text[k].values[m], b = other[k].values[m];
            if (a != a && b != b) continue;
            if (forgive_nan && (a != a || b != b)) continue;
            if (a == b || std::fabs(a - b) <= kTolerance * std::max(1.0, std::fabs(a))) continue;
            return Place{k, m, false, a, b};
        }
    }
    return std::nullopt;
}

// How float64 rounds, as long as it lives. The mode belongs to the thread.
class Rounding {
public:
    explicit Rounding(int mode) { std::fesetround(mode); }
    Rounding(const Rounding&) = delete;
    Rounding& operator=(const Rounding&) = delete;
    ~Rounding() { std::fesetround(before_); }

private:
    int before_ = std::fegetround();
};

// Does the text itself, or the Scalar itself, give about as much else at a place where the two differ when float64
// rounds a little differently? Then constants absorb what they are added to, or overflow, and no order of a sum but the
// text's own is the text. `where` gets the place of the text's last expression.
bool hangs_on_rounding(const Specification::State& state, const std::vector<Argument>& inputs, const Place& p,
                       Span& where) {
    const double apart = std::fabs(p.text - p.other);
    const auto moved = [&](double value, double from) {
        return std::isfinite(value) != std::isfinite(from) || std::fabs(value - from) * 16 >= apart;
    };
    Meter* const meter = &state.scalar.pool->meter();
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        ConcreteDomain domain(kBudget, meter);
        domain.blur(seed);
        // towards 0 what overflows is a large number, and what is infinite by itself stays
        const Rounding mode(std::isfinite(apart) ? FE_TONEAREST : FE_TOWARDZERO);
        const auto text = evaluate_text(state, inputs, domain, &where);
        if (p.shape) return false;
        if (moved(text[p.output].values[p.element], p.text)) return true;
    }
    for (const int mode : {FE_UPWARD, FE_DOWNWARD}) {
        const Rounding rounding(mode);
        const auto other = evaluate_outputs(state.scalar, state.scalar.out, inputs, meter);
        if (moved(other[p.output].values[p.element], p.other)) return true;
    }
    return false;
}

std::string describe(const std::map<int, std::int64_t>& sizes) {
    std::string s;
    for (const auto& [d, n] : sizes) s += (s.empty() ? "" : " ") + dims::name(d) + "=" + std::to_string(n);
    return s;
}

struct Case {
    bool is_signed = false; ///< numbers of either sign: scores may be no numbers
    std::map<int, std::int64_t> sizes;
    std::vector<Argument> inputs;
    std::vector<Array> text;
};

// Cases on which the text can be evaluated. A draw that the text itself refuses (an index out of range, a division by
// zero) is drawn again with tamer values.
std::vector<Case> cases_of(const Specification::State& state, std::uint64_t seed) {
    std::vector<Case> out;
    std::optional<Error> refused;
    auto all = small_sizes(state.scalar, seed);
    if (all.empty())
        fail("domain", "no sizes satisfy what the text demands", {},
             state.scalar.facts.empty() ? "" : "it demands " + state.scalar.facts.front().text);
    const std::size_t small = all.size();
    for (auto& sizes : crossing_sizes(state.scalar, seed)) all.push_back(std::move(sizes));
    for (std::size_t n = 0; n < all.size(); ++n) {
        const auto& sizes = all[n];
        if (static_cast<int>(out.size()) >= kShapes && n < small) continue;
        for (int attempt = 0; attempt < 4; ++attempt) {
            const Draw draw = attempt == 0 && out.size() % 3 == 2 ? Draw::Signed : Draw::Usual;
            Case c{draw == Draw::Signed,
                   sizes,
                   random_inputs(state.scalar, sizes,
                                 seed * 977 + out.size() * 31 + static_cast<std::uint64_t>(attempt), draw,
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
                c.text =
                    evaluate_text(state, c.inputs, n < small ? kBudget : kCrossingBudget, &state.scalar.pool->meter());
                out.push_back(std::move(c));
                break;
            } catch (const Failure& f) {
                if (n >= small && f.error.kind == "limit") break; // too dear
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
        const auto d = difference(
            c.text, evaluate_outputs(state.scalar, state.scalar.out, c.inputs, &state.scalar.pool->meter()), false);
        if (!d) continue;
        Span where;
        const bool rounding = hangs_on_rounding(state, c.inputs, *d, where);
        const std::string what = "at " + describe(c.sizes) + " " + d->describe();
        if (rounding)
            fail("unsupported", "what is returned hangs on how float64 rounds: " + what, where,
                 "use smaller constants, and cancel large ones before anything is added to them");
        fail("internal", "the text was misunderstood: " + what, where,
             "please report the text; it is refused, not miscompiled");
    }
    return static_cast<int>(cases.size());
}

std::string certify_variant(const Specification::State& state, const std::vector<ScalarOutput>& out,
                            std::uint64_t seed) {
    for (const Case& c : cases_of(state, seed)) {
        // without any key at all a text may divide by their number
        const auto d = difference(c.text, evaluate_outputs(state.scalar, out, c.inputs, &state.scalar.pool->meter()),
                                  c.sizes.at(dims::Sk) == 0 || c.is_signed);
        if (d) return "at " + describe(c.sizes) + " " + d->describe();
    }
    return "";
}

bool certify_hidden(const Specification::State& state, const std::vector<ScalarOutput>& out,
                    const std::set<int>& biases, std::uint64_t seed) {
    int compared = 0;
    for (const auto& sizes : small_sizes(state.scalar, seed)) {
        if (sizes.at(dims::Sk) == 0) continue;
        if (compared == 4) break;
        auto inputs = random_inputs(state.scalar, sizes, seed * 613 + static_cast<std::uint64_t>(compared), Draw::Usual,
                                    &state.scalar.pool->meter());
        std::uint64_t bits = 0x9e3779b97f4a7c15u * (seed + static_cast<std::uint64_t>(compared));
        for (const int x : biases)
            for (double& value : inputs[static_cast<std::size_t>(x)]->values) {
                bits = bits * 6364136223846793005u + 1442695040888963407u;
                if (compared == 0 || (bits >> 62) != 0) value = -HUGE_VAL;
            }
        std::vector<Array> text;
        try {
            text = evaluate_text(state, inputs, kBudget, &state.scalar.pool->meter());
        } catch (const Failure&) {
            continue;
        }
        ++compared;
        auto other = evaluate_outputs(state.scalar, out, inputs, &state.scalar.pool->meter());
        text.resize(1), other.resize(1); // an LSE by hand is no number here; what is asked for is -inf
        if (difference(text, other, false)) return false;
    }
    return true;
}

std::optional<Part::Empty> find_empty(const Specification::State& state, const Variant& v) {
    constexpr Part::Empty candidates[] = {Part::Empty::Zero, Part::Empty::NaN, Part::Empty::Uniform};
    const Expr none = some_empty_row(v);
    const std::vector<Expr> rows{state.scalar.out[0].shape[0], state.scalar.out[0].shape[1],
                                 state.scalar.out[0].shape[2]};
    const std::vector<ScalarOutput> ask{{rows, v.pool->cast(Type::Real, none), DType::F32}};
    auto all = small_sizes(state.scalar, 1);
    for (auto& sizes : crossing_sizes(state.scalar, 1)) all.push_back(std::move(sizes));
    for (std::uint64_t seed = 1; seed <= 6; ++seed)
        for (std::size_t n = 0; n < all.size(); ++n) {
            const auto& sizes = all[n];
            if (sizes.at(dims::Sk) == 0 || (n >= 8 && seed > 2)) continue;
            auto inputs = random_inputs(state.scalar, sizes, seed * 131,
                                        seed == 2   ? Draw::Nothing
                                        : seed == 3 ? Draw::Signed
                                                    : Draw::Usual,
                                        &state.scalar.pool->meter());
            for (std::size_t k = 0; k < inputs.size(); ++k) // a negative epsilon makes scores no numbers
                if (inputs[k] && state.scalar.inputs[k].role == Input::Role::Scalar &&
                    is_float(state.scalar.inputs[k].dtype))
                    inputs[k]->values[0] = std::fabs(inputs[k]->values[0]) + (seed == 3 ? 0.25 : 0);
            for (std::size_t k = 0; k < inputs.size(); ++k) // small windows and lengths leave rows empty
                if (inputs[k] && k >= 3 && !is_float(state.scalar.inputs[k].dtype) && seed % 2 == 0)
                    for (double& x : inputs[k]->values) x = std::fmod(x, 2);
            const auto empty = evaluate_outputs(state.scalar, ask, inputs, &state.scalar.pool->meter())[0].values;
            if (std::none_of(empty.begin(), empty.end(), [](double x) { return x != 0; })) continue;
            std::vector<Array> text;
            try {
                text = evaluate_text(state, inputs, kBudget, &state.scalar.pool->meter());
            } catch (const Failure&) {
                continue;
            }
            for (const auto e : candidates)
                if (!difference(text,
                                evaluate_outputs(state.scalar, variant::expand(state.scalar, v, e), inputs,
                                                 &state.scalar.pool->meter()),
                                false))
                    return e;
            return std::nullopt;
        }
    // Nothing was seen; where that may be for want of size nothing is claimed.
    return is_crossed(state.scalar, none, all) ? std::optional(Part::Empty::Never) : std::nullopt;
}

void join_branches(Scalar& scalar) {
    for (const auto& b : scalar.branches)
        for (std::size_t k = 0; k < scalar.out.size(); ++k)
            scalar.out[k].body =
                scalar.pool->select(b.when, scalar.pool->cast(Type::Real, b.out[k].body), scalar.out[k].body);
    scalar.branches.clear();
}

} // namespace cubridge::ir::spec
