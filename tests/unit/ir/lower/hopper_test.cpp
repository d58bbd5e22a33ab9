// The Hopper expert: what it says and what its statements print. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/execute.h"
#include "ir/lower/expert.h"
#include "ir/lower/rules.h"
#include "ir/transfer/reference.h"
#include "tests/unit/ir/lower/hopper.h"
#include <gtest/gtest.h>

namespace cubridge::ir::lower {
namespace {

using test::edited;
using test::hopper_program;
using test::hopper_text;
using test::message;
using test::on_hopper;

TEST(HopperTest, TheExpertIsWhatItsMarginSays) {
    for (const auto& f : census(hopper_text())) ADD_FAILURE() << f;
}

TEST(HopperTest, ItsMarginIsTheProgram) {
    const auto p = cuir::read(test::read_file("tests/corpus/cuir/prefill_sm90.py"));
    EXPECT_TRUE(cuir::equal(*p, *lift(hopper_text())));
}

TEST(HopperTest, EveryStatementHasARule) {
    for (const std::string& text : {hopper_text(), test::expert_text()}) {
        auto file = Expert::read(text);
        ASSERT_TRUE(file) << file.error().message;
        int count = 0;
        const auto put = [&](std::size_t at, const Lines& lines) {
            auto& segment = file->margin.segments[at];
            segment.cuda.clear();
            for (const auto& l : lines) segment.cuda.push_back("    " + l);
        };
        const auto print = [&](const auto& self, const std::vector<cuir::Statement>& body) -> void {
            for (const auto& s : body) {
                self(self, s.body);
                if (s.kind == cuir::Statement::Kind::With) continue; // a role is not made by a rule
                const Region r = print_region(s, file->analysis);
                ++count;
                put(file->places.at(&s).open, r.lines);
                if (s.opens_block()) put(file->places.at(&s).close, r.end);
            }
        };
        print(print, file->program.main()->body);
        EXPECT_GT(count, 50);
        const std::string all = join(file->margin);
        for (const auto& f : census(all)) ADD_FAILURE() << f;
        const auto again = lower(all, file->program); // equal regions under lines that are the same twice
        ASSERT_TRUE(again) << message(again);
        EXPECT_EQ(again->cuda, all);
    }
}

TEST(HopperTest, WithItsOwnLiftItIsByteIdentical) {
    const auto r = lower(hopper_text(), *lift(hopper_text()));
    ASSERT_TRUE(r) << message(r);
    EXPECT_EQ(r->cuda, hopper_text());
    EXPECT_TRUE(r->printed.empty());
    for (const auto& f : read_back(hopper_text(), r->cuda, *lift(hopper_text()))) ADD_FAILURE() << f;
    const auto again = on_hopper(hopper_program());
    ASSERT_TRUE(again) << message(again);
    EXPECT_EQ(again->cuda, hopper_text());
}

struct Lie {
    const char *from, *to, *found;
};

class LyingHopperMargin : public testing::TestWithParam<Lie> {};

TEST_P(LyingHopperMargin, IsFound) {
    const Lie& lie = GetParam();
    const auto faults = census(edited(hopper_text(), lie.from, lie.to));
    ASSERT_FALSE(faults.empty());
    EXPECT_NE(faults[0].find(lie.found), std::string::npos) << faults[0];
}

INSTANTIATE_TEST_SUITE_P(
    All, LyingHopperMargin,
    testing::Values(
        Lie{"            wait_gemm<1>(S);\n", "", "does not call wait_gemm<1>(S)"},
        Lie{"wait_gemm<1>(S)", "wait_gemm<0>(S)", "does not call wait_gemm<1>(S)"},
        Lie{"wait_gemm<0>(acc, P)", "wait_gemm<0>(acc)", "does not call wait_gemm<0>(acc,P)"},
        Lie{"more_registers<232>()", "more_registers<240>()", "does not call more_registers<232>()"},
        Lie{"registers=232", "registers=400", "does not call more_registers<400>()"},
        Lie{"    if (warpgroup == 0) fewer_registers<40>();\n", "    // 40\n", "does not call more_registers<40>()"},
        Lie{"    begin_roles();\n", "", "does not call begin_roles()"},
        Lie{"wait(k_free[s], u - 1);", "wait(k_free[s], u);", "does not call wait(k_free[s],u-1)"},
        Lie{"            arrive(v_free[t]);\n", "", "does not call arrive(v_free[t])"},
        Lie{"                fence_async();\n", "", "does not call fence_async()"},
        Lie{"                arrive(o_full[old * WG + g]);\n", "                arrive(o_full[q * WG + g]);\n",
            "does not call arrive(o_full[old*WG+g])"},
        Lie{"            sync(turn[g], 256);", "            sync(turn[g], 128);", "does not call sync(turn[g],256)"},
        Lie{"arrive(turn[(g + 1) % WG], 256)", "arrive(turn[g], 256)", "does not call arrive(turn[(g+1)%WG],256)"},
        Lie{"k_free(smem, 4 * WG)", "k_free(smem, WG)", "its region is not"},
        Lie{"o_full(smem, 4)", "o_full(smem, 1)", "its region is not"},
        Lie{"turn(1);", "turn(2);", "its region is not"},
        Lie{"Channel<4> items(smem, 4 * WG + 2)", "Channel<4> items(smem, WG + 2)", "its region is not"},
        Lie{"Sk, k_full[s]);", "Sk, v_full[s]);", "does not call copy_async(Ks[s],K.rows"},
        Lie{"wait_stores<0>()", "wait_stores<1>()", "does not call wait_stores<0>()"},
        Lie{"items.publish(true, b, h, m, ranges)", "items.publish(true, b, m, h, ranges)",
            "does not call items.publish(true,b,h,m,ranges)"},
        Lie{"        items.take(more, b, h, m, ranges);\n        Sk = key_length(args, b);\n",
            "        items.take(more, b, h, m, ranges);\n", "its region is not"},
        Lie{"gemm_async(acc, P, Vs[t], !start)", "gemm_async(acc, P, Vs[t], start)",
            "does not call gemm_async(acc,P,Vs[t],!start)"},
        Lie{"BM, by_head)", "BM, heaviest_first)", "its region is not"},
        Lie{"store(Qs[old][g], acc);", "store(Qs[q][g], acc);", "does not call store(Qs[old][g],acc)"},
        Lie{"vote0 = __any_sync(~0u, some);", "vote0 = some;", "its region is not"},
        Lie{"            bool moved = false;", "            bool moved = __any_sync(~0u, fresh);",
            "its region calls __any_sync(~0u,fresh)"},
        Lie{"__launch_bounds__(384, 1)", "__launch_bounds__(512, 1)", "does not say __launch_bounds__(384, 1)"},
        Lie{"int* const ticket = args.ticket;", "int* const ticket = 0;", "its region is not"}));

class HopperOrchestration : public testing::TestWithParam<std::string> {};

TEST_P(HopperOrchestration, LowersAndReadsBack) {
    const std::string program = test::hopper_orchestrations().at(GetParam());
    const auto r = on_hopper(program);
    ASSERT_TRUE(r) << message(r);
    EXPECT_NE(r->cuda, hopper_text());
    EXPECT_LE(r->printed.size(), 12u);
    for (const auto& f : read_back(hopper_text(), r->cuda, *cuir::read(program))) ADD_FAILURE() << f;
    const auto again = lower(r->cuda, *cuir::read(program)); // what was lowered is an expert
    ASSERT_TRUE(again) << message(again);
    EXPECT_EQ(again->cuda, r->cuda);
}

TEST_P(HopperOrchestration, IsRight) {
    const auto program = cuir::read(test::hopper_orchestrations().at(GetParam()));
    ASSERT_TRUE(program) << program.error().message;
    for (const auto& f : cuir::check(*program)) ADD_FAILURE() << f.text();
    Source source;
    source.text = "import torch\n\ndef attention(q, k, v):\n    G = q.size(1) // k.size(1)\n"
                  "    s = q @ k.repeat_interleave(G, 1).mT * q.size(-1) ** -0.5\n    m = torch.logsumexp(s, -1)\n"
                  "    p = torch.exp(s - m[..., None])\n    return p.nan_to_num() @ v.repeat_interleave(G, 1), m\n";
    const auto specification = Specification::parse(source);
    ASSERT_TRUE(specification) << specification.error().message;
    Request request;
    request.lse = GetParam() == "no LSE" ? Request::Lse::None : Request::Lse::Natural;
    const auto trial = transfer::trial_of(*program, **specification, 1);
    ASSERT_TRUE(trial) << trial.error().message;
    for (const auto& f : cuir::verify(*program, *trial, transfer::reference_of(**specification, request)))
        ADD_FAILURE() << f.text();
}

INSTANTIATE_TEST_SUITE_P(All, HopperOrchestration, testing::ValuesIn([] {
                             std::vector<std::string> names;
                             for (const auto& [name, program] : test::hopper_orchestrations()) names.push_back(name);
                             return names;
                         }()),
                         [](const auto& info) {
                             std::string name = info.param;
                             for (auto& c : name)
                                 if (c == ' ') c = '_';
                             return name;
                         });

} // namespace
} // namespace cubridge::ir::lower
