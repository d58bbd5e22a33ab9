// Which configurations there are of a variant, and what the model says of them.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/candidate.h"
#include "tests/unit/ir/transfer/corpus.h"
#include "tests/unit/sample.h"
#include <gtest/gtest.h>

namespace cubridge::ir {
namespace {

std::shared_ptr<const Specification> masked_by(const std::string& mask) {
    Source source;
    source.text = R"(
import torch
def attention(q, k, v, doc, window=1024):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]
    return torch.softmax(s.masked_fill(~()" +
                  mask + R"(), float("-inf")), -1) @ v
)";
    auto parsed = Specification::parse(source);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().render(source.text));
    return parsed ? *parsed : nullptr;
}

Request request(int head_dim = 128, const char* arch = "sm_90a") {
    Request r;
    r.head_dim = r.head_dim_v = head_dim;
    r.arch = arch;
    r.empty_rows = Request::EmptyRows::Zero;
    return r;
}

std::vector<Configuration> all_of(const std::string& mask, const Request& r, const Shape& shape = {}) {
    const auto s = masked_by(mask);
    if (!s) return {};
    auto all = Candidate::configurations(*s, r, shape);
    EXPECT_TRUE(all) << (all ? "" : all.error().message);
    return all ? std::move(*all) : std::vector<Configuration>{};
}

std::string names(const std::vector<Configuration>& all) {
    std::string out;
    for (const auto& c : all) out += c.name + " ";
    return out;
}

const Configuration& named(const std::vector<Configuration>& all, const std::string& name) {
    static const Configuration kNone;
    for (const auto& c : all)
        if (c.name == name) return c;
    ADD_FAILURE() << name << " is not among " << names(all);
    return kNone;
}

TEST(Configurations, AreAFewOfOneExpertThePresentChoiceFirst) {
    EXPECT_EQ(names(all_of("j <= i", request())), "prefill_sm90 prefill_sm90/by_head prefill_sm90/96 prefill_sm90/64 ");
    EXPECT_EQ(names(all_of("j >= 0", request())),
              "prefill_sm90 prefill_sm90/heaviest_first prefill_sm90/96 prefill_sm90/64 ");
    EXPECT_EQ(all_of("j <= i", request(192)).size(), 3U) << "96 keys are its own tile";
    EXPECT_EQ(named(all_of("j <= i", request(192)), "prefill_sm90").keys, 96);
    EXPECT_EQ(names(all_of("j <= i", request(128, "sm_80"))), "prefill_sm80 prefill_sm80/heaviest_first ");
    for (const auto& c : all_of("j <= i", request())) {
        EXPECT_EQ(c.order, c.name.ends_with("by_head") ? "by_head" : "heaviest_first") << c.name;
        EXPECT_EQ(c.keys, c.name.ends_with("96") ? 96 : c.name.ends_with("64") ? 64 : 128) << c.name;
        EXPECT_GT(c.us, 0) << c.name;
    }
}

/// Present choices are measured ones: for no visible specification does the model say otherwise.
TEST(Configurations, TheFirstIsWhatIsMadeByDefault) {
    if (!std::filesystem::exists(transfer::test::specifications())) GTEST_SKIP() << "no specifications here";
    int listed = 0;
    cubridge::test::Sample sample;
    for (const auto& c : transfer::test::cases()) {
        if (sample.skips()) continue;
        const auto s = Specification::parse(c.source, c.options);
        ASSERT_TRUE(s) << c.name;
        const auto all = Candidate::configurations(**s, c.request);
        if (!all) continue;
        ++listed;
        EXPECT_EQ(all->front().name.find('/'), std::string::npos) << c.name << ": " << all->front().name;
        EXPECT_LE(all->size(), 4U);
        for (const auto& one : *all) {
            EXPECT_GT(one.us, 0) << c.name << ", " << one.name;
            EXPECT_GE(one.tiles, one.masked);
            EXPECT_GT(one.tiles, 0) << c.name << ", " << one.name;
        }
    }
    EXPECT_GE(listed, cubridge::test::at_least(50));
}

/// Counted by hand: 4 requests of 32 heads, 32 blocks of 128 rows, 32 tiles of 128 keys.
TEST(Configurations, TilesAreThoseThatItemsVisit) {
    const auto one = [](const std::string& mask, const char* name, const Shape& shape = {}) {
        const auto c = named(all_of(mask, request(), shape), name);
        return std::pair(c.tiles, c.masked);
    };
    using P = std::pair<std::int64_t, std::int64_t>;
    EXPECT_EQ(one("j >= 0", "prefill_sm90"), (P{128 * 32 * 32, 0}));
    EXPECT_EQ(one("j <= i", "prefill_sm90"), (P{128 * (32 * 33 / 2), 128 * 32}));
    EXPECT_EQ(one("j <= i", "prefill_sm90/64"), (P{128 * (32 * 33), 2 * 128 * 32}));
    // Two of the tiles of a block are partial, but for the first eight blocks, whose window is cut off by the begin.
    EXPECT_EQ(one("(j <= i) & (i - j < 1024)", "prefill_sm90"), (P{128 * (8 * 9 / 2 + 24 * 9), 128 * (8 + 24 * 2)}));
    // 1000 keys are 7 whole tiles and a partial one.
    EXPECT_EQ(one("j >= 0", "prefill_sm90", {1, 128, 1000, 8}), (P{8 * 8, 8}));
    // Of a class that every fourth key belongs to there are 1024 rows and keys.
    EXPECT_EQ(one("(j <= i) & ((i - j) % 4 == 0)", "prefill_sm90").first, 128 * 4 * (8 * 9 / 2));
    // A captured integer that the text holds, and one that only a launch knows.
    EXPECT_EQ(one("(j <= i) & (i - j < window)", "prefill_sm90"), one("(j <= i) & (i - j < 1024)", "prefill_sm90"));
    const auto s = named(all_of("(j <= i) & (doc[i] == doc[j])", request()), "prefill_sm90");
    EXPECT_TRUE(s.guessed);
    EXPECT_FALSE(named(all_of("j <= i", request()), "prefill_sm90").guessed);
    EXPECT_LT(s.tiles, 128 * (32 * 33 / 2));
}

TEST(Configurations, WhatTheModelMustSee) {
    const auto us = [](const std::string& mask, const char* name, const Shape& shape = {}) {
        return named(all_of(mask, request(), shape), name).us;
    };
    // Fewer tiles, less time; a tail of long items at the end costs.
    EXPECT_LT(us("j <= i", "prefill_sm90"), 0.6 * us("j >= 0", "prefill_sm90"));
    EXPECT_LT(us("(j <= i) & (i - j < 1024)", "prefill_sm90"), 0.6 * us("j <= i", "prefill_sm90"));
    // By head the last items are light, but those of the last head begin last.
    EXPECT_LT(us("j <= i", "prefill_sm90"), us("j <= i", "prefill_sm90/by_head"));
    // Narrow tiles fit a narrow window: there the model has a reason.
    const auto narrow = all_of("(j <= i) & (i - j < 48)", request());
    EXPECT_LT(named(narrow, "prefill_sm90/64").us, named(narrow, "prefill_sm90").us);
    // A launch of twice the requests takes about twice as long.
    const double twice = us("j <= i", "prefill_sm90", {8, 4096, 4096, 0}) / us("j <= i", "prefill_sm90");
    EXPECT_NEAR(twice, 2, 0.1);
}

/// Classes of tiles that no data decide are asked one by one: as many as have a kept pair.
TEST(Configurations, ClassesOfTilesAreCounted) {
    const auto all = all_of("(i // 256 == j // 256) | (i // 512 == (j + 512) // 512)", request(), {1, 2048, 2048, 1});
    for (const auto& c : all) {
        EXPECT_FALSE(c.guessed) << c.name;
        EXPECT_GT(c.tiles, 0) << c.name;
        EXPECT_LT(c.tiles, 16 * (2048 / c.keys + 1)) << c.name;
    }
}

TEST(Configurations, OfATextThatNoRuleChangesThereAreNone) {
    Source source;
    source.text = "import torch\ndef attention(q, k, v):\n"
                  "    return torch.softmax(q @ k.transpose(-2, -1), -1).cumsum(-1) @ v\n";
    const auto s = Specification::parse(source);
    ASSERT_TRUE(s);
    const auto all = Candidate::configurations(**s, request());
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().kind, "no_rule");
}

/// Another order is another program of the same meaning.
TEST(Configurations, AnOrderIsExecutedLikeAnyProgram) {
    const auto s = masked_by("j <= i");
    ASSERT_NE(s, nullptr);
    for (const char* name : {"prefill_sm90/by_head", "prefill_sm90/64/by_head", "prefill_sm80/heaviest_first"}) {
        const auto candidate = Candidate::transfer(*s, request(), name);
        ASSERT_TRUE(candidate) << candidate.error().message;
        EXPECT_EQ(candidate->expert(), name);
        EXPECT_NE(candidate->program().find(std::string("order=\"") + (strrchr(name, '/') + 1)), std::string::npos);
        const auto run = candidate->execute(*s);
        EXPECT_TRUE(run.passed) << run.record;
        const auto lowered = candidate->lower(*s, request());
        EXPECT_TRUE(lowered) << lowered.error().message;
    }
    EXPECT_EQ(Candidate::transfer(*s, request(), "prefill_sm90/sideways").error().kind, "name");
    EXPECT_EQ(Candidate::transfer(*s, request(), "prefill_sm90/by_head/64").error().kind, "name");
}

} // namespace
} // namespace cubridge::ir
