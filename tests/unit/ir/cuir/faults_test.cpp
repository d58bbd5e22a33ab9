// Every fault of tests/corpus/cuir/faults.txt gets the finding and the line that it stands with.
// SPDX-License-Identifier: Apache-2.0
#include "programs.h"
#include <gtest/gtest.h>
#include <sstream>

namespace cubridge::ir::cuir::testing {
namespace {

std::string trimmed(const std::string& s) {
    const auto a = s.find_first_not_of(' '), b = s.find_last_not_of(' ');
    return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}

struct Place { ///< "LINE @n"
    std::string line;
    int nth = 0;
    explicit Place(const std::string& text) {
        const auto at = text.rfind('@');
        line = trimmed(text.substr(0, at));
        nth = std::stoi(text.substr(at + 1));
    }
};

std::string edited(const std::string& text, const std::string& edit) {
    const auto space = edit.find(' '), arrow = edit.find(" => ");
    const auto verb = edit.substr(0, space);
    const auto from = edit.substr(space + 1, arrow == std::string::npos ? std::string::npos : arrow - space - 1);
    const auto to = arrow == std::string::npos ? "" : trimmed(edit.substr(arrow + 4));
    if (verb == "delete") return replace_line(text, Place(from).line, Place(from).nth, "");
    if (verb == "replace") return replace_line(text, Place(from).line, Place(from).nth, to);
    const Place before(to.substr(std::string("before ").size()));
    const auto inserted = [&](const std::string& t, const std::string& line) {
        std::istringstream in(t);
        std::string out;
        int number = 0;
        const int where = line_of(t, before.line, before.nth);
        for (std::string l; std::getline(in, l);) {
            if (++number == where) out += std::string(l.find_first_not_of(' '), ' ') + line + "\n";
            out += l + "\n";
        }
        return out;
    };
    if (verb == "insert") return inserted(text, trimmed(from));
    const Place moved(from); // upwards only: the place to move to keeps its number
    std::istringstream in(text);
    std::string line;
    for (int k = line_of(text, moved.line, moved.nth); k > 0; --k) std::getline(in, line);
    return inserted(replace_line(text, moved.line, moved.nth, ""), trimmed(line.substr(0, line.find("  #"))));
}

Finding first_finding(const std::string& program, const std::string& text) {
    const auto p = parse(text);
    if (const auto found = check(p); !found.empty()) return found[0];
    Trial trial;
    const bool portable = program == "portable";
    for (const auto& [shape, data] : {std::pair{Shape{9, 14, 4, 2}, Data::Plain},
                                      {Shape{13, 7}, Data::Plain},
                                      {Shape{5, 0}, Data::Plain},
                                      {Shape{25, 31}, Data::Plain},
                                      {Shape{9, 17}, Data::Rising}}) {
        auto run = friendly(small(shape, data, portable ? 4 : 2));
        run.constants["ST"] = portable ? 1 : 2;
        if (!portable) run.constants["scaled"] = 1;
        if (program == "stream") { // the tile again, often
            run.constants["LIMIT"] = 2;
            run.constants["SLACK"] = 1;
        }
        trial.runs.push_back(run);
    }
    const auto found = verify(p, trial, reference);
    return found.empty() ? Finding{"none", "", 0, 0, "nothing found"} : found[0];
}

TEST(FaultsTest, EachIsNamedByKindAndLine) {
    std::istringstream in(load("faults.txt"));
    int count = 0;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        std::vector<std::string> fields;
        std::size_t at = 0;
        for (std::size_t next; (next = line.find(" | ", at)) != std::string::npos; at = next + 3)
            fields.push_back(trimmed(line.substr(at, next - at)));
        fields.push_back(trimmed(line.substr(at)));
        ASSERT_EQ(fields.size(), 4u) << line;
        ++count;
        const auto text = edited(load(fields[0] + ".py"), fields[1]);
        const Place expected(fields[3]);
        const auto f = first_finding(fields[0], text);
        const int where = line_of(text, expected.line, expected.nth);
        EXPECT_TRUE(f.kind == fields[2] && f.line == where)
            << line << "\n  line " << where << " was expected; " << f.kind << ": " << f.text();
    }
    EXPECT_GE(count, 40);
}

} // namespace
} // namespace cubridge::ir::cuir::testing
