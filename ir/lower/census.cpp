// The census: what regions call against what their statements say. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/agents.h"
#include "ir/lower/calls.h"
#include "ir/lower/expert.h"
#include "ir/lower/literal.h"
#include "ir/lower/place.h"
#include "ir/lower/rules.h"
#include <algorithm>

namespace cubridge::ir::lower {

using cuir::Statement;
using syntax::Kind;
using syntax::Node;
using K = Statement::Kind;

namespace {

constexpr int kMostRegisters = 255; ///< what a thread has where nothing is said

class Census {
public:
    explicit Census(const Expert& file) : file_(file) {}

    std::vector<std::string> run() {
        for (const auto& s : file_.program.storage) look(s);
        for (const auto& k : file_.program.kernels) {
            for (const auto& s : k.head) {
                look(s);
                head(s, k);
            }
            block(k.body);
            closing(k.head[1]);
        }
        return std::move(out_);
    }

private:
    const Margin::Segment& opening(const Statement& s) const { return file_.margin.segments[file_.places.at(&s).open]; }

    void say(const Statement& s, const std::string& what) {
        out_.push_back("line " + std::to_string(s.line) + ", `" + cuir::line_of(s) + "`: " + what);
    }

    void block(const std::vector<Statement>& body) {
        for (const auto& s : body) {
            look(s);
            block(s.body);
            if (s.opens_block()) closing(s);
        }
    }

    void closing(const Statement& s) {
        for (const auto& c : calls_in(file_.margin.segments[file_.places.at(&s).close].cuda))
            say(s, "its end calls " + c);
    }

    /// Statements whose whole region follows from the line: what others rely on.
    bool exact(const Statement& s) const {
        if (s.kind == K::Simple && s.node->kind == Kind::Assign) {
            const std::string f = callee(*s.node->items.back());
            const Node* first = s.node->items.back().get();
            if (first->kind == Kind::Tuple) first = first->items[0].get();
            const std::string made = callee(*first);
            return f == "alloc" || made == "named_barrier" || made == "barrier" || made == "channel" || f == "pick" ||
                   f == "take" || file_.analysis.of(s).scope->find_def(f) != nullptr;
        }
        if (s.kind == K::Simple) return s.node->kind == Kind::Return || s.node->kind == Kind::Break;
        return s.opens_block() && s.kind != K::With;
    }

    void look(const Statement& s) {
        const Lines& region = opening(s).cuda;
        std::vector<std::string> expected;
        if (s.kind == K::Simple || s.opens_block()) {
            try {
                if (s.kind != K::With && file_.analysis.of(s).scope != nullptr) {
                    const Region r = print_region(s, file_.analysis);
                    expected = calls_in(r.lines);
                    if (exact(s) && !opening(s).edited && squeezed(r.lines) != squeezed(region))
                        say(s, "its region is not `" + squeezed(r.lines) + "`");
                }
            } catch (const Failure& f) {
                say(s, "its calls are unknown: " + f.error.message);
                return;
            }
        }
        auto found = calls_in(region);
        if (s.kind == K::With) expected = opening_of_role(s, found);
        for (const auto& e : expected) {
            const auto it = std::find(found.begin(), found.end(), e);
            if (it == found.end())
                say(s, "its region does not call " + e);
            else
                found.erase(it);
        }
        for (const auto& f : found) say(s, "its region calls " + f);
        if (s.kind == K::With) role(s, region);
    }

    /// What a role's opening may call. The first one ends the prelude: barriers are made before anyone uses them.
    std::vector<std::string> opening_of_role(const Statement& s, const std::vector<std::string>& found) {
        std::vector<std::string> out;
        const auto& kernel = *file_.analysis.of(s).kernel;
        const auto is_role = [](const Statement& x) { return x.kind == K::With; };
        const bool first = &*std::find_if(kernel.body.begin(), kernel.body.end(), is_role) == &s;
        const bool barriers = std::any_of(kernel.body.begin(), kernel.body.end(), [&](const auto& x) {
            const auto& results = file_.analysis.of(x).results;
            return std::any_of(results.begin(), results.end(), [](const auto& r) {
                return r.type.form == Form::Phases || r.type.form == Form::Channel;
            });
        });
        if (first && barriers) out = {"begin_roles()"};
        if (!has_warpgroups(kernel)) return out;
        // Registers move between warpgroups; the first role of warps does it for all of them.
        const bool groups = Agents::of_warpgroups(s);
        const bool leads = std::none_of(kernel.body.begin(), kernel.body.end(), [&](const auto& x) {
            return is_role(x) && !Agents::of_warpgroups(x) && x.line < s.line;
        });
        if (!groups && !leads) return out;
        const std::string number = "<" + registers_of(s) + ">()";
        const bool fewer = std::find(found.begin(), found.end(), "fewer_registers" + number) != found.end();
        out.push_back((fewer ? "fewer_registers" : "more_registers") + number);
        return out;
    }

    static std::string registers_of(const Statement& s) {
        for (const auto& k : s.node->items[0]->keywords)
            if (k.name == "registers") return syntax::print(*k.value);
        return "";
    }

    /// The registers of a role stand in its region, as a word of their own; all that there are need no word.
    void role(const Statement& s, Lines region) {
        for (const auto& k : s.node->items[0]->keywords)
            if (k.name == "registers" && k.value->kind == Kind::Int && k.value->integer != kMostRegisters) {
                const std::string n = std::to_string(k.value->integer);
                if (!replace_once(region, n, n)) say(s, "its region does not name " + n + " registers once");
            }
    }

    void head(const Statement& s, const cuir::Kernel& k) {
        Lines region = opening(s).cuda;
        if (s.kind == K::Constants) {
            const std::string block = squeezed(constants_block(k, file_.program));
            if (squeezed(region).find(block) == std::string::npos)
                say(s, "its region does not declare `" + block + "`");
        }
        if (s.kind == K::Kernel && !k.is_map()) {
            const std::string bounds = launch_bounds(resources(k));
            if (names_bounds(region) && !replace_once(region, bounds, bounds))
                say(s, "its region does not say " + bounds);
        }
        if (s.kind == K::Param && file_.analysis.of(s).scope->find(s.name)->type.form != Form::Tensor) {
            const Lines printed = print_region(s, file_.analysis).lines;
            if (squeezed(printed) != squeezed(region)) say(s, "its region is not `" + squeezed(printed) + "`");
        }
    }

    const Expert& file_;
    std::vector<std::string> out_;
};

} // namespace

std::vector<std::string> census(std::string_view cuda) {
    try {
        const auto file = Expert::read(cuda);
        if (!file) return {file.error().message};
        return Census(*file).run();
    } catch (const Failure& f) {
        return {f.error.message};
    }
}

} // namespace cubridge::ir::lower
