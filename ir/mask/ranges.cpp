// One interval of keys a conjunction, from the least begin of its rows to their greatest end; then the union of these,
// in an order that holds for every value, so that each later one can begin where the earlier ones end.
// SPDX-License-Identifier: Apache-2.0
#include "ir/mask/ranges.h"
#include "ir/mask/conjunction.h"
#include "ir/mask/extent.h"
#include "ir/mask/sign.h"
#include <algorithm>

namespace cubridge::ir::mask {

namespace {

constexpr std::size_t kMaxRanges = 4;

using Range = Analysis::Range;

struct Piece {
    Range range;
    bool from_first = false; ///< begins with the first key
};

class Union {
public:
    Union(ExprPool& pool, Expr keys) : p_(pool), keys_(keys) {}

    /// Nothing: a bound hangs on data of the tile.
    std::optional<Piece> piece(const Conjunction& c);
    bool join(Piece& a, const Piece& b);
    bool is_before(const Piece& a, const Piece& b) {
        return a.from_first || never_negative(p_, p_.sub(b.range.begin, a.range.begin));
    }
    /// What of `b` is not in `a`, which is before it.
    void clip(Range& b, const Range& a);
    void longer_all(Range& a, const Range& b);

private:
    Expr most(Expr a, Expr b) { return p_.extremum(Kind::Max, {a, b}); }
    Expr least(Expr a, Expr b) { return p_.extremum(Kind::Min, {a, b}); }

    ExprPool& p_;
    Expr keys_;
};

std::optional<Piece> Union::piece(const Conjunction& c) {
    std::vector<Table> tables;
    Extent extent(p_, tables);
    Range r;
    for (const Expr e : c.lower) { // every row of a tile keeps from the greatest lower bound, some row from the least
        const Ends x = extent.ends(e);
        if (!x.low || !x.high) return {};
        r.begin = r.begin ? most(r.begin, x.low) : x.low;
        r.all_begin = r.all_begin ? most(r.all_begin, x.high) : x.high;
    }
    for (const Expr e : c.upper) {
        const Ends x = extent.ends(e);
        if (!x.low || !x.high) return {};
        r.end = r.end ? least(r.end, x.high) : x.high;
        r.all_end = r.all_end ? least(r.all_end, x.low) : x.low;
    }
    const bool from_first = !r.begin;
    if (from_first) r.begin = r.all_begin = p_.integer(0);
    if (!r.end) r.end = r.all_end = keys_;
    Truth rows{p_.boolean(true), p_.boolean(true)};
    for (const Expr e : c.rows) {
        const Truth t = extent.truth(e);
        rows.any = p_.logical_and(rows.any, t.any);
        rows.every = p_.logical_and(rows.every, t.every);
    }
    if (!tables.empty()) return {};
    r.end = p_.select(rows.any, r.end, r.begin);
    r.all_end = p_.select(rows.every, r.all_end, r.all_begin);
    if (c.sparse || is_false(rows.every)) r.all_begin = r.all_end = nullptr;
    return Piece{r, from_first};
}

// a's `all` becomes that of a or b, whichever surely holds more.
void Union::longer_all(Range& a, const Range& b) {
    if (!b.all_begin) return;
    if (!a.all_begin) {
        a.all_begin = b.all_begin;
        a.all_end = b.all_end;
    } else if (a.all_begin == b.all_begin) {
        a.all_end = most(a.all_end, b.all_end);
    } else if (a.all_end == b.all_end) {
        a.all_begin = least(a.all_begin, b.all_begin);
    } else {
        const Expr of_b = p_.sub(b.all_end, b.all_begin);
        const Expr longer = p_.apply(Op::Ge, p_.sub(a.all_end, a.all_begin), of_b);
        a.all_begin = p_.select(longer, a.all_begin, b.all_begin);
        a.all_end = p_.select(longer, a.all_end, b.all_end);
    }
}

// a becomes the union of both where that is one interval, whatever the values.
bool Union::join(Piece& a, const Piece& b) {
    Range& x = a.range;
    const Range& y = b.range;
    const auto at_most = [&](Expr u, Expr v) { return never_negative(p_, p_.sub(v, u)); };
    const bool inside = (a.from_first || at_most(x.begin, y.begin)) && at_most(y.end, x.end);
    if (x.begin == y.begin) {
        x.end = most(x.end, y.end);
    } else if (x.end == y.end) {
        x.begin = least(x.begin, y.begin);
        a.from_first = a.from_first || b.from_first;
    } else if (!inside) {
        return false;
    }
    longer_all(x, y);
    return true;
}

void Union::clip(Range& b, const Range& a) {
    b.begin = most(b.begin, a.end);
    if (b.all_begin) b.all_begin = most(b.all_begin, a.end);
}

} // namespace

std::vector<Range> closed_form(ExprPool& pool, Expr keep, Expr keys) {
    const auto form = conjunctions(pool, keep);
    if (!form) return {};
    const Expr zero = pool.integer(0);
    if (form->empty()) return {Range{zero, zero, zero, zero}};
    Union u(pool, keys);
    std::vector<Piece> pieces;
    for (const Conjunction& c : *form) {
        auto one = u.piece(c);
        if (!one) return {};
        pieces.push_back(*one);
        for (bool joined = true; joined;) { // what grew may now join with another
            joined = false;
            for (std::size_t k = 0; k < pieces.size() && !joined; ++k)
                for (std::size_t m = 0; m < pieces.size() && !joined; ++m) {
                    if (k == m || !u.join(pieces[k], pieces[m])) continue;
                    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(m));
                    joined = true;
                }
        }
    }
    if (pieces.size() > kMaxRanges) return {};
    std::vector<Range> out;
    while (!pieces.empty()) {
        const auto first = std::find_if(pieces.begin(), pieces.end(), [&](const Piece& a) {
            return std::all_of(pieces.begin(), pieces.end(), [&](const Piece& b) { return u.is_before(a, b); });
        });
        if (first == pieces.end()) return {};
        Range r = first->range;
        pieces.erase(first);
        for (const Range& earlier : out) u.clip(r, earlier);
        out.push_back(r);
    }
    return out;
}

} // namespace cubridge::ir::mask
