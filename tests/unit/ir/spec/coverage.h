// Which rows of the table, and which of their keywords, texts use. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/spec/library.h"
#include "ir/syntax/ast.h"
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace cubridge::ir::record {

class Coverage {
public:
    void visit(const syntax::Node& n) {
        using syntax::Kind;
        if (n.kind == Kind::Call) call(n);
        if (n.kind == Kind::Attribute) names_.insert({spec::kProperty, n.text});
        for (const auto* list : {&n.items, &n.body, &n.orelse})
            for (const auto& c : *list)
                if (c) visit(*c);
        for (const auto& k : n.keywords) visit(*k.value);
        for (const auto& p : n.params)
            if (p.fallback) visit(*p.fallback);
        for (const auto& c : n.clauses) {
            visit(*c.iterable);
            for (const auto& i : c.conditions) visit(*i);
        }
    }

    /// "torch.sum", "the keyword dtype of sum", ...: what stands in the table and in no text. A keyword counts wherever
    /// the row stands, given by name or by position.
    std::vector<std::string> missing() const {
        static constexpr std::pair<spec::Place, const char*> places[] = {
            {spec::kTorch, "torch."}, {spec::kFunctional, "F."},    {spec::kMethod, "tensor."},  {spec::kMath, "math."},
            {spec::kBuiltin, ""},     {spec::kProperty, "tensor."}, {spec::kListMethod, "list."}};
        std::vector<std::string> out;
        for (const spec::Routine& r : spec::routines()) {
            for (const auto& [place, prefix] : places)
                if ((r.places & place) != 0 &&
                    !names_.contains({place == spec::kListMethod ? spec::kMethod : place, r.name}))
                    out.push_back(std::string(prefix) + r.name);
            const auto all = optional_of(r.parameters);
            for (const auto& option : all) { // clang 14 captures no structured bindings
                const auto& name = option.first;
                const auto position = option.second;
                const bool found = std::any_of(std::begin(places), std::end(places), [&](const auto& p) {
                    if ((r.places & p.first) == 0) return false;
                    if (keywords_.contains({p.first, std::string(r.name) + " " + name})) return true;
                    const auto most = counts_.find({p.first, r.name});
                    const std::size_t self = p.first == spec::kMethod ? 1 : 0;
                    return position > 0 && most != counts_.end() && most->second + self >= position;
                });
                if (!found) out.push_back("the keyword " + name + " of " + r.name);
            }
        }
        return out;
    }

private:
    /// Optional parameters and how many positional arguments reach them; 0 for keyword-only ones.
    static std::vector<std::pair<std::string, std::size_t>> optional_of(std::string_view text) {
        std::vector<std::pair<std::string, std::size_t>> out;
        std::size_t position = 0;
        bool open = true;
        while (!text.empty()) {
            const auto end = text.find(", ");
            const std::string_view part = text.substr(0, end);
            text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
            if (part[0] == '*') {
                open = false;
                continue;
            }
            ++position;
            if (const auto eq = part.find('='); eq != std::string_view::npos)
                out.emplace_back(part.substr(0, eq), open ? position : 0);
        }
        return out;
    }

    void call(const syntax::Node& n) {
        const syntax::Node& f = *n.items[0];
        spec::Place place = spec::kBuiltin;
        if (f.kind == syntax::Kind::Attribute) {
            const syntax::Node& object = *f.items[0];
            const std::string owner = object.kind == syntax::Kind::Name ? object.text : "";
            place = owner == "torch"  ? spec::kTorch
                    : owner == "F"    ? spec::kFunctional
                    : owner == "math" ? spec::kMath
                                      : spec::kMethod;
        } else if (f.kind != syntax::Kind::Name) {
            return;
        }
        names_.insert({place, f.text});
        std::size_t& most = counts_[{place, f.text}];
        most = std::max(most, n.items.size() - 1);
        for (const auto& k : n.keywords) keywords_.insert({place, f.text + " " + k.name});
    }

    std::set<std::pair<unsigned, std::string>> names_, keywords_;
    std::map<std::pair<unsigned, std::string>, std::size_t> counts_;
};

} // namespace cubridge::ir::record
