// The command's contract: exit statuses, JSON fields, files, messages. SPDX-License-Identifier: Apache-2.0
#include "tests/unit/bindings/command.h"
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>

using namespace cubridge;
using test::Ran;

namespace {

bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

class Cli : public ::testing::Test {
protected:
    Ran run(const std::vector<std::string>& arguments) const { return test::run_command(arguments, home_); }
    // Whether kernels can be compiled on this machine.
    bool compiles() const {
        const Ran r = run({"info", "--json"});
        const auto json = r.json();
        return json.find("nvrtc") != nullptr && !json.find("nvrtc")->is_null();
    }
    std::string sample(const char* name) const { return std::string("samples/") + name; }
    test::Folder home_;
};

TEST_F(Cli, HelpForEveryCommand) {
    for (const char* command : {"adapt", "check", "specs", "cache", "info", "explain", "exec", "lower", "lift"}) {
        const Ran r = run({command, "--help"});
        EXPECT_EQ(r.status, 0);
        EXPECT_TRUE(holds(r.out, std::string("usage: cubridge ") + command)) << r.out;
        EXPECT_EQ(r.error, "");
    }
    EXPECT_TRUE(holds(run({"--help"}).out, "adapt SPEC"));
    EXPECT_TRUE(holds(run({"--version"}).out, "cubridge "));
}

TEST_F(Cli, UsageIsTwo) {
    const std::vector<std::vector<std::string>> wrong = {
        {},
        {"frobnicate"},
        {"adapt"},
        {"adapt", "no/such/file.py"},
        {"adapt", "nosuchname"},
        {"adapt", "causal", "--frob"},
        {"adapt", "causal", "--arch", "hopper"},
        {"adapt", "causal", "--dtype", "int4"},
        {"adapt", "causal", "--head-dim", "0"},
        {"adapt", "causal", "--head-dim", "12x"},
        {"adapt", "causal", "--heads", "7:2"},
        {"adapt", "causal", "--set", "window"},
        {"adapt", "causal", "--set", "window=abc"},
        {"adapt", "causal", "--arg", "a=q17[S]"},
        {"adapt", "causal", "--arg", "a=i32[S"},
        {"adapt", "causal", "--arg", "a=i32[a,b,c,d,e]"},
        {"adapt", "causal", "--set", "a=1", "--absent", "a"},
        {"adapt", "causal", "--rows", "head"},
        {"adapt", "causal", "--lse"},
        {"check", "causal", "--tune"},
        {"check", "causal", "--worker"},
        {"check", "causal", "--delays", "20"},
        {"check", "causal", "--sanitize"},
        {"check", "causal", "--gpu", "--delays", "0"},
        {"check", "causal", "--gpu", "--sanitize", "--resume", "passed.jsonl"},
        {"adapt", "causal", "--gpu", "--sanitize"},
        {"worker"}, // by hand: the library starts it
        {"adapt", "causal", "--tune", "--expert", "prefill_sm80"},
        {"adapt", "causal", "--tune=1"},
        {"adapt", "causal", "--shape", "4:4096"},
        {"adapt", "causal", "--tune", "--shape", "4096"},
        {"adapt", "causal", "--tune", "--shape", "0:4096"},
        {"adapt", "causal", "--tune", "--shape", "4:x"},
        {"explain", "causal", "--shape", "4"},
        {"adapt", "causal", "--tune", "--rows", "tail", "--shape", "1:8:4"},
        {"adapt", "causal:"},
        {"adapt", "causal:+mask"},
        {"cache"},
        {"cache", "frob"},
        {"cache", "show"},
        {"cache", "show", "zz"},
        {"cache", "show", "abcd"},
        {"specs", "nosuchname"},
        {"explain"},
        {"explain", "no/such/file.py"},
        {"lift"},
        {"lift", "no/such/file.cu"},
        {"lower"},
        {"lower", "no/such/file.py"},
        {"exec"},
        {"exec", "no/such/file.py", "--spec", "causal"},
        {"exec", sample("prefix_lm.py")},
        {"exec", sample("prefix_lm.py"), "--spec", "nosuchname"},
        {"exec", "a", "--spec", "causal", "--seeds", "0"},
        {"info", "x"}};
    for (const auto& arguments : wrong) {
        const Ran r = run(arguments);
        EXPECT_EQ(r.status, 2) << (arguments.empty() ? "" : arguments.back());
        EXPECT_EQ(r.out, "");
        EXPECT_TRUE(holds(r.error, "cubridge") || holds(r.error, "error")) << r.error;
    }
}

TEST_F(Cli, UnknownParametersAndTextsThatAreRefusedAreThree) {
    EXPECT_EQ(run({"adapt", "causal", "--set", "nosuch=1"}).status, 3);
    const std::string bad = home_.write("bad.py", "def attention(q, k, v):\n    return q @ (k\n");
    const Ran r = run({"adapt", bad, "--json"});
    EXPECT_EQ(r.status, 3);
    const auto json = r.json();
    ASSERT_NE(json.find("error"), nullptr) << r.out;
    const auto& error = *json.find("error");
    for (const char* field : {"kind", "message", "line", "column", "hint"})
        EXPECT_NE(error.find(field), nullptr) << field;
    EXPECT_EQ(*json.find("status")->string(), "failed");
    EXPECT_EQ(*error.find("kind")->string(), "syntax");
    EXPECT_TRUE(holds(r.error, "return q @ (k")) << "the line is shown: " << r.error;
    EXPECT_TRUE(holds(r.error, "^"));
}

TEST_F(Cli, TuneNeedsAGpu) {
    const auto about = run({"info", "--json"}).json();
    if (about.find("gpus") != nullptr && about.find("gpus")->items() != nullptr &&
        !about.find("gpus")->items()->empty())
        GTEST_SKIP() << "there is one here";
    const Ran r = run({"adapt", "causal", "--tune", "--json"});
    EXPECT_EQ(r.status, 7);
    const auto json = r.json();
    ASSERT_NE(json.find("error"), nullptr) << r.out;
    EXPECT_TRUE(holds(*json.find("error")->find("message")->string(), "--tune measures on a GPU: ")) << r.out;
    EXPECT_NE(*json.find("error")->find("hint")->string(), "");
    EXPECT_TRUE(json.find("artifact")->is_null() && json.find("tuning")->is_null());
    EXPECT_TRUE(holds(r.error, "--tune measures on a GPU")) << r.error;
    EXPECT_EQ(run({"cache", "list", "--json"}).out, "");
}

TEST_F(Cli, AdaptGivesOneObjectASpecification) {
    if (!compiles()) GTEST_SKIP() << "no NVRTC here";
    const Ran r = run({"adapt", sample("prefix_lm.py"), "causal", "--arch", "sm_80", "--json"});
    ASSERT_EQ(r.status, 0) << r.error;
    ASSERT_EQ(r.lines().size(), 2U);
    for (std::size_t k = 0; k < 2; ++k) {
        const auto json = r.json(k);
        for (const char* field : {"status", "error", "variant", "request_key", "artifact", "arch", "made_by", "tier",
                                  "expert", "stages", "cubin_bytes", "entries", "tuning", "warnings"})
            ASSERT_NE(json.find(field), nullptr) << field;
        EXPECT_EQ(*json.find("status")->string(), "ready");
        EXPECT_EQ(*json.find("made_by")->string(), "rules");
        EXPECT_EQ(*json.find("expert")->string(), "prefill_sm80");
        EXPECT_TRUE(holds(*json.find("verified")->string(), "executor: "));
        EXPECT_TRUE(json.find("reasons")->items()->empty());
        EXPECT_EQ(*json.find("tier")->string(), "made");
        EXPECT_EQ(*json.find("arch")->string(), "sm_80");
        EXPECT_GT(*json.find("cubin_bytes")->integer(), 0);
        EXPECT_TRUE(json.find("error")->is_null());
        ASSERT_FALSE(json.find("entries")->items()->empty());
        for (const char* field : {"name", "registers", "stack", "spills"})
            EXPECT_NE(json.find("entries")->items()->front().find(field), nullptr) << field;
        ASSERT_FALSE(json.find("stages")->items()->empty());
        for (const auto& stage : *json.find("stages")->items())
            for (const char* field : {"name", "ms", "verdict", "reason"})
                EXPECT_NE(stage.find(field), nullptr) << field;
        EXPECT_EQ(*json.find("stages")->items()->front().find("name")->string(), "parse");
    }
    const Ran again = run({"adapt", sample("prefix_lm.py"), "--arch", "sm_80", "--json"});
    EXPECT_EQ(*again.json().find("tier")->string(), "store") << "another process finds it";
    EXPECT_EQ(*again.json().find("artifact")->string(), *r.json().find("artifact")->string());

    const Ran generic = run({"adapt", sample("prefix_lm.py"), "--dtype", "fp32", "--json"});
    ASSERT_EQ(generic.status, 0) << generic.error;
    const auto json = generic.json();
    EXPECT_EQ(*json.find("status")->string(), "fallback");
    EXPECT_EQ(*json.find("made_by")->string(), "generic");
    EXPECT_TRUE(json.find("expert")->is_null());
    EXPECT_EQ(json.find("reasons")->items()->size(), 2U);
    bool said = false;
    for (const auto& stage : *json.find("stages")->items())
        said = said || (*stage.find("name")->string() == "transfer" && *stage.find("verdict")->string() == "skipped" &&
                        !stage.find("reason")->string()->empty());
    EXPECT_TRUE(said) << generic.out;
}

TEST_F(Cli, SeveralSpecificationsEndWithTheWorstStatus) {
    const std::string bad = home_.write("bad.py", "def attention(q, k, v:\n");
    const Ran r = run({"adapt", bad, "causal", "--json", "--cache", ""});
    EXPECT_EQ(r.lines().size(), 2U);
    EXPECT_GE(r.status, 3);
    EXPECT_TRUE(r.status == 3 || !compiles());
}

TEST_F(Cli, ForPeopleTheStagesAndWhatWasNotDone) {
    if (!compiles()) GTEST_SKIP() << "no NVRTC here";
    const Ran r = run({"adapt", "prefix_lm", "--cache", ""});
    EXPECT_EQ(r.status, 0);
    for (const char* part : {"parse", "transfer", "execute", "lower", "compile", "registers", "stack", "spilled",
                             "32 on 8 KV heads", "by rules", "not done", "not run on a GPU"})
        EXPECT_TRUE(holds(r.out, part)) << part << r.out;
    EXPECT_FALSE(holds(r.out, "\033[")) << "no colour into a file";
}

TEST_F(Cli, AWorkerCompilesTheSame) {
    if (!compiles()) GTEST_SKIP() << "no NVRTC";
    std::string cubins[2];
    for (const bool worker : {false, true}) {
        std::vector<std::string> words = {"adapt", "causal", "--arch", "sm_80", "--cache", "", "--json"};
        words.insert(words.end(), {"--emit", home_.path() + "/made"});
        if (worker) words.push_back("--worker");
        const Ran r = run(words);
        ASSERT_EQ(r.status, 0) << r.error;
        const auto json = r.json();
        ASSERT_NE(json.find("compiled_in"), nullptr) << r.out;
        EXPECT_EQ(*json.find("compiled_in")->string(), worker ? "worker" : "process");
        cubins[worker] = home_.read("made/kernel.cubin");
    }
    EXPECT_EQ(cubins[0], cubins[1]);
    EXPECT_FALSE(cubins[0].empty());
}

TEST_F(Cli, EmitWritesEverything) {
    if (!compiles()) GTEST_SKIP() << "no NVRTC here";
    const std::string folder = home_.path() + "/out/deep";
    ASSERT_EQ(run({"adapt", "sink", "--arch", "sm_80", "--emit", folder, "--quiet"}).status, 0);
    for (const char* name : {"variant.txt", "kernel.cu", "kernel.cubin", "plan.txt", "report.json"})
        EXPECT_NE(home_.read(std::string("out/deep/") + name), "") << name;
    EXPECT_TRUE(holds(home_.read("out/deep/variant.txt"), "cubridge-"));
    EXPECT_EQ(home_.read("out/deep/kernel.cubin").substr(1, 3), "ELF");
    const auto lines_of = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
    EXPECT_EQ(home_.read("out/deep/expert.py"), run({"lift", "prefill_sm80"}).out);
    EXPECT_EQ(home_.read("out/deep/variant.py"), run({"lift", folder + "/kernel.cu"}).out);
    EXPECT_GT(lines_of(home_.read("out/deep/difference.txt")), 4);
    EXPECT_LT(lines_of(home_.read("out/deep/difference.txt")), lines_of(home_.read("out/deep/expert.py")));
    const std::string plain = home_.path() + "/plain";
    ASSERT_EQ(run({"adapt", "sink", "--dtype", "fp32", "--emit", plain, "--quiet"}).status, 0);
    EXPECT_NE(home_.read("plain/kernel.cu"), "");
    for (const char* name : {"expert.py", "variant.py", "difference.txt"})
        EXPECT_EQ(home_.read(std::string("plain/") + name), "") << "the generic kernel has no program: " << name;
    EXPECT_TRUE(runtime::Json::parse(
        home_.read("out/deep/report.json").substr(0, home_.read("out/deep/report.json").find('\n'))));
}

TEST_F(Cli, TheStoreIsListedShownAndVerified) {
    EXPECT_EQ(run({"cache", "list"}).status, 0);
    EXPECT_EQ(run({"cache", "verify"}).status, 0);
    if (!compiles()) GTEST_SKIP() << "no NVRTC here";
    const std::string id = *run({"adapt", "causal", "--arch", "sm_80", "--json"}).json().find("artifact")->string();
    const auto row = run({"cache", "list", "--json"}).json();
    EXPECT_EQ(*row.find("id")->string(), id);
    EXPECT_EQ(*row.find("arch")->string(), "sm_80");
    const Ran shown = run({"cache", "show", id.substr(0, 8)});
    EXPECT_EQ(shown.status, 0);
    EXPECT_TRUE(holds(shown.out, id) && holds(shown.out, "not run on a GPU")) << shown.out;
    EXPECT_EQ(*row.find("made_by")->string(), "rules");
    ASSERT_EQ(run({"adapt", "causal", "--arch", "sm_80", "--dtype", "fp32"}).status, 0);
    EXPECT_EQ(run({"cache", "list", "--json"}).lines().size(), 2U);
    const auto verified = run({"cache", "verify", "--json"}).json();
    EXPECT_EQ(*verified.find("checked")->integer(), 2);
    EXPECT_TRUE(verified.find("bad")->items()->empty());
    const auto kept = run({"cache", "show", id, "--json"}).json();
    ASSERT_NE(kept.find("verification"), nullptr);
    EXPECT_EQ(*kept.find("verification")->find("level")->string(), "executor");
    EXPECT_TRUE(kept.find("verification")->find("gpu")->is_null());
}

TEST_F(Cli, StoredKernelsAreRunAgainOnlyWhereThereIsAGpu) {
    for (const std::vector<std::string>& wrong : {std::vector<std::string>{"cache", "list", "--gpu"},
                                                  {"cache", "verify", "--seed", "3"},
                                                  {"cache", "show", "1", "--gpu"}})
        EXPECT_EQ(run(wrong).status, 2);
    const auto json = run({"info", "--json"}).json();
    if (!json.find("gpus")->items()->empty()) GTEST_SKIP() << "there is a GPU";
    const Ran r = run({"cache", "verify", "--gpu"});
    EXPECT_EQ(r.status, 7);
    EXPECT_TRUE(holds(r.out, "0 checked, 0 bad")) << r.out;
    EXPECT_TRUE(holds(r.error, "nothing was run: ")) << r.error;
    const Ran listed = run({"cache", "verify", "--gpu", "--json"});
    EXPECT_EQ(listed.status, 7);
    EXPECT_TRUE(listed.json().find("kernels")->items()->empty());
    EXPECT_FALSE(listed.json().find("error")->find("message")->string()->empty());
}

TEST_F(Cli, ARequestThatNoKernelServesIsFour) {
    EXPECT_EQ(
        run({"adapt", home_.write("square.py", "def attention(q, k, v):\n    return (q @ k.transpose(-2, -1)) @ v\n"),
             "--heads", "8:2"})
            .status,
        4)
        << "this text needs as many KV heads as query heads";
}

TEST_F(Cli, CheckWithoutAGpu) {
    const Ran r = run({"check", "causal", "--json", "--cases", "8", "--seed", "5"});
    EXPECT_EQ(r.status, 0) << r.out << r.error;
    const auto json = r.json();
    for (const char* field : {"specification", "options", "verdict", "gpu", "error", "seed", "cases", "against_text",
                              "against_f64", "kernels", "worst_ratio", "worst_case", "failures", "not_done", "ms"})
        EXPECT_NE(json.find(field), nullptr) << field;
    EXPECT_EQ(*json.find("verdict")->string(), "passed");
    EXPECT_EQ(*json.find("seed")->integer(), 5);
    EXPECT_GE(*json.find("against_text")->integer(), 4);
    EXPECT_TRUE(holds(r.error, "plan: 8 cases")) << r.error;
}

// compute-sanitizer is a script here: it says what the real one would, and keeps how it was called.
class Sanitize : public Cli {
protected:
    void SetUp() override { setenv("CUBRIDGE_COMPUTE_SANITIZER", (home_.path() + "/tool").c_str(), 1); }
    void TearDown() override { unsetenv("CUBRIDGE_COMPUTE_SANITIZER"); }
    void tool(const std::string& body) const {
        std::filesystem::permissions(
            home_.write("tool", "#!/bin/sh\necho \"$@\" >>'" + home_.path() + "/calls'\n" + body),
            std::filesystem::perms::owner_all);
    }
    Ran sanitize(std::vector<std::string> more = {}) const {
        std::vector<std::string> all{"check", "causal", "--gpu", "--sanitize", "--cases", "3"};
        all.insert(all.end(), more.begin(), more.end());
        return run(all);
    }
};

TEST_F(Sanitize, RunsTheSameCheckUnderEachTool) {
    tool("echo '========= COMPUTE-SANITIZER'\necho 'causal: passed'\necho '========= ERROR SUMMARY: 0 errors'\n");
    const Ran r = sanitize({"--json"});
    EXPECT_EQ(r.status, 0) << r.out << r.error;
    ASSERT_EQ(r.lines().size(), 3U);
    EXPECT_EQ(*r.json(1).find("tool"), runtime::Json("initcheck"));
    EXPECT_EQ(*r.json(2).find("verdict"), runtime::Json("passed"));
    const std::string program = std::filesystem::canonical(CUBRIDGE_CLI).string(),
                      rest = " --error-exitcode 99 " + program + " --small check causal --gpu --cases 3\n";
    EXPECT_EQ(home_.read("calls"), "--tool memcheck" + rest + "--tool initcheck" + rest + "--tool synccheck" + rest);
}

TEST_F(Sanitize, ErrorsAreFiveAndTheirFirstLines) {
    tool("echo '========= COMPUTE-SANITIZER'\n"
         "test \"$2\" = initcheck && echo '========= Uninitialized __global__ memory read of size 4 bytes' && "
         "echo '========= ERROR SUMMARY: 2 errors' && exit 99\n"
         "echo '========= ERROR SUMMARY: 0 errors'\n");
    const Ran r = sanitize();
    EXPECT_EQ(r.status, 5);
    EXPECT_TRUE(holds(r.out, "memcheck: passed, 0 errors")) << r.out;
    EXPECT_TRUE(holds(r.out, "initcheck: failed, 2 errors")) << r.out;
    EXPECT_TRUE(holds(r.out, "synccheck: passed, 0 errors")) << r.out;
    EXPECT_TRUE(holds(r.error, "Uninitialized __global__ memory read")) << r.error;
}

TEST_F(Sanitize, WhatTheCheckItselfSaysCounts) {
    tool("echo 'causal: failed'\necho 'wrong: case 3'\necho '========= ERROR SUMMARY: 0 errors'\nexit 5\n");
    const Ran r = sanitize();
    EXPECT_EQ(r.status, 5);
    EXPECT_TRUE(holds(r.error, "wrong: case 3")) << r.error;
}

TEST_F(Sanitize, AToolThatIsMissingOrRefusesIsSeven) {
    const Ran missing = sanitize();
    EXPECT_EQ(missing.status, 7);
    EXPECT_TRUE(holds(missing.error, "compute-sanitizer is missing")) << missing.error;
    tool("echo '========= Error: Device not supported. Please refer to the documentation'\nexit 1\n");
    const Ran refuses = sanitize({"--json"});
    EXPECT_EQ(refuses.status, 7);
    EXPECT_EQ(*refuses.json().find("verdict"), runtime::Json("not run"));
    EXPECT_TRUE(holds(refuses.out, "Device not supported"));
    // The command under the tool finds no GPU before the tool sees one.
    tool("echo 'no GPU here'\nexit 7\n");
    EXPECT_EQ(sanitize().status, 7);
}

TEST_F(Cli, CheckIsResumable) {
    const std::string file = home_.path() + "/lines";
    ASSERT_EQ(run({"check", "causal", "--cases", "4", "--resume", file}).status, 0);
    const Ran again = run({"check", "causal", "sink", "--cases", "4", "--resume", file});
    EXPECT_EQ(again.status, 0);
    EXPECT_TRUE(holds(again.error, "causal: passed before")) << again.error;
    EXPECT_TRUE(holds(again.out, "sink: passed")) << again.out;
    EXPECT_FALSE(
        holds(run({"check", "causal", "--cases", "4", "--seed", "2", "--resume", file}).error, "passed before"))
        << "another seed is another run";
}

TEST_F(Cli, SpecsListsAndPrints) {
    const Ran all = run({"specs"});
    EXPECT_EQ(all.status, 0);
    for (const char* name : {"causal", "prefix_lm", "sliding_window", "alibi"}) EXPECT_TRUE(holds(all.out, name));
    EXPECT_TRUE(holds(run({"specs", "causal"}).out, "def attention(q, k, v)"));
    EXPECT_NE(run({"specs", "--json"}).json().find("title"), nullptr);
}

TEST_F(Cli, InfoSaysWhatIsHere) {
    const Ran r = run({"info", "--json"});
    EXPECT_TRUE(r.status == 0 || r.status == 7);
    const auto json = r.json();
    for (const char* field : {"version", "gpus", "nvrtc", "worker", "store", "gaps"})
        EXPECT_NE(json.find(field), nullptr) << field;
    EXPECT_EQ(r.status == 0, json.find("gaps")->items()->empty());
}

} // namespace
