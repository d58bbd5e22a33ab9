// SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/tables.h"
#include <algorithm>
#include <limits>

namespace cubridge::ir::transfer {
namespace {

constexpr std::size_t kMaxChain = 4, kMaxTable = 1024;

bool depends(Expr e, int axis) {
    return (e->free & index_bit(axis)) != 0;
}

bool has(Expr e, Kind kind) {
    return contains(e, [&](Expr x) { return x->kind == kind; });
}

bool reads_score(Expr e) {
    return contains(e, [](Expr x) { return x->kind == Kind::Load && x->number >= kScore && x->number < kLog2e; });
}

/// Costs more than the Load of a table: another Load with an index to compute, float32 arithmetic, a function.
bool dear(Expr e) {
    return contains(e, [](Expr x) {
        if (x->kind == Kind::F32Fn || x->kind == Kind::Fn || x->kind == Kind::Reduce) return true;
        const bool table = x->kind == Kind::Load && x->number >= kWorkspace;
        return x->kind == Kind::Load && !table && depends(x, axis::i) && depends(x, axis::j);
    });
}

class Derive {
public:
    Derive(Work& w, Expr root) : work_(w), pool_(w.launch.pool), root_(root) {}

    Expr operator()(Expr e) {
        if (const auto it = done_.find(e); it != done_.end()) return it->second;
        const Expr r = make(e);
        done_.emplace(e, r);
        return r;
    }

private:
    Expr make(Expr e) {
        if (e->kind == Kind::Table) return constant(e);
        if (const Expr one = in_one_table(e); one != e) return (*this)(one);
        const bool both = depends(e, axis::i) && depends(e, axis::j);
        if ((e->type == Type::Int || e->type == Type::Real) && !reads_score(e)) {
            if (both && dear(e)) {
                if (const Expr f = of_distance(e)) return by_distance(f);
            } else if (!both && has(e, Kind::Reduce)) {
                work_.applied(depends(e, axis::i)   ? "table over query positions"
                              : depends(e, axis::j) ? "table over key positions"
                                                    : "table over batch and heads");
                return of_position(e);
            }
        }
        if (e->kind == Kind::Reduce)
            refuse("a sum or an extremum over positions is needed for each pair of query and key",
                   "the generic kernel computes it");
        if (e->args.empty()) return e;
        std::vector<Expr> args;
        for (const Expr a : e->args) args.push_back((*this)(a));
        return args == e->args ? e : pool_.with_args(e, std::move(args));
    }

    /// Terms of a score that are such functions together, where they are several.
    Expr in_one_table(Expr e) {
        if (e->kind != Kind::Sum || e->type != Type::Real || !reads_score(e)) return e;
        std::vector<std::pair<double, Expr>> tables, rest;
        for (std::size_t k = 0; k < e->args.size(); ++k) {
            const Expr t = e->args[k];
            const bool both = depends(t, axis::i) && depends(t, axis::j);
            const bool tabulated = both && !reads_score(t) && dear(t) && of_distance(t);
            (tabulated ? tables : rest).emplace_back(e->rcoef[k], t);
        }
        if (tables.size() < 2) return e;
        rest.emplace_back(1, by_distance(of_distance(pool_.rsum(0, tables))));
        return pool_.rsum(e->real, rest);
    }

    Expr by_distance(Expr f) {
        std::vector<Expr> back(kMaxIndex, nullptr);
        back[place::distance] = pool_.sub(pool_.index(axis::j), pool_.index(axis::i));
        work_.applied("table over the distance of query and key");
        return pool_.substitute(tabulate(work_.launch, f, work_.most_keys, "bias"), back);
    }

    /// One table where queries and keys have the same value of their positions.
    Expr of_position(Expr e) {
        const bool row = depends(e, axis::i), column = depends(e, axis::j);
        const Expr other = row      ? moved(pool_, e, axis::i, axis::j)
                           : column ? moved(pool_, e, axis::j, axis::i)
                                    : nullptr;
        const bool shared = other && contains(root_, [&](Expr x) { return x == other; });
        const Expr t = tabulate(work_.launch, shared && row ? other : e, work_.most_keys, "table", shared);
        return shared && row ? moved(pool_, t, axis::j, axis::i) : t;
    }

    Expr of_distance(Expr e) {
        std::vector<Expr> map(kMaxIndex, nullptr);
        map[axis::j] = pool_.add(pool_.index(place::distance), pool_.index(axis::i));
        const Expr f = pool_.substitute(e, map);
        return depends(f, axis::i) ? nullptr : f;
    }

    Expr constant(Expr e) {
        const ConstTable& t = pool_.table(e->number);
        if (e->args.size() != 1) refuse("a constant table of more than one axis");
        const Expr at = (*this)(e->args[0]);
        const auto value = [&](std::size_t k) {
            return t.type == Type::Real ? pool_.real(t.values[k])
                                        : pool_.integer(static_cast<std::int64_t>(t.values[k]));
        };
        if (t.values.size() <= kMaxChain) {
            Expr out = value(t.values.size() - 1);
            for (std::size_t k = t.values.size() - 1; k-- > 0;)
                out = pool_.select(pool_.apply(Op::Le, at, pool_.integer(static_cast<std::int64_t>(k))), value(k), out);
            return out;
        }
        if (at != work_.own_head || t.values.size() > kMaxTable || t.type != Type::Real)
            refuse("a constant table that is not one number a head");
        if (const auto it = work_.launch.tables.find(e); it != work_.launch.tables.end()) return it->second;
        Launch& l = work_.launch;
        work_.applied("constants of a head");
        Map map(l, "fill_constants");
        Uses none;
        const bool of_classes = work_.own_head != pool_.index(axis::h);
        const NodePtr heads = of_classes ? transfer::name("Hq") : Writer(pool_, l.v, none).write(l.v.heads);
        const int n = l.allocate("constants", {heads}, DType::F32);
        const std::string name = l.workspace[static_cast<std::size_t>(n)];
        for (std::size_t k = 0; k < t.values.size(); ++k) {
            const NodePtr here = compare(transfer::name("h"), "==", map.uses.integer(static_cast<std::int64_t>(k)));
            map.open("if " + text(here) + ":", [&] { map.add(name + "[h] = " + text(real(t.values[k]))); });
        }
        map.finish({"h"}, {heads});
        const Expr load = pool_.load(kWorkspace + n, Type::Real, {at});
        l.tables.emplace(e, load);
        return load;
    }

    Work& work_;
    ExprPool& pool_;
    const Expr root_;
    std::unordered_map<Expr, Expr> done_;
};

} // namespace

Map::Map(Launch& launch, const std::string& stem)
    : writer(launch.pool, launch.v, uses), block(&body), launch_(launch), kernel_(make_map(launch.fresh(stem))) {
    uses.constants = launch.constants;
    writer.hoists_lower = false;
    writer.reduce = [this](Expr e) { return reduce(e); };
    writer.named = [this](Expr e) -> NodePtr {
        if (shared_.count(e) == 0) return nullptr;
        if (const auto it = names_.find({e, block}); it != names_.end()) return transfer::name(it->second);
        const auto* where = block;
        const NodePtr value = writer.make(e);
        const std::string n = launch_.fresh("value");
        add(n + " = " + text(value));
        names_[{e, where}] = n;
        return transfer::name(n);
    };
    writer.hoist = [this](Expr e, Level) {
        const std::string n = launch_.fresh("value");
        add(n + " = " + text(writer.make(e)));
        return transfer::name(n);
    };
    writer.leaf = [this](Expr e) -> NodePtr {
        if (leaf)
            if (NodePtr x = leaf(e)) return x;
        if (e->kind != Kind::Load || e->number < kWorkspace) return nullptr;
        const auto n = static_cast<std::size_t>(e->number - kWorkspace);
        if (n >= launch_.workspace.size()) return nullptr;
        Nodes at;
        for (const Expr a : e->args) at.push_back(writer.write(a));
        return item(launch_.workspace[n], std::move(at));
    };
}

void Map::add(const std::string& text) {
    block->push_back(line(text));
}

NodePtr Map::write(Expr e) {
    std::map<Expr, int> uses_of;
    const auto visit = [&](auto&& self, Expr x) -> void {
        if (++uses_of[x] > 1) return;
        for (const Expr a : x->args) self(self, a);
    };
    visit(visit, e);
    for (const auto& [x, n] : uses_of)
        if (n > 1 && x->depth > 3 && x->type != Type::Bool) shared_.insert(x);
    return writer.write(e);
}

void Map::open(const std::string& text, const std::function<void()>& inside) {
    cuir::Statement s = line(text);
    auto* outer = block;
    block = &s.body;
    inside();
    block = outer;
    block->push_back(std::move(s));
}

NodePtr Map::reduce(Expr e) {
    const bool real_type = e->type == Type::Real || e->type == Type::F32;
    const std::string total = launch_.fresh(e->reduce == ReduceOp::Sum ? "count" : "found"), r = launch_.fresh("r");
    double start = 0;
    if (e->reduce == ReduceOp::Max) start = -std::numeric_limits<double>::infinity();
    if (e->reduce == ReduceOp::Min) start = std::numeric_limits<double>::infinity();
    if (e->reduce == ReduceOp::Prod) start = 1;
    const bool extremum = e->reduce == ReduceOp::Max || e->reduce == ReduceOp::Min;
    if (extremum && !real_type) refuse("a table needs the largest of a set of integers that may be empty");
    if (e->reduce == ReduceOp::All) start = 1;
    add(total + " = " + text(real_type ? real(start) : small(static_cast<std::int64_t>(start))));
    open("for " + r + " in range(" + text(writer.write(e->args[1])) + "):", [&] {
        writer.index[kMaxIndex + e->number] = transfer::name(r);
        Expr body = e->args[0];
        // a condition counts as 0 or 1
        if (e->reduce == ReduceOp::Sum && body->kind == Kind::Cast && body->args[0]->type == Type::Bool)
            body = body->args[0];
        const std::string x = text(writer.write(body));
        switch (e->reduce) {
        case ReduceOp::Sum: return add(total + " += " + x);
        case ReduceOp::Prod: return add(total + " *= " + x);
        case ReduceOp::Max: return add(total + " = maximum(" + total + ", " + x + ")");
        case ReduceOp::Min: return add(total + " = minimum(" + total + ", " + x + ")");
        case ReduceOp::Any: return add(total + " = maximum(" + total + ", i32(" + x + "))");
        case ReduceOp::All: return add(total + " = minimum(" + total + ", i32(" + x + "))");
        }
    });
    return e->type == Type::Bool ? compare(transfer::name(total), "==", small(1)) : transfer::name(total);
}

void Map::finish(const std::vector<std::string>& variables, const Nodes& extents,
                 const std::vector<cuir::Statement>& parameters) {
    std::string list, sizes;
    for (const auto& v : variables) list += (list.empty() ? "" : ", ") + v;
    for (const auto& e : extents) sizes += (sizes.empty() ? "" : ", ") + text(e);
    cuir::Statement loop = line("for " + list + " in each(" + sizes + "):");
    loop.body = std::move(body);
    kernel_.body.push_back(std::move(loop));
    for (const auto& p : parameters) kernel_.head.insert(kernel_.head.end() - 1, p);
    complete_head(launch_, kernel_, uses);
    launch_.program.kernels.push_back(std::move(kernel_));
}

Expr moved(ExprPool& pool, Expr e, int from, int to) {
    std::vector<Expr> map(kMaxIndex, nullptr);
    map[static_cast<std::size_t>(from)] = pool.index(to);
    return pool.substitute(e, map);
}

Expr tabulate(Launch& launch, Expr body, Expr keys, const std::string& stem, bool shared) {
    ExprPool& pool = launch.pool;
    // a shared table is longer than one of keys alone
    const Expr key = shared ? moved(pool, body, axis::j, place::entry) : body;
    if (const auto it = launch.tables.find(key); it != launch.tables.end()) return it->second;
    Map map(launch, "fill_" + stem);
    const auto write_size = [&](Expr e) { return map.writer.write(e); };
    std::vector<std::string> variables;
    Nodes extents;
    std::vector<Expr> at;
    const auto over = [&](int axis, const std::string& variable, const NodePtr& extent) {
        // lengths are a request's own, and so may operands be
        if (!depends(body, axis) && axis != axis::b) return false;
        variables.push_back(variable);
        extents.push_back(extent);
        at.push_back(pool.index(axis));
        map.writer.index[axis] = name(variable);
        return true;
    };
    over(axis::b, "b", name("B"));
    over(axis::h, "h", write_size(launch.v.heads));
    over(axis::i, "i", name("Sq"));
    over(axis::j, "j", shared ? call("maximum", {name("Sq"), write_size(keys)}) : write_size(keys));
    Expr entry = body;
    if (over(place::distance, "t", binary("+", name("Sq"), write_size(keys)))) { // entry t is of distance t - Sq
        std::vector<Expr> shift(kMaxIndex, nullptr);
        shift[place::distance] = pool.sub(pool.index(place::entry), pool.dim(dims::Sq));
        entry = pool.substitute(body, shift);
        map.writer.index[place::entry] = name("t");
        at.back() = pool.add(at.back(), pool.dim(dims::Sq));
    }
    const int n = launch.allocate(stem, extents, body->type == Type::Int ? DType::I32 : DType::F32);
    std::string list;
    for (const auto& v : variables) list += (list.empty() ? "" : ", ") + v;
    const std::string value = text(map.write(entry));
    map.add(launch.workspace[static_cast<std::size_t>(n)] + "[" + list + "] = " + value);
    map.finish(variables, extents);
    const Expr load = pool.load(kWorkspace + n, body->type == Type::Int ? Type::Int : Type::Real, at);
    launch.tables.emplace(key, load);
    return load;
}

Expr derive(Work& work, Expr e) {
    return e ? Derive(work, e)(e) : e;
}

} // namespace cubridge::ir::transfer
