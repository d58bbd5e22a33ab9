// Numbers of the algorithm stand in the constants. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/literals.h"
#include <fmt/format.h>

namespace cubridge::ir::cuir {
namespace {

/// Arguments of a role and the entries of a channel are numbers of the machine, not of the algorithm.
bool exempt(const syntax::Node& n) {
    return n.kind == syntax::Kind::Call && n.items[0]->kind == syntax::Kind::Name &&
           (n.items[0]->text == "role" || n.items[0]->text == "channel");
}

void literals(const syntax::Node& n, const Statement& s, std::vector<Finding>& out) {
    if (exempt(n)) return;
    if (n.kind == syntax::Kind::Int && (n.integer < 0 || n.integer > 2))
        out.push_back({"static", "", s.line, 0,
                       fmt::format("`{}`: the number {} stands outside the constants; give it a name there", line_of(s),
                                   n.integer)});
    for (const auto& i : n.items)
        if (i) literals(*i, s, out);
    for (const auto& k : n.keywords) literals(*k.value, s, out);
}

} // namespace

void literals(const std::vector<Statement>& block, std::vector<Finding>& out) {
    for (const auto& s : block) {
        if (s.node && s.kind != Statement::Kind::Def) {
            for (const auto& i : s.node->items)
                if (i) literals(*i, s, out);
            for (const auto& k : s.node->keywords) literals(*k.value, s, out);
        }
        literals(s.body, out);
    }
}

} // namespace cubridge::ir::cuir
