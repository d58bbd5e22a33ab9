// Parameters of functions and lambdas, and assignment targets.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/parser.h"
#include <fmt/format.h>
#include <set>

namespace cubridge::ir::syntax {

/// Parameters up to `end`, which stays. Only a function's are annotated.
void Parser::params(Grown& owner, std::string_view end) {
    using Form = Param::Form;
    const bool annotated = end == ")";
    std::set<std::string, std::less<>> seen;
    bool starred = false, slash = false, defaulted = false, last = false;
    while (!op(end)) {
        if (last) unexpected(fmt::format("'{}' after '**', which comes last", end));
        const Span at = token_.span;
        Param param = this->param(owner, annotated);
        switch (param.form) {
        case Form::Star:
        case Form::Bar:
            if (starred) fail("syntax", "a second '*' among the parameters", at);
            starred = true;
            if (param.form == Form::Bar && (!op(",") || peek().op(end) || peek().op("**"))) {
                fail("syntax", "no named parameter follows '*'", at, "remove it");
            }
            break;
        case Form::Slash:
            if (slash || starred || owner.params.empty()) {
                fail("syntax", "'/' among the parameters stands once, after a parameter and before '*'", at,
                     "remove it");
            }
            slash = true;
            break;
        case Form::StarStar: last = true; break;
        case Form::Normal:
            if (param.fallback) defaulted = true;
            if (!param.fallback && defaulted && !starred) {
                fail("syntax", fmt::format("parameter '{}' without a default after one with a default", param.name), at,
                     "put it before, or give it a default");
            }
            break;
        }
        if (!param.name.empty() && !seen.insert(param.name).second) {
            fail("syntax", fmt::format("parameter '{}' stands twice", param.name), at);
        }
        owner.params.push_back(std::move(param));
        if (!accept(",")) break;
    }
    if (!op(end)) unexpected(fmt::format("',' or '{}'", end));
}

Param Parser::param(Grown& owner, bool annotated) {
    using Form = Param::Form;
    count(token_.span);
    Param param;
    param.span = token_.span;
    if (accept("/")) {
        param.form = Form::Slash;
        return param;
    }
    if (accept("**")) {
        param.form = Form::StarStar;
    } else if (accept("*")) {
        param.form = token_.kind == Token::Kind::Name ? Form::Star : Form::Bar;
        if (op(",")) return param;
    }
    param.name = name("a parameter's name");
    if (annotated && accept(":")) param.annotation = keep(owner, expression());
    if (op("=") && param.form != Form::Normal)
        fail("syntax", "a default of a starred parameter", token_.span, "remove it");
    if (accept("=")) param.fallback = keep(owner, expression());
    param.span.end_line = previous_.end_line;
    param.span.end_column = previous_.end_column;
    return param;
}

/// What stands between 'for' and 'in'.
Tree Parser::targets() {
    const Span start = token_.span;
    const auto one = [&] {
        if (!op("*")) return binary(1);
        const Span at = take().span;
        return make(Kind::Starred, at, {binary(1)});
    };
    Tree first = one();
    if (op(",")) {
        Tree tuple = make(Kind::Tuple, start);
        add(*tuple, &Node::items, first);
        while (accept(",") && begins_expression()) add(*tuple, &Node::items, one());
        first = finish(tuple);
    }
    check_target(*first);
    return first;
}

/// Fails if `node` can't be assigned to. `inside` a tuple or list, one may be starred.
void Parser::check_target(const Node& node, bool inside) const {
    switch (node.kind) {
    case Kind::Name:
    case Kind::Attribute:
    case Kind::Subscript: return;
    case Kind::Tuple:
    case Kind::List: {
        int starred = 0;
        for (const NodePtr& item : node.items) {
            check_target(*item, true);
            if (item->kind == Kind::Starred && ++starred > 1) fail("syntax", "two starred targets", item->span);
        }
        return;
    }
    case Kind::Starred:
        if (!inside) fail("syntax", "a starred target outside a tuple or list", node.span, "write '*a, = ...'");
        return check_target(*node.items[0]);
    default:
        fail("syntax", "only a name, x.attribute or x[index] can be assigned to or deleted", node.span,
             op("=") ? "'==' compares" : "");
    }
}

void Parser::check_single_target(const Node& node, std::string_view what) const {
    if (node.kind == Kind::Name || node.kind == Kind::Attribute || node.kind == Kind::Subscript) return;
    fail("syntax", fmt::format("{} needs a single target", what), node.span, "a name, x.attribute or x[index]");
}

} // namespace cubridge::ir::syntax
