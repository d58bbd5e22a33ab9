// Where the output is stored, and from what: as it is staged by the expert, or straight from registers.
// SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/rules.h"
#include <algorithm>

namespace cubridge::ir::transfer {
namespace {

using cuir::Statement;
using syntax::Kind;

bool calls_on(const Statement& s, const char* function, const std::string& object) {
    const auto c = call_of(s);
    return c && c->items.size() > 1 && base(c->items[0]) == function && base(c->items[1]) == object;
}

/// q of Qs[q][g], and of Qs[q][g][:].
NodePtr first_index(const NodePtr& x) {
    return x->items[0]->kind == Kind::Name ? x->items[1] : first_index(x->items[0]);
}

/// What a barrier is made of: the call, in a statement that may make several.
void edit_made(Work& w, const std::string& name, const std::function<NodePtr(const NodePtr&)>& edit) {
    const Spot s = w.in(w.kernel.body, name);
    const auto results = results_of(*s);
    auto node = std::make_shared<syntax::Node>(*s->node);
    auto& value = node->items.back();
    if (value->kind == Kind::Tuple) {
        auto values = std::make_shared<syntax::Node>(*value);
        for (std::size_t k = 0; k < results.size(); ++k)
            if (results[k] == name) values->items[k] = edit(values->items[k]);
        value = values;
    } else {
        value = edit(value);
    }
    s->node = node;
}

/// Where the next item is taken, all products with the queries of the last one are done.
void give_back_queries(Work& w, const std::string& free, const std::string& buffer) {
    const auto takes = [&](const Statement& s) { return calls(s, "take") && assigns(s, w.at.b); };
    const Spot loop = first(w.role(), [](const Statement& s) { return s.kind == Statement::Kind::While; });
    if (!loop || !last(loop->body, takes))
        refuse("the expert's program has no place where an item's last step is known");
    w.insert_before(loop->body, takes, {"arrive(" + free + "[" + buffer + "])"});
}

/// A role of its own stores what others staged: they store instead, and give the queries back themselves.
void without_storing_role(Work& w, const Spot& store) {
    const Spot role = first(w.kernel.body, [&](const Statement& s) {
        return s.kind == Statement::Kind::With &&
               last(const_cast<Statement&>(s).body, [&](const Statement& t) { return &t == &*store; });
    });
    const Spot gives =
        last(role->body, [](const Statement& s) { return call_of(s) && base(call_of(s)->items[0]) == "arrive"; });
    const Spot takes = first(role->body, [](const Statement& s) { return calls(s, "take"); });
    const Spot waits = store.at > 0 ? Spot{store.block, store.at - 1} : Spot{};
    if (!gives || !takes || !waits || !calls(*waits, "wait"))
        refuse("the expert's program stores its output in a way that no rule knows");
    const std::string staged = base(call_of(*waits)->items.at(1)), free = base(call_of(*gives)->items.at(1)),
                      channel = base(call_of(*takes)->items.at(1));
    const Spot own = first(w.kernel.body, [&](const Statement& s) {
        return s.kind == Statement::Kind::With &&
               last(const_cast<Statement&>(s).body, [&](const Statement& t) { return assigns(t, w.at.p_result); });
    });
    const NodePtr maker = own->node->items[0]->kind == Kind::Call ? own->node->items[0] : nullptr;
    const NodePtr* agents = maker ? keyword(maker, "warpgroups") : nullptr;
    if (!agents) refuse("the expert's program stores its output in a way that no rule knows");
    const NodePtr count = *agents;
    w.erase(role);

    Local local(w, w.at.late ? Local::Where::Late : Local::Where::Role);
    const std::string first_row = text(local.writer.index.at(place::first));
    std::string to = w.out + "[" + text(local.writer.index.at(axis::b)) + ", " + text(local.writer.index.at(axis::h)) +
                     ", " + first_row + ":" + first_row + " + " + w.at.row_count + "]";
    to = text(of_class(w, parse(to)));
    if (w.at.late) local.before_next(to);
    const Spot fill = first(w.role(), writes_output(w));
    const std::string buffer = text(first_index(target_of(*fill))); // of the item whose last step was the one before
    Work::each(w.role(), writes_output(w), [&](const Spot& s) { w.replace(s, to + " = " + w.at.acc); });
    const auto stages = [&](const Statement& s) {
        return calls_on(s, "fence", w.at.q_cells) || calls_on(s, "arrive", staged);
    };
    Work::erase_all(w.role(), stages);
    w.erase_with(w.kernel.body, {staged});
    give_back_queries(w, free, buffer);
    const auto with = [&](const NodePtr& call, const char* name, const NodePtr& number) {
        auto out = std::make_shared<syntax::Node>(*call);
        if (name == nullptr) out->items.at(1) = number;
        for (auto& k : out->keywords)
            if (name != nullptr && k.name == name) k.value = number;
        return NodePtr(out);
    };
    edit_made(w, free, [&](const NodePtr& call) { return with(call, nullptr, count); });
    NodePtr takers = count; // and the single warps that are left
    for (Statement& s : w.kernel.body) {
        const NodePtr role = s.kind == Statement::Kind::With ? s.node->items[0] : nullptr;
        const NodePtr* warps = role && role->kind == Kind::Call ? keyword(role, "warps") : nullptr;
        if (warps && last(s.body, [](const Statement& t) { return calls(t, "take"); }))
            takers = binary("+", takers, *warps);
    }
    edit_made(w, channel, [&](const NodePtr& call) { return with(call, "takers", takers); });
}

} // namespace

std::string freed_by_load(Work& w, const std::string& cells) {
    const Spot copy = first(w.kernel.body, [&](const Statement& s) {
        const auto c = call_of(s);
        return c && c->items.size() == 3 && base(c->items[2]) == cells;
    });
    const NodePtr before = copy && copy.at > 0 ? call_of((*copy.block)[copy.at - 1]) : nullptr;
    return before && base(before->items[0]) == "wait" ? base(before->items.at(1)) : "";
}

Matches writes_output(const Work& w) {
    return [&w](const Statement& s) {
        const NodePtr t = target_of(s), value = value_of(s);
        return t && t->kind == Kind::Subscript && value->kind == Kind::Name && value->text == w.at.acc;
    };
}

Matches stores_to(const std::string& tensor) {
    return [tensor](const Statement& s) {
        const auto c = call_of(s);
        return base(target_of(s)) == tensor || (c && c->items.size() == 3 && base(c->items[2]) == tensor);
    };
}

void erase_param(Work& w, const std::string& name) {
    auto& head = w.kernel.head;
    head.erase(std::remove_if(head.begin(), head.end(),
                              [&](const Statement& s) { return s.kind == Statement::Kind::Param && s.name == name; }),
               head.end());
}

void destination(Work& w) {
    Spot store = last(w.kernel.body, stores_to("Out"));
    if (!store) refuse("the expert's program does not store its output");
    const auto c = call_of(*store);
    const bool staged = c != nullptr;
    // one buffer can't hold an item's output while the next one's queries are waited for
    const Spot cells = w.in(w.kernel.body, w.at.q_cells);
    const NodePtr buffers = w.kernel.constant(base(call_of(*cells)->items.at(2)->items.at(0)));
    const bool single = w.at.late && buffers && text(buffers) == "1";
    if (staged && (w.launch.head_dim_v != w.launch.head_dim || !w.elem_out || single)) { // as it is, from registers
        if (last(w.role(), stores_to("Out"))) {
            const std::string cell = base(c->items[1]), to = text(c->items[2]);
            const Spot fill = last(w.role(), [&](const Statement& s) { return base(target_of(s)) == cell; });
            w.replace(store, to + " = " + w.at.acc);
            w.erase(fill);
        } else {
            without_storing_role(w, store);
        }
        w.applied("output stored from registers");
    }
    if (w.out == "Out") return;
    Work::rename(w.kernel.body, "Out", name(w.out));
    erase_param(w, "Out");
}

void order(Work& w) {
    // drawn items of which some have more keys than others: the longest first, or the last one to begin ends last
    const std::string& asked = w.launch.target.order;
    if (asked.empty() && (w.part.keep->free & index_bit(axis::i)) == 0) return;
    const std::string wanted = asked.empty() ? "\"heaviest_first\"" : '"' + asked + '"';
    Work::each(
        w.kernel.body, [](const Statement& s) { return s.kind == Statement::Kind::For; },
        [&](const Spot& s) {
            const auto edit = [&](auto&& self, const NodePtr& x) -> NodePtr {
                if (!x) return x;
                auto out = std::make_shared<syntax::Node>(*x);
                for (auto& i : out->items) i = self(self, i);
                if (is_call(x, "draw") || (!asked.empty() && is_call(x, "bind")))
                    for (auto& k : out->keywords)
                        if (k.name == "order" && text(k.value) != wanted)
                            k.value = parse(wanted), w.applied("order of work items");
                return out;
            };
            const std::string own = line_of(*s);
            if (own.find("draw(") != std::string::npos || own.find("bind(") != std::string::npos)
                s->node = edit(edit, s->node);
        });
}

} // namespace cubridge::ir::transfer
