// Every bad specification of the corpus: exit status 3, one JSON object with an error that names what is wrong, within
// bounded time. SPDX-License-Identifier: Apache-2.0
#include "tests/unit/bindings/command.h"
#include <gtest/gtest.h>

using namespace cubridge;

namespace {

const std::string kFolder = "tests/corpus/bad";

std::string text_of(const runtime::Json& entry, const char* name) {
    const auto* value = entry.find(name);
    return value != nullptr && value->string() != nullptr ? *value->string() : "";
}

// What is wrong with the answer to one text; empty: nothing.
std::string judge(const runtime::Json& entry, const test::Ran& r) {
    if (r.status != 3) return "exit status " + std::to_string(r.status);
    const auto json = r.json();
    const auto* error = json.find("error");
    if (error == nullptr || error->find("message") == nullptr) return "no error in the JSON";
    const std::string message = text_of(*error, "message"), said = message + "\n" + text_of(*error, "hint");
    if (message.empty()) return "an empty message";
    if (message.find("internal") != std::string::npos || text_of(*error, "kind") == "internal")
        return "an internal error: " + message;
    if (const auto* line = entry.find("line"); line != nullptr && *line->integer() != *error->find("line")->integer())
        return "line " + std::to_string(*error->find("line")->integer()) + ", not " + std::to_string(*line->integer()) +
               ": " + message;
    if (const std::string kind = text_of(entry, "kind"); !kind.empty() && kind != text_of(*error, "kind"))
        return "kind " + text_of(*error, "kind") + ", not " + kind + ": " + message;
    if (const std::string word = text_of(entry, "mentions"); said.find(word) == std::string::npos)
        return "the message does not hold `" + word + "`: " + message;
    return "";
}

// The files that answered_otherwise.txt names: of those that are refused only the status is held.
std::string otherwise() {
    std::ifstream file(kFolder + "/answered_otherwise.txt");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

TEST(BadSpecifications, EachIsRefusedInWords) {
    std::ifstream file(kFolder + "/index.json");
    std::stringstream text;
    text << file.rdbuf();
    const auto index = runtime::Json::parse(text.str());
    ASSERT_TRUE(index && index->items() != nullptr);
    ASSERT_GE(index->items()->size(), 60U);
    const test::Folder home;
    const std::string open = otherwise();
    const bool made = std::system(("python3 " + kFolder + "/make_bad.py " + home.path() + " >/dev/null").c_str()) == 0;
    for (const auto& entry : *index->items()) {
        const bool is_made = entry.find("made") != nullptr;
        if (is_made && !made) continue;
        std::string word = (is_made ? home.path() : kFolder) + "/" + text_of(entry, "file");
        if (const std::string f = text_of(entry, "function"); !f.empty() && f != "attention") word += ":" + f;
        std::vector<std::string> arguments = {"adapt", word, "--json", "--cache", "", "--arch", "sm_90a"};
        if (const auto* more = entry.find("args"); more != nullptr)
            for (const auto& a : *more->items()) arguments.push_back(*a.string());
        const test::Ran r = test::run_command(arguments, home);
        const auto line = open.find("\n" + text_of(entry, "file") + ": ");
        const bool accepted = line != std::string::npos && open.compare(open.find(": ", line), 10, ": accepted") == 0;
        const std::string wrong = line == std::string::npos ? judge(entry, r) : "";
        EXPECT_EQ(wrong, "") << text_of(entry, "file");
        EXPECT_TRUE(accepted || r.status == 3) << text_of(entry, "file") << ": exit status " << r.status;
    }
}

} // namespace
