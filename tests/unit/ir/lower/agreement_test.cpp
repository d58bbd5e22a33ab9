// Barriers, channels, votes and queues: what their statements print, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/lower/hopper.h"
#include <gtest/gtest.h>

namespace cubridge::ir::lower {
namespace {

using test::edited;
using test::hopper_program;
using test::message;
using test::on_hopper;

/// The nth region of a statement of a lowered program, without indentation.
std::string region(const Result<Lowered>& r, const std::string& statement, int nth = 0) {
    if (!r) return message(r);
    const auto margin = take_apart(r->cuda);
    for (const auto& s : margin->segments) {
        const auto at = s.margin.find_first_not_of(' ');
        if (s.margin.compare(at, statement.size(), statement) != 0 || nth-- > 0) continue;
        std::string out;
        for (const auto& l : s.cuda)
            out += (out.empty() ? "" : "\n") + l.substr(std::min(l.find_first_not_of(' '), l.size()));
        return out;
    }
    return "no such statement";
}

std::string refusal(const std::string& from, const std::string& to) {
    return message(on_hopper(edited(hopper_program(), from, to)));
}

TEST(AgreementTest, WarpsArriveNotAgents) {
    const auto declared = [](const std::string& from, const std::string& to, const std::string& statement) {
        return region(on_hopper(edited(hopper_program(), from, to)), statement);
    };
    EXPECT_EQ(declared("k_full, k_free = barrier(1, n=ST), barrier(WG, n=ST)",
                       "k_free, k_full = barrier(WG, n=ST), barrier(1, n=ST)", "k_free, k_full"),
              "const Barriers<ST> k_free(smem, 4 * WG), k_full(smem, 1);");
    EXPECT_EQ(declared("v_free = barrier(1, n=ST), barrier(WG, n=ST)",
                       "v_free = barrier(1, n=ST), barrier(WG + 0, n=ST)", "v_full, v_free"),
              "const Barriers<ST> v_full(smem, 1), v_free(smem, 4 * (WG + 0));");
    EXPECT_EQ(declared("o_full = barrier(1, n=QB * WG)", "o_full = barrier(1, n=WG * QB)", "o_full"),
              "const Barriers<WG * QB> o_full(smem, 4);");
    EXPECT_EQ(declared("q_free = barrier(1, n=QB), barrier(1, n=QB)", "q_free = barrier(1, n=QB), barrier(1, n=ST)",
                       "q_full, q_free"),
              "const Barriers<QB> q_full(smem, 1);\nconst Barriers<ST> q_free(smem, 1);");
}

TEST(AgreementTest, ABarrierOfItsOwnIsTheFirstOfOne) {
    std::string p = edited(hopper_program(), "    turn = ", "    once = barrier(1)\n    turn = ");
    p = edited(p, "        w = 0\n", "        w = 0\n        arrive(once)\n");
    p = edited(p, "            wait(q_full[0], 0)\n", "            wait(once, 0)\n            wait(q_full[0], 0)\n");
    const auto r = on_hopper(p);
    EXPECT_EQ(region(r, "once ="), "const Barriers<1> once(smem, 1);");
    EXPECT_EQ(region(r, "arrive(once)"), "arrive(once[0]);");
    EXPECT_EQ(region(r, "wait(once, 0)"), "wait(once[0], 0);");
}

TEST(AgreementTest, WhoArrivesDecides) {
    EXPECT_NE(refusal("                inv = where", "                arrive(q_free[q])\n                inv = where")
                  .find("warpgroups and others arrive at `q_free`"),
              std::string::npos);
    EXPECT_NE(refusal("takers=WG + 2", "takers=WG").find("4 agents take from `items`"), std::string::npos);
    EXPECT_NE(refusal("registers=40", "registers=24").find("share a warpgroup"), std::string::npos);
    EXPECT_NE(refusal("named_barrier(2, n=WG)", "named_barrier(2, n=8 * WG)").find("15 named barriers"),
              std::string::npos);
    EXPECT_NE(refusal("sync(turn[g])", "sync(k_free[g])").find("sync() is for a named barrier"), std::string::npos);
    EXPECT_NE(refusal("wait(v_full[t], v)", "wait(turn[t], v)").find("no barrier of this kind"), std::string::npos);
    EXPECT_NE(refusal("wait(v_full[t], v)", "wait(v_full, v)").find("no barrier of this kind"), std::string::npos);
}

TEST(AgreementTest, NumbersOfNamedBarriersFollowTheText) {
    std::string p = edited(hopper_program(), "    turn = ", "    other = named_barrier(WG, n=QB)\n    turn = ");
    p = edited(p, "            sync(turn[g])\n", "            sync(other[0])\n            sync(turn[g])\n");
    const auto r = on_hopper(p);
    EXPECT_EQ(region(r, "other ="), "const NamedBarriers other(1);");
    EXPECT_EQ(region(r, "turn ="), "const NamedBarriers turn(3);");
    EXPECT_EQ(region(r, "sync(other"), "sync(other[0], 256);");
}

TEST(AgreementTest, ChannelsCarryScalarsAndKeyRanges) {
    std::string p = edited(hopper_program(), "publish(items, (True, b, h, m, ranges))",
                           "publish(items, (True, b, h, m, ranges, m + 1))");
    p = edited(p, "key_tiles(0, 0, 0, 0)))", "key_tiles(0, 0, 0, 0), 0))");
    for (int k = 0; k < 6; ++k) // in the three roles, before their loops and in them
        if (const auto at = p.find("m, ranges = take"); at != p.npos) p.replace(at, 16, "m, ranges, above = take");
    const auto r = on_hopper(p);
    EXPECT_EQ(region(r, "publish(items, (True"), "items.publish(true, b, h, m, ranges, m + 1);");
    EXPECT_EQ(region(r, "more, b"), "bool more; Taken<decltype(key_tiles(0, 0, 0, 0))> ranges; int above;\n"
                                    "items.take(more, b, h, m, ranges, above);\nSk = key_length(args, b);");
    EXPECT_NE(refusal("publish(items, (True, b, h, m, ranges))", "publish(items, (True, b, h, m))")
                  .find("same number of values"),
              std::string::npos);
}

TEST(AgreementTest, Votes) {
    const auto r = on_hopper(edited(hopper_program(), "moved = any(x * unit > limit)", "moved = any(x > limit)"));
    EXPECT_EQ(region(r, "moved = any"), "{\nbool four[4] = {false, false, false, false};\n"
                                        "EACH(e, x) four[e & 3] = four[e & 3] | (x[e] > limit[ROW(e)]);\n"
                                        "const bool some = four[0] | four[1] | four[2] | four[3];\n"
                                        "moved = __any_sync(~0u, some);\n}");
    const auto two = on_hopper(edited(hopper_program(), "if not exact and any(part > LIMIT):",
                                      "if not exact and (any(part > LIMIT) or any(limit == inf)):"));
    EXPECT_EQ(region(two, "if not exact"),
              "bool vote0;\n{\nbool some = false;\nEACH_ROW(r) some = some | (part[r] > LIMIT);\n"
              "vote0 = __any_sync(~0u, some);\n}\nbool vote1;\n{\nbool some = false;\nEACH_ROW(r) some = some | "
              "(limit[r] == INF);\n"
              "vote1 = __any_sync(~0u, some);\n}\nif (!exact && (vote0 || vote1)) {");
    const auto wide =
        on_hopper(edited(hopper_program(), "ready = not any(limit == -inf)", "ready = not any(x.amax(-1) == -inf)"));
    EXPECT_EQ(region(wide, "ready = not"),
              "bool vote0;\n{\nfloat part[ROWS];\nrow_max_of(part, x);\nbool some = false;\n"
              "EACH_ROW(r) some = some | (part[r] == -INF);\nvote0 = __any_sync(~0u, some);\n}\nready = !vote0;");
    EXPECT_NE(refusal("        while more:     ", "        while more and not any(limit == inf):     ")
                  .find("a vote is no condition of a loop"),
              std::string::npos);
    const auto value =
        on_hopper(edited(hopper_program(), "p = exp2(x * unit - base)", "p = where(any(limit == inf), x, 0.0)"));
    EXPECT_EQ(region(value, "p = where"),
              "bool vote0;\n{\nbool some = false;\nEACH_ROW(r) some = some | (limit[r] == INF);\n"
              "vote0 = __any_sync(~0u, some);\n}\nfloat p[TILE(BN)];\nEACH(e, p) p[e] = vote0 ? x[e] : 0.0f;");
    EXPECT_NE(region(value, "if not exact").find("bool vote1;"), std::string::npos) << "one number a role";
}

TEST(AgreementTest, WaitsFollowThreeQueues) {
    const std::string base = hopper_program();
    const std::string scores = "            gemm_async(Qs[q][g], Ks[s].T, out=S)\n";
    const std::string values =
        "            wait(v_full[t], v)\n            gemm_async(P, Vs[t], out=acc, add=not start)\n";
    // The older product is P V: a wait for the scores ends both, and names what both hold.
    std::string p = edited(edited(base, scores, ""), values, values + scores);
    EXPECT_NE(message(on_hopper(p)).find("`wait(acc)`: no product of this is in flight"), std::string::npos)
        << message(on_hopper(p));
    p = edited(p, "            wait(acc)\n            arrive(v_free[t])\n", "            arrive(v_free[t])\n");
    EXPECT_EQ(region(on_hopper(p), "wait(S)", 1), "wait_gemm<0>(S, acc, P);");
    // A second copy out behind the one that is waited for may stay.
    p = edited(base, "            wait(Qs[q]) ", "            wait(Qs[q][0]) ");
    EXPECT_EQ(region(on_hopper(p), "wait(Qs[q][0])"), "wait_stores<1>();");
    // Whether P V is under way may not depend on the path.
    p = edited(base, "            gemm_async(P, Vs[t], out=acc, add=not start)\n",
               "            if ready:\n                gemm_async(P, Vs[t], out=acc, add=not start)\n");
    EXPECT_NE(message(on_hopper(p)).find("how many products are in flight depends on the path: 0 or 1"),
              std::string::npos)
        << message(on_hopper(p));
    // The wait for a shared cell ends the product that reads it.
    p = edited(base, "            wait(acc)\n", "            wait(Vs[t])\n");
    EXPECT_EQ(region(on_hopper(p), "wait(Vs[t])"), "wait_gemm<0>(acc, P);");
}

TEST(AgreementTest, ItemsAreNumbered) {
    const std::string portable = test::program_text(test::expert_text());
    std::string p = edited(portable, "for b, h, m in bind(B, Hq, cdiv(Sq, BM), order=\"by_head\"):",
                           "for w, (b, h, m) in enumerate(bind(B, Hq, cdiv(Sq, BM), order=\"by_head\")):");
    p = edited(p, "            i0 = m * BM", "            i0 = w * 0 + m * BM");
    const auto r = test::lowered(p);
    EXPECT_EQ(region(r, "for w, (b"),
              "int w = 0;\nfor (Items items(args, BM, by_head); items.next(b, h, m, Sq, Sk); ++w) {");
    EXPECT_EQ(region(r, "i0 ="), "const int i0 = w * 0 + m * BM + g * R;");
    const auto heads = on_hopper(edited(hopper_program(), "draw(ticket, B, Hq, ", "draw(ticket, B, Hk, "));
    EXPECT_EQ(
        region(heads, "for w, (b"),
        "int w = 0;\nfor (Draw<D + Dv> queue(args, ticket, BM, by_head, Hk); queue.next(b, h, m, Sq, Sk); ++w) {");
    std::string plain = edited(hopper_program(), "for w, (b, h, m) in enumerate(draw(", "for b, h, m in draw(");
    plain = edited(plain, "order=\"by_head\")):", "order=\"by_head\"):");
    plain = test::without(plain, {"wait(begun, w)", "arrive(begun)", "begun = barrier"});
    EXPECT_EQ(region(on_hopper(plain), "for b, h, m in"),
              "for (Draw<D + Dv> queue(args, ticket, BM, by_head); queue.next(b, h, m, Sq, Sk);) {");
    EXPECT_NE(refusal("publish(items, (False", "c = w\n        publish(items, (False").find("counts a loop"),
              std::string::npos);
    for (const char* taken : {"queue", "vote1", "A16", "warp"}) {
        std::string renamed = hopper_program();
        for (auto at = renamed.find("first"); at != renamed.npos; at = renamed.find("first"))
            renamed.replace(at, 5, taken);
        EXPECT_NE(message(on_hopper(renamed)).find("means something else in CUDA"), std::string::npos) << taken;
    }
}

TEST(AgreementTest, HelpersThatAnExpertHasNotAreNamed) {
    const std::string portable = test::program_text(test::expert_text());
    EXPECT_NE(message(test::lowered(edited(portable, "    everyone =", "    full = barrier(1, n=ST)\n    everyone =")))
                  .find("the expert has no `Barriers`"),
              std::string::npos);
    EXPECT_NE(refusal("    turn =", "    Bs = alloc(shared, (ST, BN), f32)\n    turn =")
                  .find("the expert has no `SharedColumn`"),
              std::string::npos);
}

TEST(AgreementTest, BlocksThatAssignFirstDeclareTheirOwn) {
    std::string twice = edited(hopper_program(), "                before = n\n", "");
    twice = edited(
        twice, "            n, before = 0, 0                                # tiles of this step and of the last one\n",
        "");
    twice = edited(twice, "                if k > 0:\n",
                   "                if k > 0:\n                    before, masked = pick(ranges, k - 1)\n");
    const auto r = on_hopper(twice);
    EXPECT_EQ(region(r, "before, masked = pick(ranges, k - 1)"),
              "int before; bool masked;\nranges.pick(k - 1, before, masked);");
    // Where one of them reads it first, a value is carried: one declaration in front of all.
    const auto carried =
        on_hopper(edited(hopper_program(), "            old = q\n", "            old = q if masked else q\n"));
    EXPECT_NE(region(carried, "if busy:").find("bool masked;"), std::string::npos) << region(carried, "if busy:");
}

} // namespace
} // namespace cubridge::ir::lower
