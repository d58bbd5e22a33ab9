// The commands about programs: lift, lower, exec, explain. None needs a compiler.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/bindings/command.h"
#include <gtest/gtest.h>

using namespace cubridge;
using test::Ran;

namespace {

bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

class Programs : public ::testing::Test {
protected:
    Ran run(const std::vector<std::string>& arguments) const { return test::run_command(arguments, home_); }
    /// The expert's program with one text in another's place, in a file.
    std::string edited(const std::string& from, const std::string& to) const {
        std::string text = run({"lift", "prefill_sm80"}).out;
        const auto at = text.find(from);
        EXPECT_NE(at, text.npos) << from;
        return home_.write("edited.py", text.replace(at, from.size(), to));
    }
    test::Folder home_;
    const std::string full_ = home_.write("full.py", R"(import torch
def attention(q, k, v):
    group = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    return torch.softmax(q @ k.transpose(-2, -1) * q.size(-1) ** -0.5, -1) @ v
)");
};

TEST_F(Programs, LiftAndLowerAreInverse) {
    for (const std::string name : {"prefill_sm80", "prefill_sm90"}) {
        const Ran lifted = run({"lift", name});
        ASSERT_EQ(lifted.status, 0) << lifted.error;
        EXPECT_EQ(lifted.error, "");
        const Ran lowered = run({"lower", home_.write("expert.py", lifted.out)});
        ASSERT_EQ(lowered.status, 0) << lowered.error;
        std::string expert = file("ir/experts/" + name + ".cu");
        for (const std::string header : {"common.cuh", "hopper.cuh", "stream.cuh", "wgmma.cuh"}) {
            const std::string include = "#include \"" + header + "\"\n";
            if (const auto at = expert.find(include); at != expert.npos)
                expert.replace(at, include.size(), file("ir/experts/" + header));
        }
        EXPECT_EQ(lowered.out, expert) << "byte for byte";
        EXPECT_TRUE(holds(lowered.error, " 0 printed; ")) << lowered.error;
        EXPECT_EQ(run({"lift", home_.write("expert.cu", lowered.out)}).out, lifted.out);
    }
}

TEST_F(Programs, LowerSaysWhatItPrinted) {
    const std::string program = edited("BM=128, BN=64", "BM=128, BN=32");
    const Ran people = run({"lower", program});
    ASSERT_EQ(people.status, 0) << people.error;
    EXPECT_TRUE(holds(people.out, "BN = 32")) << people.out.substr(0, 400);
    EXPECT_TRUE(holds(people.error, "line ") && holds(people.error, "BN=32")) << people.error;
    const Ran r = run({"lower", program, "--json", "--expert", "prefill_sm80"});
    ASSERT_EQ(r.status, 0);
    const auto json = r.json();
    for (const char* field : {"expert", "copied", "printed", "difference", "threads", "shared_bytes", "cuda"})
        ASSERT_NE(json.find(field), nullptr) << field;
    EXPECT_EQ(*json.find("cuda")->string(), people.out);
    EXPECT_EQ(*json.find("threads")->integer(), 128);
    EXPECT_GT(*json.find("copied")->integer(), 50);
    EXPECT_TRUE(holds(*json.find("difference")->string(), "+    *, BM=128, BN=32"));
    ASSERT_FALSE(json.find("printed")->items()->empty());
    for (const char* field : {"line", "statement", "rule"})
        EXPECT_NE(json.find("printed")->items()->front().find(field), nullptr) << field;
}

TEST_F(Programs, AStatementThatNoRulePrintsIsFour) {
    const Ran r = run({"lower", edited("                wait(Ks[s])", "                wait(Ks[s])\n"
                                                                      "                wait(Ks[s])")});
    EXPECT_EQ(r.status, 4) << r.error;
    EXPECT_EQ(r.out, "");
    EXPECT_TRUE(holds(r.error, "`wait(Ks[s])`: no copy of this is in flight")) << r.error;
}

TEST_F(Programs, WhatIsNoProgramIsThree) {
    const std::string wrong = home_.write("wrong.py", "def attention(q, k, v):\n    return q @ (k\n");
    for (const auto& arguments :
         std::vector<std::vector<std::string>>{{"lower", wrong},
                                               {"exec", wrong, "--spec", "causal"},
                                               {"lift", wrong},
                                               {"lift", home_.write("plain.cu", "int main() {}\n")},
                                               {"lower", edited("BM=128", "BM=64"), "--expert", "nosuch"},
                                               {"exec", edited("BM=128", "BM=64"), "--spec", wrong},
                                               {"explain", wrong}}) {
        const Ran r = run(arguments);
        EXPECT_EQ(r.status, 3) << arguments[0] << " " << arguments[1] << r.error;
        EXPECT_EQ(r.out, "");
        EXPECT_TRUE(holds(r.error, "error: ")) << r.error;
    }
    EXPECT_TRUE(holds(run({"lower", wrong}).error, "return q @ (k")) << "the line is shown";
}

TEST_F(Programs, ExecFindsNothingInWhatIsRight) {
    const Ran r = run({"exec", edited("BN=64", "BN=32"), "--spec", full_, "--json", "--seeds", "2"});
    EXPECT_EQ(r.status, 0) << r.out << r.error;
    EXPECT_TRUE(r.json().find("findings")->items()->empty());
    EXPECT_GE(*r.json().find("runs")->integer(), 48);
    EXPECT_TRUE(holds(run({"exec", edited("BN=64", "BN=32"), "--spec", full_}).out, ": 0 findings in "));
}

TEST_F(Programs, ExecNamesARaceAndAWrongValue) {
    const Ran race =
        run({"exec", edited("                wait(Vs[s])", "                pass"), "--spec", full_, "--json"});
    EXPECT_EQ(race.status, 5) << race.out << race.error;
    const auto json = race.json();
    ASSERT_FALSE(json.find("findings")->items()->empty()) << race.out;
    const auto& first = json.find("findings")->items()->front();
    for (const char* field : {"kind", "role", "line", "other", "message", "text"})
        ASSERT_NE(first.find(field), nullptr) << field;
    EXPECT_EQ(*first.find("kind")->string(), "race") << race.out;
    EXPECT_GT(*first.find("line")->integer(), *first.find("other")->integer()) << race.out;
    EXPECT_TRUE(holds(*first.find("text")->string(), "gemm(P, Vs[s], add=acc)")) << race.out;

    EXPECT_EQ(json.find("findings")->items()->size(), 2U) << "each sentence once: another's share, and its own";
    EXPECT_GT(*first.find("runs")->integer(), 1) << race.out;
    EXPECT_TRUE(holds(*first.find("run")->string(), "seed 1")) << race.out;

    const Ran value = run({"exec", edited("j < Sk", "j <= Sk"), "--spec", full_});
    EXPECT_EQ(value.status, 5);
    EXPECT_TRUE(holds(value.out, "value: line ") && holds(value.out, "    in ")) << value.out;
    EXPECT_TRUE(holds(value.out, " runs, first with B=")) << value.out;
    EXPECT_EQ(value.lines().size(), 3U) << value.out;
    EXPECT_TRUE(holds(value.out, "and should be ")) << value.out;
    const Ran other = run({"exec", edited("BN=64", "BN=32"), "--spec", "causal"});
    EXPECT_EQ(other.status, 5) << "the expert's own program computes no causal attention";
}

TEST_F(Programs, ExplainShowsVariantRulesAndDifference) {
    const Ran r = run({"explain", "causal", "--head-dim", "64", "--heads", "8:2", "--arch", "sm_80"});
    ASSERT_EQ(r.status, 0) << r.error;
    for (const char* part : {"understood as", "cubridge-variant 1", "expert prefill_sm80, changed by", "    mask",
                             "executor: ", "regions keep the expert's CUDA", "    @@ "})
        EXPECT_TRUE(holds(r.out, part)) << part << "\n" << r.out;
    const auto json = run({"explain", "causal", "--json", "--expert", "prefill_sm80"}).json();
    for (const char* field : {"specification", "error", "variant", "chosen", "expert", "rules", "executed",
                              "configurations", "passed_over", "generic_because", "copied", "printed", "difference"})
        ASSERT_NE(json.find(field), nullptr) << field;
    EXPECT_EQ(*json.find("expert")->string(), "prefill_sm80");
    ASSERT_EQ(json.find("configurations")->items()->size(), 4U);
    const auto& first = json.find("configurations")->items()->front();
    EXPECT_EQ(*first.find("name")->string(), "prefill_sm90");
    EXPECT_EQ(*first.find("keys")->integer(), 128);
    EXPECT_EQ(*first.find("order")->string(), "heaviest_first");
    const auto twice = run({"explain", "causal", "--json", "--shape", "8:4096"}).json();
    EXPECT_EQ(*twice.find("configurations")->items()->front().find("tiles")->integer(),
              2 * *first.find("tiles")->integer());
    EXPECT_TRUE(json.find("error")->is_null() && json.find("generic_because")->is_null());
    EXPECT_TRUE(json.find("passed_over")->items()->empty());
    EXPECT_GT(json.find("rules")->items()->size(), 1U);
    EXPECT_GT(*json.find("copied")->integer(), *json.find("printed")->integer());
}

TEST_F(Programs, ExplainSaysWhyNotFromAnExpert) {
    // No expert's products have more columns of v than 256.
    const std::vector<std::string> words = {"explain", "causal", "--head-dim", "264", "--expert", "prefill_sm80"};
    const Ran people = run(words);
    EXPECT_TRUE(holds(people.out, "  not from expert prefill_sm80: ")) << people.out;
    EXPECT_TRUE(holds(people.out, "  the generic kernel: ")) << people.out;
    auto with_json = words;
    with_json.emplace_back("--json");
    const auto json = run(with_json).json();
    ASSERT_EQ(json.find("passed_over")->items()->size(), 1U);
    const auto& one = json.find("passed_over")->items()->front();
    EXPECT_EQ(*one.find("expert")->string(), "prefill_sm80");
    EXPECT_EQ(*one.find("reason")->string(), *json.find("generic_because")->string());
    EXPECT_EQ(run({"explain", "causal", "--expert", "prefill_sm70"}).status, 2);
}

TEST_F(Programs, ExplainSaysWhyTheGenericKernelServes) {
    const Ran r = run({"explain", "causal", "--dtype", "fp32"});
    EXPECT_EQ(r.status, 0) << r.error;
    EXPECT_TRUE(holds(r.out, "the generic kernel: experts take")) << r.out;
    const std::string no_attention = home_.write("sums.py", "import torch\ndef attention(q, k, v):\n"
                                                            "    s = q @ k.transpose(-2, -1)\n"
                                                            "    return torch.softmax(s, -1).cumsum(-1) @ v\n");
    const Ran program = run({"explain", no_attention, "--json", "--heads", "8:8"});
    EXPECT_EQ(program.status, 0) << program.error;
    const auto json = program.json();
    EXPECT_TRUE(holds(*json.find("generic_because")->string(), "not recognised as attention")) << program.out;
    EXPECT_TRUE(json.find("expert")->is_null() && json.find("difference")->is_null());
}

TEST_F(Programs, ExplainHandlesEachAndEndsWithTheWorst) {
    const std::string wrong = home_.write("wrong.py", "def attention(q, k, v):\n    return q @ (k\n");
    const std::string mha = home_.write("mha.py", "def attention(q, k, v):\n    return q @ k.transpose(-2, -1) @ v\n");
    const Ran r = run({"explain", wrong, "causal", "no/such.py", "--json"});
    EXPECT_EQ(r.status, 3);
    ASSERT_EQ(r.lines().size(), 3U);
    EXPECT_EQ(*r.json(0).find("error")->find("kind")->string(), "syntax");
    EXPECT_TRUE(r.json(1).find("error")->is_null());
    EXPECT_EQ(*r.json(2).find("error")->find("kind")->string(), "file");
    EXPECT_EQ(run({"explain", mha, "--heads", "8:2"}).status, 4) << "this text has as many KV heads as query heads";
}

} // namespace
