// SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/work.h"
#include "ir/mask/mask.h"
#include "ir/spec/variant/carry.h"
#include <algorithm>

namespace cubridge::ir::transfer {
namespace {

using cuir::Statement;

void names_of(const std::vector<Statement>& block, std::set<std::string>& out) {
    for (const auto& s : block) {
        if (!s.name.empty()) out.insert(s.name);
        if (s.node)
            for (const auto& p : s.node->params) out.insert(p.name);
        if (s.node && s.kind == Statement::Kind::With)
            for (const auto& n : s.node->names) out.insert(n);
        if (s.node)
            for (const auto& n : names_in(s.node)) out.insert(n);
        names_of(s.body, out);
    }
}

} // namespace

void refuse(const std::string& what, const std::string& hint) {
    fail("no_rule", what, {}, hint);
}

Launch::Launch(const Target& given) : target(given), v(carry(given.variant, false)), pool(*v.pool) {
    head_dim = given.request.head_dim != 0 ? given.request.head_dim : 128;
    head_dim_v = given.request.head_dim_v != 0 ? given.request.head_dim_v : head_dim;
    stores_lse = given.request.lse != Request::Lse::None;
    names = {"B", "Hq", "Hk", "Sq", "Sk", "D", "Dv", "LOG2E", "LN2", "inf", "elem"};
}

std::string Launch::fresh(const std::string& stem) {
    std::string out = stem;
    for (int n = 1; !names.insert(out).second; ++n) out = stem + std::to_string(n);
    return out;
}

void Launch::applied(const std::string& rule) {
    if (std::find(rules.begin(), rules.end(), rule) == rules.end()) rules.push_back(rule);
}

int Launch::allocate(const std::string& stem, const std::vector<NodePtr>& extents, DType dtype) {
    const std::string name = fresh(stem);
    std::string sizes;
    for (NodePtr e : extents) {
        for (const auto& [value, constant] : constants) e = replace(e, constant, small(value)); // it is of no kernel
        sizes += (sizes.empty() ? "" : ", ") + text(e);
    }
    if (extents.size() == 1) sizes += ",";
    program.storage.push_back(line(name + " = alloc(workspace, (" + sizes + "), " + short_name(dtype) + ")"));
    workspace.push_back(name);
    return static_cast<int>(workspace.size()) - 1;
}

Statement param(const std::string& name, const NodePtr& type) {
    Statement s;
    s.kind = Statement::Kind::Param;
    s.name = name;
    s.node = type;
    return s;
}

NodePtr operand_type(const Launch& launch, int operand) {
    const auto& t = launch.target.operands.at(static_cast<std::size_t>(operand));
    if (t.dtype == DType::E4M3 || t.dtype == DType::E5M2)
        refuse("operand x" + std::to_string(operand) + " has 8-bit floats", "give it as float16 or float32");
    if (t.rank == 0) return name(short_name(t.dtype));
    return item(short_name(t.dtype), Nodes(static_cast<std::size_t>(t.rank), name("_")));
}

void set_constant(cuir::Kernel& kernel, const std::string& name, const NodePtr& value) {
    auto def = std::make_shared<syntax::Node>(*kernel.head.back().node);
    auto& params = def->params;
    const auto bar =
        std::find_if(params.begin(), params.end(), [](const auto& p) { return p.form == syntax::Param::Form::Bar; });
    if (bar == params.end()) {
        syntax::Param p;
        p.form = syntax::Param::Form::Bar;
        params.push_back(p);
    }
    auto it = std::find_if(params.begin(), params.end(), [&](const auto& p) { return p.name == name; });
    if (it == params.end()) {
        params.emplace_back();
        it = params.end() - 1;
        it->name = name;
    }
    it->fallback = value;
    kernel.head.back().node = def;
}

void complete_head(const Launch& launch, cuir::Kernel& kernel, const Uses& uses) {
    const auto add = [&](const std::string& name, const NodePtr& type) {
        if (!kernel.param(name)) kernel.head.insert(kernel.head.end() - 1, param(name, type));
    };
    for (const int x : uses.operands) add("x" + std::to_string(x), operand_type(launch, x));
    for (const auto& [value, name] : uses.constants) set_constant(kernel, name, integer(value));
}

cuir::Kernel make_map(const std::string& name) {
    cuir::Kernel out;
    Statement s;
    s.kind = Statement::Kind::Decorator;
    s.node = transfer::name("map");
    out.head.push_back(s);
    auto def = std::make_shared<syntax::Node>();
    def->kind = syntax::Kind::FunctionDef;
    def->text = name;
    s.node = def;
    s.kind = Statement::Kind::Kernel;
    s.name = name;
    out.head.push_back(s);
    s.kind = Statement::Kind::Constants;
    s.name.clear();
    out.head.push_back(s);
    return out;
}

Work::Work(Launch& l, std::size_t part_number, const cuir::Kernel& expert)
    : launch(l), number(part_number), part(l.v.parts[part_number]), kernel(expert), at(find(kernel)), keys(name("Sk")),
      rows(name("Sq")), every_key(keys), own_head(l.pool.index(axis::h)), row_extent(l.pool.dim(dims::Sq)),
      most_keys(part.keys) {
    uses.constants = l.constants;
    names_of(kernel.head, launch.names);
    names_of(kernel.body, launch.names);
    const Spot copy = first(kernel.body, [](const Statement& s) {
        const auto c = call_of(s);
        return c && c->items.size() == 3 && base(c->items[1]) == "K";
    });
    const NodePtr slice = call_of(*copy)->items[1];
    kv = slice->items[1]->items.at(1);
}

std::vector<Statement>& Work::attend() {
    return def(at.attend)->body;
}

std::vector<Statement>& Work::key_tiles() {
    return def(at.key_tiles)->body;
}

std::vector<Statement>& Work::role() {
    return first(kernel.body,
                 [&](const Statement& s) {
                     return s.kind == Statement::Kind::With &&
                            last(const_cast<Statement&>(s).body,
                                 [&](const Statement& t) { return assigns(t, at.p_result); });
                 })
        ->body;
}

Spot Work::def(const std::string& name) {
    return first(kernel.body, [&](const Statement& s) { return s.kind == Statement::Kind::Def && s.name == name; });
}

Spot Work::in(std::vector<Statement>& block, const std::string& name) {
    return last(block, [&](const Statement& s) { return assigns(s, name); });
}

void Work::insert(const Spot& before, const std::string& text) {
    before.block->insert(before.block->begin() + static_cast<std::ptrdiff_t>(before.at), line(text));
}

void Work::insert_after(const Spot& spot, const std::string& text) {
    insert({spot.block, spot.at + 1}, text);
}

void Work::replace(const Spot& spot, const std::string& text) {
    auto s = line(text);
    s.body = std::move(spot->body);
    s.comment = spot->comment;
    *spot = std::move(s);
}

void Work::erase(const Spot& spot) {
    spot.block->erase(spot.block->begin() + static_cast<std::ptrdiff_t>(spot.at));
}

namespace {

/// The last statement that assigns one of those names alone.
Spot last_of(std::vector<Statement>& block, const std::map<Expr, std::string>& names) {
    return last(block, [&](const Statement& s) {
        const auto r = results_of(s);
        return r.size() == 1 &&
               std::any_of(names.begin(), names.end(), [&](const auto& n) { return n.second == r[0]; });
    });
}

} // namespace

void Work::add_to_prelude(const std::string& text) {
    // after what was added before, after the unit of scores, or where storage begins
    Spot s = last_of(kernel.body, prelude);
    if (!s) s = last(kernel.body, [&](const Statement& t) { return assigns(t, at.unit); });
    if (s) return insert_after(s, text);
    insert(first(kernel.body, [](const Statement& t) { return calls(t, "alloc"); }), text);
}

void Work::each(std::vector<Statement>& block, const Matches& matches, const std::function<void(const Spot&)>& edit) {
    for (std::size_t left = block.size(); left > 0;) { // from the end: what an edit inserts lies behind
        const std::size_t at = --left;
        each(block[at].body, matches, edit);
        if (matches(block[at])) edit({&block, at});
    }
}

void Work::erase_all(std::vector<Statement>& block, const Matches& matches) {
    each(block, matches, [](const Spot& s) { s.block->erase(s.block->begin() + static_cast<std::ptrdiff_t>(s.at)); });
}

void Work::insert_before(std::vector<Statement>& block, const Matches& matches, const std::vector<std::string>& texts) {
    each(block, matches, [&](const Spot& s) {
        std::size_t k = s.at;
        for (const auto& t : texts) insert({s.block, k++}, t);
    });
}

void Work::add_to_item(const std::string& text) {
    each(
        role(), [&](const Statement& t) { return assigns(t, at.first_row); },
        [&](const Spot& first_row) {
            Spot s = first_row; // behind what was added there before
            for (std::size_t k = s.at + 1; k < s.block->size(); ++k) {
                const auto r = results_of((*s.block)[k]);
                const bool added = r.size() == 1 && std::any_of(items.begin(), items.end(),
                                                                [&](const auto& n) { return n.second == r[0]; });
                if (added) s.at = k;
            }
            insert_after(s, text);
        });
}

std::string Work::item_rows() {
    const Expr i = launch.pool.index(axis::i);
    auto it = items.find(i);
    if (it == items.end()) {
        const std::string n = launch.fresh("i");
        add_to_item(n + " = rows(" + at.first_row + ", " + at.row_count + ")");
        it = items.emplace(i, n).first;
    }
    return it->second;
}

void Work::pass(const std::string& name) {
    const Spot d = def(at.attend);
    auto node = std::make_shared<syntax::Node>(*d->node);
    syntax::Param p;
    p.name = name;
    node->params.push_back(std::move(p));
    d->node = node;
    const auto visit = [&](auto&& self, std::vector<Statement>& block) -> void {
        for (auto& s : block) {
            const auto c = call_of(s);
            if (c && c->items[0]->text == at.attend) {
                auto more = std::make_shared<syntax::Node>(*c);
                more->items.push_back(transfer::name(name));
                auto assign = std::make_shared<syntax::Node>(*s.node);
                assign->items.back() = more;
                s.node = assign;
            }
            self(self, s.body);
        }
    };
    visit(visit, kernel.body);
}

Local::Local(Work& work, Where where) : writer(work.launch.pool, work.launch.v, work.uses), work_(work), where_(where) {
    const Places& at = work.at;
    auto& index = writer.index;
    std::string h = at.h;
    switch (where) {
    case Where::Attend:
        h = at.attend_params[1];
        index[axis::b] = name(at.attend_params[0]), index[axis::h] = name(h);
        index[place::first] = name(at.attend_params[2]);
        index[axis::i] = name(at.rows), index[axis::j] = name(at.cols);
        break;
    case Where::Tiles:
        h = at.tile_params[1];
        index[axis::b] = name(at.tile_params[0]), index[axis::h] = name(h);
        index[mask::tile::i0] = name(at.tile_params[2]), index[mask::tile::i1] = name(at.tile_params[3]);
        break;
    case Where::Load:
        h = at.load_h;
        index[axis::b] = name(at.load_b), index[axis::h] = name(h);
        break;
    case Where::Late:
        h = kept(at.h);
        index[axis::b] = name(kept(at.b)), index[axis::h] = name(h), index[place::first] = name(kept(at.first_row));
        break;
    case Where::Role:
        index[axis::b] = name(at.b), index[axis::h] = name(at.h), index[place::first] = name(at.first_row);
        break;
    }
    writer.kv = transfer::replace(work.kv, at.load_h, name(h));
    writer.leaf = [this](Expr e) -> NodePtr {
        if (e->kind != Kind::Load) return nullptr;
        if (e->number == kScore) return name(work_.at.scores);
        if (e->number >= kWorkspace && e->number < kWorkspace + static_cast<int>(work_.launch.workspace.size())) {
            Nodes index_nodes;
            for (const Expr a : e->args) index_nodes.push_back(writer.write(a, writer.level(e)));
            return item(work_.launch.workspace[static_cast<std::size_t>(e->number - kWorkspace)],
                        std::move(index_nodes));
        }
        return nullptr;
    };
    writer.named = [this](Expr e) -> NodePtr {
        if (const auto it = names_.find(e); it != names_.end()) return name(it->second);
        if (where_ == Where::Tiles || where_ == Where::Load || where_ == Where::Late || !writer.hoist ||
            e->kind == Kind::Index)
            return nullptr;
        // what is read for each row is read once a work item, not for each of its tiles
        const bool gathers = where_ == Where::Attend && e->kind == Kind::Load && writer.level(e) == Level::Row &&
                             (canonical(work_.launch.v, e->number) >= 0 || e->number >= kWorkspace);
        return gathers || work_.items.count(e) != 0 ? of_item(e) : nullptr;
    };
    if (where != Where::Tiles && where != Where::Load)
        writer.hoist = [this](Expr e, Level level) { return hoist(e, level); };
}

NodePtr Local::hoist(Expr e, Level level) {
    if (level == Level::Kernel) {
        if (const auto it = work_.prelude.find(e); it != work_.prelude.end()) return name(it->second);
        const NodePtr value = writer.make(e);
        const std::string n = work_.launch.fresh("scale");
        work_.add_to_prelude(n + " = " + text(value));
        work_.prelude.emplace(e, n);
        return name(n);
    }
    if (const auto it = names_.find(e); it != names_.end()) return name(it->second);
    const bool here = where_ == Where::Late || contains(e, [&](Expr x) { return of_tile_.count(x) != 0; });
    if (level == Level::Scalar && !here) return of_item(e);
    const NodePtr value = writer.make(e);
    const char* stem = level == Level::Row      ? "row"
                       : level == Level::Column ? "column"
                       : level == Level::Scalar ? "factor"
                                                : "part";
    const std::string n = work_.launch.fresh(stem);
    made.push_back(n + " = " + text(value));
    if (level == Level::Column) columns.insert(n);
    names_.emplace(e, n);
    return name(n);
}

void Local::of_tile(Expr leaf, const std::string& name) {
    of_tile_.insert(leaf);
    names_.emplace(leaf, name);
}

std::vector<std::string> Local::in_block(const std::function<void()>& write) {
    std::vector<std::string> own;
    const auto names = names_;
    own.swap(made);
    write();
    own.swap(made);
    names_ = names;
    return own;
}

NodePtr Local::of_item(Expr e) {
    auto it = work_.items.find(e);
    if (it == work_.items.end()) {
        Local role(work_, Where::Role);
        const bool row = (e->free & index_bit(axis::i)) != 0;
        if (row) role.writer.index[axis::i] = name(work_.item_rows());
        const std::string value = text(role.writer.make(e));
        const std::string n = work_.launch.fresh(row ? "row" : e->type == Type::Int ? "limit" : "factor");
        work_.add_to_item(n + " = " + value);
        it = work_.items.emplace(e, n).first;
    }
    if (where_ == Where::Attend && work_.passed.insert(e).second) work_.pass(it->second);
    return name(it->second);
}

} // namespace cubridge::ir::transfer
