// Random expressions built through the constructors against what their operators say one by one: whatever is rewritten
// on the way means the same for large, negative and zero values. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/expr/evaluate.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace cubridge::ir {
namespace {

constexpr int kInts = 4, kReals = 3;

// What an expression is worth in each of several environments, computed beside it without simplification.
struct Built {
    Expr e;
    std::vector<double> v;
};

class Random {
public:
    explicit Random(std::uint64_t seed) : draw_(seed) {
        for (Environment& env : at) {
            env.dims = {{dims::Hk, 1 + below(4)}, {dims::Sq, 1 + below(300)}, {dims::Sk, 1 + below(300)}};
            env.dims[dims::Hq] = env.dims[dims::Hk] * (1 + below(4));
            const double reach[] = {2, 8, 50, 100000};
            for (int k = 0; k < kInts + kReals; ++k) {
                const double r = reach[below(4)];
                double x = std::floor(std::uniform_real_distribution<double>(-r, r + 1)(draw_));
                if (k >= kInts && below(3) != 0) x = x / 8;
                env.inputs[k] = {{}, std::make_shared<const std::vector<double>>(1, x)};
            }
        }
    }

    std::int64_t below(int n) { return static_cast<std::int64_t>(draw_() % static_cast<std::uint64_t>(n)); }

    template <class F> Built node(Expr e, const std::vector<Built>& x, F f) {
        Built r{e, {}};
        for (std::size_t k = 0; k < at.size(); ++k) {
            std::vector<double> v;
            for (const Built& b : x) v.push_back(b.v[k]);
            r.v.push_back(f(v));
        }
        return r;
    }

    Built leaf_int() {
        if (below(3) == 0) {
            const std::int64_t c = below(2) != 0 ? below(9) - 4 : below(140) - 20;
            return {pool.integer(c), std::vector<double>(at.size(), static_cast<double>(c))};
        }
        if (below(4) == 0) {
            constexpr int sizes[] = {dims::Hq, dims::Hk, dims::Sq, dims::Sk};
            const int d = sizes[below(4)];
            Built r{pool.dim(d), {}};
            for (const Environment& env : at) r.v.push_back(static_cast<double>(env.dims.at(d)));
            return r;
        }
        const int k = static_cast<int>(below(kInts));
        Built r{pool.arg(k, Type::Int), {}};
        for (const Environment& env : at) r.v.push_back((*env.inputs.at(k).values)[0]);
        return r;
    }

    static double floor_of(double a, double b) {
        return static_cast<double>(floor_div(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
    }

    Built integer(int depth) {
        if (depth == 0 || below(6) == 0) {
            Built l = leaf_int();
            pile_.push_back(l);
            return l;
        }
        if (!pile_.empty() && below(4) == 0)
            return pile_[static_cast<std::size_t>(below(static_cast<int>(pile_.size())))];
        Built r;
        switch (below(10)) {
        case 0:
        case 1: {
            const Built a = integer(depth - 1), b = integer(depth - 1);
            r = node(pool.add(a.e, b.e), {a, b}, [](const auto& v) { return v[0] + v[1]; });
            break;
        }
        case 2: {
            const Built a = integer(depth - 1), b = integer(depth - 1);
            r = node(pool.sub(a.e, b.e), {a, b}, [](const auto& v) { return v[0] - v[1]; });
            break;
        }
        case 3: {
            const Built a = integer(depth - 1), b = leaf_int();
            r = node(pool.mul(a.e, b.e), {a, b}, [](const auto& v) { return v[0] * v[1]; });
            break;
        }
        case 4:
        case 5: {
            const bool mod = below(2) != 0;
            const Built a = integer(depth - 1);
            Built b = below(4) == 0 ? integer(1) : leaf_int();
            if (std::find(b.v.begin(), b.v.end(), 0) != b.v.end()) // the text would refuse: nothing is promised
                b = {pool.integer(3), std::vector<double>(at.size(), 3)};
            r = node(pool.apply(mod ? Op::Mod : Op::FloorDiv, a.e, b.e), {a, b},
                     [&](const auto& v) { return mod ? v[0] - v[1] * floor_of(v[0], v[1]) : floor_of(v[0], v[1]); });
            break;
        }
        case 6: {
            const bool most = below(2) != 0;
            const Built a = integer(depth - 1), b = integer(depth - 1);
            r = node(pool.apply(most ? Op::Max : Op::Min, a.e, b.e), {a, b}, [&](const auto& v) {
                if (v[0] != v[0] || v[1] != v[1]) return std::nan("");
                return most ? std::max(v[0], v[1]) : std::min(v[0], v[1]);
            });
            break;
        }
        case 7: {
            const Built a = integer(depth - 1);
            r = node(pool.apply(Op::Abs, a.e), {a}, [](const auto& v) { return std::fabs(v[0]); });
            break;
        }
        default: {
            const Built c = boolean(depth - 1), a = integer(depth - 1), b = integer(depth - 1);
            r = node(pool.select(c.e, a.e, b.e), {c, a, b}, [](const auto& v) {
                return v[0] != v[0] || v[1] != v[1] || v[2] != v[2] ? std::nan("") : v[0] != 0 ? v[1] : v[2];
            });
        }
        }
        pile_.push_back(r);
        return r;
    }

    Built boolean(int depth) {
        const auto sound = [](const auto& v) {
            return std::none_of(v.begin(), v.end(), [](double x) { return x != x; });
        };
        if (depth == 0 || below(2) == 0) {
            constexpr Op ops[] = {Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne};
            const Op op = ops[below(6)];
            const bool reals = below(5) == 0;
            const Built a = reals ? real(std::max(0, depth - 1)) : integer(std::max(0, depth - 1));
            const Built b = reals ? real(std::max(0, depth - 1)) : integer(std::max(0, depth - 1));
            return node(pool.apply(op, a.e, b.e), {a, b}, [&](const auto& v) {
                if (!sound(v) && !reals) return std::nan("");
                switch (op) {
                case Op::Lt: return v[0] < v[1] ? 1.0 : 0.0;
                case Op::Le: return v[0] <= v[1] ? 1.0 : 0.0;
                case Op::Gt: return v[0] > v[1] ? 1.0 : 0.0;
                case Op::Ge: return v[0] >= v[1] ? 1.0 : 0.0;
                case Op::Eq: return v[0] == v[1] ? 1.0 : 0.0;
                default: return v[0] != v[1] ? 1.0 : 0.0;
                }
            });
        }
        const Built a = boolean(depth - 1), b = boolean(depth - 1);
        switch (below(4)) {
        case 0:
            return node(pool.logical_and(a.e, b.e), {a, b},
                        [&](const auto& v) { return !sound(v) ? std::nan("") : v[0] * v[1]; });
        case 1:
            return node(pool.logical_or(a.e, b.e), {a, b},
                        [&](const auto& v) { return !sound(v) ? std::nan("") : std::max(v[0], v[1]); });
        case 2: return node(pool.logical_not(a.e), {a}, [&](const auto& v) { return 1 - v[0]; });
        default:
            return node(pool.apply(Op::Xor, a.e, b.e), {a, b}, [&](const auto& v) {
                return !sound(v) ? std::nan("") : v[0] != v[1] ? 1.0 : 0.0;
            });
        }
    }

    Built real(int depth) {
        if (depth == 0 || below(7) == 0) {
            if (below(3) == 0) {
                constexpr double some[] = {0, 1, -1, 0.5, 2, -3, 0.125};
                const double c = some[below(7)];
                return {pool.real(c), std::vector<double>(at.size(), c)};
            }
            const int k = kInts + static_cast<int>(below(kReals));
            Built r{pool.arg(k, Type::Real), {}};
            for (const Environment& env : at) r.v.push_back((*env.inputs.at(k).values)[0]);
            return r;
        }
        switch (below(9)) {
        case 0: {
            const Built a = real(depth - 1), b = real(depth - 1);
            return node(pool.add(a.e, b.e), {a, b}, [](const auto& v) { return v[0] + v[1]; });
        }
        case 1: {
            const Built a = real(depth - 1), b = real(depth - 1);
            return node(pool.sub(a.e, b.e), {a, b}, [](const auto& v) { return v[0] - v[1]; });
        }
        case 2: {
            const Built a = real(depth - 1), b = real(depth - 1);
            return node(pool.mul(a.e, b.e), {a, b}, [](const auto& v) { return v[0] * v[1]; });
        }
        case 3: {
            const Built a = real(depth - 1), b = real(depth - 1);
            return node(pool.apply(Op::Div, a.e, b.e), {a, b}, [](const auto& v) { return v[0] / v[1]; });
        }
        case 4: {
            const bool most = below(2) != 0;
            const Built a = real(depth - 1), b = real(depth - 1);
            return node(pool.apply(most ? Op::Max : Op::Min, a.e, b.e), {a, b}, [&](const auto& v) {
                if (v[0] != v[0] || v[1] != v[1]) return std::nan("");
                return most ? std::max(v[0], v[1]) : std::min(v[0], v[1]);
            });
        }
        case 5: {
            const Built a = real(depth - 1);
            const bool square = below(2) != 0;
            if (square)
                return node(pool.apply(Op::Pow, a.e, pool.real(2)), {a}, [](const auto& v) { return v[0] * v[0]; });
            return node(pool.apply(Op::Sqrt, a.e), {a}, [](const auto& v) { return std::sqrt(v[0]); });
        }
        case 6: {
            const Built a = integer(depth - 1);
            return node(pool.cast(Type::Real, a.e), {a}, [](const auto& v) { return v[0]; });
        }
        case 7: {
            const Built a = real(depth - 1);
            constexpr Op ops[] = {Op::Tanh, Op::Sigmoid, Op::Floor, Op::Abs};
            const Op op = ops[below(4)];
            return node(pool.apply(op, a.e), {a}, [&](const auto& v) { return info(op).real(v.data()); });
        }
        default: {
            const Built c = boolean(depth - 1), a = real(depth - 1), b = real(depth - 1);
            return node(pool.select(c.e, a.e, b.e), {c, a, b}, [](const auto& v) {
                return v[0] != v[0] ? std::nan("") : v[0] != 0 ? v[1] : v[2];
            });
        }
        }
    }

    ExprPool pool;
    std::array<Environment, 6> at;

private:
    std::mt19937_64 draw_;
    std::vector<Built> pile_; // integers made so far: a part that comes again is what rules look for
};

TEST(NormalForm, IntegersKeepTheirValue) {
    for (std::uint64_t seed = 0; seed < 6000; ++seed) {
        Random r(seed);
        Built b;
        try {
            b = r.integer(5);
        } catch (const Failure&) {
            continue; // a constant beyond 64 bits
        }
        for (std::size_t k = 0; k < r.at.size(); ++k) {
            if (b.v[k] != b.v[k] || std::fabs(b.v[k]) > 1e14) continue;
            ASSERT_EQ(Evaluator(r.pool, r.at[k]).value(b.e), b.v[k]) << "seed " << seed << ": " << debug_text(b.e);
        }
    }
}

TEST(NormalForm, TruthValuesKeepTheirValue) {
    for (std::uint64_t seed = 0; seed < 6000; ++seed) {
        Random r(seed + 100000);
        Built b;
        try {
            b = r.boolean(4);
        } catch (const Failure&) {
            continue;
        }
        for (std::size_t k = 0; k < r.at.size(); ++k) {
            if (b.v[k] != b.v[k]) continue;
            ASSERT_EQ(Evaluator(r.pool, r.at[k]).value(b.e), b.v[k]) << "seed " << seed << ": " << debug_text(b.e);
        }
    }
}

// Floats may round differently, and what is infinite may lose its sign, but a number stays that number and nothing else
// becomes one.
TEST(NormalForm, RealsKeepTheirValue) {
    int wrong = 0, compared = 0;
    std::string first;
    for (std::uint64_t seed = 0; seed < 6000; ++seed) {
        Random r(seed + 200000);
        Built b;
        try {
            b = r.real(4);
        } catch (const Failure&) {
            continue;
        }
        for (std::size_t k = 0; k < r.at.size(); ++k) {
            const double want = b.v[k], got = Evaluator(r.pool, r.at[k]).value(b.e);
            ++compared;
            if ((!std::isfinite(want) && !std::isfinite(got)) || want == got ||
                std::fabs(want - got) <= 1e-9 * std::max(1.0, std::fabs(want)))
                continue;
            if (wrong++ < 8)
                first += "seed " + std::to_string(seed) + ": " + debug_text(b.e) + " gives " + std::to_string(got) +
                         " for " + std::to_string(want) + "\n";
            break;
        }
    }
    EXPECT_EQ(wrong, 0) << first;
    EXPECT_GT(compared, 20000);
}

} // namespace
} // namespace cubridge::ir
