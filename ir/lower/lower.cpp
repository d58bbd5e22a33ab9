// Lowering: what is equal is copied from the expert, what is not is printed. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/lower.h"
#include "ir/lower/align.h"
#include "ir/lower/difference.h"
#include "ir/lower/helpers.h"
#include "ir/lower/literal.h"
#include "ir/lower/lowering.h"
#include "ir/lower/rules.h"
#include <algorithm>

namespace cubridge::ir::lower {

using cuir::Kernel;
using cuir::Program;
using cuir::Statement;
using K = Statement::Kind;

namespace {

/// As cuir::print lays a line out.
std::string margin_line(const Statement& s, int depth) {
    std::string text(static_cast<std::size_t>(depth) * 4, ' ');
    text += cuir::line_of(s);
    if (!s.comment.empty()) {
        text.resize(std::max(text.size() + 2, std::size_t{60}), ' ');
        text += "# " + s.comment;
    }
    return text;
}

std::size_t indent_of(const std::string& line) {
    return std::min(line.find_first_not_of(' '), line.size());
}

std::size_t indent_of(int depth) {
    return static_cast<std::size_t>(depth) * 4;
}

Lines indented(const Lines& lines, std::size_t from, std::size_t to) {
    Lines out;
    for (const auto& l : lines) {
        const auto strip = std::min(from, indent_of(l));
        out.push_back(l.size() == strip ? "" : std::string(to, ' ') + l.substr(strip));
    }
    return out;
}

class Lowering {
public:
    Lowering(const Expert& expert, const Program& target, bool tolerant)
        : expert_(expert), target_(target), tolerant_(tolerant), facts_(analyse(target)),
          alignment_(expert.analysis, facts_), helpers_(words_of(expert.margin.preamble)) {
        out_.preamble = expert.margin.preamble;
        for (const auto& k : expert.program.kernels) remember(k.body);
    }

    Margin run(Lowered& result) {
        result_ = &result;
        storage();
        for (const auto& k : target_.kernels) kernel(k);
        return std::move(out_);
    }

private:
    void remember(const std::vector<Statement>& body) {
        for (const auto& s : body) {
            if (s.kind == K::Simple) elsewhere_.emplace(expert_.analysis.key(s), &s);
            remember(s.body);
        }
    }

    const Margin::Segment& segment(std::size_t at) const { return expert_.margin.segments[at]; }
    const Margin::Segment& opening(const Statement& s) const { return segment(expert_.places.at(&s).open); }
    const Margin::Segment& closing(const Statement& s) const { return segment(expert_.places.at(&s).close); }

    void copy(const Margin::Segment& s, int depth) {
        const std::size_t from = indent_of(s.margin), to = indent_of(depth);
        Margin::Segment copied = s;
        if (from != to) {
            copied.margin = std::string(to, ' ') + s.margin.substr(from);
            copied.cuda = indented(s.cuda, from, to);
        }
        out_.segments.push_back(std::move(copied));
    }

    void copied(const Statement& from, int depth) {
        copy(opening(from), depth);
        ++result_->copied;
    }

    void printed(const Statement& s, int depth, const std::string& rule, Lines lines) {
        Margin::Segment made;
        made.margin = margin_line(s, depth);
        made.cuda = std::move(lines);
        out_.segments.push_back(std::move(made));
        result_->printed.push_back({s.line, cuir::line_of(s), rule});
    }

    void printed(const Statement& s, int depth, const Region& r) {
        if (const auto helper = missing_helper(r.lines, helpers_); !helper.empty())
            located(s, [&] { fail("no_rule", "the expert has no `" + helper + "`, which this needs"); });
        printed(s, depth, r.rule, indented(r.lines, 0, indent_of(depth)));
    }

    void close(int depth, const Lines& lines) {
        Margin::Segment end;
        end.margin = std::string(indent_of(depth + 1), ' ') + "# end";
        end.cuda = indented(lines, 0, indent_of(depth));
        out_.segments.push_back(std::move(end));
    }

    void storage() {
        for (const auto& t : target_.storage) {
            const auto& all = expert_.program.storage;
            const auto same =
                std::find_if(all.begin(), all.end(), [&](const auto& e) { return cuir::same_line(e, t); });
            if (same != all.end())
                copied(*same, 0);
            else
                printed(t, 0, "workspace", {});
        }
    }

    const Kernel* counterpart(const Kernel& t) const {
        for (const auto& e : expert_.program.kernels)
            if (e.is_map() == t.is_map() && e.name() == t.name()) return &e;
        return t.is_map() ? nullptr : expert_.program.main();
    }

    void kernel(const Kernel& t) {
        const Kernel* e = counterpart(t);
        if (e == nullptr && !t.is_map())
            located(t.head[1], [&] { fail("no_rule", "the expert has no kernel with roles"); });
        for (const auto& s : t.head) {
            try {
                head(s, t, e);
            } catch (const Failure&) {
                if (!tolerant_) throw;
                missing(s, s.kind == K::Param || s.kind == K::Constants ? 1 : 0);
            }
        }
        block(e != nullptr ? e->body : none_, t.body, 1);
        if (e != nullptr)
            copy(closing(e->head[1]), 1);
        else
            close(0, {"}", ""});
    }

    void head(const Statement& s, const Kernel& t, const Kernel* e) {
        const int depth = s.kind == K::Param || s.kind == K::Constants ? 1 : 0;
        const Statement* same = nullptr;
        if (e != nullptr)
            for (const auto& x : e->head)
                if (x.kind == s.kind && (s.kind != K::Param || alignment_.equal(x, s))) same = &x;
        if (same != nullptr && alignment_.equal(*same, s)) return copied(*same, depth);
        if (s.kind == K::Constants) return constants(s, t, e);
        if (s.kind == K::Kernel && e != nullptr) return opening(s, t, *e);
        if (s.kind == K::Param)
            if (const Statement* twin = tensor(s)) return printed(s, depth, "copied elsewhere", opening(*twin).cuda);
        if (s.kind == K::Decorator && e != nullptr) return printed(s, depth, "launch", opening(*same).cuda);
        printed(s, depth, print_region(s, facts_));
    }

    /// Constants and workspace stand in one block of lines; what else the expert has there stays.
    void constants(const Statement& s, const Kernel& t, const Kernel* e) {
        const Lines block = located(s, [&] { return indented(constants_block(t, target_), 0, 4); });
        if (e == nullptr) return printed(s, 1, "constants", block);
        Lines region = opening(e->head.back()).cuda;
        const Lines old = indented(constants_block(*e, expert_.program), 0, 4);
        const auto at = std::search(region.begin(), region.end(), old.begin(), old.end());
        if (at == region.end())
            located(s, [&] { fail("no_rule", "the expert's region does not declare its constants as rules do"); });
        region.insert(region.erase(at, at + static_cast<std::ptrdiff_t>(old.size())), block.begin(), block.end());
        printed(s, 1, "constants", region);
    }

    /// A tensor of the attention under its name, whatever its extents: its CUDA has strides.
    const Statement* tensor(const Statement& s) const {
        const Type type = facts_.of(s).scope->find(s.name)->type;
        if (type.form != Form::Tensor) return nullptr;
        for (const auto& k : expert_.program.kernels)
            if (const Statement* p = k.param(s.name)) {
                const Type& t = expert_.analysis.of(*p).scope->find(s.name)->type;
                if (t.element == type.element && t.extents.size() == type.extents.size()) return p;
            }
        return nullptr;
    }

    /// The opening of a kernel: its name, and its bounds where they are numbers.
    void opening(const Statement& s, const Kernel& t, const Kernel& e) {
        Lines region = opening(e.head[1]).cuda;
        if (t.name() != e.name() && !replace_once(region, e.name(), t.name()))
            located(s, [&] { fail("no_rule", "the expert's region does not name its kernel once"); });
        if (names_bounds(region) && !replace_once(region, launch_bounds(resources(e)), launch_bounds(resources(t))))
            located(s, [&] { fail("no_rule", "the expert's region has no launch bounds as rules write them"); });
        if (t.name() == e.name() && region == opening(e.head[1]).cuda) return copied(e.head[1], 0);
        printed(s, 0, "kernel", region);
    }

    void block(const std::vector<Statement>& from, const std::vector<Statement>& to, int depth) {
        const auto partner = alignment_.align(from, to);
        for (std::size_t k = 0; k < to.size(); ++k) statement(to[k], partner[k], depth);
    }

    std::optional<Literal> literal_of(const Statement* partner, const Statement& s) const {
        if (partner == nullptr || expert_.analysis.facts_key(*partner) != facts_.facts_key(s)) return std::nullopt;
        return changed_literal(*partner, s);
    }

    void missing(const Statement& s, int depth) {
        printed(s, depth, "none", {});
        out_.segments.back().edited = true;
    }

    void statement(const Statement& s, const Statement* partner, int depth) {
        const std::size_t before = out_.segments.size();
        try {
            opened(s, partner, depth);
        } catch (const Failure&) {
            if (!tolerant_ || out_.segments.size() != before) throw;
            missing(s, depth);
            if (!s.opens_block()) return;
            block(partner != nullptr ? partner->body : none_, s.body, depth + 1);
            close(depth, {});
            out_.segments.back().edited = true;
        }
    }

    void opened(const Statement& s, const Statement* partner, int depth) {
        bool expert_closes = partner != nullptr;
        Lines end;
        if (partner != nullptr && alignment_.equal(*partner, s)) {
            copied(*partner, depth);
        } else if (const auto literal = literal_of(partner, s)) {
            Lines region = opening(*partner).cuda;
            if (!replace_once(region, literal->before, literal->after))
                located(s, [&] { fail("no_rule", "the expert's CUDA does not name `" + literal->before + "` once"); });
            printed(s, depth, "literal", indented(region, indent_of(opening(*partner).margin), indent_of(depth)));
        } else if (const auto twin = elsewhere_.find(facts_.key(s)); twin != elsewhere_.end()) {
            const auto& from = opening(*twin->second);
            printed(s, depth, "copied elsewhere", indented(from.cuda, indent_of(from.margin), indent_of(depth)));
        } else {
            const Region region = print_region(s, facts_);
            printed(s, depth, region);
            expert_closes = false;
            end = region.end;
        }
        if (!s.opens_block()) return;
        block(partner != nullptr ? partner->body : none_, s.body, depth + 1);
        if (expert_closes)
            copy(closing(*partner), depth + 1);
        else
            close(depth, end);
    }

    const Expert& expert_;
    const Program& target_;
    const bool tolerant_;
    const Analysis facts_;
    Alignment alignment_;
    const std::set<std::string, std::less<>> helpers_;
    std::map<std::string, const Statement*> elsewhere_;
    const std::vector<Statement> none_;
    Margin out_;
    Lowered* result_ = nullptr;
};

} // namespace

Margin lower_margin(const Expert& expert, const Program& target, bool tolerant, Lowered& result) {
    return Lowering(expert, target, tolerant).run(result);
}

Result<Lowered> lower(std::string_view text, const Program& program) {
    try {
        const auto expert = Expert::read(text);
        if (!expert) return expert.error();
        // Read again from its own print, so that lines and spans are places there.
        const auto target = cuir::read(cuir::print(program));
        if (!target) return target.error();
        Lowered out;
        out.cuda = join(lower_margin(*expert, *target, false, out));
        out.difference = unified_difference(cuir::print(expert->program), cuir::print(*target));
        return out;
    } catch (const Failure& f) {
        return f.error;
    }
}

} // namespace cubridge::ir::lower
