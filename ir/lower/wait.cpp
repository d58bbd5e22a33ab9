// How many copies and products may stay in flight after a wait: the queues of one agent (copies in, copies out,
// products), followed along the program with the integers that are known and every way that an unknown condition may
// go. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/path.h"
#include "ir/lower/place.h"
#include "ir/lower/slice.h"
#include <algorithm>

namespace cubridge::ir::lower {

using cuir::Kernel;
using cuir::Statement;
using syntax::Kind;
using syntax::Node;
using K = Statement::Kind;

namespace {

constexpr std::size_t kPaths = 64;
constexpr int kSteps = 400'000;
constexpr int kUnknownTrips = 3; ///< of a loop whose length is unknown: none, one, two, three

/// What a wait was found to leave in flight, over all paths, and the registers of the products that it ends.
struct Found {
    std::set<int> copies, stores, products;
    std::set<std::string> tiles, operands;
};

class Follower {
public:
    Follower(const Analysis& analysis, const Slice& slice, Lengths lengths, int entries)
        : analysis_(analysis), slice_(slice), lengths_(lengths), entries_(entries) {}

    std::map<const Statement*, Found> found;

    void role(const Statement& s, const Path& start) { block(s.body, {start}); }

private:
    int item(const Path& p) const { return p.taken > 0 ? p.taken - 1 : item_; }

    std::optional<std::int64_t> value(const Node& n, const Path& p) const { return value_on(n, p, lengths_, item(p)); }

    Place place(const Node& n, const Path& p) const {
        if (n.kind == Kind::Attribute) return place(*n.items[0], p); // x.T
        if (n.kind != Kind::Subscript || slice_.waited.count(storage_of(n)) == 0) return {storage_of(n), {}};
        Place out = place(*n.items[0], p);
        for (const auto& i : parts(n.items[1])) out.index.push_back(value(*i, p));
        return out;
    }

    Paths block(const std::vector<Statement>& body, Paths paths) {
        for (std::size_t k = 0; k < body.size(); ++k) {
            const Statement& s = body[k];
            if (slice_.followed.count(&s) == 0) continue;
            if (++steps_ > kSteps || paths.size() > kPaths)
                located(s, [&] { fail("no_rule", "too many paths lead here to count what is in flight"); });
            Paths stopped, going;
            for (const auto& p : paths) (p.broken ? stopped : going).insert(p);
            if (s.kind == K::If) {
                const bool other = k + 1 < body.size() && body[k + 1].kind == K::Else;
                going = branch(s, other ? &body[k + 1] : nullptr, going);
                if (other) ++k;
            } else if (s.kind == K::For) {
                going = loop(s, going);
            } else if (s.kind == K::While) {
                going = repeat(s, going);
            } else if (s.kind == K::Simple) {
                going = simple(s, going);
            }
            paths = std::move(stopped);
            paths.insert(going.begin(), going.end());
        }
        return paths;
    }

    /// A name that was tested is known from then on.
    void learn(const Node& condition, bool holds, const Scope& scope, Path& p) const {
        if (condition.kind == Kind::Unary && condition.text == "not")
            return learn(*condition.items[0], !holds, scope, p);
        const Variable* v = condition.kind == Kind::Name ? scope.find(condition.text) : nullptr;
        if (v != nullptr && v->type == scalar(Elem::Bool, true) && slice_.names.count(condition.text) != 0)
            p.known[condition.text] = holds ? 1 : 0;
    }

    Paths branch(const Statement& s, const Statement* other, const Paths& paths) {
        const bool deep = matters(s) || (other != nullptr && matters(*other));
        std::vector<std::string> names;
        if (!deep) {
            written_in(s.body, names);
            if (other != nullptr) written_in(other->body, names);
        }
        Paths yes, no, out;
        for (auto p : paths) {
            const Node& condition = *s.node->items[0];
            const auto v = value(condition, p);
            if (v) {
                (*v != 0 ? yes : no).insert(p);
            } else if (deep) {
                for (const bool holds : {true, false}) {
                    Path q = p;
                    learn(condition, holds, *analysis_.of(s).scope, q);
                    (holds ? yes : no).insert(std::move(q));
                }
            } else { // either way the queues are the same
                for (const auto& n : names) p.known.erase(n);
                out.insert(std::move(p));
            }
        }
        for (const auto& p : block(s.body, yes)) out.insert(p);
        for (const auto& p : other != nullptr ? block(other->body, no) : no) out.insert(p);
        return out;
    }

    static Paths without(const Paths& paths, const std::vector<std::string>& names) {
        Paths out;
        for (auto p : paths) {
            for (const auto& n : names) p.known.erase(n);
            out.insert(std::move(p));
        }
        return out;
    }

    static Paths unbroken(const Paths& paths) {
        Paths out;
        for (auto p : paths) {
            p.broken = false;
            out.insert(std::move(p));
        }
        return out;
    }

    Paths loop(const Statement& s, const Paths& paths) {
        const Node& over = *s.node->items[1];
        if (callee(over) == "range") {
            Paths out;
            for (const auto& p : paths) {
                const auto end = counted(s, over, p);
                out.insert(end.begin(), end.end());
            }
            return unbroken(out);
        }
        std::vector<std::string> names = written_by(s);
        if (!matters(s)) {
            written_in(s.body, names);
            return without(paths, names);
        }
        Paths out = paths, now = paths;
        for (item_ = 0; item_ < 2; ++item_) {
            now = without(now, names);
            now = block(s.body, callee(over) == "enumerate" ? with(now, names[0], item_) : now);
            out.insert(now.begin(), now.end());
        }
        item_ = 0;
        return unbroken(out);
    }

    static Paths with(const Paths& paths, const std::string& name, std::int64_t value) {
        Paths out;
        for (auto p : paths) {
            if (!p.broken) p.known[name] = value;
            out.insert(std::move(p));
        }
        return out;
    }

    Paths counted(const Statement& s, const Node& range, const Path& p) {
        const bool two = range.items.size() > 2;
        const auto begin = two ? value(*range.items[1], p) : std::optional<std::int64_t>(0);
        const auto end = value(*range.items[two ? 2 : 1], p);
        const auto step = range.items.size() > 3 ? value(*range.items[3], p) : std::optional<std::int64_t>(1);
        const std::string name = s.node->items[0]->text;
        if (!begin || !end || !step || *step <= 0) return unknown(s, {p}, {name});
        Paths now{p};
        for (auto k = *begin; k < *end; k += *step) now = block(s.body, with(now, name, k));
        return without(now, {name});
    }

    Paths unknown(const Statement& s, Paths paths, std::vector<std::string> names) {
        if (!matters(s)) {
            written_in(s.body, names);
            return without(paths, names);
        }
        Paths out = paths;
        for (int trip = 0; trip < kUnknownTrips; ++trip) {
            paths = block(s.body, without(paths, names));
            out.insert(paths.begin(), paths.end());
        }
        return unbroken(out);
    }

    Paths repeat(const Statement& s, Paths paths) {
        Paths out;
        for (int unknown = 0; !paths.empty() && unknown <= kUnknownTrips;) {
            Paths again;
            bool guessed = false;
            for (const auto& p : paths) {
                const auto v = p.broken ? 0 : value(*s.node->items[0], p);
                guessed = guessed || !v;
                if (!v || *v == 0) out.insert(p);
                if (!v || *v != 0) again.insert(p);
            }
            if (guessed) ++unknown;
            if (++steps_ > kSteps) break;
            paths = block(s.body, again);
        }
        return unbroken(out);
    }

    Paths simple(const Statement& s, const Paths& paths) {
        Paths out;
        for (auto p : paths) {
            if (takes(s)) {
                take(s, std::move(p), out);
                continue;
            }
            step(s, p);
            out.insert(std::move(p));
        }
        return out;
    }

    /// An entry may say anything; after some of them, that there is no more.
    void take(const Statement& s, Path p, Paths& out) {
        assign_on(s, p, lengths_, item(p));
        ++p.taken;
        Paths all{std::move(p)};
        for (const auto& b : analysis_.of(s).results) {
            if (!(b.type == scalar(Elem::Bool, true)) || slice_.names.count(b.name) == 0) continue;
            Paths both;
            for (const auto& q : all)
                for (const std::int64_t v : {0, 1})
                    if (v == 0 || q.taken <= entries_) {
                        Path one = q;
                        one.known[b.name] = v;
                        both.insert(std::move(one));
                    }
            all = std::move(both);
        }
        out.insert(all.begin(), all.end());
    }

    void step(const Statement& s, Path& p) {
        const Node& n = *s.node;
        if (n.kind == Kind::Break) {
            p.broken = true;
        } else if (const Node* copy = effect(s, "copy_async")) {
            if (copy->items.size() != 3 || !copy->keywords.empty()) return;
            const Place to = place(*copy->items[2], p);
            if (in_shared(s, to.storage))
                p.copies.push_back({{to}});
            else
                p.stores.push_back({{place(*copy->items[1], p)}});
        } else if (const Node* product = effect(s, "gemm_async")) {
            Operation o;
            for (const auto& k : product->keywords)
                if (k.name == "out" || (k.name == "add" && product->keywords.size() == 1))
                    o.places.push_back(place(*k.value, p));
            for (std::size_t k = 1; k < product->items.size(); ++k) o.places.push_back(place(*product->items[k], p));
            p.products.push_back(std::move(o));
        } else if (const Node* waits = effect(s, "wait")) {
            if (waits->items.size() == 2) wait(s, place(*waits->items[1], p), p);
        } else if (n.kind == Kind::Assign || n.kind == Kind::AugAssign) {
            assign_on(s, p, lengths_, item(p));
        }
    }

    const Type* type_of(const Statement& s, const std::string& name) const {
        const Variable* v = analysis_.of(s).scope->find(name);
        return v != nullptr ? &v->type : nullptr;
    }

    bool in_shared(const Statement& s, const std::string& name) const {
        const Type* t = type_of(s, name);
        return t != nullptr && (t->form == Form::Cells || t->form == Form::CellColumns);
    }

    /// Ends the youngest operation that touches the place, and all older ones of its queue. They are what is returned.
    static std::vector<Operation> retire(std::vector<Operation>& queue, const Place& of, std::set<int>& counts) {
        for (std::size_t k = queue.size(); k-- > 0;) {
            const auto& places = queue[k].places;
            if (std::none_of(places.begin(), places.end(), [&](const auto& p) { return touch(p, of); })) continue;
            counts.insert(static_cast<int>(queue.size() - 1 - k));
            const auto end = queue.begin() + static_cast<std::ptrdiff_t>(k) + 1;
            std::vector<Operation> out(queue.begin(), end);
            queue.erase(queue.begin(), end);
            return out;
        }
        return {};
    }

    void wait(const Statement& s, const Place& of, Path& p) {
        const Type* t = type_of(s, of.storage);
        if (t == nullptr || (!t->storage && !in_shared(s, of.storage))) return;
        Found& f = found[&s];
        retire(p.copies, of, f.copies);
        retire(p.stores, of, f.stores);
        for (const auto& o : retire(p.products, of, f.products))
            for (std::size_t k = 0; k < o.places.size(); ++k) {
                const Type* x = type_of(s, o.places[k].storage);
                if (x != nullptr && x->storage) (k == 0 ? f.tiles : f.operands).insert(o.places[k].storage);
            }
    }

    const Analysis& analysis_;
    const Slice& slice_;
    const Lengths lengths_;
    const int entries_;
    int item_ = 0;
    int steps_ = 0;
};

int only(const std::set<int>& counts, const char* what) {
    if (counts.size() > 1)
        fail("no_rule", std::string("how many ") + what + " are in flight depends on the path: " +
                            std::to_string(*counts.begin()) + " or " + std::to_string(*counts.rbegin()));
    return counts.empty() ? -1 : *counts.begin();
}

Pending pending(const Statement& s, const Found& f, const Scope& scope) {
    const std::string& storage = storage_of(*s.node->items[0]->items[1]);
    const bool registers = scope.find(storage)->type.storage;
    if (f.copies.empty() && f.stores.empty() && f.products.empty())
        fail("no_rule", std::string("no ") + (registers ? "product" : "copy") + " of this is in flight");
    Pending out{only(f.copies, "copies"), only(f.stores, "stores"), only(f.products, "products"), {}};
    if (registers) out.retired.push_back(storage); // it is read next; the others must not move above the wait
    for (const auto* names : {&f.tiles, &f.operands})
        for (const auto& n : *names)
            if (std::find(out.retired.begin(), out.retired.end(), n) == out.retired.end()) out.retired.push_back(n);
    return out;
}

void merge(Found& into, const Found& f) {
    into.copies.insert(f.copies.begin(), f.copies.end());
    into.stores.insert(f.stores.begin(), f.stores.end());
    into.products.insert(f.products.begin(), f.products.end());
    into.tiles.insert(f.tiles.begin(), f.tiles.end());
    into.operands.insert(f.operands.begin(), f.operands.end());
}

} // namespace

void derive_waits(const Kernel& kernel, Analysis& analysis) {
    std::map<const Statement*, Found> all;
    const auto constants = int_constants(kernel);
    const auto stages = constants.count("ST") != 0 ? std::clamp<std::int64_t>(constants.at("ST"), 1, 8) : 2;
    const std::int64_t most = 2 * stages + 2;
    for (const auto& s : kernel.body) {
        if (s.kind != K::With || !matters(s)) continue;
        const Slice slice(s);
        Path start;
        start.known = constants;
        for (const auto& p : kernel.body)
            if (p.kind == K::Simple) assign_on(p, start, {}, 0);
        for (auto it = start.known.begin(); it != start.known.end();)
            it = slice.names.count(it->first) != 0 ? std::next(it) : start.known.erase(it);
        for (std::int64_t first = 1; first <= most; ++first)
            for (const std::int64_t then : {std::int64_t{1}, std::int64_t{2}, most}) {
                Follower follower(analysis, slice, {first, then}, static_cast<int>(stages) + 2);
                follower.role(s, start);
                for (const auto& [at, found] : follower.found) merge(all[at], found);
            }
    }
    for (const auto& [s, found] : all)
        located(*s, [&, at = s, &f = found] { analysis.facts[at].pending = pending(*at, f, *analysis.of(*at).scope); });
}

} // namespace cubridge::ir::lower
