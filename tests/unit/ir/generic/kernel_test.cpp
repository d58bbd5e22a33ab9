// Attention as texts have it: the kernel's text on the host, the steps on the host and direct evaluation agree.
// SPDX-License-Identifier: Apache-2.0
#include "host.h"
#include "problem.h"

using namespace cubridge::ir;
using namespace cubridge::ir::generic;
using namespace cubridge::ir::generic::test;

namespace {

/// Expressions of attention over a Problem.
struct Attention {
    Problem& p;
    ExprPool& e;
    Expr b, h, i, d;
    explicit Attention(Problem& problem)
        : p(problem), e(problem.pool()), b(e.index(0)), h(e.index(1)), i(e.index(2)), d(e.index(3)) {}

    Expr kv_head() { return e.apply(Op::FloorDiv, h, e.apply(Op::FloorDiv, e.dim(dims::Hq), e.dim(dims::Hk))); }
    Expr q(Expr c) { return e.load(0, Type::Real, {b, h, i, c}); }
    Expr k(Expr j, Expr c) { return e.load(1, Type::Real, {b, kv_head(), j, c}); }
    Expr v(Expr j) { return e.load(2, Type::Real, {b, kv_head(), j, d}); }
    Expr real(Expr x) { return e.cast(Type::Real, x); }
    Expr scale() { return e.product(Type::Real, {{real(e.dim(dims::D)), -1, 2}}); }
    Expr score(Expr j) {
        const Expr c = e.index(9);
        return e.mul(e.reduce(ReduceOp::Sum, e.mul(q(c), k(j, c)), 9, e.dim(dims::D)), scale());
    }
    Expr masked(Expr keep, Expr s) { return e.select(keep, s, e.real(-HUGE_VAL)); }
    Expr over_keys(ReduceOp op, Expr body) { return e.reduce(op, body, 8, e.dim(dims::Sk)); }
    /// softmax over Index(8) of s, times v; and its log-sum-exp.
    Expr softmax_v(Expr s, Expr* lse = nullptr) {
        const Expr j = e.index(8), m = over_keys(ReduceOp::Max, s), w = e.apply(Op::Exp, e.sub(s, m));
        const Expr l = over_keys(ReduceOp::Sum, w);
        if (lse != nullptr) *lse = e.add(m, e.apply(Op::Log, l));
        return over_keys(ReduceOp::Sum, e.mul(e.apply(Op::Div, w, l), v(j)));
    }
};

void check(std::vector<Problem*> problems, int threads) {
    HostKernels host(threads);
    std::vector<int> wide, plain;
    for (Problem* p : problems) {
        for (const bool f64 : {true, false}) {
            p->options.f64 = f64;
            auto kernel = print(p->scalar, p->request, p->options);
            ASSERT_TRUE(kernel) << kernel.error().message;
            const auto again = print(p->scalar, p->request, p->options);
            EXPECT_EQ(kernel->cuda, again->cuda);
            const auto back = launch::Plan::parse(kernel->plan.text());
            ASSERT_TRUE(back) << back.error().message;
            EXPECT_EQ(*back, kernel->plan);
            (f64 ? wide : plain).push_back(host.add(*kernel));
        }
    }
    ASSERT_TRUE(host.build());
    for (std::size_t n = 0; n < problems.size(); ++n) {
        SCOPED_TRACE("problem " + std::to_string(n));
        Problem& p = *problems[n];
        const HostResult reference = p.reference();
        p.options.f64 = true;
        const auto steps = run(p.scalar, p.request, p.options, p.args);
        ASSERT_TRUE(steps) << steps.error().message;
        EXPECT_TRUE(near(steps->o, reference.o, 1e-12));
        EXPECT_TRUE(near(steps->lse, reference.lse, 1e-12));
        for (const bool f64 : {true, false}) {
            SCOPED_TRACE(f64 ? "float64" : "float32");
            const int k = (f64 ? wide : plain)[n];
            const auto out = p.output_buffers();
            host.run(k, p.args, p.launch_sizes(host.kernel(k).plan));
            const auto first = p.read(out);
            EXPECT_TRUE(near(first.o, reference.o, f64 ? 1e-11 : 2e-5));
            EXPECT_TRUE(near(first.lse, reference.lse, f64 ? 1e-11 : 2e-5));
            const auto twice = p.output_buffers();
            host.run(k, p.args, p.launch_sizes(host.kernel(k).plan));
            EXPECT_EQ(out.o, twice.o);
        }
    }
}

/// The first variant of the paper: softmax over a causal mask with a prefix, an int given as a bound scalar.
void prefix_lm(Problem& p) {
    p.qkv();
    Attention a(p);
    const int x = p.input("prefix", DType::I32, {}, Input::Fate::Bound);
    p.args.operand[0].value = 3;
    const Expr j = p.ix(8),
               keep = a.e.logical_or(a.e.apply(Op::Le, j, a.i), a.e.apply(Op::Lt, j, a.e.arg(x, Type::Int)));
    Expr lse = nullptr;
    const Expr out = a.softmax_v(a.masked(keep, a.score(j)), &lse);
    p.output(out, lse);
    p.request.lse = Request::Lse::Natural;
}

void rms_and_rope(Problem& p) {
    p.qkv();
    Attention a(p);
    ExprPool& e = a.e;
    const int weight = p.input("kw", DType::BF16, {p.dim(dims::D)}),
              pos = p.input("pos", DType::I64, {p.dim(dims::B), p.dim(dims::Sk)});
    const Expr j = p.ix(8), c = p.ix(9), cc = p.ix(10);
    const auto rms = [&](auto load) {
        const Expr sum = e.reduce(ReduceOp::Sum, e.product(Type::Real, {{load(cc), 2, 1}}), 10, p.dim(dims::D));
        return e.product(
            Type::Real,
            {{e.add(e.mul(sum, e.product(Type::Real, {{a.real(p.dim(dims::D)), -1, 1}})), e.real(1e-6)), -1, 2}});
    };
    const auto turned = [&](Expr x, Expr at) {
        return e.mul(x, e.apply(Op::Cos, e.mul(a.real(at), e.apply(Op::Exp, e.mul(e.real(-0.3), a.real(c))))));
    };
    const Expr kf =
        turned(e.mul(e.mul(a.k(j, c), rms([&](Expr x) { return a.k(j, x); })), e.load(weight, Type::Real, {c})),
               e.load(pos, Type::Int, {a.b, j}));
    const Expr qf = turned(e.mul(a.q(c), rms([&](Expr x) { return a.q(x); })), a.i);
    const Expr s = e.reduce(ReduceOp::Sum, e.mul(qf, kf), 9, p.dim(dims::D));
    p.output(a.softmax_v(s));
}

TEST(GenericKernel, PrefixAndGroups) {
    Problem square, tail, sharded, narrow, empty;
    prefix_lm(square), square.sizes(2, 2, 3, 5, 5, 4, 6), square.data();
    prefix_lm(tail), tail.request.rows = Request::Rows::Tail, tail.lengths = {7, 2, 0, 3};
    tail.sizes(4, 1, 2, 3, 9, 4, 4), tail.data(true), tail.request.lse = Request::Lse::Log2;
    prefix_lm(sharded), sharded.sizes(1, 2, 2, 4, 6, 5, 3, 4), sharded.data(true);
    prefix_lm(narrow), narrow.request.q_dtype = DType::BF16, narrow.request.kv_dtype = DType::F16;
    narrow.sizes(1, 1, 1, 6, 4, 8, 8), narrow.data();
    float scales[] = {0.5f, 2.0f};
    narrow.args.k_scale = {scales, 0, 1}, narrow.args.v_scale = {scales + 1, 0, 0};
    prefix_lm(empty), empty.sizes(2, 1, 1, 3, 0, 4, 4), empty.data();
    check({&square, &tail, &sharded, &narrow, &empty}, 1);
    check({&square, &tail}, 3);
}

TEST(GenericKernel, TransformedKeysAreTables) {
    Problem p;
    rms_and_rope(p);
    p.sizes(2, 2, 2, 3, 5, 6, 4);
    p.data();
    p.operand(0, DType::BF16, {6}, {1, 0.5, -1, 2, 1.5, 0.25});
    p.operand(1, DType::I64, {2, 5}, {0, 1, 2, 3, 4, 9, 8, 7, 6, 5});
    const auto kernel = print(p.scalar, p.request, p.options);
    ASSERT_TRUE(kernel) << kernel.error().message;
    EXPECT_EQ(kernel->plan.entries.size(), 3U); // the norm of a key, the key, the rows
    EXPECT_EQ(kernel->steps_per_launch, 2);
    EXPECT_EQ(kernel->cuda.find("#include"), std::string::npos);
    check({&p}, 1);
    check({&p}, 2);
    p.options.max_entries = 1; // deeper chains are loops in place
    check({&p}, 1);
}

} // namespace
