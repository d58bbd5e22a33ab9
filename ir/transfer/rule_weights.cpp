// What is made of modified scores: sinks, pointwise weights, ratios, gains. SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/rules.h"
#include "ir/transfer/tables.h"
#include <algorithm>

namespace cubridge::ir::transfer {
namespace {

using cuir::Statement;

/// Drops parameters and results of attend, in the def and in its calls.
void narrow(Work& w, const std::set<std::string>& params, const std::vector<std::string>& returned,
            const std::vector<std::string>& results) {
    const Spot def = w.def(w.at.attend);
    auto node = std::make_shared<syntax::Node>(*def->node);
    std::vector<bool> stays;
    for (const auto& p : node->params) stays.push_back(params.count(p.name) == 0);
    node->params.erase(std::remove_if(node->params.begin(), node->params.end(),
                                      [&](const auto& p) { return params.count(p.name) != 0; }),
                       node->params.end());
    def->node = node;
    const auto list = [](const std::vector<std::string>& names) {
        std::string out;
        for (const auto& n : names) out += (out.empty() ? "" : ", ") + n;
        return out;
    };
    const Spot leave =
        last(def->body, [](const Statement& s) { return s.node && s.node->kind == syntax::Kind::Return; });
    w.replace(leave, "return " + list(returned));
    first(w.role(), [&](const Statement& s) {
        const auto c = call_of(s);
        if (!c || c->items[0]->text != w.at.attend) return false;
        std::string arguments;
        for (std::size_t k = 0; k < stays.size(); ++k)
            if (stays[k]) arguments += (arguments.empty() ? "" : ", ") + text(c->items[k + 1]);
        const_cast<Statement&>(s) = line(list(results) + " = " + w.at.attend + "(" + arguments + ")");
        return false;
    });
}

/// acc[:] = acc * name
bool multiplies(const Statement& s, const std::string& acc, const std::string& by) {
    const auto t = target_of(s);
    return t && t->kind == syntax::Kind::Subscript && base(t) == acc && reads(value_of(s), by);
}

/// Weights that need no maximum: it, the rescale, the reference and the exponentials go.
void without_maximum(Work& w) {
    const Places& at = w.at;
    auto& attend = w.attend();
    const Spot returns =
        last(attend, [](const Statement& s) { return s.node && s.node->kind == syntax::Kind::Return; });
    std::vector<std::string> returned;
    const NodePtr value = returns->node->items[0];
    for (const auto& x : value->items) returned.push_back(base(x));
    const std::string shrink_inside = [&] {
        const Spot call = first(w.role(), [&](const Statement& s) { return calls(s, at.attend); });
        const auto results = results_of(*call);
        for (std::size_t k = 0; k < results.size(); ++k)
            if (results[k] == at.shrink) return returned[k];
        return std::string();
    }();
    for (const auto& n : {at.max, at.ref, at.p, shrink_inside})
        Work::erase_all(attend, [&](const Statement& s) { return assigns(s, n); });
    Work::erase_all(w.role(), [&](const Statement& s) { return multiplies(s, at.acc, at.shrink); });
}

/// A key tile that nobody will need again is given back as soon as its product is there.
void release_keys(Work& w) {
    const std::string free = freed_by_load(w, w.at.k_cells);
    const auto gives = [&](const Statement& s) {
        const auto c = call_of(s);
        return c && base(c->items[0]) == "arrive" && base(c->items[1]) == free;
    };
    const auto uses = [&](auto&& self, const Statement& s) -> bool {
        if (s.node && reads(s.node, w.at.k_cells)) return true;
        return std::any_of(s.body.begin(), s.body.end(), [&](const auto& t) { return self(self, t); });
    };
    Work::each(w.role(), gives, [&](const Spot& s) {
        auto& block = *s.block;
        std::size_t to = s.at;
        for (std::size_t k = s.at; k-- > 0 && !uses(uses, block[k]);) {
            const auto c = call_of(block[k]);
            if (c && base(c->items[0]) == "wait" && base(c->items[1]) == w.at.scores) to = k + 1;
            const auto results = results_of(block[k]);
            if (std::any_of(results.begin(), results.end(), [&](const auto& n) { return reads(s->node, n); })) break;
        }
        const auto begin = block.begin();
        std::rotate(begin + static_cast<std::ptrdiff_t>(to), begin + static_cast<std::ptrdiff_t>(s.at),
                    begin + static_cast<std::ptrdiff_t>(s.at + 1));
        block[to].comment.clear();
    });
}

/// The same where another def moves the reference: weights are what attend returns, and no tile is tried again.
void without_reference(Work& w, const std::string& keeps) {
    const Places& at = w.at;
    w.erase_def(at.refer);
    auto& role = w.role();
    std::set<std::string> gone(at.referred.begin(), at.referred.end());
    gone.erase(keeps);
    Work::erase_all(role, [&](const Statement& s) { return assigns(s, at.p_result); });
    Work::rename(role, at.p_result, name(at.x_result));
    w.at.p_result = at.x_result;
    w.erase_with(role, std::move(gone));
    release_keys(w);
}

void pointwise(Work& w) {
    const Places& at = w.at;
    if (!at.refer.empty()) return without_reference(w, "");
    without_maximum(w);
    Work::erase_all(w.attend(), [&](const Statement& s) { return assigns(s, at.sum_before); });
    narrow(w, {at.max_before, at.sum_before}, {at.x}, {at.p_result});
    auto& role = w.role();
    for (const auto& n : {at.max_before, at.sum_before, at.total, at.inv, at.lse})
        Work::erase_all(role, [&](const Statement& s) { return assigns(s, n); });
    Work::erase_all(role, [](const Statement& s) { return base(target_of(s)) == "Lse"; });
    Work::erase_all(role, [&](const Statement& s) { return multiplies(s, at.acc, at.inv); });
}

void ratio(Work& w) {
    const Places& at = w.at;
    if (at.refer.empty()) {
        without_maximum(w);
        const Spot sum = w.in(w.attend(), at.sum_before);
        w.replace(sum, at.sum_before + " = " + at.sum_before + " + " + at.x + ".sum(-1)");
        narrow(w, {at.max_before}, {at.x, at.sum_before}, {at.p_result, at.sum_before});
        w.erase_with(w.role(), {at.max_before});
    } else {
        without_reference(w, at.sum_before);
    }
    if (w.part.weights.rest) {
        Local local(w, Local::Where::Role);
        const std::string rest = text(local.writer.write(derive(w, w.part.weights.rest)));
        const Spot total = w.in(w.role(), at.total);
        w.replace(total, at.total + " = " + text(value_of(*total)) + " + " + rest);
        std::size_t k = total.at;
        for (const auto& s : local.made) w.insert({total.block, k++}, s);
    }
    const Spot inv = w.in(w.role(), at.inv);
    // of no keys at all a weighted sum is 0, whatever the number of keys makes of the rest
    w.replace(inv, at.inv + " = where(" + text(w.keys) + " > 0, 1.0 / " + at.total + ", 0.0)");
    w.applied("weights divided by their sum");
}

/// A sink is a key without a value: the running maximum starts at it, the total takes its weight at the end.
void sinks(Work& w) {
    const Places& at = w.at;
    ExprPool& pool = w.launch.pool;
    Local local(w, Local::Where::Role);
    std::vector<std::string> names;
    Level level = Level::Kernel;
    for (const Expr extra : w.part.weights.extra) {
        const Expr e = by_exp2(pool, scaled(pool, derive(w, extra), log2e(pool)));
        level = join(level, local.writer.level(e));
        if ((e->free & index_bit(axis::i)) != 0) local.writer.index[axis::i] = name(w.item_rows());
        const NodePtr value = local.writer.write(e, Level::Tile);
        std::string n = text(value);
        if (value->kind != syntax::Kind::Name && !is_const(e)) {
            n = w.launch.fresh("sink");
            local.made.push_back(n + " = " + text(value));
        }
        names.push_back(n);
    }
    auto& role = w.role(); // after all that is hoisted: it moves statements
    std::string most = names[0];
    for (std::size_t k = 1; k < names.size(); ++k) most = "maximum(" + most + ", " + names[k] + ")";
    const bool zero = names.size() == 1 && is_real(w.part.weights.extra[0], 0);
    const auto rows = [&](const std::string& x) {
        return level < Level::Row ? "full(" + at.row_count + ", " + x + ")" : x;
    };
    std::map<std::string, std::string> start;
    std::string sum, top = at.max_before;
    if (at.refer.empty()) {
        const Spot unit = w.in(w.kernel.body, at.unit);
        const bool scaled = !zero && text(value_of(*unit)) != "1.0";
        start[at.max_before] = rows(scaled ? most + " / " + at.unit : most);
        top = w.launch.fresh("top");
    } else { // a sink of -inf is no reference
        start[at.max_before] = rows(zero ? most : "where(" + most + " == -inf, 0.0, " + most + ")");
        start[at.limit] = rows(zero ? at.slack : most + " + " + at.slack);
    }
    for (const auto& n : names) sum += " + exp2(" + n + " - " + top + ")";
    const auto begins = [&](const Statement& s) { return assigns(s, at.max_before) && !call_of(s); };
    Work::each(role, begins, [&](const Spot& s) {
        std::string targets, values;
        const auto results = results_of(*s);
        for (std::size_t k = 0; k < results.size(); ++k) {
            const auto it = start.find(results[k]);
            targets += (k == 0 ? "" : ", ") + results[k];
            values += (k == 0 ? "" : ", ") + (it != start.end() ? it->second : text(value_of(*s)->items.at(k)));
        }
        w.replace(s, targets + " = " + values);
    });
    const Spot total = w.in(role, at.total);
    w.replace(total, at.total + " = " + text(value_of(*total)) + sum);
    if (zero && at.refer.empty())
        w.insert(total, top + " = " + at.max_before + " * " + at.unit);
    else if (at.refer.empty()) // a sink of -inf in a row without keys
        w.insert(total, top + " = where(" + at.max_before + " == -inf, 0.0, " + at.max_before + " * " + at.unit + ")");
    w.insert_before(role, begins, local.made);
    w.applied(zero && w.part.weights.extra.size() == 1 ? "off by one" : "sink");
}

void gain(Work& w) {
    Local local(w, Local::Where::Attend);
    ExprPool& pool = w.launch.pool;
    const std::string value = text(local.writer.write(by_exp2(pool, derive(w, w.part.gain)))),
                      n = w.launch.fresh(w.at.refer.empty() ? "weighted" : "weight");
    const Spot leave =
        last(w.attend(), [](const Statement& s) { return s.node && s.node->kind == syntax::Kind::Return; });
    const std::string p = w.part.weights.kind == Weights::Kind::Softmax ? w.at.p : w.at.x;
    auto node = std::make_shared<syntax::Node>(*leave->node);
    const bool apart = !w.at.refer.empty(); // the role makes weights of what the def returns: it takes the gain along
    node->items[0] = apart ? parse(text(node->items[0]) + ", " + n) : replace(node->items[0], p, name(n));
    leave->node = node;
    std::size_t k = leave.at;
    for (const auto& s : local.made) w.insert({leave.block, k++}, s);
    w.insert({leave.block, k}, n + " = " + (apart ? value : p + " * (" + value + ")"));
    if (apart) {
        const std::string taken = w.launch.fresh(n);
        Work::each(
            w.role(), [&](const Statement& s) { return call_of(s) && base(call_of(s)->items[0]) == w.at.attend; },
            [&](const Spot& s) { w.replace(s, w.at.x_result + ", " + taken + " = " + text(value_of(*s))); });
        Work::each(
            w.role(), [&](const Statement& s) { return base(target_of(s)) == w.at.weights && results_of(s).empty(); },
            [&](const Spot& s) { w.replace(s, text(target_of(*s)) + " = " + text(value_of(*s)) + " * " + taken); });
    }
    w.applied("gain of weights");
}

} // namespace

void weights(Work& w) {
    switch (w.part.weights.kind) {
    case Weights::Kind::Pointwise: pointwise(w); break;
    case Weights::Kind::Ratio: ratio(w); break;
    case Weights::Kind::Softmax:
        if (!w.part.weights.extra.empty()) sinks(w);
        break;
    }
    if (w.part.gain) gain(w);
}

} // namespace cubridge::ir::transfer
