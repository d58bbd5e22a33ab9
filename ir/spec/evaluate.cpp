// Expressions of the text. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/interpreter.h"
#include "ir/spec/library.h"
#include <algorithm>
#include <cmath>

namespace cubridge::ir::spec {

using syntax::Node;
using NodeKind = syntax::Kind;

Value Interpreter::evaluate(const Node& e, Scope& scope) {
    step();
    const Deeper deeper(*this);
    switch (e.kind) {
    case NodeKind::Name: return lookup(e, scope);
    case NodeKind::Int: return e.integer;
    case NodeKind::Float: return e.real;
    case NodeKind::String: return e.text;
    case NodeKind::FString: return e.text;
    case NodeKind::True: return true;
    case NodeKind::False: return false;
    case NodeKind::None: return Value();
    case NodeKind::Ellipsis: return EllipsisValue{};
    case NodeKind::Tuple:
    case NodeKind::List: {
        Values items;
        for (const auto& i : e.items) {
            if (i->kind == NodeKind::Starred) {
                const Values more = iterate(evaluate(*i->items[0], scope));
                items.insert(items.end(), more.begin(), more.end());
            } else {
                items.push_back(evaluate(*i, scope));
            }
        }
        return e.kind == NodeKind::Tuple ? make_tuple(std::move(items)) : make_list(std::move(items));
    }
    case NodeKind::Unary: {
        const Value a = evaluate(*e.items[0], scope);
        span_ = e.span;
        return unary(e.text, a);
    }
    case NodeKind::Binary: {
        const Value a = evaluate(*e.items[0], scope), b = evaluate(*e.items[1], scope);
        span_ = e.span;
        return binary(e.text, a, b);
    }
    case NodeKind::BoolOp: {
        Value v;
        for (const auto& i : e.items) {
            v = evaluate(*i, scope);
            span_ = i->span;
            if (truth(v) != (e.text == "and")) return v;
        }
        return v;
    }
    case NodeKind::Compare: {
        Value left = evaluate(*e.items[0], scope), result = true;
        for (std::size_t k = 1; k < e.items.size(); ++k) {
            const Value right = evaluate(*e.items[k], scope);
            span_ = e.span;
            result = compare(e.names[k - 1], left, right);
            if (e.items.size() > 2 && k + 1 < e.items.size() && !truth(result)) return false;
            left = right;
        }
        return result;
    }
    case NodeKind::Conditional: {
        const Value c = evaluate(*e.items[1], scope);
        span_ = e.items[1]->span;
        return evaluate(*e.items[truth(c) ? 0 : 2], scope);
    }
    case NodeKind::Call: return call_node(e, scope);
    case NodeKind::Attribute: return attribute(e, scope);
    case NodeKind::Subscript: {
        const Value object = evaluate(*e.items[0], scope), index = evaluate(*e.items[1], scope);
        span_ = e.span;
        return subscript(object, index);
    }
    case NodeKind::Slice: {
        auto parts = std::make_shared<std::array<Value, 3>>();
        for (std::size_t k = 0; k < 3; ++k)
            if (e.items[k]) (*parts)[k] = evaluate(*e.items[k], scope);
        return SliceValue{std::move(parts)};
    }
    case NodeKind::Lambda: return function(e, scope);
    case NodeKind::ListComp:
    case NodeKind::Generator: return comprehension(e, scope);
    default: fail("unsupported", "this expression is not part of a specification", e.span);
    }
}

Value Interpreter::comprehension(const Node& e, Scope& outer) {
    Values items;
    Scope& scope = new_scope(&outer);
    const auto loop = [&](auto&& self, std::size_t clause) -> void {
        if (clause == e.clauses.size()) {
            items.push_back(evaluate(*e.items[0], scope));
            return;
        }
        const auto& c = e.clauses[clause];
        for (const Value& v : iterate(evaluate(*c.iterable, scope))) {
            step();
            assign(*c.target, v, scope);
            if (std::all_of(c.conditions.begin(), c.conditions.end(),
                            [&](const auto& condition) { return truth(evaluate(*condition, scope)); }))
                self(self, clause + 1);
        }
    };
    loop(loop, 0);
    return make_list(std::move(items));
}

Value Interpreter::attribute(const Node& e, Scope& scope) {
    const Value object = evaluate(*e.items[0], scope);
    span_ = e.span;
    if (object.is<ModuleValue>()) {
        const std::string& path = object.as<ModuleValue>().path;
        if (const auto c = find_constant(path, e.text)) return *c;
        const Place place = path == "math" ? kMath : path == "torch.nn.functional" ? kFunctional : kTorch;
        if (path == "torch" && e.text == "nn") return ModuleValue{"torch.nn"};
        if (path == "torch.nn" && e.text == "functional") return ModuleValue{"torch.nn.functional"};
        if (path == "torch" || path == "math" || path == "torch.nn.functional" || path == "torch.special")
            if (const Routine* r = find_routine(place, e.text)) return RoutineValue{r, nullptr};
        if (path == "torch" && e.text == "special") return ModuleValue{"torch.special"};
        const std::string near = nearest_routine(place, e.text);
        fail("name", "`" + path + "." + e.text + "` is not known to specifications", e.span,
             near.empty() ? "docs/specification.md lists what is" : "did you mean `" + path + "." + near + "`?");
    }
    if (object.is<TensorRef>()) {
        if (const Routine* r = find_routine(kProperty, e.text)) {
            Args args = bind(*r, {object}, {}, *this);
            Value result = r->call(*this, args);
            if ((r->places & kView) != 0) share(object.as<TensorRef>(), result);
            return result;
        }
        if (const Routine* r = find_routine(kMethod, e.text))
            return RoutineValue{r, std::make_shared<const Value>(object)};
        const std::string near = nearest_routine(kMethod, e.text);
        fail("name", "tensors have no attribute `" + e.text + "` here", e.span,
             near.empty() ? "docs/specification.md lists the methods" : "did you mean `." + near + "`?");
    }
    if (object.is<LimitsValue>()) {
        const DType t = object.as<LimitsValue>().dtype;
        const auto c = find_constant(std::string("finfo.") + short_name(t), e.text);
        if (c) return *c;
        fail("name", "torch.finfo has no `" + e.text + "` here", e.span, "min, max, eps and tiny are known");
    }
    if (object.is<Sequence>() && object.as<Sequence>().tuple && object.as<Sequence>().items->size() == 2 &&
        (e.text == "values" || e.text == "indices")) {
        const Value& v = (*object.as<Sequence>().items)[e.text == "values" ? 0 : 1]; // of max() and min() along an axis
        if (v.is<TensorRef>()) return v;
    }
    if (object.is<Sequence>())
        if (const Routine* r = find_routine(kListMethod, e.text))
            return RoutineValue{r, std::make_shared<const Value>(object)};
    if (object.is<Opaque>()) return Opaque{"an attribute without meaning for a specification"};
    fail("type", kind_of(object) + " has no attribute `" + e.text + "` here", e.span);
}

std::vector<std::pair<std::string, Value>> Interpreter::keywords_of(const Node& call, Values& positional,
                                                                    Scope& scope) {
    for (std::size_t k = 1; k < call.items.size(); ++k) {
        if (call.items[k]->kind == NodeKind::Starred) {
            const Values more = iterate(evaluate(*call.items[k]->items[0], scope));
            positional.insert(positional.end(), more.begin(), more.end());
        } else {
            positional.push_back(evaluate(*call.items[k], scope));
        }
    }
    std::vector<std::pair<std::string, Value>> keywords;
    for (const auto& w : call.keywords) {
        if (w.name.empty()) fail("unsupported", "** in a call", w.span, "name the arguments");
        keywords.emplace_back(w.name, evaluate(*w.value, scope));
    }
    return keywords;
}

Value Interpreter::call_node(const Node& e, Scope& scope) {
    const Value callee = evaluate(*e.items[0], scope);
    Values positional;
    auto keywords = keywords_of(e, positional, scope);
    span_ = e.span;
    Value result = call(callee, std::move(positional), std::move(keywords));
    // x.masked_fill_(...) and its kin: the method returns the changed tensor, the name that held it gets it
    if (callee.is<RoutineValue>() && callee.as<RoutineValue>().self && e.items[0]->kind == NodeKind::Attribute &&
        e.items[0]->text.size() > 1 && e.items[0]->text.back() == '_' && e.items[0]->items[0]->kind == NodeKind::Name)
        assign(*e.items[0]->items[0], succeed(callee.as<RoutineValue>().self->as<TensorRef>(), result.as<TensorRef>()),
               scope);
    return result;
}

bool Interpreter::truth(const Value& v) {
    if (v.is<bool>()) return v.as<bool>();
    if (v.none()) return false;
    if (v.is<std::int64_t>()) return v.as<std::int64_t>() != 0;
    if (v.is<double>()) return v.as<double>() != 0;
    if (v.is<std::string>()) return !v.as<std::string>().empty();
    if (v.is<Expr>()) return domain_.truth(v);
    if (v.is<Sequence>()) return !v.as<Sequence>().items->empty();
    if (v.is<TensorRef>())
        return truth(domain_.item(v.as<TensorRef>(), "a condition of Python (`if`, `and`, `or`, `not`)"));
    return true;
}

std::vector<Value> Interpreter::iterate(const Value& v) {
    if (v.is<Sequence>()) {
        step(v.as<Sequence>().items->size());
        for (const Value& i : *v.as<Sequence>().items) fresh(i, "an element");
        return *v.as<Sequence>().items;
    }
    if (v.is<TensorRef>()) {
        const Values sizes = domain_.shape(v.as<TensorRef>());
        if (sizes.empty()) fail("shape", "a tensor of rank 0 cannot be iterated over", span_);
        const std::int64_t n = sizes[0].is<std::int64_t>() ? sizes[0].as<std::int64_t>()
                                                           : domain_.require_int(sizes[0], "a loop over a tensor");
        list_size(static_cast<std::size_t>(std::max<std::int64_t>(0, n)));
        Values items;
        for (std::int64_t k = 0; k < n; ++k) {
            items.push_back(domain_.select(v.as<TensorRef>(), 0, k));
            share(v.as<TensorRef>(), items.back());
        }
        return items;
    }
    if (v.is<std::string>()) fail("unsupported", "iterating over a string", span_);
    fail("type", "cannot iterate over " + kind_of(v), span_);
}

TensorRef Interpreter::tensor(const Value& v) {
    if (v.is<TensorRef>()) return v.as<TensorRef>();
    if (v.number()) return domain_.wrap(v);
    fail("type", "a tensor is expected, this is " + kind_of(v), span_);
}

} // namespace cubridge::ir::spec
