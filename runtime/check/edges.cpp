// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/edges.h"
#include "ir/spec/variant.h"
#include <algorithm>
#include <set>

namespace cubridge::runtime {
namespace {

constexpr std::size_t kMostNumbers = 4;
constexpr std::int64_t kLong = 8192;   // keys at which errors of one key hide best
constexpr std::int64_t kFew = 1 << 19; // elements of q, k and v that a case of two requests or KV heads may have

void collect(ir::Expr e, std::set<ir::Expr>& seen, std::set<std::int64_t>& out) {
    if (e == nullptr || !seen.insert(e).second) return;
    const auto add = [&](std::int64_t n) {
        n = n < 0 ? -n : n;
        if (n >= 2 && n <= 4096) out.insert(n);
    };
    if (e->type == ir::Type::Int && ir::is_const(e)) add(e->integer);
    if (e->kind == ir::Kind::Sum && e->type == ir::Type::Int) add(e->integer);
    for (const ir::Expr a : e->args) collect(a, seen, out);
}

/// Sizes of cases without what takes turns.
struct Sizes {
    std::int64_t rows, keys;
};

std::vector<Sizes> sizes_around(const Tiles& t, const std::vector<std::int64_t>& numbers) {
    const std::int64_t m = t.rows, n = t.keys, all = t.keys * t.stages;
    // The first four are the CPU's, where they are small enough.
    std::vector<Sizes> out = {{33, 65}, {65, 33}, {1, std::min<std::int64_t>(n + 1, 127)}, {17, 1}};
    for (const auto& [rows, keys] : {Sizes{m, n},
                                     {m - 1, n - 1},
                                     {m + 1, n + 1},
                                     {1, all},
                                     {m + 1, all + 1},
                                     {2 * m + 1, 2 * all + 1},
                                     {m, all - 1},
                                     {3 * m, 3 * n + n / 2},
                                     {2 * m, n / 2},
                                     {m + n + 1, m + n + 1}})
        out.push_back({std::max<std::int64_t>(rows, 1), std::max<std::int64_t>(keys, 1)});
    out.push_back({17, kLong + n / 2 + 1});
    for (const std::int64_t x : numbers) {
        out.push_back({x + 1, x + 1});
        out.push_back({std::min(x + n + 1, m), x + n + 1});
    }
    return out;
}

} // namespace

std::vector<std::int64_t> numbers_of(const ir::Specification& specification) {
    std::set<std::int64_t> out;
    std::set<ir::Expr> seen;
    if (const auto* v = specification.variant())
        for (const auto& p : v->parts)
            for (const ir::Expr e : {p.keep, p.score, p.weights.value}) collect(e, seen, out);
    for (const auto& input : specification.inputs())
        if (input.fate == ir::Input::Fate::Bound && input.value >= 2 && input.value <= 4096)
            out.insert(static_cast<std::int64_t>(input.value));
    return {out.begin(), out.end()};
}

std::vector<Case> cases_around(const ir::Specification& specification, const ir::Request& request, const Tiles& tiles,
                               std::uint64_t seed) {
    auto numbers = numbers_of(specification);
    if (numbers.size() > kMostNumbers) { // the smallest, the largest, and some between
        std::vector<std::int64_t> some;
        for (std::size_t k = 0; k < kMostNumbers; ++k)
            some.push_back(numbers[k * (numbers.size() - 1) / (kMostNumbers - 1)]);
        numbers = std::move(some);
    }
    std::vector<Case> out;
    auto turn = static_cast<std::int64_t>(seed % 64);
    const auto add = [&](Case c) {
        const auto in_turn = [&](auto count, std::int64_t offset) {
            return static_cast<decltype(count)>((turn + offset) % static_cast<std::int64_t>(count));
        };
        c.q = in_turn(Lay::Count, 0);
        c.kv = in_turn(Lay::Count, turn / 5);
        c.contents = c.Sk > kLong ? Contents::Needles : in_turn(Contents::Count, 0);
        c.integers = in_turn(Integers::Count, turn / 4);
        c.operands_apart = turn % 3 == 1;
        c.held = turn % 4 != 3;
        const auto lengths = c.kv_len;
        for (const bool own : {true, false}) { // with lengths of their own where the text allows them
            if (!own && lengths.empty()) return false;
            c.kv_len = own ? lengths : std::vector<std::int64_t>();
            if (!fits(specification, c, request)) continue;
            c.number = static_cast<int>(out.size()) + 1;
            out.push_back(c);
            ++turn;
            return true;
        }
        return false;
    };
    // A GPU does all of this in a millisecond; what takes time is laying it out here. So: one request and one KV head
    // where they are large.
    const auto elements = [&](const Case& c) {
        return c.B * (c.Hq * c.Sq + 2 * c.Hk * c.Sk) * std::max(request.head_dim, request.head_dim_v);
    };
    for (const auto& [rows, keys] : sizes_around(tiles, numbers)) {
        bool done = false;
        for (int wide = 0; wide < 4 && !done; ++wide) {
            Case c;
            c.B = 1 + turn % 3;
            const int heads_kv = wide == 0 ? 1 + static_cast<int>(turn % 2) : wide;
            if (!set_heads(specification, request.group, heads_kv, c)) return out;
            for (const auto& [sq, sk] : {Sizes{rows, keys}, {keys, keys}, {rows, rows}, {std::min(rows, keys), keys}}) {
                c.Sq = sq;
                c.Sk = sk;
                if (wide == 0 && heads_kv > 1 && elements(c) > kFew)
                    (void)set_heads(specification, request.group, 1, c);
                while (c.B > 1 && elements(c) > kFew) --c.B;
                c.kv_len.clear();
                if (turn % 2 == 1)
                    for (std::int64_t b = 0; b < c.B; ++b)
                        c.kv_len.push_back(b == 0   ? std::max<std::int64_t>(1, sk - 1)
                                           : b == 1 ? (turn % 4 == 1 ? 0 : sk)
                                                    : (sk + 1) / 2);
                c.processors = turn % 3 == 0 ? 0 : static_cast<int>(1 + turn % 4);
                done = add(c);
                if (done) break;
            }
        }
    }
    return out;
}

} // namespace cubridge::runtime
