// SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/places.h"
#include <algorithm>
#include <set>

namespace cubridge::ir::transfer {
namespace {

using cuir::Statement;
using syntax::Kind;

[[noreturn]] void missing(const std::string& what) {
    fail("no_rule", "the expert's program has no place for rules: " + what, {},
         "a program of an attention kernel has scores, weights, a def between them and an epilogue");
}

/// Everything that holds data of a global tensor, by copies from one to the next.
std::set<std::string> copies_of(std::vector<Statement>& body, const std::string& tensor) {
    std::set<std::string> out{tensor};
    for (std::size_t before = 0; before != out.size();) {
        before = out.size();
        last(body, [&](const Statement& s) {
            if (s.kind != Statement::Kind::Simple) return false;
            std::string from, to;
            if (const auto c = call_of(s); c && c->items.size() == 3 && c->items[0]->text.rfind("copy", 0) == 0)
                from = base(c->items[1]), to = base(c->items[2]);
            else if (const auto t = target_of(s); t && t->kind == Kind::Subscript && base(value_of(s)) != "")
                from = base(value_of(s)), to = base(t);
            if (out.count(from) != 0 && to != "Out") out.insert(to);
            return false;
        });
    }
    return out;
}

std::string only_cell(const std::set<std::string>& copies, const std::string& tensor) {
    for (const auto& c : copies)
        if (c != tensor) return c;
    missing("a copy of " + tensor);
}

class Finder {
public:
    explicit Finder(cuir::Kernel& kernel) : kernel_(kernel), body_(kernel.body) {}

    Places run() {
        gemms();
        const Spot caller = first(body_, [&](const Statement& s) {
            const auto c = call_of(s);
            return c && s.kind == Statement::Kind::Simple && !results_of(s).empty() && def(c->items[0]->text) &&
                   std::any_of(c->items.begin() + 1, c->items.end(),
                               [&](const auto& a) { return base(a) == out_.scores; });
        });
        if (!caller) missing("a def that takes the scores");
        attend(*caller);
        work_items();
        epilogue();
        return out_;
    }

private:
    Spot def(const std::string& name) {
        return first(body_, [&](const Statement& s) { return s.kind == Statement::Kind::Def && s.name == name; });
    }

    void gemms() {
        const auto q = copies_of(body_, "Q"), k = copies_of(body_, "K"), v = copies_of(body_, "V");
        out_.q_cells = only_cell(q, "Q"), out_.k_cells = only_cell(k, "K"), out_.v_cells = only_cell(v, "V");
        first(body_, [&](const Statement& s) {
            const auto c = call_of(s);
            if (!c || c->items[0]->text.rfind("gemm", 0) != 0 || c->items.size() != 3) return false;
            const auto a = base(c->items[1]), b = base(c->items[2]);
            const NodePtr *out = keyword(c, "out"), *add = keyword(c, "add");
            if (q.count(a) != 0 && k.count(b) != 0 && out) out_.scores = base(*out);
            if (v.count(b) != 0) out_.weights = a, out_.acc = base(out ? *out : add ? *add : nullptr);
            return false;
        });
        if (out_.scores.empty()) missing("a GEMM of Q and K");
        if (out_.acc.empty()) missing("a GEMM of weights and V");
    }

    void attend(const Statement& caller) {
        const NodePtr c = call_of(caller);
        const auto results = results_of(caller);
        out_.attend = c->items[0]->text;
        const Spot d = def(out_.attend);
        std::vector<std::string> params;
        for (const auto& p : d->node->params) params.push_back(p.name);
        if (params.size() + 1 != c->items.size()) missing("arguments of " + out_.attend);
        auto& body = d->body;

        const Spot leave = last(body, [](const Statement& s) { return s.node && s.node->kind == Kind::Return; });
        if (!leave) missing("what " + out_.attend + " returns");
        const NodePtr value = leave->node->items[0];
        const Nodes returned = value->kind == Kind::Tuple ? value->items : Nodes{value};
        if (returned.size() != results.size()) missing("results of " + out_.attend);

        const Spot packs = first(body_, [&](const Statement& s) {
            const auto t = target_of(s);
            return t && t->kind == Kind::Subscript && base(t) == out_.weights;
        });
        if (!packs) missing("a statement that writes the weights");
        out_.p_result = base(value_of(*packs));
        positions(body);
        if (std::find(results.begin(), results.end(), out_.p_result) == results.end())
            trails(results);
        else
            follows(body, returned, results);

        // by what the caller passes: the work item's variables, then the agent's first row, then the key tile
        for (const auto& n : {base(rows_->items[1])}) out_.attend_params = {n};
        std::string tile;
        for (const auto& n : names_in(cols_->items[1]))
            if (std::find(params.begin(), params.end(), n) != params.end()) tile = n;
        out_.attend_params.push_back(tile);
        for (std::size_t k = 0; k < params.size(); ++k) {
            if (params[k] == out_.attend_params[0]) out_.first_row = base(c->items[k + 1]);
            arguments_[base(c->items[k + 1])] = params[k];
        }
    }

    /// A def that makes weights: the maximum, the reference, the rescale and the sum are its own.
    void follows(std::vector<Statement>& body, const Nodes& returned, const std::vector<std::string>& results) {
        out_.shrink = rescale(results);
        for (std::size_t k = 0; k < results.size(); ++k) {
            const std::string inside = base(returned[k]);
            if (results[k] == out_.p_result) out_.p = inside;
            const Spot made = last(body, [&](const Statement& s) { return assigns(s, inside); });
            if (!made) continue;
            if (inner_call(value_of(*made), "amax")) out_.max = inside, out_.max_before = results[k];
            if (inner_call(value_of(*made), "sum")) out_.sum_before = results[k];
        }
        if (out_.max.empty() || out_.sum_before.empty() || out_.p.empty()) missing("maximum, sum and weights");
        weighs(last(body, [&](const Statement& s) { return assigns(s, out_.p); }), out_.x);
    }

    /// A def that makes scores: another one moves the reference, and weights are made of both by the role.
    void trails(const std::vector<std::string>& results) {
        if (results.size() != 1) missing("maximum, sum and weights");
        out_.x_result = results[0];
        const Spot moves = first(body_, [&](const Statement& s) {
            const auto c = call_of(s);
            if (!c || s.kind != Statement::Kind::Simple || results_of(s).empty()) return false;
            const Spot d = def(c->items[0]->text);
            return d &&
                   std::any_of(c->items.begin() + 1, c->items.end(),
                               [&](const auto& a) { return base(a) == out_.x_result; }) &&
                   first(d->body, [](const Statement& t) { return calls(t, "amax"); });
        });
        if (!moves) missing("a def that takes the maximum");
        const NodePtr c = call_of(*moves);
        out_.refer = c->items[0]->text, out_.referred = results_of(*moves);
        const auto is_result = [&](const std::string& n) {
            return std::find(out_.referred.begin(), out_.referred.end(), n) != out_.referred.end();
        };
        out_.shrink = rescale(out_.referred);
        const Spot makes = last(body_, [&](const Statement& s) { return assigns(s, out_.p_result); });
        if (!makes) missing("weights");
        weighs(makes, out_.x_result);
        for (const auto& n : names_in(value_of(*makes)))
            if (is_result(n)) out_.max_before = n;
        last(body_, [&](const Statement& s) {
            const auto x = call_of(s);
            if (is_call(x, "complete") && is_result(base(x->items[1]))) out_.sum_before = base(x->items[1]);
            return false;
        });
        const Spot d = def(out_.refer);
        for (std::size_t k = 1; k < c->items.size() && k <= d->node->params.size(); ++k) {
            const std::string n = base(c->items[k]);
            if (!is_result(n) || n == out_.max_before || n == out_.sum_before) continue;
            out_.limit = n;
            const std::string inside = d->node->params[k - 1].name;
            const Spot rises = last(d->body, [&](const Statement& s) { return assigns(s, inside); });
            for (const auto& m : rises ? names_in(value_of(*rises)) : std::vector<std::string>{})
                if (kernel_.constant(m)) out_.slack = m;
        }
        if (out_.max_before.empty() || out_.sum_before.empty() || out_.slack.empty())
            missing("a reference, a sum and what scores may rise to");
        first(body_, [&](const Statement& s) {
            const NodePtr vote = s.kind == Statement::Kind::If ? inner_call(s.node->items[0], "any") : nullptr;
            for (const auto& m : vote ? names_in(vote) : std::vector<std::string>{})
                if (kernel_.constant(m)) out_.overflow = m;
            return false;
        });
    }

    /// Which of those names multiplies the accumulator.
    std::string rescale(const std::vector<std::string>& among) {
        std::string out;
        last(body_, [&](const Statement& s) {
            const auto t = target_of(s);
            if (!t || t->kind != Kind::Subscript || base(t) != out_.acc) return false;
            for (const auto& n : names_in(value_of(s)))
                if (std::find(among.begin(), among.end(), n) != among.end()) out = n;
            return false;
        });
        return out;
    }

    /// exp2(x * unit - ...)
    void weighs(const Spot& makes, const std::string& x) {
        std::vector<NodePtr> factors;
        products(value_of(*makes), factors);
        for (const auto& f : factors) {
            const auto a = base(f->items[0]), u = base(f->items[1]);
            if (a == x)
                out_.unit = u;
            else
                out_.ref = a;
        }
        if (out_.unit.empty() || (out_.refer.empty() && out_.ref.empty())) missing("the unit of scores");
    }

    /// Rows, columns, and the statement that drops scores.
    void positions(std::vector<Statement>& body) {
        const Spot where = first(body, [](const Statement& s) { return calls(s, "rows") && calls(s, "cols"); });
        if (!where || results_of(*where).size() != 2) missing("rows and cols");
        const auto names = results_of(*where);
        const bool rows_first = is_call(value_of(*where)->items[0], "rows");
        out_.rows = names[rows_first ? 0 : 1], out_.cols = names[rows_first ? 1 : 0];
        rows_ = inner_call(value_of(*where), "rows"), cols_ = inner_call(value_of(*where), "cols");
        out_.row_count = text(rows_->items.at(2));

        const Spot branch = first(body, [&](const Statement& s) {
            return s.kind == Statement::Kind::If && s.node->items[0]->kind == Kind::Name && s.body.size() == 1 &&
                   calls(s.body[0], "where");
        });
        if (!branch) missing("a mask statement");
        out_.masked = base(branch->node->items[0]);
        out_.x = results_of(branch->body[0]).at(0);
    }

    void products(const NodePtr& x, std::vector<NodePtr>& out) {
        if (!x) return;
        if (x->kind == Kind::Binary && x->text == "*") out.push_back(x);
        for (const auto& i : x->items) products(i, out);
    }

    /// The role that holds such a statement.
    Spot role(const Matches& holds) {
        return first(body_, [&](const Statement& s) {
            return s.kind == Statement::Kind::With && last(const_cast<Statement&>(s).body, holds);
        });
    }

    /// (b, h, m) of a loop over work items; empty where that role has none.
    static std::vector<std::string> bound(std::vector<Statement>& role) {
        const Spot loop = first(role, [](const Statement& s) {
            return s.kind == Statement::Kind::For &&
                   (inner_call(s.node->items[1], "bind") || inner_call(s.node->items[1], "draw"));
        });
        std::vector<std::string> names = loop ? names_in(loop->node->items[0]) : std::vector<std::string>{};
        if (names.size() < 3) return {};
        names.erase(names.begin(), names.end() - 3);
        return names;
    }

    /// The same where the role takes what another one publishes.
    std::vector<std::string> taken(std::vector<Statement>& from, const std::vector<std::string>& item,
                                   std::vector<Statement>& role) {
        const Spot gives = first(from, [](const Statement& s) { return is_call(call_of(s), "publish"); });
        const Spot takes = first(role, [](const Statement& s) { return is_call(call_of(s), "take"); });
        if (!gives || !takes) return {};
        const NodePtr entry = call_of(*gives)->items.at(2);
        const auto results = results_of(*takes);
        std::vector<std::string> out;
        for (const auto& n : item)
            for (std::size_t k = 0; k < entry->items.size() && k < results.size(); ++k)
                if (base(entry->items[k]) == n) out.push_back(results[k]);
        return out;
    }

    /// (b, h, m) as a role calls it: of its own loop over work items, or what it takes from the role that has one.
    std::vector<std::string> item_of(std::vector<Statement>& own) {
        auto names = bound(own);
        if (!names.empty()) return names;
        const Spot gives = role([](const Statement& s) { return is_call(call_of(s), "publish"); });
        return gives ? taken(gives->body, bound(gives->body), own) : names;
    }

    void work_items() {
        const Spot loads = role([](const Statement& s) {
            const auto c = call_of(s);
            return c && c->items.size() == 3 && base(c->items[1]) == "K";
        });
        const Spot own = role([&](const Statement& s) { return assigns(s, out_.p_result); });
        if (!loads || !own) missing("a role that loads and one that computes");
        const auto names = item_of(own->body), loaded = item_of(loads->body);
        if (names.size() != 3 || loaded.size() != 3) missing("a work item (b, h, m)");
        out_.late = bound(own->body).empty();
        out_.b = names[0], out_.h = names[1], out_.m = names[2];
        out_.load_b = loaded[0], out_.load_h = loaded[1];
        out_.mapped = static_cast<bool>(last(loads->body, [](const Statement& s) {
            const auto c = call_of(s);
            return c && c->items.size() == 3 && base(c->items[1]) == "K" && keyword(c, "signal");
        }));
        if (arguments_.count(out_.b) == 0 || arguments_.count(out_.h) == 0)
            missing("b and h among the arguments of " + out_.attend);
        out_.attend_params = {arguments_[out_.b], arguments_[out_.h], out_.attend_params[0], out_.attend_params[1]};
        const Spot decides = first(body_, [](const Statement& s) { // what it returns is a list of ranges
            return s.kind == Statement::Kind::Def && !s.body.empty() && s.body.back().node &&
                   s.body.back().node->kind == Kind::Return && s.body.back().node->items[0]->kind == Kind::List;
        });
        if (!decides) missing("a def of key ranges");
        out_.key_tiles = decides->name;
        for (const auto& p : def(out_.key_tiles)->node->params) out_.tile_params.push_back(p.name);
        if (out_.tile_params.size() != 4) missing("b, h and rows of " + out_.key_tiles);
    }

    void epilogue() {
        const Spot adds = last(body_, [&](const Statement& s) {
            const auto c = call_of(s);
            return is_call(c, "complete") && base(c->items[1]) == out_.sum_before;
        });
        if (!adds) missing("the complete sum of weights");
        out_.total = results_of(*adds).at(0);
        const Spot scales = last(body_, [&](const Statement& s) {
            const auto t = target_of(s);
            return t && t->kind == Kind::Subscript && base(t) == out_.acc && reads(value_of(s), out_.acc);
        });
        for (const auto& n : names_in(value_of(*scales)))
            if (n != out_.acc) out_.inv = n;
        const Spot keeps = last(body_, [&](const Statement& s) {
            const auto t = target_of(s);
            return t && base(t) == "Lse";
        });
        if (!keeps) missing("a store of the LSE");
        out_.lse = base(value_of(*keeps));
        if (out_.inv.empty() || out_.inv == out_.shrink || out_.lse.empty()) missing("an epilogue");
    }

    const cuir::Kernel& kernel_;
    std::vector<Statement>& body_;
    NodePtr rows_, cols_; // of attend
    Places out_;
    std::map<std::string, std::string> arguments_; // of the call of attend, to its parameters
};

} // namespace

Places find(cuir::Kernel& kernel) {
    return Finder(kernel).run();
}

} // namespace cubridge::ir::transfer
