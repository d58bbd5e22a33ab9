// Every operator in every type, as kernels print it, against the expression's value.
// SPDX-License-Identifier: Apache-2.0
#include "host.h"
#include "problem.h"

using namespace cubridge::ir;
using namespace cubridge::ir::generic;
using namespace cubridge::ir::generic::test;

namespace {

const std::vector<double> kX = {
    0,  -0.0,      1,     -1,           0.5, -0.5, 1.5,      -2.5,      2.5,          3,
    -7, 7,         20.25, 0.0009765625, 30,  -30,  HUGE_VAL, -HUGE_VAL, std::nan(""), 0.0001220703125,
    64, 2.9999998f};
const std::vector<double> kY = {2, 3, -2, 0.5, -0.5, 0, -3, 7, HUGE_VAL, std::nan(""), 1, -1.5};
const std::vector<double> kN = {0, 1, -1, 2, -2, 3, 7, -7, 8, -8, 100, -100, 1e15, -1e15, 2147483648.0, 12345678901.0};
const std::vector<double> kM = {2, -2, 3, -3, 7, 0, 1, -1, 64, -5};

/// Row i of the output is expression i at each pair of values (column).
struct Rows {
    Problem p;
    std::vector<Expr> list;
    std::vector<std::string> names;
    Expr x = nullptr, y = nullptr;

    Rows(DType type, Type as, const std::vector<double>& xs, const std::vector<double>& ys) {
        p.qkv();
        const int a = p.input("x", type, p.own(1)), b = p.input("y", type, p.own(1));
        x = p.pool().load(a, as, {p.ix(3)}), y = p.pool().load(b, as, {p.ix(3)});
        std::vector<double> left, right;
        for (const double u : xs)
            for (const double v : ys) left.push_back(u), right.push_back(v);
        const auto n = static_cast<std::int64_t>(left.size());
        p.operand(0, type, {n}, left), p.operand(1, type, {n}, right);
        columns = static_cast<int>(n);
    }
    void add(const std::string& name, Expr e) { list.push_back(p.pool().cast(Type::Real, e)), names.push_back(name); }
    void all(Expr a, Expr b) {
        for (const OpInfo& op : all_ops()) {
            if (op.arity > 2) continue;
            try {
                add(op.name, op.arity == 1 ? p.pool().apply(op.op, a) : p.pool().apply(op.op, a, b));
            } catch (const Failure&) { // not of this type
            }
        }
    }
    void finish() {
        Expr body = p.num(0);
        body = p.pool().real(0);
        for (std::size_t n = list.size(); n-- > 0;)
            body = p.pool().select(p.pool().apply(Op::Eq, p.ix(2), p.num(static_cast<std::int64_t>(n))), list[n], body);
        p.output(body);
        p.sizes(1, 1, 1, static_cast<int>(list.size()), 1, 1, columns);
        p.data();
    }
    int columns = 0;
};

void compare(std::vector<Rows*> all, const std::vector<double>& tolerance) {
    HostKernels host;
    for (Rows* r : all) {
        r->finish();
        for (const bool f64 : {false, true}) {
            r->p.options.f64 = f64;
            const auto k = print(r->p.scalar, r->p.request, r->p.options);
            ASSERT_TRUE(k) << k.error().message;
            host.add(*k);
        }
    }
    ASSERT_TRUE(host.build("-O0"));
    for (std::size_t n = 0; n < all.size(); ++n) {
        Problem& p = all[n]->p;
        const auto want = p.reference().o;
        for (int f64 = 0; f64 < 2; ++f64) {
            const int k = static_cast<int>(2 * n) + f64;
            const auto out = p.output_buffers();
            host.run(k, p.args, p.launch_sizes(host.kernel(k).plan));
            const auto got = p.read(out).o;
            const double bound = tolerance[n] == 0 ? 0 : f64 != 0 ? 1e-11 : tolerance[n];
            const auto columns = static_cast<std::ptrdiff_t>(all[n]->columns);
            for (std::size_t row = 0; row < all[n]->names.size(); ++row) {
                const auto from = static_cast<std::ptrdiff_t>(row) * columns;
                EXPECT_TRUE(near({got.begin() + from, got.begin() + from + columns},
                                 {want.begin() + from, want.begin() + from + columns}, bound))
                    << all[n]->names[row]
                    << (f64 != 0 ? " in the float64 build, kind " : " in the float32 build, kind ") << n;
            }
        }
    }
}

TEST(GenericOps, EveryOperatorInEveryType) {
    Rows real(DType::F64, Type::Real, kX, kY), f32(DType::F32, Type::F32, kX, kY);
    Rows whole(DType::I64, Type::Int, kN, kM), truth(DType::Bool, Type::Bool, {0, 1}, {0, 1});
    real.all(real.x, real.y);
    f32.all(f32.x, f32.y);
    whole.all(whole.x, whole.y);
    truth.all(truth.x, truth.y);

    ExprPool& e = real.p.pool();
    const auto power = [&](std::int64_t num, std::int64_t den) {
        return e.product(Type::Real, {{real.x, num, den}, {real.y, -1, 1}});
    };
    for (const auto& [n, d] : {std::pair{2, 1}, {3, 1}, {-3, 1}, {1, 2}, {-1, 2}, {3, 2}, {1, 3}, {-1, 4}})
        real.add("power " + std::to_string(n) + "/" + std::to_string(d), power(n, d));
    for (const double c : {2.0, 0.5, 3.0, -2.0})
        f32.add("pow", f32.p.pool().apply(Op::Pow, f32.x, f32.p.pool().f32(static_cast<float>(c))));
    real.add("sum", e.rsum(0.1, {{-1, real.x}, {2.5, real.y}, {-1, e.mul(real.x, real.y)}}));
    real.add("inf", e.rsum(HUGE_VAL, {{1, real.x}}));
    real.add("nan", e.select(e.apply(Op::Lt, real.x, real.y), e.real(std::nan("")), e.real(-HUGE_VAL)));
    real.add("ternary max", e.extremum(Kind::Max, {real.x, real.y, e.real(0.25)}));
    real.add("ternary min", e.extremum(Kind::Min, {real.x, real.y, e.mul(real.x, real.y)}));
    Rows casts(DType::F64, Type::Real, {0, -0.9, 0.9, 1.5, -1.5, 1e6, -1e6, 16777217, 0.1f}, {1});
    ExprPool& c = casts.p.pool();
    casts.add("real to int", c.cast(Type::Int, casts.x));
    casts.add("f32 to int", c.cast(Type::Int, c.apply(Op::Mul, c.cast(Type::F32, casts.x), c.f32(3.7f))));
    casts.add("bool to real", c.apply(Op::Lt, casts.x, casts.y));
    casts.add("int to f32", c.apply(Op::Mul, c.cast(Type::F32, c.cast(Type::Int, casts.x)), c.f32(0.1f)));
    casts.add("not contracted",
              c.apply(Op::Add, c.apply(Op::Mul, c.cast(Type::F32, casts.x), c.f32(0.1f)), c.f32(-0.3f)));
    ExprPool& w = whole.p.pool();
    whole.add("polynomial", w.isum(-5, {{3, whole.x}, {-1, whole.y}}));
    whole.add("product", w.mul(w.apply(Op::Mod, whole.x, w.integer(1000)), w.mul(whole.y, whole.y)));
    whole.add("select", w.select(w.logical_and(w.apply(Op::Le, whole.x, whole.y),
                                               w.logical_not(w.apply(Op::Eq, whole.y, w.integer(2)))),
                                 whole.x, whole.y));
    ConstTable t;
    t.shape = {3, 2};
    t.values = {1, -2, 0.1, HUGE_VAL, -HUGE_VAL, std::nan("")};
    whole.add("table", w.table(w.add_table(t), {whole.y, whole.x}));
    t.values = {1, 0, 1, 1, 0, 1};
    t.type = Type::Bool;
    whole.add("table of bools", w.table(w.add_table(t), {whole.y, whole.x}));
    t.values = {1, -9, 1e12, 4, 5, 6};
    t.type = Type::Int;
    whole.add("table of ints", w.table(w.add_table(t), {whole.x, whole.y}));
    compare({&real, &f32, &whole, &truth, &casts}, {1e-5, 0, 1e-7, 0, 1e-7});
}

TEST(GenericOps, EveryElementTypeIsRead) {
    std::vector<std::unique_ptr<Rows>> rows;
    std::vector<Rows*> all;
    for (int t = 0; t <= static_cast<int>(DType::F64); ++t) {
        const auto type = static_cast<DType>(t);
        std::vector<double> values = {0, 1};
        const auto codes = size_in_bytes(type) == 1 ? 256U : 65536U;
        if (is_float(type) && size_in_bytes(type) <= 2)
            for (unsigned n = 0; n < codes; n += codes == 256U ? 1 : 131) {
                const auto code = static_cast<std::uint16_t>(n);
                values.push_back(host_element(&code, type, 0));
            }
        if (type >= DType::F32) values = kX;
        if (is_integer(type)) values = {0, 1, 100, type == DType::U8 ? 255.0 : -100.0};
        if (type == DType::I64) values.push_back(-1e15);
        rows.push_back(std::make_unique<Rows>(type, Type::Real, values, std::vector<double>{1}));
        Rows& r = *rows.back();
        r.add(short_name(type), r.x);
        r.add("as truth", r.p.pool().load(3, Type::Bool, {r.p.ix(3)}));
        if (!is_float(type)) r.add("as int", r.p.pool().load(3, Type::Int, {r.p.ix(3)}));
        all.push_back(&r);
    }
    compare(all, std::vector<double>(all.size(), 1e-7));
}

/// Rounding to the nearest, ties to the even code; one step past the largest stands for the overflow.
double rounded(double x, DType t) {
    if (x != x || t == DType::F64) return x;
    if (t == DType::F32) return static_cast<double>(static_cast<float>(x));
    const double largest = t == DType::E4M3 ? 480 : t == DType::BF16 ? std::ldexp(1, 128) : 65536;
    const unsigned codes = size_in_bytes(t) == 1 ? 128 : 32768;
    double best = 0, distance = HUGE_VAL;
    for (unsigned c = 0; c < codes; ++c) {
        const auto code = static_cast<std::uint16_t>(c);
        double v = host_element(&code, t, 0);
        const bool over = !std::isfinite(v);
        if (over) v = largest;
        const double off = std::fabs(std::fabs(x) - v);
        if (off < distance || (off == distance && c % 2 == 0))
            best = over ? (t == DType::E4M3 ? std::nan("") : HUGE_VAL) : v, distance = off;
        if (over) break;
    }
    if (std::fabs(x) >= largest) best = t == DType::E4M3 ? std::nan("") : HUGE_VAL;
    return std::copysign(best, x);
}

TEST(GenericOps, EveryFloatingTypeIsWritten) {
    std::vector<double> values = kX;
    for (const double v :
         {65504.0,    65519.9,     65520.0,      448.0,        464.0,   465.0,        57344.0,       61440.0,
          61441.0,    3.4e38,      1e-7,         6e-8,         2.98e-8, 1.0009765625, 1.00048828125, 1.00390625,
          1.01171875, 0.001953125, 0.0009765625, 0.0029296875, 1.0625,  1.1875,       -0.3,          3.3895e38})
        values.push_back(static_cast<double>(static_cast<float>(v)));
    std::mt19937 random(3);
    for (int n = 0; n < 100; ++n)
        values.push_back(std::ldexp(static_cast<double>(static_cast<float>(random() & 0xfff)) / 4096,
                                    static_cast<int>(random() % 40) - 24));
    HostKernels host;
    std::vector<std::unique_ptr<Rows>> rows;
    for (const DType t : {DType::E4M3, DType::E5M2, DType::F16, DType::BF16, DType::F32, DType::F64}) {
        rows.push_back(std::make_unique<Rows>(DType::F32, Type::Real, values, std::vector<double>{1}));
        rows.back()->add("x", rows.back()->x);
        rows.back()->finish();
        rows.back()->p.request.o_dtype = t;
        const auto k = print(rows.back()->p.scalar, rows.back()->p.request);
        ASSERT_TRUE(k) << k.error().message;
        host.add(*k);
    }
    ASSERT_TRUE(host.build("-O0"));
    for (std::size_t n = 0; n < rows.size(); ++n) {
        Problem& p = rows[n]->p;
        const auto out = p.output_buffers();
        host.run(static_cast<int>(n), p.args, p.launch_sizes(host.kernel(static_cast<int>(n)).plan));
        const auto got = p.read(out).o;
        for (std::size_t k = 0; k < values.size(); ++k) {
            const double want = rounded(values[k], p.request.o_dtype);
            EXPECT_TRUE(got[k] == want || (got[k] != got[k] && want != want))
                << short_name(p.request.o_dtype) << " of " << values[k] << ": " << got[k] << " against " << want;
        }
    }
}

} // namespace
