// Sizes of a case. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/case.h"
#include "ir/expr/evaluate.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace cubridge::runtime {

namespace {

using ir::Expr;
using ir::Fact;
namespace dims = ir::dims;

bool reads_input(Expr e) {
    if (e->kind == ir::Kind::Arg || e->kind == ir::Kind::Load) return true;
    return std::any_of(e->args.begin(), e->args.end(), [](Expr a) { return reads_input(a); });
}

bool holds(const ir::Scalar& scalar, const Fact& f, const Dims& at) {
    if (reads_input(f.left) || reads_input(f.right)) return true;
    const std::int64_t l = size_of(scalar, f.left, at), r = size_of(scalar, f.right, at);
    switch (f.kind) {
    case Fact::Kind::Equal: return l == r;
    case Fact::Kind::AtLeast: return l >= r;
    case Fact::Kind::Divides: return r != 0 && l % r == 0;
    }
    return false;
}

// What a caller's word for an axis stands for; nothing for a word of their own.
std::optional<std::int64_t> named_size(const std::string& word, const Dims& at) {
    if (!word.empty() && word.size() <= 9 && word.find_first_not_of("0123456789") == std::string::npos)
        return std::stoll(word);
    if (word == "S") return std::max(at.at(dims::Sq), at.at(dims::Sk));
    static const std::map<std::string, int> known = {{"B", dims::B},   {"Hq", dims::Hq}, {"Hk", dims::Hk},
                                                     {"Sq", dims::Sq}, {"Sk", dims::Sk}, {"D", dims::D},
                                                     {"Dv", dims::Dv}};
    const auto found = known.find(word);
    if (found == known.end()) return std::nullopt;
    return at.at(found->second);
}

constexpr const char* kLays[] = {"heads", "rows", "padded", "shared by the batch", "shared by heads"};
constexpr const char* kContents[] = {"normal", "loud", "one-hot", "needles", "sloped"};
constexpr const char* kIntegers[] = {"edges", "sorted", "unsorted", "descent"};

} // namespace

std::int64_t size_of(const ir::Scalar& scalar, Expr e, const Dims& at) {
    if (e->kind == ir::Kind::Dim) return at.at(e->number);
    if (ir::is_const(e)) return e->integer;
    ir::Environment env;
    env.dims = at;
    return static_cast<std::int64_t>(ir::Evaluator(*scalar.pool, env).value(e));
}

std::vector<std::int64_t> sizes_of(const ir::Scalar& scalar, const std::vector<Expr>& shape, const Dims& at) {
    std::vector<std::int64_t> out;
    for (const Expr e : shape) out.push_back(size_of(scalar, e, at));
    return out;
}

namespace {

constexpr std::int64_t kMostSummed = 12;

// Axes of captured tensors that a reduction runs over.
std::set<int> summed_axes(const ir::Scalar& scalar) {
    std::set<int> out;
    std::set<Expr> seen;
    const auto visit = [&](auto&& self, Expr e, bool extent) -> void {
        if (extent && e->kind == ir::Kind::Dim && dims::is_input(e->number)) out.insert(e->number);
        if (!extent && !seen.insert(e).second) return;
        for (std::size_t k = 0; k < e->args.size(); ++k)
            self(self, e->args[k], extent || (e->kind == ir::Kind::Reduce && k == 1));
    };
    for (const ir::ScalarOutput& o : scalar.out) visit(visit, o.body, false);
    return out;
}

} // namespace

std::optional<Dims> dims_of(const ir::Specification& specification, const Case& c, const ir::Request& request,
                            std::int64_t sq, std::int64_t sk, std::int64_t free) {
    const ir::Scalar& scalar = specification.scalar();
    Dims at{{dims::B, c.B},
            {dims::Hq, c.Hq},
            {dims::Hk, c.Hk},
            {dims::Hv, c.Hk},
            {dims::Sq, sq},
            {dims::Sk, sk},
            {dims::D, request.head_dim},
            {dims::Dv, request.head_dim_v},
            {dims::kB, c.B},
            {dims::vB, c.B},
            {dims::kD, request.head_dim},
            {dims::vS, sk}};
    const std::set<int> summed = summed_axes(scalar);
    // Heads of v are in its shape where the text ties them to others.
    for (std::size_t k = 0; k < scalar.inputs.size(); ++k) {
        const auto setting = specification.source().settings.find(scalar.inputs[k].name);
        for (std::size_t a = 0; a < scalar.shapes[k].size(); ++a) {
            const Expr e = scalar.shapes[k][a];
            if (e->kind != ir::Kind::Dim || !dims::is_input(e->number) || at.contains(e->number)) continue;
            std::optional<std::int64_t> size;
            if (setting != specification.source().settings.end() && a < setting->second.axes.size())
                size = named_size(setting->second.axes[a], at);
            // what is summed over costs every row its length, what is indexed only room
            at[e->number] = size.value_or(summed.contains(e->number) ? std::min(free, kMostSummed) : free);
        }
    }
    for (const Fact& f : scalar.facts) // axes that a fact determines
        if (f.left->kind == ir::Kind::Dim && dims::is_input(f.left->number) && !reads_input(f.right)) {
            std::int64_t& size = at[f.left->number];
            const std::int64_t other = size_of(scalar, f.right, at);
            if (f.kind == Fact::Kind::Equal) size = other;
            if (f.kind == Fact::Kind::AtLeast) size = std::max(size, other);
            if (f.kind == Fact::Kind::Divides && other > 0) size = (size + other - 1) / other * other;
        }
    for (const Fact& f : scalar.facts)
        if (!holds(scalar, f, at)) return std::nullopt;
    // Sizes that the text ties to each other show in the shapes as well.
    const auto has = [&](std::size_t k, std::vector<std::int64_t> shape) {
        return scalar.shapes[k].empty() || sizes_of(scalar, scalar.shapes[k], at) == shape;
    };
    if (!has(0, {c.B, c.Hq, sq, request.head_dim}) || !has(1, {c.B, c.Hk, sk, request.head_dim})) return std::nullopt;
    return at;
}

std::int64_t free_size(const Case& c) {
    // Small first; an axis that positions index has to be longer, which the text says by refusing.
    const std::int64_t reach = std::max({c.Sq, c.Sk, c.Hq, c.B});
    return c.tame == 0 ? 5 : c.tame == 1 ? reach : reach + 300;
}

std::optional<Dims> dims_of_request(const ir::Specification& specification, const Case& c, const ir::Request& request,
                                    std::int64_t length) {
    const bool tail = request.rows == ir::Request::Rows::Tail;
    return dims_of(specification, c, request, tail ? length : c.Sq, length, free_size(c));
}

std::string Case::text(const Unit& unit) const {
    const ir::Request& r = unit.request;
    std::string lengths;
    for (const std::int64_t n : kv_len) lengths += (lengths.empty() ? "" : ",") + std::to_string(n);
    return fmt::format("case {}: B{} Hq{} Hk{} Sq{} Sk{}{} D{}:{}{}{}{}, q {}, k and v {}, {} values, {} integers{}",
                       number, B, Hq, Hk, Sq, Sk, lengths.empty() ? "" : " lengths " + lengths, r.head_dim,
                       r.head_dim_v, r.rows == ir::Request::Rows::Tail ? " tail" : "",
                       r.empty_rows == ir::Request::EmptyRows::Zero ? " zero" : "",
                       r.lse == ir::Request::Lse::None      ? ""
                       : r.lse == ir::Request::Lse::Natural ? " lse"
                                                            : " log2",
                       kLays[static_cast<int>(q)], kLays[static_cast<int>(kv)], kContents[static_cast<int>(contents)],
                       kIntegers[static_cast<int>(integers)], operands_apart ? ", operands apart" : "");
}

bool set_heads(const ir::Specification& specification, int group, int kv_heads, Case& c) {
    const int own = specification.scalar().heads;
    c.Hk = kv_heads;
    c.Hq = c.Hk * group;
    if (own == 0) return true;
    if (own % group != 0) return false;
    c.Hq = own;
    c.Hk = c.Hq / group;
    return true;
}

bool fits(const ir::Specification& specification, const Case& c, const ir::Request& request) {
    const ir::Scalar& scalar = specification.scalar();
    std::set<std::int64_t> lengths(c.kv_len.begin(), c.kv_len.end());
    lengths.insert(c.Sk);
    return std::all_of(lengths.begin(), lengths.end(), [&](std::int64_t n) {
        const auto at = dims_of_request(specification, c, request, n);
        if (!at) return false;
        const auto& out = scalar.out[0].shape;
        return out.size() == 4 && size_of(scalar, out[3], *at) == request.head_dim_v;
    });
}

} // namespace cubridge::runtime
