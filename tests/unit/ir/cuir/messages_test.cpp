// What findings say and where they stand: architectures, lines of static checks, shares, missing waits of readers.
// SPDX-License-Identifier: Apache-2.0
#include "programs.h"
#include <gtest/gtest.h>

namespace cubridge::ir::cuir::testing {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return text.replace(at, from.size(), to);
}

bool holds(const std::vector<Finding>& all, int line, const std::string& part) {
    for (const auto& f : all)
        if (f.kind == "static" && f.line == line && f.message.find(part) != f.message.npos) return true;
    return false;
}

std::string told(const std::vector<Finding>& all) {
    std::string out;
    for (const auto& f : all) out += f.kind + ": " + f.text() + "\n";
    return out;
}

TEST(MessagesTest, Sm80HasNoneOfWhatIsSm90as) {
    for (const auto* name : {"pingpong.py", "stream.py"}) {
        const auto text = load(name);
        EXPECT_TRUE(check(parse(text)).empty());
        const auto old = replaced(text, "sm_90a", "sm_80");
        const auto all = check(parse(old));
        EXPECT_TRUE(holds(all, line_of(old, "with role(\"math\""), "sm_80 has no warpgroups")) << told(all);
        EXPECT_TRUE(holds(all, line_of(old, "gemm_async("), "sm_80 has no gemm_async")) << told(all);
        EXPECT_TRUE(holds(all, line_of(old, "copy_async(Q["), "sm_80 has no signalled copies")) << told(all);
        EXPECT_TRUE(holds(all, line_of(old, "k_full, k_free"), "sm_80 has no barriers with phases")) << told(all);
        EXPECT_TRUE(holds(all, line_of(old, "with role(\"load\""), "the same registers; this role has 40, math has "))
            << told(all);
    }
    EXPECT_TRUE(check(parse(load("portable.py"))).empty());
    EXPECT_TRUE(check(parse(replaced(load("portable.py"), "sm_80", "sm_90a"))).empty()) << "sm_90a has all of sm_80";
}

TEST(MessagesTest, AnArchitectureThatIsNone) {
    for (const auto* arch : {"arch=\"sm_70\", ", "arch=\"sm_90\", ", ""}) {
        const auto all = check(parse(replaced(load("portable.py"), "arch=\"sm_80\", ", arch)));
        EXPECT_TRUE(holds(all, 1, "arch= is \"sm_80\" or \"sm_90a\"")) << arch << told(all);
    }
}

TEST(MessagesTest, ResourcesAreNamedWhereTheyAreAskedFor) {
    auto text = replaced(load("portable.py"), "registers=255", "registers=256");
    EXPECT_TRUE(holds(check(parse(text)), line_of(text, "with role("), "a thread has at most 255 registers"));
    text = replaced(load("pingpong.py"), "registers=232", "registers=248");
    EXPECT_TRUE(holds(check(parse(text)), line_of(text, "with role(\"math\""), "registers; an SM has 65536"));
    text = replaced(load("portable.py"), "ST=1", "ST=8");
    EXPECT_TRUE(holds(check(parse(text)), line_of(text, "Vs = alloc"), "bytes of shared memory"));
    text = replaced(load("portable.py"), "    everyone = named_barrier(W)",
                    "    everyone = named_barrier(W)\n"
                    "    nobody = named_barrier(W)");
    EXPECT_TRUE(holds(check(parse(text)), line_of(text, "nobody ="), "nobody arrives at nobody"));
}

/// The first finding of a run under a schedule.
Finding first(const std::string& text, cuir::Run::Policy policy, int agents) {
    auto run = small({9, 14}, Data::Plain, agents);
    run.constants["scaled"] = 1;
    run.constants["ST"] = agents == 4 ? 1 : 2;
    run.policy = policy;
    const auto out = execute(parse(text), run).findings;
    return out.empty() ? Finding{"none", "", 0, 0, ""} : out[0];
}

TEST(MessagesTest, ACellOfWhichSomeSharesAreMissing) {
    const std::string text = "@kernel(arch=\"sm_80\", expert=\"t\", ctas=\"items\")\n"
                             "def t(\n    x0: f32[B, N],\n    Out: f32[B, Sq],\n    *, W=2, FOUR=4, elem=f16):\n"
                             "    X = alloc(shared, (FOUR, 1), f32)\n"
                             "    both = named_barrier(W)\n"
                             "    with role(\"r\", warps=W, registers=64) as g:\n"
                             "        for b, h, m in bind(B, 1, 1, order=\"by_head\"):\n"
                             "            if g == 0:\n"
                             "                copy_async(x0[b, 0:FOUR], X)\n"
                             "                wait(X)\n"
                             "                Out[b, 0:FOUR] = X\n";
    cuir::Run run;
    run.ctas = 1;
    run.sizes = {{"B", 1}, {"Sq", 4}};
    run.inputs["x0"] = {{1, 5}, {1, 2, 3, 4, 5}, false};
    const auto f = execute(parse(text), run).findings;
    ASSERT_EQ(f.size(), 1U);
    EXPECT_EQ(f[0].kind, "unwritten");
    EXPECT_EQ(f[0].other, line_of(text, "copy_async("));
    EXPECT_NE(f[0].message.find("X is read and was written by 1 of 2 agents' shares only (`copy_async(x0[b, 0:FOUR], "
                                "X)`, line 11); missing: sync(both)"),
              std::string::npos)
        << f[0].text();
}

TEST(MessagesTest, WhoFillsACellAgainWaitsForItsReaders) {
    const auto text = replace_line(load("pingpong.py"), "wait(k_free[s]", 0, "pass");
    for (const auto policy : {cuir::Run::Policy::Late, cuir::Run::Policy::Early}) {
        const auto f = first(text, policy, 2);
        EXPECT_EQ(f.kind, "race") << f.text();
        EXPECT_EQ(f.line, line_of(text, "copy_async(K[")) << f.text();
        EXPECT_NE(f.message.find("k_free"), std::string::npos) << f.text();
        EXPECT_EQ(f.message.find("v_free"), std::string::npos) << f.text();
    }
}

} // namespace
} // namespace cubridge::ir::cuir::testing
