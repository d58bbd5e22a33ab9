// Arrivals, takers and threads, from the roles of a kernel. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/agents.h"
#include "ir/lower/expression.h"
#include <algorithm>

namespace cubridge::ir::lower {

using cuir::Statement;
using syntax::Kind;
using syntax::Node;
using K = Statement::Kind;

namespace {

constexpr int kNamedBarriers = 15; ///< of a CTA; 0 is __syncthreads()

const Node* keyword(const Node& call, const char* name) {
    for (const auto& k : call.keywords)
        if (k.name == name) return k.value.get();
    return nullptr;
}

/// The name of a barrier or channel, however it is indexed.
std::string base_of(const Node& node) {
    return node.kind == Kind::Subscript ? base_of(*node.items[0]) : node.kind == Kind::Name ? node.text : "";
}

const Node* role_call(const Statement& s) {
    return s.kind == K::With && !s.node->items.empty() && callee(*s.node->items[0]) == "role" ? s.node->items[0].get()
                                                                                              : nullptr;
}

} // namespace

bool Agents::of_warpgroups(const Statement& role) {
    const Node* call = role_call(role);
    return call != nullptr && keyword(*call, "warpgroups") != nullptr;
}

bool has_warpgroups(const cuir::Kernel& kernel) {
    return std::any_of(kernel.body.begin(), kernel.body.end(), Agents::of_warpgroups);
}

std::string as_factor(const std::string& text) {
    return text.find(' ') == std::string::npos ? text : "(" + text + ")";
}

Agents::Agents(const cuir::Kernel& kernel) : constants_(int_constants(kernel)), groups_(has_warpgroups(kernel)) {
    std::string registers;
    for (const auto& s : kernel.body)
        if (const Node* call = role_call(s)) {
            const Node* groups = keyword(*call, "warpgroups");
            const Node* own = keyword(*call, "registers");
            const std::string number = own != nullptr ? syntax::print(*own) : "";
            if (groups_ && groups == nullptr && !registers.empty() && registers != number)
                located(s, [&] { fail("no_rule", "roles of warps share a warpgroup: their registers are the same"); });
            if (groups == nullptr) registers = number;
            look(s.body, {groups != nullptr ? groups : keyword(*call, "warps"), groups != nullptr});
        }
}

void Agents::look(const std::vector<Statement>& body, const Role& role) {
    for (const auto& s : body) {
        look(s.body, role);
        if (s.kind != K::Simple || s.node->items.empty()) continue;
        const Node& call = *s.node->items.back();
        const std::string f = callee(call);
        if (call.kind != Kind::Call || call.items.size() < 2) continue;
        if (f == "arrive" || f == "sync") {
            Users& u = users_[base_of(*call.items[1])];
            (role.groups ? u.groups : u.warps) = true;
        } else if (f == "copy_async") {
            if (const Node* signal = keyword(call, "signal")) users_[base_of(*signal)].copies = true;
        } else if (f == "take") {
            auto& takers = users_[base_of(*call.items[1])].takers;
            if (std::none_of(takers.begin(), takers.end(), [&](const auto& t) { return t.count == role.count; }))
                takers.push_back(role);
        }
    }
}

const Agents::Users& Agents::users(const std::string& name) const {
    static const Users none;
    const auto it = users_.find(name);
    return it == users_.end() ? none : it->second;
}

std::string Agents::note(const std::string& name, const Node& call, int& named) const {
    const std::string f = callee(call);
    const auto first = [&] {
        if (call.items.size() != 2) fail("no_rule", f + "(count)", call.span);
        return syntax::print(*call.items[1]);
    };
    if (f == "alloc") return groups_ && call.items.size() > 1 && call.items[1]->text == "shared" ? "groups last" : "";
    if (f == "named_barrier") {
        const Node* n = keyword(call, "n");
        const auto many = n != nullptr ? known_int(*n, constants_) : std::optional<std::int64_t>(1);
        if (!many || *many < 1 || named + *many > kNamedBarriers + 1)
            fail("no_rule", "a CTA has " + std::to_string(kNamedBarriers) + " named barriers", call.span);
        if (n != nullptr && !groups_) fail("no_rule", "an array of named barriers is for warpgroups", call.span);
        const std::string id = std::to_string(named);
        named += static_cast<int>(*many);
        return groups_ ? "array " + id : id;
    }
    if (f == "barrier") {
        const Users& u = users(name);
        if (u.groups && (u.warps || u.copies))
            fail("no_rule", "warpgroups and others arrive at `" + name + "`: their shares differ", call.span);
        std::string count = first();
        if (!u.groups) return count;
        const auto n = call.items[1]->kind == Kind::Int ? std::optional(call.items[1]->integer) : std::nullopt;
        return n ? std::to_string(4 * *n) : "4 * " + as_factor(count); // each warp arrives once
    }
    if (f == "channel") {
        const Node* count = keyword(call, "takers");
        if (call.items.size() != 2 || count == nullptr) fail("no_rule", "channel(entries, takers=count)", call.span);
        return takers(name, *count);
    }
    return "";
}

/// Each warp of a taking agent gives the entry back once.
std::string Agents::takers(const std::string& name, const Node& count) const {
    std::string out;
    std::int64_t agents = 0, warps = 0; // the latter of roles that say so by a number
    const auto add = [&](const std::string& term) { out += (out.empty() ? "" : " + ") + term; };
    for (const bool groups : {true, false})
        for (const auto& t : users(name).takers) {
            if (t.groups != groups || t.count == nullptr) continue;
            agents += known_int(*t.count, constants_).value_or(0);
            if (groups)
                add("4 * " + as_factor(syntax::print(*t.count)));
            else if (t.count->kind == Kind::Int)
                warps += t.count->integer;
            else
                add(syntax::print(*t.count));
        }
    if (warps > 0) add(std::to_string(warps));
    if (out.empty()) fail("no_rule", "nobody takes from `" + name + "`", count.span);
    const auto asked = known_int(count, constants_);
    if (!asked || *asked != agents)
        fail("no_rule", std::to_string(agents) + " agents take from `" + name + "`", count.span);
    return out;
}

std::string Agents::threads(const std::string& name, const std::string& arrivals, const std::string& here) const {
    const Users& u = users(name);
    if (u.groups && u.warps) fail("no_rule", "warps and warpgroups agree at `" + name + "`: their shares differ");
    if (!groups_) return here + as_factor(arrivals);
    const auto module = syntax::parse(arrivals + "\n");
    const auto n = module ? known_int(*(*module)->body[0]->items[0], constants_) : std::nullopt;
    if (!n) fail("no_rule", "how many agents arrive at `" + name + "` is a constant");
    return std::to_string((u.groups ? 128 : 32) * *n);
}

} // namespace cubridge::ir::lower
