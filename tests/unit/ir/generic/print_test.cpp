// What print() accepts, what it plans for the launch, and the layouts.
// SPDX-License-Identifier: Apache-2.0
#include "host.h"
#include "problem.h"

using namespace cubridge::ir;
using namespace cubridge::ir::generic;
using namespace cubridge::ir::generic::test;
using launch::Size;

namespace {

/// sum_j relu(s(j)) v(j): no normaliser, one table.
Expr relu_attention(Problem& p, Expr head, Expr weight = nullptr) {
    ExprPool& e = p.pool();
    const Expr b = e.index(0), i = e.index(2), j = e.index(8), c = e.index(9);
    const Expr kv = e.apply(Op::FloorDiv, head, e.apply(Op::FloorDiv, e.dim(dims::Hq), e.dim(dims::Hk)));
    Expr s =
        e.reduce(ReduceOp::Sum, e.mul(e.load(0, Type::Real, {b, head, i, c}), e.load(1, Type::Real, {b, kv, j, c})), 9,
                 e.dim(dims::D));
    if (weight != nullptr) s = e.mul(s, weight);
    return e.reduce(ReduceOp::Sum,
                    e.mul(e.extremum(Kind::Max, {s, e.real(0)}), e.load(2, Type::Real, {b, kv, j, e.index(3)})), 8,
                    e.dim(dims::Sk));
}

void compare(std::vector<Problem*> problems, int threads = 1) {
    HostKernels host(threads);
    for (Problem* p : problems) {
        p->options.f64 = true;
        const auto k = print(p->scalar, p->request, p->options);
        ASSERT_TRUE(k) << k.error().message;
        host.add(*k);
    }
    ASSERT_TRUE(host.build());
    for (std::size_t n = 0; n < problems.size(); ++n) {
        SCOPED_TRACE("problem " + std::to_string(n));
        Problem& p = *problems[n];
        const auto want = p.reference();
        const auto out = p.output_buffers();
        host.run(static_cast<int>(n), p.args, p.launch_sizes(host.kernel(static_cast<int>(n)).plan));
        const auto got = p.read(out);
        EXPECT_TRUE(near(got.o, want.o, 1e-11));
        EXPECT_TRUE(near(got.lse, want.lse, 1e-11));
    }
}

TEST(GenericPrint, EmptyRowsAreZeroWhereAsked) {
    Problem p;
    p.qkv();
    p.output(p.pool().real(std::nan("")), p.pool().real(1));
    p.request.empty_rows = Request::EmptyRows::Zero;
    p.request.lse = Request::Lse::Natural;
    p.sizes(1, 1, 1, 4, 3, 2, 2), p.data();
    EXPECT_EQ(print(p.scalar, p.request).error().kind, "unsupported");
    ExprPool& e = p.pool(); // row i keeps keys j with j + 2 <= i
    const Expr kept = e.apply(Op::Le, e.add(p.ix(8), e.integer(2)), p.ix(2));
    p.options.row_is_empty = e.logical_not(e.reduce(ReduceOp::Any, kept, 8, p.dim(dims::Sk)));
    compare({&p});
}

TEST(GenericPrint, OperandsAndFacts) {
    Problem p;
    p.qkv();
    ExprPool& e = p.pool();
    const int bias = p.input("bias", DType::F16, {p.dim(dims::Hq), p.dim(dims::of(3, 1))});
    const int doc = p.input("doc", DType::I32, {p.dim(dims::Sk)});
    const int gone = p.input("gone", DType::F32, {}, Input::Fate::Absent);
    const int scale = p.input("scale", DType::F32, {});
    EXPECT_EQ(gone, 5);
    // A bias at a computed place, clamped there, times the number of keys of the same document: a table of the
    // prologue.
    const Expr same = e.apply(Op::Eq, e.load(doc, Type::Int, {p.ix(8)}), e.load(doc, Type::Int, {p.ix(9)}));
    const Expr count = e.reduce(ReduceOp::Sum, e.cast(Type::Int, same), 9, p.dim(dims::Sk));
    const Expr at = e.load(bias, Type::Real, {p.ix(1), e.sub(p.ix(8), p.ix(2))});
    p.output(relu_attention(p, p.ix(1), e.mul(e.mul(at, e.cast(Type::Real, count)), e.arg(scale, Type::Real))));
    p.scalar.facts.push_back({Fact::Kind::AtLeast, p.dim(dims::D), p.num(2), {}, "D >= 2"});
    p.scalar.facts.push_back({Fact::Kind::AtLeast, p.dim(dims::of(3, 1)), p.dim(dims::Sk), {}, "x3.1 >= Sk"});
    p.scalar.facts.push_back({Fact::Kind::Divides, p.dim(dims::Sk), p.num(2), {}, "Sk % 2 == 0"});
    p.sizes(2, 2, 2, 3, 6, 4, 3, 4);
    p.data();
    std::vector<double> values;
    for (int n = 0; n < 8 * 6; ++n) values.push_back(n % 7 - 3);
    p.operand(0, DType::F16, {8, 6}, values);
    p.operand(1, DType::I32, {6}, {0, 0, 1, 2, 2, 2});
    p.args.operand[2].value = 0.5;
    const auto k = print(p.scalar, p.request);
    ASSERT_TRUE(k) << k.error().message;
    const auto& plan = k->plan;
    ASSERT_EQ(plan.operands.size(), 3U);
    EXPECT_EQ(plan.operands[0].least[0].evaluate(p.launch_sizes(plan)), 8); // the rank's last head
    EXPECT_EQ(plan.operands[0].least[1].evaluate(p.launch_sizes(plan)), 0);
    EXPECT_EQ(plan.operands[1].least[0].evaluate(p.launch_sizes(plan)), 6);
    EXPECT_EQ(plan.operands[2].name, "scale");
    EXPECT_EQ(plan.entries.size(), 2U);
    std::vector<std::string> conditions;
    for (const auto& c : plan.conditions) conditions.push_back(c.text);
    EXPECT_EQ(conditions,
              (std::vector<std::string>{"x3.1 >= Sk", "Sk % 2 == 0", "head_begin % 2 == 0", "Hq == 2 * Hk"}));
    Problem& q = p;
    compare({&q}, 2);
    p.request.head_dim = 1;
    const auto refused = print(p.scalar, p.request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, "domain");
    EXPECT_NE(refused.error().message.find("D >= 2"), std::string::npos);
}

TEST(GenericPrint, HalfAsManyOutputHeads) { // differential attention pairs heads 2 h and 2 h + 1
    Problem p;
    p.qkv();
    ExprPool& e = p.pool();
    const Expr half = e.apply(Op::FloorDiv, p.dim(dims::Hq), e.integer(2));
    const Expr even = e.mul(e.integer(2), p.ix(1)), odd = e.add(even, e.integer(1));
    p.scalar.facts.push_back({Fact::Kind::Equal, p.dim(dims::Hk), p.dim(dims::Hq), {}, "Hq == Hk"});
    p.output(e.sub(relu_attention(p, even), relu_attention(p, odd)), nullptr, half);
    p.sizes(2, 4, 1, 3, 5, 4, 4), p.data();
    compare({&p});
    p.request.group = 2;
    EXPECT_EQ(print(p.scalar, p.request).error().kind, "domain");
}

TEST(GenericPrint, RaggedAndPagedAreTheSameRows) {
    Problem dense, ragged, paged;
    for (Problem* p : {&dense, &ragged, &paged}) {
        p->qkv();
        p->output(relu_attention(*p, p->ix(1)));
        p->sizes(2, 2, 1, 4, 6, 4, 4), p->data(true); // rows of a request one after another, requests too
    }
    const int rows_q[] = {0, 4, 8}, rows_k[] = {0, 6, 12}, keys[] = {6, 6}, pages[] = {3, 0, 4, 1, 5, 2};
    ragged.request.layout = Request::Layout::Ragged;
    ragged.args.cu_seqlens_q = rows_q, ragged.args.cu_seqlens_k = rows_k;
    paged.request.layout = Request::Layout::Paged, paged.request.page_size = 2;
    paged.args.cu_seqlens_q = rows_q, paged.args.seq_lens_k = keys, paged.args.page_table = pages,
    paged.args.page_stride = 3;
    std::vector<std::vector<unsigned char>> moved; // page n of the dense rows goes to where the table says
    for (cubridge::ir::abi::cb_tensor* t : {&paged.args.k, &paged.args.v}) {
        const auto page = static_cast<std::size_t>(2 * t->row * 4);
        moved.emplace_back(6 * page);
        for (std::size_t n = 0; n < 6; ++n)
            std::memcpy(&moved.back()[static_cast<std::size_t>(pages[n]) * page],
                        static_cast<char*>(t->data) + n * page, page);
        t->data = moved.back().data(), t->outer = 2 * t->row;
    }
    HostKernels host;
    std::vector<std::vector<double>> o;
    for (Problem* p : {&dense, &ragged, &paged}) host.add(*print(p->scalar, p->request, p->options));
    ASSERT_TRUE(host.build());
    int n = 0;
    for (Problem* p : {&dense, &ragged, &paged}) {
        const auto out = p->output_buffers();
        p->args.o = {p->args.o.data, 4 * 2 * 4, 2 * 4, 4}; // row major over (request, row, head)
        host.run(n, p->args, p->launch_sizes(host.kernel(n).plan));
        o.push_back(p->read(out).o), ++n;
    }
    EXPECT_EQ(o[0], o[1]);
    EXPECT_EQ(o[0], o[2]);
}

TEST(GenericPrint, TwoLargeAxesAreALoopInPlace) { // a rank by counting, over scores of a row
    Problem p;
    p.qkv();
    ExprPool& e = p.pool();
    const Expr b = p.ix(0), h = p.ix(1), i = p.ix(2);
    const auto score = [&](Expr j) {
        return e.reduce(ReduceOp::Sum,
                        e.mul(e.load(0, Type::Real, {b, h, i, p.ix(11)}), e.load(1, Type::Real, {b, h, j, p.ix(11)})),
                        11, p.dim(dims::D));
    };
    const Expr before =
        e.logical_or(e.apply(Op::Gt, score(p.ix(9)), score(p.ix(8))),
                     e.logical_and(e.apply(Op::Eq, score(p.ix(9)), score(p.ix(8))), e.apply(Op::Lt, p.ix(9), p.ix(8))));
    const Expr rank = e.reduce(ReduceOp::Sum, e.cast(Type::Int, before), 9, p.dim(dims::Sk));
    const Expr kept =
        e.select(e.apply(Op::Lt, rank, e.integer(3)), e.load(2, Type::Real, {b, h, p.ix(8), p.ix(3)}), e.real(0));
    // The sum over pairs of keys has two large axes before it is reduced.
    const Expr pair = e.reduce(
        ReduceOp::Max,
        e.mul(e.load(1, Type::Real, {b, h, p.ix(8), p.ix(9)}), e.load(1, Type::Real, {b, h, p.ix(10), p.ix(9)})), 9,
        p.dim(dims::D));
    const Expr pairs =
        e.reduce(ReduceOp::Min, e.reduce(ReduceOp::Sum, e.mul(pair, e.cast(Type::Real, i)), 10, p.dim(dims::Sk)), 8,
                 p.dim(dims::Sk));
    p.output(e.add(e.reduce(ReduceOp::Sum, kept, 8, p.dim(dims::Sk)), pairs));
    p.scalar.facts.push_back({Fact::Kind::Equal, p.dim(dims::Hk), p.dim(dims::Hq), {}, "Hq == Hk"});
    p.sizes(1, 2, 1, 3, 7, 3, 2), p.data();
    compare({&p}, 2);
}

TEST(GenericPrint, RefusesWhatItCantDo) {
    Problem p;
    p.qkv();
    p.output(relu_attention(p, p.ix(1)));
    p.sizes(1, 1, 1, 1, 1, 4, 4);
    Request r = p.request;
    r.lse = Request::Lse::Natural;
    EXPECT_EQ(print(p.scalar, r).error().kind, "unsupported");
    r = p.request, r.o_dtype = DType::I32;
    EXPECT_EQ(print(p.scalar, r).error().kind, "unsupported");
    r = p.request, r.head_dim = 0;
    EXPECT_EQ(print(p.scalar, r).error().kind, "domain");
    p.scalar.heads = 8;
    EXPECT_EQ(print(p.scalar, p.request).error().kind, "domain");
    p.scalar.heads = 0;
    for (int n = 0; n < 25; ++n) p.input(("x" + std::to_string(n)).c_str(), DType::F32, {});
    EXPECT_EQ(print(p.scalar, p.request).error().kind, "limit");
}

} // namespace
