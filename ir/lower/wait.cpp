// How many copies may stay in flight after a wait: the copy-in queue of one agent, followed along the program with the
// integers that are known (constants, loop counters) and every way that an unknown condition may go.
// SPDX-License-Identifier: Apache-2.0
#include "ir/lower/expression.h"
#include "ir/lower/facts.h"
#include "ir/lower/place.h"
#include <algorithm>
#include <set>

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

/// A copy in flight: the cells that it writes, a dimension nothing where its index is unknown.
struct Copy {
    std::string storage;
    std::vector<std::optional<std::int64_t>> index;
    auto operator<=>(const Copy&) const = default;
};

struct Path {
    std::map<std::string, std::int64_t> known;
    std::vector<Copy> queue; ///< oldest first
    bool broken = false;     ///< on its way out of the innermost loop
    auto operator<=>(const Path&) const = default;
};

using Paths = std::set<Path>;

bool touch(const Copy& a, const Copy& b) {
    if (a.storage != b.storage) return false;
    for (std::size_t k = 0; k < std::min(a.index.size(), b.index.size()); ++k)
        if (a.index[k] && b.index[k] && *a.index[k] != *b.index[k]) return false;
    return true;
}

class Follower {
public:
    Follower(const Analysis& analysis, std::map<std::string, std::int64_t> constants, std::int64_t first,
             std::int64_t then)
        : analysis_(analysis), constants_(std::move(constants)), lengths_{first, then} {}

    std::map<const Statement*, std::set<int>> counts;

    void role(const Statement& s) {
        Path start;
        start.known = constants_;
        block(s.body, {start});
    }

private:
    std::optional<std::int64_t> value(const Node& n, const Path& p) const {
        if (n.kind == Kind::True || n.kind == Kind::False) return n.kind == Kind::True ? 1 : 0;
        if (n.kind == Kind::Call && callee(n) == "length") return lengths_[item_];
        if (n.kind == Kind::Unary && n.text == "not") {
            const auto v = value(*n.items[0], p);
            return v ? std::optional<std::int64_t>(*v == 0) : std::nullopt;
        }
        if (n.kind == Kind::BoolOp) {
            const std::int64_t decides = n.text == "or";
            bool all = true;
            for (const auto& i : n.items) {
                const auto v = value(*i, p);
                if (v && (*v != 0) == (decides != 0)) return decides;
                all = all && v;
            }
            return all ? std::optional<std::int64_t>(1 - decides) : std::nullopt;
        }
        if (n.kind == Kind::Compare) {
            for (std::size_t k = 0; k < n.names.size(); ++k) {
                const auto a = value(*n.items[k], p), b = value(*n.items[k + 1], p);
                if (!a || !b) return std::nullopt;
                const auto& op = n.names[k];
                if (!(op == "<"    ? *a < *b
                      : op == "<=" ? *a <= *b
                      : op == ">"  ? *a > *b
                      : op == ">=" ? *a >= *b
                      : op == "==" ? *a == *b
                                   : *a != *b))
                    return 0;
            }
            return 1;
        }
        if (n.kind == Kind::Binary) { // over what this function knows
            const auto a = value(*n.items[0], p), b = value(*n.items[1], p);
            if (!a || !b) return std::nullopt;
            Node pair = n;
            const auto number = [](std::int64_t v) {
                auto x = std::make_shared<Node>();
                x->kind = Kind::Int;
                x->integer = v;
                return x;
            };
            pair.items = {number(*a), number(*b)};
            return known_int(pair, {});
        }
        if (n.kind == Kind::Call && (callee(n) == "minimum" || callee(n) == "maximum" || callee(n) == "cdiv")) {
            Node copy = n;
            for (std::size_t k = 1; k < n.items.size(); ++k) {
                const auto v = value(*n.items[k], p);
                if (!v) return std::nullopt;
                auto x = std::make_shared<Node>();
                x->kind = Kind::Int;
                x->integer = *v;
                copy.items[k] = x;
            }
            return known_int(copy, {});
        }
        return known_int(n, p.known);
    }

    Copy cell(const Node& n, const Path& p) const {
        if (n.kind != Kind::Subscript) return {n.text, {}};
        Copy out{n.items[0]->text, {}};
        for (const auto& i : parts(n.items[1])) out.index.push_back(value(*i, p));
        return out;
    }

    Paths block(const std::vector<Statement>& body, Paths paths) {
        for (std::size_t k = 0; k < body.size(); ++k) {
            const Statement& s = body[k];
            if (++steps_ > kSteps || paths.size() > kPaths)
                located(s, [&] { fail("no_rule", "too many paths lead here to count the copies in flight"); });
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

    Paths branch(const Statement& s, const Statement* other, const Paths& paths) {
        Paths yes, no;
        for (const auto& p : paths) {
            const auto v = value(*s.node->items[0], p);
            if (!v || *v != 0) yes.insert(p);
            if (!v || *v == 0) no.insert(p);
        }
        Paths out = block(s.body, yes), rest = other != nullptr ? block(other->body, no) : no;
        out.insert(rest.begin(), rest.end());
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
        Paths out = paths, now = paths;
        for (item_ = 0; item_ < 2; ++item_) {
            now = block(s.body, without(now, written_by(s)));
            out.insert(now.begin(), now.end());
        }
        item_ = 0;
        return unbroken(out);
    }

    Paths counted(const Statement& s, const Node& range, const Path& p) {
        const bool two = range.items.size() > 2;
        const auto begin = two ? value(*range.items[1], p) : std::optional<std::int64_t>(0);
        const auto end = value(*range.items[two ? 2 : 1], p);
        const auto step = range.items.size() > 3 ? value(*range.items[3], p) : std::optional<std::int64_t>(1);
        const std::string name = s.node->items[0]->text;
        if (!begin || !end || !step || *step <= 0) return unknown(s, {p}, {name});
        Paths now{p};
        for (auto k = *begin; k < *end; k += *step) {
            Paths with;
            for (auto q : now) {
                if (!q.broken) q.known[name] = k;
                with.insert(std::move(q));
            }
            now = block(s.body, with);
        }
        return without(now, {name});
    }

    Paths unknown(const Statement& s, Paths paths, const std::vector<std::string>& names) {
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
            step(s, p);
            out.insert(std::move(p));
        }
        return out;
    }

    void step(const Statement& s, Path& p) {
        const Node& n = *s.node;
        if (n.kind == Kind::Break) {
            p.broken = true;
        } else if (n.kind == Kind::ExprStmt && callee(*n.items[0]) == "copy_async" && n.items[0]->items.size() == 3 &&
                   n.items[0]->keywords.empty()) {
            p.queue.push_back(cell(*n.items[0]->items[2], p));
        } else if (n.kind == Kind::ExprStmt && callee(*n.items[0]) == "wait" && n.items[0]->items.size() == 2) {
            wait(s, cell(*n.items[0]->items[1], p), p);
        } else if (n.kind == Kind::Assign || n.kind == Kind::AugAssign) {
            assign(s, n, p);
        }
    }

    void assign(const Statement& s, const Node& n, Path& p) {
        std::map<std::string, std::int64_t> next;
        if (n.kind == Kind::AugAssign && n.items[0]->kind == Kind::Name) {
            Node sum = n;
            sum.kind = Kind::Binary;
            if (const auto v = value(sum, p)) next[n.items[0]->text] = *v;
        } else if (n.kind == Kind::Assign) {
            const auto targets = parts(n.items[0]);
            const Node& right = *n.items.back();
            if (callee(right) == "divmod" && targets.size() == 2 && right.items.size() == 3) {
                for (std::size_t k = 0; k < 2; ++k) {
                    Node part = right;
                    part.kind = Kind::Binary;
                    part.text = k == 0 ? "//" : "%";
                    part.items = {right.items[1], right.items[2]};
                    if (const auto v = value(part, p)) next[targets[k]->text] = *v;
                }
            } else if (targets.size() == 1 || (right.kind == Kind::Tuple && right.items.size() == targets.size())) {
                for (std::size_t k = 0; k < targets.size(); ++k)
                    if (targets[k]->kind == Kind::Name)
                        if (const auto v = value(targets.size() == 1 ? right : *right.items[k], p))
                            next[targets[k]->text] = *v;
            }
        }
        for (const auto& name : written_by(s)) p.known.erase(name);
        for (const auto& [name, v] : next) p.known[name] = v;
    }

    void wait(const Statement& s, const Copy& of, Path& p) {
        const Facts& f = analysis_.of(s);
        const Variable* v = f.scope->find(of.storage);
        if (v == nullptr || (v->type.form != Form::Cells && v->type.form != Form::CellColumns)) return;
        auto& found = counts[&s];
        for (std::size_t k = p.queue.size(); k-- > 0;)
            if (touch(p.queue[k], of)) {
                found.insert(static_cast<int>(p.queue.size() - 1 - k));
                p.queue.erase(p.queue.begin(), p.queue.begin() + static_cast<std::ptrdiff_t>(k) + 1);
                return;
            }
    }

    const Analysis& analysis_;
    std::map<std::string, std::int64_t> constants_;
    std::int64_t lengths_[2];
    std::size_t item_ = 0;
    int steps_ = 0;
};

} // namespace

void derive_waits(const Kernel& kernel, Analysis& analysis) {
    std::map<const Statement*, std::set<int>> counts;
    const auto constants = int_constants(kernel);
    const auto stages = constants.count("ST") != 0 ? std::clamp<std::int64_t>(constants.at("ST"), 1, 8) : 2;
    const std::int64_t most = 2 * stages + 2;
    for (std::int64_t first = 1; first <= most; ++first)
        for (const std::int64_t then : {std::int64_t{1}, std::int64_t{2}, most})
            for (const auto& s : kernel.body)
                if (s.kind == K::With) {
                    Follower follower(analysis, constants, first, then);
                    follower.role(s);
                    for (const auto& [at, found] : follower.counts) counts[at].insert(found.begin(), found.end());
                }
    for (const auto& [s, found] : counts)
        located(*s, [&, found = found] {
            if (found.empty()) fail("no_rule", "no copy of this is in flight");
            if (found.size() > 1)
                fail("no_rule", "how many copies are in flight depends on the path: " + std::to_string(*found.begin()) +
                                    " or " + std::to_string(*found.rbegin()));
        });
    for (const auto& [s, found] : counts) analysis.facts[s].pending = *found.begin();
}

} // namespace cubridge::ir::lower
