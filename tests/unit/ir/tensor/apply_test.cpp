// SPDX-License-Identifier: Apache-2.0
#include "values.h"

namespace cubridge::ir::tensor {
namespace {

TEST(ApplyTest, Broadcasts) {
    expect(apply(Op::Add, {ints({2, 1}, {10, 20}), ints({3}, {1, 2, 3})}), DType::I64, {2, 3},
           {11, 12, 13, 21, 22, 23});
    expect(apply(Op::Sub, {ints({}, {1}), ints({}, {3})}), DType::I64, {}, {-2});
    expect(apply(Op::Mul, {ints({2}, {1, 2}), ints({}, {3})}), DType::I64, {2}, {3, 6});
    expect(apply(Op::Add, {ints({0}, {}), ints({1}, {3})}), DType::I64, {0}, {});
    expect(apply(Op::Add, {ints({2, 0}, {}), ints({2, 1}, {1, 2})}), DType::I64, {2, 0}, {});
    expect(apply(Op::Where, {bools({2, 1}, {1, 0}), ints({1, 2}, {1, 2}), ints({}, {9})}), DType::I64, {2, 2},
           {1, 2, 9, 9});
    expect(apply(Op::Add, {counting({2, 1, 2}), ints({2, 1}, {0, 10})}), DType::I64, {2, 2, 2},
           {0, 1, 10, 11, 2, 3, 12, 13});
    EXPECT_EQ(failure([] {
                  return apply(Op::Add, {ints({2}, {1, 2}), ints({3}, {1, 2, 3})});
              }),
              "shape: torch.add: shapes [2] and [3] don't broadcast");
    EXPECT_FAILURE("shape", apply(Op::Add, {ints({0}, {}), ints({2}, {1, 2})}));
    EXPECT_FAILURE("limit",
                   apply(Op::Add, {full({1 << 15, 1}, 1, DType::I8, false), full({1 << 14}, 1, DType::I8, false)}));
    EXPECT_FAILURE("type", apply(Op::Add, {ints({2}, {1, 2})}));
}

TEST(ApplyTest, EveryOperatorAgreesWithTheTableInEachArithmetic) {
    const double a[] = {-1.75, 0.25, 0.5, 3}, b[] = {0.5, -2, 3, 0.75};
    const std::int64_t i[] = {-7, 0, 1, 6}, j[] = {2, 3, 0, 5};
    for (const OpInfo& o : all_ops()) {
        for (std::size_t k = 0; k < 4; ++k) {
            const bool where = o.op == Op::Where;
            const double x[] = {where ? 1 : a[k], b[k], 2};
            const std::int64_t n[] = {where ? 1 : i[k], j[k], 2};
            std::vector<Tensor> real, whole;
            for (int arg = 0; arg < o.arity; ++arg) {
                const bool condition = where && arg == 0;
                real.push_back(full({1}, x[arg], condition ? DType::Bool : DType::F32, true));
                whole.push_back(full({1}, static_cast<double>(n[arg]), condition ? DType::Bool : DType::I64, false));
            }
            if (o.real) {
                const Tensor r = tensor::apply(o.op, real);
                expect(r, o.bool_out ? DType::Bool : DType::F32, {1}, {o.real(x)});
                EXPECT_EQ(r.pin != nullptr, !o.bool_out) << o.name;
                const float f[] = {static_cast<float>(x[0]), static_cast<float>(x[1])};
                if (r.pin && o.f32) {
                    const float want = o.f32(f);
                    EXPECT_TRUE((*r.pin)[0] == want || (std::isnan(want) && std::isnan((*r.pin)[0]))) << o.name;
                }
            }
            const Tensor w = tensor::apply(o.op, whole);
            if (o.integer) {
                const bool comparison = o.op >= Op::Lt && o.op <= Op::Ne;
                const double want =
                    o.op == Op::Not ? static_cast<double>(-1 - n[0]) : static_cast<double>(o.integer(n));
                expect(w, comparison ? DType::Bool : DType::I64, {1}, {want});
            } else {
                const double converted[] = {static_cast<double>(n[0]), static_cast<double>(n[1])};
                expect(w, DType::F32, {1}, {o.real(converted)});
                EXPECT_TRUE(w.pin) << o.name;
            }
        }
    }
}

TEST(ApplyTest, IntegersBecomeTheDefaultFloat) {
    expect(apply(Op::Div, {ints({2}, {1, 3}), ints({2}, {2, 4})}), DType::F32, {2}, {0.5, 0.75});
    expect(apply(Op::Div, {bools({2}, {1, 0}), ints({}, {2})}), DType::F32, {2}, {0.5, 0});
    expect(apply(Op::Exp, {ints({1}, {0})}), DType::F32, {1}, {1});
    expect(apply(Op::Mul, {ints({1}, {3}), number(0.5, DType::F64)}), DType::F32, {1}, {1.5});
    expect(apply(Op::Div, {ints({1}, {1}), full({}, 2, DType::F16, false)}), DType::F16, {1}, {0.5});
    expect(apply(Op::Pow, {ints({2}, {2, 3}), number(2, DType::I64)}), DType::I64, {2}, {4, 9});
    expect(apply(Op::Pow, {number(2, DType::I64), ints({2}, {2, -3})}), DType::I64, {2}, {4, 0});
    expect(apply(Op::Floor, {ints({1}, {3})}), DType::I64, {1}, {3});
}

TEST(ApplyTest, BoolsAreWhatPyTorchMakesOfThem) {
    const Tensor a = bools({4}, {0, 0, 1, 1}), b = bools({4}, {0, 1, 0, 1});
    expect(apply(Op::Add, {a, b}), DType::Bool, {4}, {0, 1, 1, 1});
    expect(apply(Op::Mul, {a, b}), DType::Bool, {4}, {0, 0, 0, 1});
    expect(apply(Op::Max, {a, b}), DType::Bool, {4}, {0, 1, 1, 1});
    expect(apply(Op::And, {a, b}), DType::Bool, {4}, {0, 0, 0, 1});
    expect(apply(Op::Or, {a, b}), DType::Bool, {4}, {0, 1, 1, 1});
    expect(apply(Op::Xor, {a, b}), DType::Bool, {4}, {0, 1, 1, 0});
    expect(apply(Op::Not, {a}), DType::Bool, {4}, {1, 1, 0, 0});
    expect(apply(Op::Lt, {a, b}), DType::Bool, {4}, {0, 1, 0, 0});
    expect(apply(Op::Add, {a, number(1, DType::I64)}), DType::I64, {4}, {1, 1, 2, 2});
    expect(apply(Op::Mul, {b, full({}, 2, DType::F32, true)}), DType::F32, {4}, {0, 2, 0, 2});
    expect(apply(Op::And, {ints({1}, {6}), ints({1}, {3})}), DType::I64, {1}, {2});
    expect(apply(Op::Not, {from_values({2}, {0, 5}, DType::U8, false)}), DType::U8, {2}, {255, 250});
    EXPECT_FAILURE("type", apply(Op::Sub, {a, b}));
    EXPECT_FAILURE("type", apply(Op::Sub, {number(1, DType::I64), b}));
    EXPECT_FAILURE("type", apply(Op::Neg, {a}));
    EXPECT_FAILURE("type", apply(Op::Not, {floats({1}, {1})}));
    EXPECT_FAILURE("type", apply(Op::And, {floats({1}, {1}), ints({1}, {1})}));
    EXPECT_FAILURE("type", apply(Op::FloorDiv, {a, b}));
    EXPECT_FAILURE("type", apply(Op::Where, {ints({1}, {1}), a, b}));
    EXPECT_FAILURE("type", apply(Op::Pow, {ints({1}, {2}), number(-1, DType::I64)}));
}

TEST(ApplyTest, IntegersWrapWhereNarrowAndFailWhereInexact) {
    expect(apply(Op::Add, {from_values({1}, {250}, DType::U8, false), number(10, DType::I64)}), DType::U8, {1}, {4});
    expect(apply(Op::Mul, {from_values({1}, {65536}, DType::I32, false), number(65536, DType::I64)}), DType::I32, {1},
           {0});
    EXPECT_FAILURE("limit", apply(Op::Mul, {ints({1}, {4294967296.0}), ints({1}, {4294967296.0})}));
    EXPECT_FAILURE("limit", apply(Op::Pow, {ints({1}, {2}), ints({1}, {64})}));
    EXPECT_FAILURE("limit", apply(Op::Add, {ints({1}, {9007199254740992.0}), number(1, DType::I64)}));
    expect(apply(Op::FloorDiv, {ints({2}, {7, -7}), number(0, DType::I64)}), DType::I64, {2}, {0, 0});
}

TEST(ApplyTest, NaNAndInfinity) {
    expect(apply(Op::Max, {floats({3}, {kNaN, 1, -kInf}), floats({3}, {1, kNaN, 2})}), DType::F32, {3},
           {kNaN, kNaN, 2});
    expect(apply(Op::Sub, {floats({1}, {-kInf}), floats({1}, {-kInf})}), DType::F32, {1}, {kNaN});
    expect(apply(Op::Where, {bools({2}, {1, 0}), floats({2}, {kNaN, kNaN}), number(-kInf, DType::F64)}), DType::F32,
           {2}, {kNaN, -kInf});
    expect(apply(Op::Mul, {floats({1}, {0}), floats({1}, {kInf})}), DType::F32, {1}, {kNaN});
    expect(apply(Op::Eq, {floats({1}, {kNaN}), floats({1}, {kNaN})}), DType::Bool, {1}, {0});
}

TEST(ApplyTest, PinsAreFloat32ArithmeticAsWritten) {
    const Tensor tenth = apply(Op::Div, {ints({1}, {1}), ints({}, {10})});
    EXPECT_EQ((*tenth.data)[0], 0.1);
    EXPECT_EQ((*tenth.pin)[0], 0.1f);
    const Tensor sum = apply(Op::Add, {tenth, number(0.2, DType::F64)});
    EXPECT_EQ((*sum.pin)[0], 0.1f + 0.2f);
    EXPECT_EQ((*sum.data)[0], 0.1 + 0.2);
    // No pin where one operand hangs on q, k or v, and none of other float dtypes.
    EXPECT_FALSE(apply(Op::Add, {tenth, floats({1}, {1})}).pin);
    EXPECT_FALSE(apply(Op::Add, {tenth, doubles({1}, {1})}).pin);
    EXPECT_FALSE(apply(Op::Add, {tenth, doubles({}, {1})}).pin);
    EXPECT_FALSE(apply(Op::Mul, {doubles({1}, {1}), number(2, DType::F64)}).pin);
    EXPECT_TRUE(apply(Op::Add, {tenth, bools({1}, {1})}).pin);
    const Tensor chosen = apply(Op::Where, {bools({2}, {1, 0}), tenth, number(0.3, DType::F64)});
    EXPECT_EQ((*chosen.pin)[0], 0.1f);
    EXPECT_EQ((*chosen.pin)[1], 0.3f);
    EXPECT_FALSE(apply(Op::Where, {bools({1}, {1}), tenth, floats({1}, {0})}).pin);
    EXPECT_EQ((*apply(Op::Add, {ints({1}, {16777217}), number(0.0, DType::F64)}).pin)[0], 16777216.0f);
}

TEST(ApplyTest, ComparisonsAndFloorsReadThePin) {
    // In float32, 0.1 + 0.2 is 0.3 (both 0x3e99999a); in double it is more.
    const Tensor sum = apply(Op::Add, {pinned({1}, {0.1}), number(0.2, DType::F64)});
    const float written = 0.1f + 0.2f;
    expect(apply(Op::Eq, {sum, number(0.3, DType::F64)}), DType::Bool, {1}, {written == 0.3f ? 1.0 : 0.0});
    expect(apply(Op::Gt, {floats({1}, {0.1 + 0.2}), number(0.3, DType::F64)}), DType::Bool, {1}, {1});
    const Tensor near = pinned({1}, {2.99999999999});
    const Tensor floor = apply(Op::Floor, {near});
    expect(floor, DType::F32, {1}, {3});
    EXPECT_EQ((*floor.pin)[0], 3.0f);
    expect(apply(Op::Trunc, {near}), DType::F32, {1}, {3});
    expect(apply(Op::FloorDiv, {near, number(1, DType::I64)}), DType::F32, {1}, {3});
    expect(apply(Op::Ceil, {pinned({1}, {3.00000000001})}), DType::F32, {1}, {3});
    expect(apply(Op::Round, {pinned({1}, {2.50000000001})}), DType::F32, {1}, {2});
    expect(apply(Op::Floor, {floats({1}, {2.99999999999})}), DType::F32, {1}, {2});
    expect(apply(Op::Floor, {doubles({1}, {2.99999999999})}), DType::F64, {1}, {2});
    // One side hangs on q: exact values decide.
    expect(apply(Op::Lt, {near, floats({1}, {3})}), DType::Bool, {1}, {1});
    // Integers are compared exactly, not as floats.
    expect(apply(Op::Lt, {ints({1}, {16777216}), ints({1}, {16777217})}), DType::Bool, {1}, {1});
    // Against a float number they are converted to float32, as PyTorch does.
    expect(apply(Op::Lt, {ints({1}, {16777216}), number(16777217.0, DType::F64)}), DType::Bool, {1}, {0});
}

TEST(ApplyTest, NumbersAreComputedInDouble) {
    const Tensor sum = apply(Op::Add, {number(0.1, DType::F64), number(0.2, DType::F64)});
    EXPECT_TRUE(sum.scalar);
    EXPECT_EQ((*sum.data)[0], 0.1 + 0.2);
    EXPECT_EQ((*sum.pin)[0], static_cast<float>(0.1 + 0.2));
    expect(apply(Op::Sub, {number(1, DType::Bool), number(3, DType::I64)}), DType::I64, {}, {-2});
    EXPECT_EQ((*apply(Op::Pow, {number(2, DType::I64), number(-1, DType::I64)}).data)[0], 0.5);
    EXPECT_EQ((*apply(Op::Div, {number(1, DType::I64), number(3, DType::I64)}).data)[0], 1.0 / 3);
    EXPECT_FALSE(apply(Op::Add, {number(1, DType::I64), ints({}, {1})}).scalar);
}

/// T5's buckets of positions 0 .. count - 1: exact below n / 2, then logarithmic up to `max`.
Values t5(std::int64_t count, int buckets, int max) {
    const int exact = buckets / 2;
    const Tensor d = arange(0, 1, count, DType::I64);
    Tensor x = apply(Op::Log, {apply(Op::Div, {cast(d, DType::F32), number(exact, DType::I64)})});
    x = apply(Op::Div, {x, number(std::log(static_cast<double>(max) / exact), DType::F64)});
    x = apply(Op::Mul, {x, number(buckets - exact, DType::I64)});
    x = apply(Op::Add, {number(exact, DType::I64), cast(x, DType::I64)});
    x = apply(Op::Min, {x, full({}, buckets - 1, DType::I64, false)});
    x = apply(Op::Where, {apply(Op::Lt, {d, number(exact, DType::I64)}), d, x});
    EXPECT_EQ(x.dtype, DType::I64);
    return *x.data;
}

TEST(ApplyTest, T5BucketsFallWhereFloat32PutsThem) {
    for (const int buckets : {16, 32, 64})
        for (const int max : {64, 128, 256}) {
            const Values got = t5(512, buckets, max);
            const int exact = buckets / 2;
            for (int d = 0; d < 512; ++d) {
                int want = d;
                if (d >= exact) {
                    const float ratio = static_cast<float>(d) / static_cast<float>(exact);
                    const float log = static_cast<float>(std::log(static_cast<double>(ratio)));
                    const float scale = static_cast<float>(std::log(static_cast<double>(max) / exact));
                    want = std::min(exact + static_cast<int>(log / scale * static_cast<float>(buckets - exact)),
                                    buckets - 1);
                }
                EXPECT_EQ(got[static_cast<std::size_t>(d)], want) << d << " of " << buckets << ", " << max;
            }
        }
    // By hand, 16 buckets and 128: exact 8; log(16/8)/log(16) * 8 = 2, log(32/8)/log(16) * 8 = 4.
    const Values t = t5(256, 16, 128);
    EXPECT_EQ(t[7], 7);
    EXPECT_EQ(t[8], 8);
    EXPECT_EQ(t[16], 10);
    EXPECT_EQ(t[32], 12);
    EXPECT_EQ(t[255], 15);
}

} // namespace
} // namespace cubridge::ir::tensor
