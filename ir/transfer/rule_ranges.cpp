// Which key tiles are visited, and which of them need the mask. SPDX-License-Identifier: Apache-2.0
#include "ir/mask/mask.h"
#include "ir/transfer/rules.h"
#include "ir/transfer/tables.h"
#include <algorithm>

namespace cubridge::ir::transfer {
namespace {

class Ranges {
public:
    explicit Ranges(Work& w)
        : w_(w), local_(w, Local::Where::Tiles), all_(w.part.keys), keys_(w.keys_for(w.at.tile_params[1])) {}

    void closed(const mask::Analysis& a) { statements_.push_back(line("return [" + list(a.ranges) + "]")); }

    /// Tiles of every step-th key, numbered from where the dense ones end, and these.
    void strided(const mask::Analysis& dense, const mask::Analysis& sparse) {
        const auto& s = *w_.strided;
        const std::string near = list(dense.ranges);
        offset_ = let("beyond", "cdiv(" + text(keys_) + ", BN)") + " + ";
        all_ = s.keys;
        keys_ = s.count;
        const std::string far = list(sparse.ranges);
        statements_.push_back(line("return [" + far + ", " + near + "]"));
    }

    void classified(const mask::Analysis& a);
    void all_masked() { statements_.push_back(line("return [(0, cdiv(" + text(keys_) + ", BN), True)]")); }

    std::vector<cuir::Statement> statements_;

private:
    std::string list(const std::vector<mask::Analysis::Range>& ranges) {
        std::string list, before; // tiles below `before` are listed already
        for (const auto& r : ranges) {
            const std::string end = let("some", clamped(r.end)), begin = clamped(r.begin);
            std::string low = "0", high = "cdiv(" + end + ", BN)";
            if (begin != "0" || !before.empty()) {
                const std::string least = begin == "0" ? begin : let("least", begin),
                                  tile = begin == "0" ? begin : least + " // BN";
                low = tile;
                if (before.empty()) {
                    high = let("high", "maximum(" + high + ", " + tile + ")");
                } else { // an empty range may lie anywhere
                    high = let("high", "where(" + least + " < " + end + ", " + high + ", " + before + ")");
                    low = let("low", "clamp(" + tile + ", " + before + ", " + high + ")");
                }
            } else if (ranges.size() > 1) {
                high = let("high", high);
            }
            std::string here;
            if (r.all_begin && r.all_end) {
                const std::string every = let("every", clamped(r.all_end)), from = clamped(r.all_begin);
                if (low == "0" && from == "0") {
                    here = one(every + " // BN", high, true) + ", " + one("0", every + " // BN", false);
                } else {
                    const std::string first =
                        from == begin && begin == "0"
                            ? low
                            : let("first", "clamp(cdiv(" + from + ", BN), " + low + ", " + high + ")");
                    const std::string last = let("last", "clamp(" + every + " // BN, " + first + ", " + high + ")");
                    here = one(last, high, true) + ", " + one(first, last, false);
                    if (first != low) here += ", " + one(low, first, true);
                }
            } else {
                here = one(low, high, true);
            }
            list = list.empty() ? here : here + ", " + list; // from high to low
            before = high;
        }
        return list;
    }
    std::string clamped(Expr e) {
        if (is_int(e, 0)) return "0";
        if (e == all_) return text(keys_);
        return text(call("clamp", {local_.writer.write(e), small(0), keys_}));
    }
    std::string let(const char* stem, const std::string& value) {
        std::string n = w_.launch.fresh(stem);
        let_as(n, value);
        return n;
    }
    void let_as(const std::string& n, const std::string& value) { statements_.push_back(line(n + " = " + value)); }
    std::string end_of_keys();
    std::string one(const std::string& begin, const std::string& end, bool masked) const {
        return "(" + offset_ + begin + ", " + offset_ + end + ", " + (masked ? "True" : "False") + ")";
    }
    Work& w_;
    Local local_;
    Expr all_;
    NodePtr keys_;       ///< extent of j here
    std::string offset_; ///< what numbers of tiles begin with
};

/// Bounds of what a mask reads along i or j, for each tile: two tables and the map kernel that fills them. What it
/// reads alike along both has tables of key tiles alone, as long as the longer of the two: a row block's are several of
/// those.
class Bounds {
public:
    Bounds(Work& w, const std::vector<mask::Table>& tables) : w_(w), tables_(tables), made_(tables.size()) {}

    struct Entries {
        std::string least, most;
        bool of_keys; ///< tiles of BN; else of BM
    };

    const Entries& of(std::size_t t) {
        const bool columns = tables_[t].axis == axis::j;
        const Expr value = columns ? tables_[t].value : moved(w_.launch.pool, tables_[t].value, axis::i, axis::j);
        const auto find = [&](int axis, Expr x) {
            return std::find_if(tables_.begin(), tables_.end(),
                                [&](const auto& u) { return u.axis == axis && u.value == x; });
        };
        const auto keys = find(axis::j, value);
        const auto rows = find(axis::i, moved(w_.launch.pool, value, axis::j, axis::i));
        const bool both = keys != tables_.end() && rows != tables_.end();
        auto& out = made_[both ? static_cast<std::size_t>(keys - tables_.begin()) : t];
        if (!out) out = both ? make(*keys, true) : make(tables_[t], false);
        return *out;
    }

private:
    Entries make(const mask::Table& t, bool both) {
        Launch& l = w_.launch;
        const bool columns = t.axis == axis::j;
        const std::string size = columns ? "BN" : "BM";
        Map map(l, "bound_tiles");
        const auto of_class = [](const NodePtr& all, const NodePtr& step) {
            return step ? call("cdiv", {all, step}) : all;
        };
        NodePtr rows = of_class(name("Sq"), w_.row_step);
        const NodePtr queries = rows;
        if (columns) rows = of_class(map.writer.write(w_.most_keys), w_.key_step);
        if (both) rows = call("maximum", {queries, rows});
        std::vector<std::string> variables;
        Nodes extents, all;
        const auto over = [&](int axis, const char* variable, const NodePtr& extent) {
            if ((t.value->free & index_bit(axis)) == 0 && axis != axis::b) return;
            variables.emplace_back(variable);
            extents.push_back(extent);
            all.push_back(extent);
            map.writer.index[axis] = name(variable);
        };
        over(axis::b, "b", name("B"));
        over(axis::h, "h", map.writer.write(l.v.heads));
        variables.emplace_back("n");
        all.push_back(rows); // more than enough: the number of tiles is the kernel's affair
        extents.push_back(call("cdiv", {rows, name(size)}));
        const auto least = table_name("least", all), most = table_name("most", all);
        std::string at;
        for (const auto& v : variables) at += (at.empty() ? "" : ", ") + v;
        const auto value_at = [&](const std::string& position) {
            map.writer.index[t.axis] = parse(position);
            return text(map.writer.write(t.value));
        };
        map.add("low = " + value_at("n * " + size));
        map.add("high = low");
        map.open("for r in range(" + size + "):", [&] {
            map.add("here = " + value_at("minimum(n * " + size + " + r, " + text(rows) + " - 1)"));
            map.add("low = minimum(low, here)");
            map.add("high = maximum(high, here)");
        });
        map.add(least + "[" + at + "] = low");
        map.add(most + "[" + at + "] = high");
        set_constant(map.kernel(), size, w_.kernel.constant(size));
        map.finish(variables, extents);
        return {least, most, columns};
    }

    std::string table_name(const char* stem, const Nodes& extents) {
        return w_.launch.workspace[static_cast<std::size_t>(w_.launch.allocate(stem, extents, DType::I32))];
    }
    Work& w_;
    const std::vector<mask::Table>& tables_;
    std::vector<std::optional<Entries>> made_;
};

/// What keep says without its conditions on data of a position: it follows from keep.
Expr without_data(ExprPool& pool, Expr keep) {
    if (keep->kind == Kind::And || keep->kind == Kind::Or) {
        std::vector<Expr> args;
        for (const Expr a : keep->args) args.push_back(without_data(pool, a));
        return pool.with_args(keep, std::move(args));
    }
    const bool data = contains(keep, [](Expr x) {
        return x->kind == Kind::Table || x->kind == Kind::Reduce ||
               (x->kind == Kind::Load && (x->free & (index_bit(axis::i) | index_bit(axis::j))) != 0);
    });
    return data ? pool.boolean(true) : keep;
}

} // namespace

/// The class of each tile, where the visible keys of a row are not a few ranges. What is read for the rows is read
/// once, and handed to the def of the class.
void Ranges::classified(const mask::Analysis& a) {
    const Places& at = w_.at;
    Bounds bounds(w_, a.tables);
    std::vector<std::string> of_keys, params = at.tile_params;
    std::vector<std::pair<std::string, std::string>> of_more; // a row block's further key tiles
    std::map<Expr, std::string> names;
    const std::string n = "n", tile_class = w_.launch.fresh("tile_class"), more = w_.launch.fresh("t");
    const std::string &i0 = at.tile_params[2], &i1 = at.tile_params[3];
    const auto own_leaf = local_.writer.leaf;
    local_.writer.index[mask::tile::j0] = name("j0");
    local_.writer.index[mask::tile::j1] = name("j1");
    local_.writer.leaf = [&](Expr e) -> NodePtr {
        if (e->kind != Kind::Load || e->number < mask::kTable) return own_leaf(e);
        if (const auto it = names.find(e); it != names.end()) return name(it->second);
        const auto t = static_cast<std::size_t>(e->number - mask::kTable) / 2;
        const bool least = (e->number - mask::kTable) % 2 == 0, column = e->args.back()->number == mask::tile::j0;
        const auto& entries = bounds.of(t);
        Nodes index;
        if ((a.tables[t].value->free & index_bit(axis::b)) == 0) index.push_back(name(at.tile_params[0]));
        for (std::size_t k = 0; k + 1 < e->args.size(); ++k) index.push_back(local_.writer.write(e->args[k]));
        const auto entry = [&](NodePtr tile) {
            Nodes all = index;
            all.push_back(std::move(tile));
            return text(item(least ? entries.least : entries.most, std::move(all)));
        };
        const std::string x = w_.launch.fresh(std::string(least ? "low" : "high") + (column ? "_key" : "_query"));
        names[e] = x;
        if (column) {
            of_keys.push_back(x + " = " + entry(name(n)));
        } else {
            params.push_back(x);
            let_as(x, entry(binary("//", name(i0), name(entries.of_keys ? "BN" : "BM"))));
            if (entries.of_keys)
                of_more.emplace_back(x,
                                     std::string(least ? "minimum(" : "maximum(") + x + ", " + entry(name(more)) + ")");
        }
        return name(x);
    };
    const std::string some = text(local_.writer.write(a.any)), every = text(local_.writer.write(a.every)),
                      keys = text(keys_);
    if (!of_more.empty()) {
        cuir::Statement loop = line("for " + more + " in range(" + i0 + " // BN + 1, cdiv(" + i1 + ", BN)):");
        for (const auto& [x, value] : of_more) loop.body.push_back(line(x + " = " + value));
        statements_.push_back(std::move(loop));
    }
    std::string given;
    for (const auto& p : params) given += p + ", ";
    cuir::Statement def = line("def " + tile_class + "(" + given + n + "):");
    def.body.push_back(line("j0, j1 = " + n + " * BN, minimum((" + n + " + 1) * BN, " + keys + ")"));
    for (const auto& k : of_keys) def.body.push_back(line(k));
    def.body.push_back(line("some = " + some));
    def.body.push_back(line("every = (" + every + ") & ((" + n + " + 1) * BN <= " + keys + ")"));
    def.body.push_back(line("return some, every"));
    given.resize(given.size() - 2);
    statements_.push_back(line("return classify(cdiv(" + end_of_keys() + ", BN), " + tile_class + ", " + given + ")"));
    const Spot decides = w_.def(at.key_tiles);
    decides.block->insert(decides.block->begin() + static_cast<std::ptrdiff_t>(decides.at), std::move(def));
}

/// No row keeps keys at or beyond it.
std::string Ranges::end_of_keys() {
    const mask::Analysis a = mask::analyse(w_.launch.pool, without_data(w_.launch.pool, w_.part.keep), w_.part.keys);
    std::string out;
    for (const auto& r : a.ranges) {
        const std::string end = clamped(r.end);
        out = out.empty() ? end : "maximum(" + out + ", " + end + ")";
    }
    return out.empty() ? text(keys_) : out;
}

void key_ranges(Work& w) {
    if (is_true(w.part.keep)) return;
    Ranges r(w);
    if (w.strided) {
        r.strided(mask::analyse(w.launch.pool, w.strided->dense, w.part.keys),
                  mask::analyse(w.launch.pool, w.strided->sparse, w.strided->keys));
        w.key_tiles() = std::move(r.statements_);
        return w.applied("key ranges: closed form");
    }
    const mask::Analysis a = mask::analyse(w.launch.pool, w.part.keep, w.part.keys);
    if (!a.ranges.empty()) {
        r.closed(a);
        w.applied("key ranges: closed form");
    } else if (!is_true(a.any) || !is_false(a.every)) {
        r.classified(a);
        w.applied(a.tables.empty() ? "key ranges: classes of tiles" : "key ranges: classes of tiles, by tables");
    } else {
        r.all_masked();
        w.applied("key ranges: all, masked");
    }
    w.key_tiles() = std::move(r.statements_);
}

} // namespace cubridge::ir::transfer
