// Which key tiles are visited, and which of them need the mask. SPDX-License-Identifier: Apache-2.0
#include "ir/mask/mask.h"
#include "ir/transfer/rules.h"
#include "ir/transfer/tables.h"

namespace cubridge::ir::transfer {
namespace {

class Ranges {
public:
    explicit Ranges(Work& w) : w_(w), local_(w, Local::Where::Tiles) {}

    void closed(const std::vector<mask::Analysis::Range>& ranges) {
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
        statements_.push_back("return [" + list + "]");
    }

    void classified(const mask::Analysis& a);

    std::vector<std::string> statements_;

private:
    std::string clamped(Expr e) {
        if (is_int(e, 0)) return "0";
        if (e == w_.part.keys) return text(w_.keys);
        return text(call("clamp", {local_.writer.write(e), small(0), w_.keys}));
    }
    std::string let(const char* stem, const std::string& value) {
        const std::string n = w_.launch.fresh(stem);
        statements_.push_back(n + " = " + value);
        return n;
    }
    static std::string one(const std::string& begin, const std::string& end, bool masked) {
        return "(" + begin + ", " + end + ", " + (masked ? "True" : "False") + ")";
    }
    Work& w_;
    Local local_;
};

/// Bounds of what a mask reads along i or j, for each tile: two tables and the map kernel that fills them.
class Bounds {
public:
    explicit Bounds(Work& w) : w_(w) {}

    std::pair<std::string, std::string> of(const mask::Table& t) {
        Launch& l = w_.launch;
        const bool columns = t.axis == axis::j;
        const std::string size = columns ? "BN" : "BM";
        Map map(l, "bound_tiles");
        const NodePtr rows = columns ? map.writer.write(w_.part.keys) : name("Sq");
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
            const std::string x = value_at("minimum(n * " + size + " + r, " + text(rows) + " - 1)");
            map.add("low = minimum(low, " + x + ")");
            map.add("high = maximum(high, " + x + ")");
        });
        map.add(least + "[" + at + "] = low");
        map.add(most + "[" + at + "] = high");
        set_constant(map.kernel(), size, w_.kernel.constant(size));
        map.finish(variables, extents);
        return {least, most};
    }

private:
    std::string table_name(const char* stem, const Nodes& extents) {
        return w_.launch.workspace[static_cast<std::size_t>(w_.launch.allocate(stem, extents, DType::I32))];
    }
    Work& w_;
};

} // namespace

/// The class of each tile, where the visible keys of a row are not a few ranges.
void Ranges::classified(const mask::Analysis& a) {
    const Places& at = w_.at;
    std::map<std::size_t, std::pair<std::string, std::string>> tables;
    std::vector<std::string> bounds; // statements
    std::map<Expr, std::string> bound_names;
    const std::string n = "n", tile_class = w_.launch.fresh("tile_class");
    const auto own_leaf = local_.writer.leaf;
    local_.writer.index[mask::tile::j0] = name("j0");
    local_.writer.index[mask::tile::j1] = name("j1");
    local_.writer.leaf = [&](Expr e) -> NodePtr {
        if (e->kind != Kind::Load || e->number < mask::kTable) return own_leaf(e);
        const auto t = static_cast<std::size_t>(e->number - mask::kTable) / 2;
        if (tables.count(t) == 0) tables[t] = Bounds(w_).of(a.tables.at(t));
        Nodes index;
        if ((a.tables[t].value->free & index_bit(axis::b)) == 0) index.push_back(name(at.tile_params[0]));
        for (std::size_t k = 0; k + 1 < e->args.size(); ++k) index.push_back(local_.writer.write(e->args[k]));
        const bool column = e->args.back()->number == mask::tile::j0;
        index.push_back(column ? name(n) : binary("//", name(at.tile_params[2]), name("BM")));
        const bool least = (e->number - mask::kTable) % 2 == 0;
        if (bound_names.count(e) == 0) {
            bound_names[e] = w_.launch.fresh(std::string(least ? "low" : "high") + (column ? "_key" : "_query"));
            bounds.push_back(bound_names[e] + " = " +
                             text(item(least ? tables[t].first : tables[t].second, std::move(index))));
        }
        return name(bound_names[e]);
    };
    const std::string some = text(local_.writer.write(a.any)), every = text(local_.writer.write(a.every)),
                      keys = text(w_.keys);
    std::string params;
    for (const auto& p : at.tile_params) params += p + ", ";
    cuir::Statement def = line("def " + tile_class + "(" + params + n + "):");
    def.body.push_back(line("j0, j1 = " + n + " * BN, minimum((" + n + " + 1) * BN, " + keys + ")"));
    for (const auto& b : bounds) def.body.push_back(line(b));
    def.body.push_back(line("some = " + some));
    def.body.push_back(line("every = (" + every + ") & ((" + n + " + 1) * BN <= " + keys + ")"));
    def.body.push_back(line("return some, every"));
    params.resize(params.size() - 2);
    statements_.push_back("return classify(cdiv(" + keys + ", BN), " + tile_class + ", " + params + ")");
    const Spot decides = w_.def(at.key_tiles);
    decides.block->insert(decides.block->begin() + static_cast<std::ptrdiff_t>(decides.at), std::move(def));
}

void key_ranges(Work& w) {
    if (is_true(w.part.keep)) return;
    const mask::Analysis a = mask::analyse(w.launch.pool, w.part.keep, w.part.keys);
    Ranges r(w);
    if (!a.ranges.empty()) {
        r.closed(a.ranges);
        w.applied("key ranges: closed form");
    } else if (!is_true(a.any) || !is_false(a.every)) {
        r.classified(a);
        w.applied(a.tables.empty() ? "key ranges: classes of tiles" : "key ranges: classes of tiles, by tables");
    } else {
        r.statements_.push_back("return [(0, cdiv(" + text(w.keys) + ", BN), True)]");
        w.applied("key ranges: all, masked");
    }
    auto& body = w.key_tiles();
    body.clear();
    for (const auto& s : r.statements_) body.push_back(line(s));
}

} // namespace cubridge::ir::transfer
