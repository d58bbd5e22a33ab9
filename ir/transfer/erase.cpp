// Statements that go with what they compute. SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/work.h"
#include <algorithm>

namespace cubridge::ir::transfer {
namespace {

using cuir::Statement;
using syntax::Kind;

using Names = std::set<std::string>;

bool reads_any(const NodePtr& x, const Names& names) {
    const auto read = names_in(x);
    return std::any_of(read.begin(), read.end(), [&](const auto& n) { return names.count(n) != 0; });
}

/// What a statement reads: not the plain names that it assigns, but the storage that it writes to and where.
NodePtr read_by(const Statement& s) {
    const NodePtr t = target_of(s);
    return t && t->kind != Kind::Subscript ? value_of(s) : s.node;
}

bool is_read(const std::vector<Statement>& block, const std::string& name) {
    return std::any_of(block.begin(), block.end(), [&](const Statement& s) {
        const auto own = results_of(s);
        const bool counts = own.size() == 1 && own[0] == name; // x = x + y only keeps x up
        return (s.node && !counts && reads(s.kind == Statement::Kind::Simple ? read_by(s) : s.node, name)) ||
               is_read(s.body, name);
    });
}

void all_names(const Statement& s, Names& out) {
    if (s.node)
        for (const auto& n : names_in(s.node)) out.insert(n);
    for (const auto& b : s.body) all_names(b, out);
}

/// `a, b = x, y` without a.
void narrow(Statement& s, const Names& gone) {
    auto node = std::make_shared<syntax::Node>(*s.node);
    auto targets = std::make_shared<syntax::Node>(*node->items[0]),
         values = std::make_shared<syntax::Node>(*node->items.back());
    for (std::size_t k = targets->items.size(); k-- > 0;)
        if (gone.count(base(targets->items[k])) != 0) {
            targets->items.erase(targets->items.begin() + static_cast<std::ptrdiff_t>(k));
            values->items.erase(values->items.begin() + static_cast<std::ptrdiff_t>(k));
        }
    const bool one = targets->items.size() == 1;
    node->items[0] = one ? targets->items[0] : NodePtr(targets);
    node->items.back() = one ? values->items[0] : NodePtr(values);
    s.node = node;
}

} // namespace

void Work::erase_with(std::vector<Statement>& block, std::set<std::string> gone) {
    Names freed; // what erased statements read: nobody else may
    const auto concerns = [&](const Statement& s) {
        if (s.kind == Statement::Kind::If || s.kind == Statement::Kind::While) return reads_any(s.node->items[0], gone);
        if (s.kind != Statement::Kind::Simple || !s.node) return false;
        const auto r = results_of(s);
        return reads_any(read_by(s), gone) ||
               std::any_of(r.begin(), r.end(), [&](const auto& n) { return gone.count(n) != 0; });
    };
    for (std::size_t before = 0, now = 1; before != now;) {
        before = gone.size();
        each(block, concerns, [&](const Spot& s) {
            const auto results = results_of(*s);
            const bool hangs = s->kind != Statement::Kind::Simple || reads_any(read_by(*s), gone);
            const bool all =
                std::all_of(results.begin(), results.end(), [&](const auto& n) { return gone.count(n) != 0; });
            const NodePtr value = value_of(*s);
            if (!hangs && !all) {
                if (value->kind != Kind::Tuple)
                    fail("internal", "a statement makes more than what goes: " + line_of(*s));
                return narrow(*s, gone);
            }
            if (s->kind == Statement::Kind::Simple) gone.insert(results.begin(), results.end());
            all_names(*s, freed);
            erase(s);
        });
        for (const auto& n : freed) {
            if (gone.count(n) != 0 || is_read(block, n)) continue;
            const Spot made = last(block, [&](const Statement& s) { return assigns(s, n); });
            if (made && results_of(*made).size() == 1) gone.insert(n);
        }
        now = gone.size();
    }
}

void Work::erase_def(const std::string& name) {
    erase_all(kernel.body, [&](const Statement& s) {
        const auto c = call_of(s);
        return (s.kind == Statement::Kind::Def && s.name == name) || (c && base(c->items[0]) == name);
    });
}

void Work::rename(std::vector<Statement>& block, const std::string& from, const NodePtr& by) {
    for (auto& s : block) {
        if (s.node && s.kind != Statement::Kind::Def && reads(s.node, from))
            s.node = transfer::replace(s.node, from, by);
        rename(s.body, from, by);
    }
}

} // namespace cubridge::ir::transfer
