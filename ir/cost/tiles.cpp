// SPDX-License-Identifier: Apache-2.0
#include "ir/cost/tiles.h"
#include <algorithm>
#include <functional>

namespace cubridge::ir::cost {
namespace {

using cuir::Statement;
using syntax::Kind;
using syntax::NodePtr;
using Number = std::optional<std::int64_t>;

constexpr std::int64_t kHeads = 4;              // sampled: masks may differ by head
constexpr std::int64_t kMostRows = 4096;        // blocks of rows that are asked about
constexpr std::int64_t kMostTiles = 4096;       // of a row block, where each has to be asked about
constexpr std::int64_t kMostQuestions = 100000; // about single tiles, of one program: 0.2 s

// Scalars that a text holds may be any: what overflows is unknown.
Number sum(std::int64_t a, std::int64_t b) {
    std::int64_t out = 0;
    return __builtin_add_overflow(a, b, &out) ? Number() : out;
}
Number difference(std::int64_t a, std::int64_t b) {
    std::int64_t out = 0;
    return __builtin_sub_overflow(a, b, &out) ? Number() : out;
}
Number product(std::int64_t a, std::int64_t b) {
    std::int64_t out = 0;
    return __builtin_mul_overflow(a, b, &out) ? Number() : out;
}
Number floor_div(std::int64_t a, std::int64_t b) {
    if (b == 0) return std::nullopt;
    if (b == -1) return difference(0, a); // the least integer has no quotient
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
Number modulo(std::int64_t a, std::int64_t b) {
    if (b == 0) return std::nullopt;
    if (b == -1) return 0;
    const std::int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::string callee(const NodePtr& x) {
    return x && x->kind == Kind::Call && x->items[0]->kind == Kind::Name ? x->items[0]->text : "";
}

Number function(const std::string& f, const std::vector<std::int64_t>& x) {
    if (f == "abs" && x.size() == 1) return x[0] < 0 ? difference(0, x[0]) : x[0];
    if (x.size() < 2) return std::nullopt;
    if (f == "minimum") return std::min(x[0], x[1]);
    if (f == "maximum") return std::max(x[0], x[1]);
    if (f == "cdiv" && x[1] > 0) {
        const auto up = sum(x[0], x[1] - 1);
        return up ? floor_div(*up, x[1]) : up;
    }
    if (x.size() == 3 && f == "clamp") return std::max(x[1], std::min(x[0], x[2]));
    return std::nullopt;
}

Number operation(const std::string& op, std::int64_t a, std::int64_t b) {
    if (op == "+") return sum(a, b);
    if (op == "-") return difference(a, b);
    if (op == "*") return product(a, b);
    if (op == "&") return a & b;
    if (op == "|") return a | b;
    if (op == "//") return floor_div(a, b);
    if (op == "%") return modulo(a, b);
    return std::nullopt;
}

Number comparison(const std::string& op, std::int64_t a, std::int64_t b) {
    if (op == "<") return a < b;
    if (op == "<=") return a <= b;
    if (op == ">") return a > b;
    if (op == ">=") return a >= b;
    if (op == "==") return a == b;
    if (op == "!=") return a != b;
    return std::nullopt;
}

/// `a, b = x, y` and `a = x`; what is unknown is forgotten.
void assign(const Statement& s, Numbers& numbers) {
    if (s.kind != Statement::Kind::Simple || s.node->kind != Kind::Assign || s.node->items.size() != 2) return;
    const NodePtr &target = s.node->items[0], &value = s.node->items[1];
    const auto one = [&](const NodePtr& name, Number n) {
        if (name->kind != Kind::Name) return;
        if (n)
            numbers[name->text] = *n;
        else
            numbers.erase(name->text);
    };
    if (target->kind != Kind::Tuple) return one(target, number_of(value, numbers));
    std::vector<Number> values;
    for (std::size_t k = 0; k < target->items.size(); ++k)
        values.push_back(value->kind == Kind::Tuple && k < value->items.size() ? number_of(value->items[k], numbers)
                                                                               : std::nullopt);
    for (std::size_t k = 0; k < target->items.size(); ++k) one(target->items[k], values[k]);
}

/// Forgets what a block assigns.
void forget(const std::vector<Statement>& block, Numbers& numbers) {
    for (const auto& s : block) {
        if (s.kind == Statement::Kind::Simple && s.node->kind == Kind::Assign && s.node->items[0]->kind == Kind::Name)
            numbers.erase(s.node->items[0]->text);
        forget(s.body, numbers);
    }
}

const NodePtr* returned(const Statement& def, Numbers& numbers) {
    for (const auto& s : def.body) {
        if (s.kind == Statement::Kind::Simple && s.node->kind == Kind::Return) return &s.node->items[0];
        assign(s, numbers);
        forget(s.body, numbers);
    }
    return nullptr;
}

using Defs = std::map<std::string, const Statement*>;

class Ranges {
public:
    Ranges(const Defs& defs, const Numbers& numbers, Items& of, std::int64_t& questions)
        : defs_(defs), numbers_(numbers), all_(of), questions_(questions) {}

    Item of(const NodePtr& call) {
        Numbers inside = numbers_;
        const Statement* def = defs_.at(callee(call));
        for (std::size_t k = 0; k < def->node->params.size() && k + 1 < call->items.size(); ++k)
            if (const auto n = number_of(call->items[k + 1], numbers_)) inside[def->node->params[k].name] = *n;
        const NodePtr* value = returned(*def, inside);
        if (value == nullptr) return guess(inside, std::nullopt);
        if (callee(*value) == "classify") return classified(*value, inside);
        Item out;
        for (const auto& range : (*value)->items) {
            const auto begin = number_of(range->items.at(0), inside), end = number_of(range->items.at(1), inside);
            if (!begin || !end) return guess(inside, std::nullopt);
            const double n = std::max(0.0, static_cast<double>(*end) - static_cast<double>(*begin));
            out.tiles += n;
            if (range->items.at(2)->kind != Kind::False) out.masked += n;
        }
        return whole(out);
    }

private:
    /// A row block without keys visits one tile nevertheless.
    static Item whole(Item x) {
        if (x.tiles < 1) x = {1, 1};
        return x;
    }
    /// Of data nothing is known: half the keys, in runs of tiles that need no mask.
    Item guess(const Numbers& inside, Number count) {
        all_.guessed = true;
        const auto bn = inside.at("BN");
        const auto tiles = std::max<std::int64_t>(1, count.value_or((inside.at("Sk") + bn - 1) / bn) + 1) / 2;
        const auto edges = 2 * ((inside.at("BM") + bn - 1) / bn);
        return whole({static_cast<double>(tiles), static_cast<double>(std::min(tiles, edges))});
    }
    /// Each tile is asked about; where they are too many, the answer is that nothing is known of the program: a guess
    /// would be held against what is counted of other tile sizes.
    Item classified(const NodePtr& call, const Numbers& inside) {
        const auto count = number_of(call->items.at(1), inside);
        const auto def = defs_.find(call->items.at(2)->text);
        if (!count || def == defs_.end()) return guess(inside, std::nullopt);
        if (*count > kMostTiles || *count > questions_) {
            questions_ = -1;
            return {1, 1};
        }
        questions_ -= *count;
        const auto& params = def->second->node->params;
        Numbers own = inside;
        for (std::size_t k = 0; k + 1 < params.size() && k + 3 < call->items.size(); ++k)
            if (const auto n = number_of(call->items[k + 3], inside)) own[params[k].name] = *n;
        Item out;
        for (std::int64_t n = 0; n < *count; ++n) {
            own[params.back().name] = n;
            const NodePtr* value = returned(*def->second, own);
            if (value == nullptr || (*value)->items.size() != 2) return guess(inside, count);
            const auto some = number_of((*value)->items[0], own), every = number_of((*value)->items[1], own);
            if (!some || !every) return guess(inside, count);
            out.tiles += *some != 0 ? 1 : 0;
            out.masked += *some != 0 && *every == 0 ? 1 : 0;
        }
        return whole(out);
    }

    const Defs& defs_;
    const Numbers& numbers_;
    Items& all_;
    std::int64_t& questions_; ///< that are left
};

NodePtr inner(const NodePtr& x, const std::function<bool(const NodePtr&)>& is) {
    if (!x || is(x)) return x;
    for (const auto& i : x->items)
        if (const NodePtr found = inner(i, is)) return found;
    return nullptr;
}

/// The loop over work items: the first, where several roles have one.
const Statement* loop_of(const std::vector<Statement>& block, NodePtr& source) {
    for (const auto& s : block) {
        if (s.kind == Statement::Kind::For)
            if ((source = inner(s.node->items[1],
                                [](const NodePtr& x) { return callee(x) == "draw" || callee(x) == "bind"; })))
                return &s;
        if (const Statement* found = loop_of(s.body, source)) return found;
    }
    return nullptr;
}

bool gives_ranges(const Statement& def) {
    return std::any_of(def.body.begin(), def.body.end(), [](const Statement& s) {
        return s.kind == Statement::Kind::Simple && s.node->kind == Kind::Return &&
               (s.node->items[0]->kind == Kind::List || callee(s.node->items[0]) == "classify");
    });
}

/// Where the tiles of an item are decided, in whichever role: of block `m` of rows.
NodePtr decides(const std::vector<Statement>& block, const Defs& defs, const std::string& m) {
    const auto names_m = [&](const NodePtr& x) { return x->kind == Kind::Name && x->text == m; };
    const auto is = [&](const NodePtr& x) {
        const auto def = defs.find(callee(x));
        return def != defs.end() && gives_ranges(*def->second) && inner(x, names_m);
    };
    for (const auto& s : block) {
        if (s.kind == Statement::Kind::Def) continue;
        if (s.kind == Statement::Kind::Simple)
            if (const NodePtr found = inner(s.node, is)) return found;
        if (const NodePtr found = decides(s.body, defs, m)) return found;
    }
    return nullptr;
}

} // namespace

Number number_of(const NodePtr& x, const Numbers& numbers) {
    if (!x) return std::nullopt;
    const auto of = [&](std::size_t k) { return number_of(x->items[k], numbers); };
    switch (x->kind) {
    case Kind::Int: return x->integer;
    case Kind::True: return 1;
    case Kind::False: return 0;
    case Kind::Name: {
        const auto it = numbers.find(x->text);
        return it == numbers.end() ? Number() : it->second;
    }
    case Kind::Subscript: {
        const auto it = numbers.find(x->items[0]->text + "[]");
        return it == numbers.end() ? Number() : it->second;
    }
    case Kind::Unary: {
        const auto a = of(0);
        if (!a) return std::nullopt;
        return x->text == "-" ? difference(0, *a) : *a == 0; // ~ and not: of truth values alone
    }
    case Kind::Binary: {
        const auto a = of(0), b = of(1);
        return a && b ? operation(x->text, *a, *b) : std::nullopt;
    }
    case Kind::BoolOp: {
        std::int64_t out = x->text == "and" ? 1 : 0;
        for (std::size_t k = 0; k < x->items.size(); ++k) {
            const auto a = of(k);
            if (!a) return std::nullopt;
            out = x->text == "and" ? out & (*a != 0 ? 1 : 0) : out | (*a != 0 ? 1 : 0);
        }
        return out;
    }
    case Kind::Compare:
        for (std::size_t k = 0; k + 1 < x->items.size(); ++k) {
            const auto a = of(k), b = of(k + 1);
            const auto c = a && b ? comparison(x->names[k], *a, *b) : std::nullopt;
            if (!c || *c == 0) return c;
        }
        return 1;
    case Kind::Call: {
        if (callee(x) == "where" && x->items.size() == 4) { // what is not chosen may be unknown
            const auto c = of(1);
            return c ? of(*c != 0 ? 2 : 3) : std::nullopt;
        }
        std::vector<std::int64_t> given;
        for (std::size_t k = 1; k < x->items.size(); ++k) {
            const auto a = of(k);
            if (!a) return std::nullopt;
            given.push_back(*a);
        }
        return function(callee(x), given);
    }
    default: return std::nullopt;
    }
}

Numbers known_in(const cuir::Kernel& kernel, Numbers numbers) {
    for (const auto& p : kernel.head.back().node->params)
        if (const auto n = number_of(p.fallback, numbers)) numbers[p.name] = *n;
    for (const auto& s : kernel.body) assign(s, numbers);
    return numbers;
}

std::optional<Items> items_of(const cuir::Kernel& kernel, Numbers numbers) {
    numbers = known_in(kernel, std::move(numbers));
    Defs defs;
    for (const auto& s : kernel.body)
        if (s.kind == Statement::Kind::Def) defs[s.name] = &s;
    NodePtr source;
    const Statement* loop = loop_of(kernel.body, source);
    if (loop == nullptr || !numbers.contains("BN") || !numbers.contains("BM")) return std::nullopt;
    Items out;
    for (const auto& k : source->keywords)
        if (k.name == "order") out.order = k.value->text;
    const std::size_t first = callee(source) == "draw" ? 2 : 1; // after the counter
    const auto batch = number_of(source->items.at(first), numbers),
               heads = number_of(source->items.at(first + 1), numbers),
               rows = number_of(source->items.at(first + 2), numbers);
    NodePtr target = loop->node->items[0]; // b, h, m, or w, (b, h, m)
    if (target->items.size() == 2) target = target->items[1];
    if (!batch || !heads || !rows || *heads <= 0 || *rows <= 0 || *rows > kMostRows || target->items.size() != 3)
        return std::nullopt;
    const NodePtr call = decides(kernel.body, defs, target->items[2]->text);
    if (!call) return std::nullopt;
    out.batch = *batch, out.heads = *heads, out.rows = *rows;
    numbers[target->items[0]->text] = 0;
    const auto samples = std::min(kHeads, *heads);
    std::int64_t questions = kMostQuestions;
    const auto sample = [&](std::int64_t k) {
        numbers[target->items[1]->text] = std::min(*heads - 1, k * *heads / samples + k); // of other residues, too
        std::vector<Item> of_rows;
        for (std::int64_t m = 0; m < *rows && questions >= 0; ++m) {
            numbers[target->items[2]->text] = m;
            of_rows.push_back(Ranges(defs, numbers, out, questions).of(call));
        }
        return of_rows;
    };
    out.of_head = {sample(0)};
    if (samples > 1)
        if (auto last = sample(samples - 1); last != out.of_head[0]) { // heads are not alike
            for (std::int64_t k = 1; k + 1 < samples; ++k) out.of_head.push_back(sample(k));
            out.of_head.push_back(std::move(last));
        }
    return questions < 0 ? std::nullopt : std::optional(std::move(out));
}

} // namespace cubridge::ir::cost
