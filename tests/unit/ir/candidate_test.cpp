// Candidates: every step at once on many threads with one specification, tails end to end, plans and their operands.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/candidate.h"
#include <gtest/gtest.h>
#include <thread>

namespace {

using namespace cubridge::ir;

constexpr char kPortable[] = "prefill_sm80";
constexpr char kText[] = R"(
import torch
def attention(q, k, v, prefix: int, doc):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]
    keep = ((j <= i) | (j < prefix)) & (doc[i] == doc[j])
    return torch.softmax(s.masked_fill(~keep, float("-inf")), -1) @ v
)";

std::shared_ptr<const Specification> parsed(const std::string& text = kText) {
    Source source;
    source.text = text;
    auto result = Specification::parse(source);
    EXPECT_TRUE(result) << (result ? "" : result.error().render(text));
    return result ? *result : nullptr;
}

Request request_of(int k = 0) {
    Request r;
    r.head_dim = r.head_dim_v = k % 2 == 0 ? 64 : 128;
    r.q_dtype = r.kv_dtype = r.o_dtype = k % 4 < 2 ? DType::BF16 : DType::F16;
    r.empty_rows = Request::EmptyRows::Zero;
    r.rows = k % 8 < 4 ? Request::Rows::AsWritten : Request::Rows::Tail;
    r.arch = "sm_90a";
    return r;
}

/// All of a candidate that anybody sees.
std::string all_of(const Specification& s, const Request& r) {
    const auto candidate = Candidate::transfer(s, r, kPortable);
    if (!candidate) return candidate.error().message;
    const auto run = candidate->execute(s);
    const auto lowered = candidate->lower(s, r);
    if (!lowered) return lowered.error().message;
    return candidate->program() + run.record + lowered->kernel.cuda + lowered->kernel.plan.text() + lowered->difference;
}

TEST(Candidate, ManyThreadsShareASpecification) {
    const auto s = parsed();
    ASSERT_NE(s, nullptr);
    std::vector<std::string> alone, together(8);
    for (int k = 0; k < 8; ++k) alone.push_back(all_of(*parsed(), request_of(k)));
    std::vector<std::thread> threads;
    for (int k = 0; k < 8; ++k)
        threads.emplace_back([&, k] { together[static_cast<std::size_t>(k)] = all_of(*s, request_of(k)); });
    for (auto& t : threads) t.join();
    for (std::size_t k = 0; k < 8; ++k) {
        EXPECT_EQ(together[k], alone[k]) << k;
        EXPECT_NE(alone[k].find("executor: "), std::string::npos) << alone[k].substr(0, 200);
    }
    EXPECT_NE(alone[0], alone[1]);
    EXPECT_NE(alone[0], alone[4]);
}

/// And one candidate, once made, is of any thread too.
TEST(Candidate, ManyThreadsShareACandidate) {
    const auto s = parsed();
    ASSERT_NE(s, nullptr);
    const auto candidate = Candidate::transfer(*s, request_of(), kPortable);
    ASSERT_TRUE(candidate) << candidate.error().message;
    std::vector<std::thread> threads;
    std::vector<std::string> records(6);
    for (std::size_t k = 0; k < records.size(); ++k)
        threads.emplace_back([&, k] {
            const auto run = candidate->execute(*s, 1 + k);
            const auto lowered = candidate->lower(*s, request_of());
            records[k] = run.record + (lowered ? lowered->difference : lowered.error().message);
        });
    for (auto& t : threads) t.join();
    for (const auto& r : records) EXPECT_EQ(r, records[0]);
}

/// The executor's reference of a tail is the text itself, evaluated square: no rule and no carried Variant is in it.
TEST(Candidate, TailsAreExecutedAgainstTheSquareText) {
    for (const char* mask : {"j <= i", "(j <= i) & (i - j < 5)", "(j <= i) | (j < 3)", "(i + j) % 3 == 0", "j >= 0",
                             "j <= i + (k.size(2) - q.size(2))"}) {
        SCOPED_TRACE(mask);
        const auto s =
            parsed(std::string("import torch\n"
                               "def attention(q, k, v):\n"
                               "    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5\n"
                               "    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]\n"
                               "    s = s - 0.125 * (i - j).abs()\n"
                               "    return torch.softmax(s.masked_fill(~(") +
                   mask + "), float('-inf')), -1) @ v\n");
        ASSERT_NE(s, nullptr);
        Request r = request_of(4);
        ASSERT_EQ(r.rows, Request::Rows::Tail);
        for (const auto lse : {Request::Lse::None, Request::Lse::Natural}) {
            r.lse = lse;
            const auto candidate = Candidate::transfer(*s, r, kPortable);
            ASSERT_TRUE(candidate) << candidate.error().message;
            const auto run = candidate->execute(*s);
            EXPECT_TRUE(run.passed) << run.record;
            EXPECT_GT(run.runs, 10);
            // As if the rows were as written it is another function: the reference tells them apart.
            r.rows = Request::Rows::AsWritten;
            const auto literal = Candidate::transfer(*s, r, kPortable);
            ASSERT_TRUE(literal) << literal.error().message;
            EXPECT_NE(literal->program(), candidate->program());
            r.rows = Request::Rows::Tail;
        }
    }
}

TEST(Candidate, ThePlanIsThatOfTheLoweredKernel) {
    const auto s = parsed();
    ASSERT_NE(s, nullptr);
    const auto candidate = Candidate::transfer(*s, request_of(), kPortable);
    ASSERT_TRUE(candidate);
    const auto lowered = candidate->lower(*s, request_of());
    const auto plan = candidate->plan(*s, request_of());
    ASSERT_TRUE(lowered && plan);
    EXPECT_EQ(*plan, lowered->kernel.plan);
    EXPECT_GT(plan->entries.size(), 1U) << "tables of `doc` are kernels of their own";
    const auto order = s->order();
    ASSERT_EQ(plan->operands.size(), order.size());
    for (std::size_t k = 0; k < order.size(); ++k)
        EXPECT_EQ(plan->operands[k].name, s->inputs()[static_cast<std::size_t>(order[k])].name);
}

TEST(Candidate, SaysWhatNoExpertHas) {
    const auto s = parsed();
    ASSERT_NE(s, nullptr);
    const auto refused = [&](auto change) {
        Request r = request_of();
        change(r);
        const auto candidate = Candidate::transfer(*s, r, kPortable);
        return candidate ? std::string() : candidate.error().message;
    };
    EXPECT_EQ(refused([](Request&) {}), "");
    EXPECT_NE(refused([](Request& r) { r.o_dtype = DType::F32; }), "");
    EXPECT_NE(refused([](Request& r) { r.kv_dtype = DType::F16; }), "");
    EXPECT_NE(refused([](Request& r) { r.alignment = 8; }), "");
    EXPECT_NE(refused([](Request& r) { r.layout = Request::Layout::Ragged; }), "");
    EXPECT_NE(refused([](Request& r) { r.layout = Request::Layout::Paged, r.page_size = 16; }), "");
    EXPECT_NE(refused([](Request& r) { r.head_dim = r.head_dim_v = 60; }), "");
    EXPECT_NE(refused([](Request& r) { r.head_dim = r.head_dim_v = 264; }), "");
}

TEST(Candidate, ExpertsAreThoseOfTheArchitectureItsOwnFirst) {
    const auto s = parsed();
    ASSERT_NE(s, nullptr);
    const auto of = [&](const char* arch) {
        Request r = request_of();
        r.arch = arch;
        const auto experts = Candidate::experts(*s, r);
        std::string out;
        if (!experts) return experts.error().message;
        for (const auto& e : *experts) out += e + " ";
        return out;
    };
    const std::string portable = std::string(kPortable) + " ";
    EXPECT_EQ(of("sm_80"), portable);
    EXPECT_EQ(of("sm_89"), portable);
    EXPECT_EQ(of("sm_90"), portable) << "products of warpgroups are code of sm_90a alone";
    EXPECT_EQ(of("sm_100a"), portable);
    EXPECT_TRUE(of("sm_90a").ends_with(portable)) << of("sm_90a");
    EXPECT_EQ(of("sm_75"), "no expert is for sm_75");

    Request r = request_of();
    r.arch = "sm_75";
    const auto refused = Candidate::transfer(*s, r, kPortable);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "the expert is for sm_80, not for sm_75");
    EXPECT_EQ(Candidate::transfer(*s, request_of(), "prefill_sm70").error().kind, "name");
    r = request_of();
    r.o_dtype = DType::F32; // no expert has it: no expert is named
    EXPECT_EQ(Candidate::experts(*s, r).error().message, Candidate::transfer(*s, r, kPortable).error().message);
}

} // namespace
