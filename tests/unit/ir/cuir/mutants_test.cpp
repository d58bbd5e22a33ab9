// All single edits of every correct program: each is found, or stands in survivors.txt with the reason why it changes
// nothing that the executor could see. What is a race is found with one seed under the friendliest schedule.
// A sample by default; all of them with CUBRIDGE_ALL_MUTANTS=1, which also prints those that are not listed.
// SPDX-License-Identifier: Apache-2.0
#include "programs.h"
#include "tests/unit/sample.h"
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

namespace cubridge::ir::cuir::testing {
namespace {

using syntax::Kind;
using syntax::Node;
using syntax::NodePtr;

struct Mutant {
    std::string what; ///< "delete 42 `wait(S)`"
    Program program;
};

/// Copies of an expression with one number moved by one, or one comparison at its edge, each.
void off_by_one(const NodePtr& n, const std::function<void(NodePtr)>& use) {
    if (!n) return;
    const auto with = [&](const std::function<void(Node&)>& edit) {
        auto copy = std::make_shared<Node>(*n);
        edit(*copy);
        use(copy);
    };
    if (n->kind == Kind::Int) {
        with([](Node& c) { ++c.integer; });
        if (n->integer > 0) with([](Node& c) { --c.integer; });
    }
    if (n->kind == Kind::Compare) {
        static const std::map<std::string, std::string> other{
            {"<", "<="}, {"<=", "<"}, {">", ">="}, {">=", ">"}, {"==", "!="}};
        for (std::size_t k = 0; k < n->names.size(); ++k)
            if (const auto it = other.find(n->names[k]); it != other.end())
                with([&](Node& c) { c.names[k] = it->second; });
    }
    const bool statistic = n->kind == Kind::Call && n->items[0]->kind == Kind::Attribute; // its (-1) is syntax
    for (std::size_t k = 0; k < n->items.size(); ++k) {
        if (statistic && k > 0) break;
        off_by_one(n->items[k], [&](NodePtr x) { with([&](Node& c) { c.items[k] = x; }); });
    }
    for (std::size_t k = 0; k < n->keywords.size(); ++k)
        off_by_one(n->keywords[k].value, [&](NodePtr x) { with([&](Node& c) { c.keywords[k].value = x; }); });
}

class Mutator {
public:
    explicit Mutator(const Program& p) : program_(p) {}

    std::vector<Mutant> all() {
        for (std::size_t k = 0; k < program_.kernels.size(); ++k) {
            kernel_ = k;
            block({});
        }
        return std::move(out_);
    }

private:
    using Path = std::vector<std::size_t>;

    static std::vector<Statement>& body(Program& p, std::size_t kernel, const Path& path) {
        auto* b = &p.kernels[kernel].body;
        for (const auto at : path) b = &(*b)[at].body;
        return *b;
    }

    void add(const char* verb, const Statement& s, const Path& path,
             const std::function<void(std::vector<Statement>&)>& edit, const std::string& as = "") {
        Mutant m{std::string(verb) + " " + std::to_string(s.line) + " `" + cuir::line_of(s) + "`" + as, program_};
        edit(body(m.program, kernel_, path));
        out_.push_back(std::move(m));
    }

    void block(const Path& path) {
        const auto statements = body(program_, kernel_, path); // a copy: add() copies the program as well
        for (std::size_t k = 0; k < statements.size(); ++k) {
            const auto& s = statements[k];
            const auto at = static_cast<std::ptrdiff_t>(k);
            const bool simple = s.kind == Statement::Kind::Simple;
            if (simple) {
                add("delete", s, path, [&](auto& b) { b.erase(b.begin() + at); });
                add("twice", s, path, [&](auto& b) { b.insert(b.begin() + at, Statement(b[k])); });
                if (k + 1 < statements.size() && statements[k + 1].kind != Statement::Kind::Else)
                    if (!statements[k + 1].opens_block() || statements[k + 1].kind < Statement::Kind::Def)
                        add("swap", s, path, [&](auto& b) { std::swap(b[k], b[k + 1]); });
            }
            if (s.node && s.kind != Statement::Kind::With && s.kind != Statement::Kind::Def) head(s, path, k);
            if (s.opens_block()) {
                auto inner = path;
                inner.push_back(k);
                block(inner);
            }
        }
    }

    void head(const Statement& s, const Path& path, std::size_t k) {
        for (std::size_t i = 0; i < s.node->items.size(); ++i)
            off_by_one(s.node->items[i], [&](const NodePtr& x) {
                auto node = std::make_shared<Node>(*s.node);
                node->items[i] = x;
                auto changed = s;
                changed.node = node;
                add(
                    "change", s, path, [&](auto& b) { b[k].node = node; }, " to `" + cuir::line_of(changed) + "`");
            });
    }

    Program program_;
    std::size_t kernel_ = 0;
    std::vector<Mutant> out_;
};

struct Subject {
    const char* name;
    int agents;
    std::vector<int> stages;
    std::vector<std::string> roles;
};

const Subject kSubjects[] = {{"portable", 4, {1, 2}, {"math"}},
                             {"pingpong", 2, {2}, {"load", "math"}},
                             {"stream", 2, {2}, {"load", "store", "math"}},
                             {"strided", 4, {1}, {"math"}}};

Runs friendly_runs(const Subject& s) {
    Runs out;
    for (const auto& [shape, data] : {std::pair{Shape{9, 14, 4, 2}, Data::Plain},
                                      {Shape{13, 7}, Data::Plain},
                                      {Shape{5, 0}, Data::Plain},
                                      {Shape{1, 3}, Data::Plain},
                                      {Shape{25, 31}, Data::Plain},
                                      {Shape{9, 17}, Data::Rising}}) {
        for (const int stages : s.stages) {
            auto run = friendly(small(shape, data, s.agents));
            run.constants["ST"] = stages;
            run.steps = 20'000;
            if (s.roles.size() > 1) run.constants["scaled"] = 1;
            out.push_back(run);
            if (s.name == std::string("stream")) { // the tile again, often
                run.constants["LIMIT"] = 2;
                run.constants["SLACK"] = 1;
                out.push_back(run);
            }
        }
    }
    return out;
}

std::string find(const Program& p, const Runs& runs) {
    for (const auto& run : runs) {
        Trial trial;
        trial.runs = {run};
        if (const auto found = verify(p, trial, reference); !found.empty()) return found[0].kind;
    }
    return "";
}

TEST(MutantsTest, AreFoundOrArguedHarmless) {
    const bool whole = std::getenv("CUBRIDGE_ALL_MUTANTS") != nullptr;
    std::set<std::string> argued, met;
    std::istringstream in(load("survivors.txt"));
    for (std::string line; std::getline(in, line);)
        if (!line.empty() && line[0] != '#' && line[0] != ' ') argued.insert(line);
    for (const auto& s : kSubjects) {
        const auto original = parse(load(std::string(s.name) + ".py"));
        const auto easy = friendly_runs(s);
        ASSERT_EQ(find(original, easy), "") << s.name;
        Runs hard;
        for (const auto& run : easy) {
            const auto more = schedules(run, s.roles, 2);
            hard.insert(hard.end(), more.begin(), more.end());
        }
        const auto mutants = Mutator(original).all();
        cubridge::test::Sample sample;
        int by_check = 0, by_friendly = 0, by_schedules = 0, survived = 0, number = 0;
        for (const auto& m : mutants) {
            if ((!whole && number++ % 16 != 0) || sample.skips()) continue;
            if (equal(m.program, original)) continue;
            const auto name = std::string(s.name) + ": " + m.what;
            if (!check(m.program).empty()) {
                ++by_check;
            } else if (!find(m.program, easy).empty()) {
                ++by_friendly;
            } else if (const auto kind = find(m.program, hard); !kind.empty()) {
                ++by_schedules;
                EXPECT_TRUE(kind != "race" && kind != "proxy")
                    << name << ": a race that the friendliest schedule hides";
            } else {
                ++survived;
                EXPECT_EQ(argued.count(name), 1u) << "survives: " << name;
                met.insert(name);
            }
        }
        std::printf(
            "%s: %d mutants found by the checker, %d by one seed and the friendliest schedule, %d by schedules; %d "
            "harmless\n",
            s.name, by_check, by_friendly, by_schedules, survived);
    }
    if (whole) {
        for (const auto& name : argued) EXPECT_EQ(met.count(name), 1u) << "does not survive: " << name;
    }
}

} // namespace
} // namespace cubridge::ir::cuir::testing
