// Integers along a path. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/path.h"
#include "ir/lower/place.h"
#include <algorithm>

namespace cubridge::ir::lower {

using syntax::Kind;
using syntax::Node;

namespace {

using Value = std::optional<std::int64_t>;

class Known {
public:
    Known(const Path& path, const Lengths& lengths, int item) : path_(path), lengths_(lengths), item_(item) {}

    Value of(const Node& n) const {
        switch (n.kind) {
        case Kind::True: return 1;
        case Kind::False: return 0;
        case Kind::Unary:
            if (n.text == "not") {
                const Value v = of(*n.items[0]);
                return v ? Value(*v == 0) : std::nullopt;
            }
            break;
        case Kind::BoolOp: return logic(n);
        case Kind::Compare: return comparison(n);
        case Kind::Call:
            if (callee(n) == "length") return item_ == 0 ? lengths_.first : lengths_.then;
            return folded(n, 1);
        case Kind::Binary: return folded(n, 0);
        default: break;
        }
        return known_int(n, path_.known);
    }

private:
    /// Over what is known of its operands.
    Value folded(const Node& n, std::size_t from) const {
        Node copy = n;
        for (std::size_t k = from; k < n.items.size(); ++k) {
            const Value v = of(*n.items[k]);
            if (!v) return std::nullopt;
            auto x = std::make_shared<Node>();
            x->kind = Kind::Int;
            x->integer = *v;
            copy.items[k] = x;
        }
        return known_int(copy, {});
    }

    Value logic(const Node& n) const {
        const std::int64_t decides = n.text == "or";
        bool all = true;
        for (const auto& i : n.items) {
            const Value v = of(*i);
            if (v && (*v != 0) == (decides != 0)) return decides;
            all = all && v;
        }
        return all ? Value(1 - decides) : std::nullopt;
    }

    Value comparison(const Node& n) const {
        for (std::size_t k = 0; k < n.names.size(); ++k) {
            const Value a = of(*n.items[k]), b = of(*n.items[k + 1]);
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

    const Path& path_;
    const Lengths& lengths_;
    const int item_;
};

} // namespace

bool touch(const Place& a, const Place& b) {
    if (a.storage != b.storage) return false;
    for (std::size_t k = 0; k < std::min(a.index.size(), b.index.size()); ++k)
        if (a.index[k] && b.index[k] && *a.index[k] != *b.index[k]) return false;
    return true;
}

std::optional<std::int64_t> value_on(const Node& node, const Path& path, const Lengths& lengths, int item) {
    return Known(path, lengths, item).of(node);
}

void assign_on(const cuir::Statement& s, Path& p, const Lengths& lengths, int item) {
    const Node& n = *s.node;
    const Known known(p, lengths, item);
    std::map<std::string, std::int64_t> next;
    if (n.kind == Kind::AugAssign && n.items[0]->kind == Kind::Name) {
        Node sum = n;
        sum.kind = Kind::Binary;
        if (const Value v = known.of(sum)) next[n.items[0]->text] = *v;
    } else if (n.kind == Kind::Assign) {
        const auto targets = parts(n.items[0]);
        const Node& right = *n.items.back();
        if (callee(right) == "divmod" && targets.size() == 2 && right.items.size() == 3) {
            for (std::size_t k = 0; k < 2; ++k) {
                Node part = right;
                part.kind = Kind::Binary;
                part.text = k == 0 ? "//" : "%";
                part.items = {right.items[1], right.items[2]};
                if (const Value v = known.of(part)) next[targets[k]->text] = *v;
            }
        } else if (targets.size() == 1 || (right.kind == Kind::Tuple && right.items.size() == targets.size())) {
            for (std::size_t k = 0; k < targets.size(); ++k)
                if (targets[k]->kind == Kind::Name)
                    if (const Value v = known.of(targets.size() == 1 ? right : *right.items[k]))
                        next[targets[k]->text] = *v;
        }
    }
    for (const auto& name : written_by(s)) p.known.erase(name);
    for (const auto& [name, v] : next) p.known[name] = v;
}

} // namespace cubridge::ir::lower
