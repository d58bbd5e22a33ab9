// Facts, heads, rows: what a request and its facts make of the text's sizes. SPDX-License-Identifier: Apache-2.0
#include "ir/generic/prepare.h"
#include "cubridge/ir/kernel_abi.h"
#include "ir/generic/import.h"
#include <cmath>

namespace cubridge::ir::generic {
namespace {

using launch::Code;
using launch::Condition;
using launch::Size;

/// c of `c * unit`; nothing for any other form.
std::optional<std::int64_t> multiple_of(Expr e, Expr unit) {
    if (e == unit) return 1;
    if (e->kind == Kind::Sum && e->integer == 0 && e->args.size() == 1 && e->args[0] == unit && e->icoef[0] > 0)
        return e->icoef[0];
    return std::nullopt;
}

Expr heads_of_v(const Scalar& s) {
    for (const auto& f : s.facts) {
        if (f.kind != Fact::Kind::Equal) continue;
        if (f.left->kind == Kind::Dim && f.left->number == dims::Hv) return f.right;
        if (f.right->kind == Kind::Dim && f.right->number == dims::Hv) return f.left;
    }
    return nullptr;
}

/// The smallest unit of which q, k, v and o all have whole numbers of heads.
Heads find_heads(const Scalar& s, const Request& r) {
    const Expr out = s.out.at(0).shape.at(1), v = heads_of_v(s);
    for (std::int64_t k = 1; k <= 64; ++k) {
        ExprPool scratch;
        const Expr unit = scratch.dim(kUnits);
        const Heads h{.q = k * r.group, .k = k, .v = k, .out = k};
        Import import(scratch, s, r, h, HeadsAre::Units);
        const auto count = [&](Expr e) -> std::optional<std::int64_t> {
            const Expr here = import(e);
            if (is_const(here) && r.heads > 0 && here->integer * h.q % r.heads == 0)
                return here->integer * h.q / r.heads;
            return multiple_of(here, unit);
        };
        const auto outs = count(out), vs = v != nullptr ? count(v) : std::optional(k);
        if (outs && vs && *outs > 0 && *vs > 0) return {.q = h.q, .k = k, .v = *vs, .out = *outs};
    }
    fail("unsupported", "the number of output heads is no multiple of the number of key heads", {},
         "give the number of heads, if the text computes with it");
}

std::string described(const Fact& f) {
    return f.text.empty() ? std::string("a condition of the text") : f.text;
}

[[noreturn]] void contradiction(const Fact& f) {
    fail("domain", "the request contradicts '" + described(f) + "', which the text demands", f.span);
}

bool reads_input(Expr e) {
    if (e->kind == Kind::Arg || e->kind == Kind::Load) return true;
    for (const Expr a : e->args)
        if (reads_input(a)) return true;
    return false;
}

void add_condition(Prepared& p, const Fact& f, Import& global, Import& local) {
    // What hangs on an input's value may lie on the device: PyTorch would raise, a kernel clamps its indices.
    if (reads_input(f.left) || reads_input(f.right)) return;
    // Where heads are given, what the text computes with their number is decided here, for the whole model.
    const Expr l = global(f.left), r = global(f.right);
    const Expr distance = p.pool->sub(l, r);
    switch (f.kind) {
    case Fact::Kind::Equal:
        if (is_int(distance, 0)) return;
        // There is at least one head: a multiple of the units is never 0.
        if (is_const(distance) || multiple_of(distance, p.pool->dim(kUnits)) ||
            multiple_of(p.pool->sub(r, l), p.pool->dim(kUnits)))
            contradiction(f);
        break;
    case Fact::Kind::AtLeast:
        if (is_const(distance)) {
            if (distance->integer < 0) contradiction(f);
            return;
        }
        break;
    case Fact::Kind::Divides: {
        const Expr rest = p.pool->apply(Op::Mod, l, r);
        if (is_int(rest, 0)) return;
        if (is_const(rest)) contradiction(f);
        break;
    }
    }
    const auto left = code(p, local(f.left)), right = code(p, local(f.right));
    if (!left || !right) fail("unsupported", "'" + described(f) + "' can't be checked at a launch", f.span);
    p.plan.conditions.push_back({static_cast<Condition::Kind>(f.kind), *left, *right, described(f)});
}

void add_head_conditions(Prepared& p) {
    const auto divides = [&](Size size, std::int64_t by, const char* what) {
        if (by > 1)
            p.plan.conditions.push_back({Condition::Kind::Divides, Code::size(size), Code::constant(by),
                                         std::string(what) + " % " + std::to_string(by) + " == 0"});
    };
    divides(Size::HeadsKv, p.heads.k, "heads_kv");
    divides(Size::HeadBegin, p.heads.q, "head_begin");
    p.plan.conditions.push_back(
        {Condition::Kind::Equal, Code::size(Size::HeadsQ),
         Code::binary(Code::Do::Mul, Code::size(Size::HeadsKv), Code::constant(p.request.group)),
         "Hq == " + std::to_string(p.request.group) + " * Hk"});
}

/// Whether `e` reduces over heads: such a text needs all heads of the model on one rank.
bool reduces_heads(Expr root) {
    std::unordered_map<Expr, bool> done;
    const auto has_units = [&](auto&& self, Expr e) -> bool {
        if (e->kind == Kind::Dim) return e->number == kUnits;
        for (const Expr a : e->args)
            if (self(self, a)) return true;
        return false;
    };
    const auto visit = [&](auto&& self, Expr e) -> bool {
        if (e->height == 0) return false;
        if (const auto it = done.find(e); it != done.end()) return it->second;
        bool found = e->kind == Kind::Reduce && has_units(has_units, e->args[1]);
        for (const Expr a : e->args) found = found || self(self, a);
        done.emplace(e, found);
        return found;
    };
    return visit(visit, root);
}

void add_operands(Prepared& p, const Scalar& s) {
    Import import(*p.pool, s, p.request, p.heads, HeadsAre::FromZero);
    for (std::size_t x = 0; x < s.inputs.size(); ++x) {
        const Input& in = s.inputs[x];
        if (p.slot[x] < 0) continue;
        launch::Operand o;
        o.name = in.name;
        o.dtype = in.dtype;
        o.rank = in.rank;
        o.bound = in.fate == Input::Fate::Bound;
        o.value = o.bound ? in.value : 0;
        for (int a = 0; a < in.rank; ++a) {
            Code least = Code::constant(0);
            if (x < s.shapes.size() && static_cast<std::size_t>(a) < s.shapes[x].size()) {
                const Expr size = import(s.shapes[x][static_cast<std::size_t>(a)]);
                const bool itself = size->kind == Kind::Dim && dims::is_input(size->number);
                if (const auto high = itself ? std::nullopt : range(p, size).high) least = *high;
            }
            o.least.push_back(std::move(least));
        }
        p.plan.operands.push_back(std::move(o));
    }
}

void check(const Scalar& s, const Request& r) {
    if (r.head_dim <= 0 || r.head_dim_v <= 0 || r.group <= 0 || r.heads < 0)
        fail("domain", "a request needs a head dim, and no negative sizes");
    if (r.heads % r.group != 0) fail("domain", "the number of heads is no multiple of the group");
    if (s.heads != 0 && r.heads != s.heads)
        fail("domain", "the text computes with " + std::to_string(s.heads) + " query heads, the request says " +
                           std::to_string(r.heads));
    if (s.out.empty() || s.out[0].shape.size() != 4) fail("unsupported", "the text's output has no four axes");
    if (r.layout == Request::Layout::Paged && r.page_size <= 0) fail("domain", "a paged request needs a page size");
}

} // namespace

Prepared prepare(const Scalar& scalar, const Request& request, const Options& options) {
    check(scalar, request);
    Prepared p;
    p.pool = std::make_shared<ExprPool>();
    p.request = request;
    p.options = options;
    p.inputs = scalar.inputs;
    p.slot.assign(scalar.inputs.size(), -1);
    int slots = 0;
    for (std::size_t x = 3; x < scalar.inputs.size(); ++x) {
        const Input& in = scalar.inputs[x];
        if (in.fate != Input::Fate::Operand && in.fate != Input::Fate::Bound) continue;
        if (in.rank > 4) fail("limit", "'" + in.name + "' has more than four axes", in.span);
        p.slot[x] = slots++;
    }
    if (slots > abi::kMaxOperands)
        fail("limit", "the text has " + std::to_string(slots) + " operands; a kernel takes 24", {},
             "stack operands of one type into one tensor");
    p.heads = find_heads(scalar, request);
    Import text(*p.pool, scalar, request, p.heads, request.heads > 0 ? HeadsAre::Given : HeadsAre::Units);
    Import local(*p.pool, scalar, request, p.heads, HeadsAre::Units);

    const Expr columns = text(scalar.out[0].shape[3]);
    if (!is_int(columns, request.head_dim_v))
        fail("domain", "the output has " + debug_text(columns) + " columns, the request says head_dim_v " +
                           std::to_string(request.head_dim_v));
    for (const auto& f : scalar.facts) add_condition(p, f, text, local);
    add_head_conditions(p);
    add_operands(p, scalar);

    p.out = text(scalar.out[0].body);
    if (request.lse != Request::Lse::None) {
        const Expr lse = scalar.out.size() > 1 ? scalar.out[1].body : options.lse;
        if (lse == nullptr) fail("unsupported", "the variant has no log-sum-exp that could be returned");
        p.lse = text(lse);
        p.plan.writes_lse = true;
    }
    if (request.empty_rows == Request::EmptyRows::Zero) {
        if (options.row_is_empty == nullptr)
            fail("unsupported", "empty rows can't be set to zero: the text doesn't show which rows keep no key");
        p.empty = text(options.row_is_empty);
    }
    if (reduces_heads(local(scalar.out[0].body)))
        p.plan.conditions.push_back(
            {Condition::Kind::Equal, Code::size(Size::HeadBegin), Code::constant(0), "head_begin == 0"});
    return p;
}

} // namespace cubridge::ir::generic
