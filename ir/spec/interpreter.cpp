// Statements, names and calls. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/interpreter.h"
#include "ir/spec/library.h"
#include <algorithm>

namespace cubridge::ir::spec {

using syntax::Node;
using NodeKind = syntax::Kind;

namespace {

constexpr std::size_t kMaxSteps = 1000000; ///< node evaluations of one run
constexpr int kMaxCalls = 64;

// Modules that a specification may import.
bool is_known_module(const std::string& path) {
    static constexpr const char* known[] = {"torch",
                                            "math",
                                            "torch.nn",
                                            "torch.nn.functional",
                                            "torch.nn.attention",
                                            "torch.nn.attention.flex_attention",
                                            "typing",
                                            "functools",
                                            "__future__",
                                            "numpy",
                                            "dataclasses",
                                            "collections",
                                            "itertools",
                                            "einops"};
    return std::any_of(std::begin(known), std::end(known), [&](const char* k) { return path == k; });
}

} // namespace

std::string kind_of(const Value& v) {
    struct Name {
        std::string operator()(const NoneValue&) const { return "None"; }
        std::string operator()(bool) const { return "a bool"; }
        std::string operator()(std::int64_t) const { return "an int"; }
        std::string operator()(double) const { return "a float"; }
        std::string operator()(const std::string&) const { return "a string"; }
        std::string operator()(Expr e) const { return e->type == Type::Real ? "a float" : "an int"; }
        std::string operator()(const TensorRef& t) const { return std::string("a tensor of ") + torch_name(t->dtype); }
        std::string operator()(const Sequence& s) const { return s.tuple ? "a tuple" : "a list"; }
        std::string operator()(const SliceValue&) const { return "a slice"; }
        std::string operator()(const EllipsisValue&) const { return "..."; }
        std::string operator()(const FunctionValue&) const { return "a function"; }
        std::string operator()(const RoutineValue& r) const { return std::string("the function ") + r.routine->name; }
        std::string operator()(const ModuleValue& m) const { return "the module " + m.path; }
        std::string operator()(DType t) const { return std::string("torch.") + torch_name(t); }
        std::string operator()(const LimitsValue&) const { return "torch.finfo"; }
        std::string operator()(const Opaque& o) const { return o.what; }
    };
    return std::visit(Name{}, v.v);
}

Interpreter::Interpreter(const Node& module, Domain& domain) : module_(module), domain_(domain) {
    module_scope_.parent = &builtin_scope_;
}

Scope& Interpreter::new_scope(Scope* parent) {
    scopes_.emplace_back();
    scopes_.back().parent = parent;
    return scopes_.back();
}

void Interpreter::step(std::size_t n) {
    if (Meter* m = domain_.meter()) m->spend(3 * n); // names and operators are strings
    steps_ += n;
    if (steps_ > kMaxSteps)
        fail("limit", "following the text takes more than a million steps", span_,
             "write loops over elements as whole-tensor operations");
}

void Interpreter::list_size(std::size_t n) {
    if (n > 100000) fail("limit", "a list of more than 100000 elements", span_, "use whole-tensor operations");
    step(n);
}

void Interpreter::put_in(const Values& list, const Value& v) {
    std::size_t looked_at = 0;
    const bool within = holds(v, list, looked_at);
    step(looked_at);
    if (within) fail("unsupported", "a list that holds itself", span_);
}

const Value* Interpreter::global(const std::string& name) const {
    const auto it = module_scope_.names.find(name);
    return it == module_scope_.names.end() ? nullptr : &it->second;
}

void Interpreter::run_module() {
    run(module_);
}

void Interpreter::run(const Node& module) {
    for (const auto& s : module.body) {
        if (s->kind == NodeKind::Return) fail("syntax", "`return` outside a function", s->span);
        statement(*s, module_scope_);
    }
}

Interpreter::Flow Interpreter::block(const std::vector<syntax::NodePtr>& body, Scope& scope) {
    for (const auto& s : body)
        if (const Flow f = statement(*s, scope); f != Flow::Next) return f;
    return Flow::Next;
}

Interpreter::Flow Interpreter::statement(const Node& s, Scope& scope) {
    step();
    const Deeper deeper(*this);
    span_ = s.span;
    switch (s.kind) {
    case NodeKind::ExprStmt:
        if (s.items[0]->kind != NodeKind::String && s.items[0]->kind != NodeKind::FString) evaluate(*s.items[0], scope);
        return Flow::Next;
    case NodeKind::Assign: {
        const Value v = evaluate(*s.items.back(), scope);
        for (std::size_t k = 0; k + 1 < s.items.size(); ++k) assign(*s.items[k], v, scope);
        return Flow::Next;
    }
    case NodeKind::AnnAssign:
        if (s.items[2]) assign(*s.items[0], evaluate(*s.items[2], scope), scope);
        return Flow::Next;
    case NodeKind::AugAssign: {
        const Value now = evaluate(*s.items[0], scope);
        const Value by = evaluate(*s.items[1], scope);
        span_ = s.span;
        Value next = binary(s.text, now, by);
        if (now.is<TensorRef>()) {
            const TensorRef stored = stored_in(now.as<TensorRef>(), next.as<TensorRef>());
            const bool region =
                s.items[0]->kind == NodeKind::Subscript && evaluate(*s.items[0]->items[0], scope).is<TensorRef>();
            next =
                region ? stored : succeed(now.as<TensorRef>(), stored); // x[...] += y: the assignment below changes x
        }
        assign(*s.items[0], std::move(next), scope);
        return Flow::Next;
    }
    case NodeKind::Return:
        returned_ = s.items.empty() || !s.items[0] ? Value() : evaluate(*s.items[0], scope);
        return Flow::Return;
    case NodeKind::If: return block(truth(evaluate(*s.items[0], scope)) ? s.body : s.orelse, scope);
    case NodeKind::For: {
        const Values items = iterate(evaluate(*s.items[1], scope));
        for (const Value& v : items) {
            step();
            assign(*s.items[0], v, scope);
            const Flow f = block(s.body, scope);
            if (f == Flow::Break) return Flow::Next;
            if (f == Flow::Return) return f;
        }
        return block(s.orelse, scope);
    }
    case NodeKind::While:
        while (truth(evaluate(*s.items[0], scope))) {
            step();
            const Flow f = block(s.body, scope);
            if (f == Flow::Break) return Flow::Next;
            if (f == Flow::Return) return f;
        }
        return block(s.orelse, scope);
    case NodeKind::Assert:
        if (!truth(evaluate(*s.items[0], scope)))
            fail("domain", "an assertion of the text does not hold", s.span,
                 "the sizes or settings do not fit the text");
        return Flow::Next;
    case NodeKind::Raise:
        fail("domain", "the text raises an error here", s.span, "the sizes or settings do not fit the text");
    case NodeKind::Pass: return Flow::Next;
    case NodeKind::Break: return Flow::Break;
    case NodeKind::Continue: return Flow::Continue;
    case NodeKind::Import:
    case NodeKind::ImportFrom: import(s, scope); return Flow::Next;
    case NodeKind::FunctionDef: scope.names[s.text] = function(s, scope); return Flow::Next;
    case NodeKind::With: {
        for (const auto& item : s.items) { // torch.no_grad() and its kin change no value
            const Value v = evaluate(*item, scope);
            if (!v.is<Opaque>()) fail("unsupported", "`with` takes torch.no_grad() only", item->span, "leave it out");
        }
        return block(s.body, scope);
    }
    case NodeKind::Global: fail("unsupported", "`global` would change the module", s.span, "return the value instead");
    case NodeKind::Delete: return Flow::Next;
    default: fail("unsupported", "this statement is not part of a specification", s.span);
    }
}

void Interpreter::import(const Node& s, Scope& scope) {
    if (s.kind == NodeKind::Import) {
        for (std::size_t k = 0; k < s.names.size(); ++k) {
            const std::string& path = s.names[k];
            if (!is_known_module(path))
                fail("unsupported", "the module `" + path + "` cannot be imported: specifications use torch and math",
                     s.span, "write what you need from it in torch");
            if (!s.aliases[k].empty())
                scope.names[s.aliases[k]] = ModuleValue{path};
            else
                scope.names[path.substr(0, path.find('.'))] = ModuleValue{path.substr(0, path.find('.'))};
        }
        return;
    }
    if (!is_known_module(s.text))
        fail("unsupported", "the module `" + s.text + "` cannot be imported: specifications use torch and math", s.span,
             "write what you need from it in torch");
    for (std::size_t k = 0; k < s.names.size(); ++k) {
        const std::string& as = s.aliases[k].empty() ? s.names[k] : s.aliases[k];
        if (s.names[k] == "*")
            fail("unsupported", "`import *` hides where names come from", s.span, "import the names that are used");
        const std::string path = s.text + "." + s.names[k];
        if (is_known_module(path)) {
            scope.names[as] = ModuleValue{path};
            continue;
        }
        const Place place = s.text == "math" ? kMath : s.text == "torch.nn.functional" ? kFunctional : kTorch;
        if (const auto c = find_constant(s.text, s.names[k]))
            scope.names[as] = *c;
        else if (const Routine* r = find_routine(place, s.names[k]))
            scope.names[as] = RoutineValue{r, nullptr};
        else
            scope.names[as] = Opaque{"an imported name without meaning for a specification"};
    }
}

Value Interpreter::function(const Node& def, Scope& scope) {
    Values fallbacks;
    for (const auto& p : def.params) {
        fallbacks.push_back(p.fallback ? evaluate(*p.fallback, scope) : Value());
    }
    return FunctionValue{&def, &scope, make_items(std::move(fallbacks))};
}

void Interpreter::assign(const Node& target, Value v, Scope& scope) {
    switch (target.kind) {
    case NodeKind::Name: scope.names[target.text] = std::move(v); return;
    case NodeKind::Tuple:
    case NodeKind::List: {
        span_ = target.span;
        const Values items = iterate(v);
        const auto star = std::find_if(target.items.begin(), target.items.end(),
                                       [](const auto& t) { return t->kind == NodeKind::Starred; });
        const std::size_t fixed = target.items.size() - (star == target.items.end() ? 0 : 1);
        if (star == target.items.end() ? items.size() != fixed : items.size() < fixed)
            fail("type",
                 "cannot unpack " + std::to_string(items.size()) + " values into " +
                     std::to_string(target.items.size()) + " names",
                 target.span);
        std::size_t at = 0;
        for (const auto& t : target.items) {
            if (t->kind != NodeKind::Starred) {
                assign(*t, items[at++], scope);
                continue;
            }
            const std::size_t count = items.size() - fixed;
            assign(*t->items[0],
                   make_list(Values(items.begin() + static_cast<std::ptrdiff_t>(at),
                                    items.begin() + static_cast<std::ptrdiff_t>(at + count))),
                   scope);
            at += count;
        }
        return;
    }
    case NodeKind::Subscript: assign_item(target, v, scope); return;
    default: fail("unsupported", "this cannot be assigned to in a specification", target.span, "assign to a name");
    }
}

// x += y changes the tensor itself: its dtype and shape stay, and who shares its memory would see it.
TensorRef Interpreter::stored_in(const TensorRef& t, const TensorRef& to) {
    const auto category = [](DType d) { return d == DType::Bool ? 0 : is_float(d) ? 2 : 1; };
    if (category(to->dtype) > category(t->dtype))
        fail("type",
             std::string("a result of ") + torch_name(to->dtype) + " does not fit the tensor of " +
                 torch_name(t->dtype) + " that it is stored in",
             span_, "write x = x + y");
    const Values from = domain_.shape(t), into = domain_.shape(to);
    bool same = from.size() == into.size();
    for (std::size_t k = 0; same && k < from.size(); ++k) same = truth(elementwise(Op::Eq, {from[k], into[k]}));
    if (!same)
        fail("shape", "the result does not have the shape of the tensor that it is stored in", span_,
             "write x = x + y");
    return domain_.cast(to, t->dtype);
}

// `next` is `t` after a change: whoever else holds `t`, or a view of it, holds what PyTorch would no longer show.
TensorRef Interpreter::succeed(const TensorRef& t, TensorRef next) {
    if (next == t) next = domain_.reshape(t, domain_.shape(t));
    if (!t->memory) t->memory = std::make_shared<int>(0), t->version = 0;
    next->memory = t->memory;
    next->version = ++*t->memory;
    return next;
}

// `v` was made from `t` without a copy.
void Interpreter::share(const TensorRef& t, const Value& v) {
    if (v.is<Sequence>())
        nested([&] {
            step(v.as<Sequence>().items->size());
            for (const Value& i : *v.as<Sequence>().items) share(t, i);
        });
    if (!v.is<TensorRef>() || v.as<TensorRef>() == t) return;
    if (!t->memory) t->memory = std::make_shared<int>(0), t->version = 0;
    v.as<TensorRef>()->memory = t->memory;
    v.as<TensorRef>()->version = t->version;
}

const Value& Interpreter::fresh(const Value& v, const std::string& name) const {
    if (v.is<TensorRef>()) {
        const TensorBase& t = *v.as<TensorRef>();
        if (t.memory && t.version != *t.memory)
            fail("unsupported", name + " shares memory with a tensor that was changed since", span_,
                 "use .clone(), or write y = x + 1 instead of y += 1");
    }
    return v;
}

// x[...] = value: tensors are values here, so the name (or the list element) that holds the tensor gets a new one.
void Interpreter::assign_item(const Node& target, const Value& v, Scope& scope) {
    const Value object = evaluate(*target.items[0], scope);
    const Value index = evaluate(*target.items[1], scope);
    span_ = target.span;
    if (object.is<Sequence>() && !object.as<Sequence>().tuple) {
        auto& items = *object.as<Sequence>().items;
        if (!index.number()) fail("type", "a list is indexed by an int", target.span);
        std::int64_t k =
            index.is<std::int64_t>() ? index.as<std::int64_t>() : domain_.require_int(index, "a list index");
        if (k < 0) k += static_cast<std::int64_t>(items.size());
        if (k < 0 || k >= static_cast<std::int64_t>(items.size()))
            fail("index", "the list index is out of range", target.span);
        put_in(items, v);
        items[static_cast<std::size_t>(k)] = v;
        return;
    }
    if (!object.is<TensorRef>()) fail("type", "cannot assign to an element of " + kind_of(object), target.span);
    const TensorRef t = object.as<TensorRef>();
    const Values sizes = domain_.shape(t);
    Values parts = index.is<Sequence>() && index.as<Sequence>().tuple ? *index.as<Sequence>().items : Values{index};
    std::size_t named = 0;
    for (const Value& p : parts) named += p.is<EllipsisValue>() ? 0 : 1;
    if (named > sizes.size())
        fail("index", "too many indices for a tensor of rank " + std::to_string(sizes.size()), target.span);
    std::vector<Domain::Region> where;
    const auto whole = [&] { where.push_back({nullptr, Value(0), sizes[where.size()], Value(1), false}); };
    for (const Value& p : parts) {
        if (p.is<EllipsisValue>()) {
            for (std::size_t k = named; k < sizes.size(); ++k) whole();
        } else if (p.is<SliceValue>()) {
            const auto& [start, stop, step] = *p.as<SliceValue>().parts;
            const Value size = sizes[where.size()];
            const auto bound = [&](const Value& b, const Value& fallback) {
                if (b.none()) return fallback;
                const bool below = b.is<std::int64_t>() && b.as<std::int64_t>() < 0;
                const Value at = below ? binary("+", b, size) : b;
                return elementwise(Op::Min, {elementwise(Op::Max, {at, Value(0)}), size});
            };
            const Value from = bound(start, Value(0)), to = bound(stop, size);
            Value count = elementwise(Op::Max, {binary("-", to, from), Value(0)});
            const Value by = step.none() ? Value(1) : step;
            if (!by.is<std::int64_t>() || by.as<std::int64_t>() < 1)
                fail("unsupported", "a slice with a step below 1", target.span, "use torch.flip");
            if (by.as<std::int64_t>() > 1)
                count = binary("//", binary("+", count, Value(by.as<std::int64_t>() - 1)), by);
            where.push_back({nullptr, from, count, by, false});
        } else if (p.is<TensorRef>()) {
            if (p.as<TensorRef>()->dtype == DType::Bool)
                fail("unsupported", "assigning under a boolean mask", target.span, "use torch.where(mask, value, x)");
            where.push_back({p.as<TensorRef>(), Value(0), Value(0), Value(1), false});
        } else if (p.is<Sequence>()) {
            const Values items = iterate(p);
            where.push_back({domain_.from_numbers({static_cast<std::int64_t>(items.size())}, items, DType::I64),
                             Value(0), Value(0), Value(1), false});
        } else if (p.number() && !p.is<double>() && !p.is<bool>()) {
            const bool below = p.is<std::int64_t>() && p.as<std::int64_t>() < 0;
            where.push_back({nullptr, below ? binary("+", p, sizes[where.size()]) : p, Value(1), Value(1), true});
        } else {
            fail("unsupported", "assigning to a tensor at " + kind_of(p), target.span, "use torch.where");
        }
    }
    while (where.size() < sizes.size()) whole();
    const TensorRef changed = succeed(t, domain_.assign(t, where, domain_.cast(tensor(v), t->dtype)));
    if (target.items[0]->kind == NodeKind::Name) {
        for (Scope* s = &scope; s; s = s->parent) {
            const auto it = s->names.find(target.items[0]->text);
            if (it == s->names.end()) continue;
            it->second = changed;
            return;
        }
    }
    if (target.items[0]->kind == NodeKind::Subscript && evaluate(*target.items[0]->items[0], scope).is<Sequence>()) {
        assign_item(*target.items[0], changed, scope);
        return;
    }
    fail("unsupported", "assigning to an element of a temporary tensor", target.span, "give the tensor a name first");
}

Value Interpreter::lookup(const Node& name, Scope& scope) {
    for (Scope* s = &scope; s; s = s->parent) {
        const auto it = s->names.find(name.text);
        if (it == s->names.end()) continue;
        const Value& v = it->second;
        if (s == &module_scope_ && &scope != &module_scope_ && on_global && (v.number() || v.is<TensorRef>()))
            return on_global(name.text, v);
        return v.is<TensorRef>() ? fresh(v, "`" + name.text + "`") : v;
    }
    if (const Routine* r = find_routine(kBuiltin, name.text)) return RoutineValue{r, nullptr};
    std::string hint;
    for (Scope* s = &scope; s && hint.empty(); s = s->parent)
        for (const auto& [known, v] : s->names)
            if (known.size() == name.text.size() && known.size() > 2 &&
                std::is_permutation(known.begin(), known.end(), name.text.begin()))
                hint = "did you mean `" + known + "`?";
    if (hint.empty()) {
        const std::string near = nearest_routine(kBuiltin, name.text);
        hint = near.empty() ? "define it, or pass it as a parameter" : "did you mean `" + near + "`?";
    }
    fail("name", "the name `" + name.text + "` is not defined", name.span, hint);
}

Value Interpreter::call(const Value& callee, Values positional, std::vector<std::pair<std::string, Value>> keywords) {
    step();
    if (callee.is<RoutineValue>()) {
        const auto& r = callee.as<RoutineValue>();
        if (r.self) positional.insert(positional.begin(), *r.self);
        const Value first = positional.empty() ? Value() : positional[0];
        Args args = bind(*r.routine, std::move(positional), std::move(keywords), *this);
        Value result = r.routine->call(*this, args);
        if ((r.routine->places & kView) != 0 && first.is<TensorRef>()) share(first.as<TensorRef>(), result);
        return result;
    }
    if (callee.is<Opaque>()) return callee; // an imported decorator, a context manager
    if (callee.is<DType>()) fail("type", "a dtype is not a function", span_, "convert with .to(dtype)");
    if (!callee.is<FunctionValue>()) fail("type", kind_of(callee) + " cannot be called", span_);
    const auto& f = callee.as<FunctionValue>();
    const std::string name = f.node->kind == NodeKind::Lambda ? "the lambda" : "`" + f.node->text + "`";
    if (++calls_ > kMaxCalls)
        fail("recursion",
             "calls are nested more than " + std::to_string(kMaxCalls) + " deep: " + name + " calls itself", span_,
             "write the recursion as whole-tensor operations");
    const Span here = span_;
    Scope& scope = new_scope(f.scope);
    std::size_t next = 0;
    bool keyword_only = false, starred = false;
    for (std::size_t k = 0; k < f.node->params.size(); ++k) {
        const auto& p = f.node->params[k];
        if (p.form == syntax::Param::Form::Bar) keyword_only = true;
        if (p.form == syntax::Param::Form::Star) {
            keyword_only = starred = true;
            scope.names[p.name] = make_tuple(Values(
                positional.begin() + static_cast<std::ptrdiff_t>(std::min(next, positional.size())), positional.end()));
            next = positional.size();
        }
        if (p.form == syntax::Param::Form::StarStar)
            fail("unsupported", "**" + p.name + " in a parameter list", p.span, "name the parameters");
        if (p.form != syntax::Param::Form::Normal) continue;
        const auto given =
            std::find_if(keywords.begin(), keywords.end(), [&](const auto& w) { return w.first == p.name; });
        if (!keyword_only && next < positional.size()) {
            if (given != keywords.end()) fail("type", name + " got two values for `" + p.name + "`", here);
            scope.names[p.name] = positional[next++];
        } else if (given != keywords.end()) {
            scope.names[p.name] = given->second;
            keywords.erase(given);
        } else if (p.fallback) {
            scope.names[p.name] = (*f.fallbacks)[k];
        } else {
            fail("type", name + " needs the argument `" + p.name + "`", here);
        }
    }
    if (next < positional.size() && !starred)
        fail("type",
             name + " takes " + std::to_string(next) + " arguments, " + std::to_string(positional.size()) +
                 " are given",
             here);
    if (!keywords.empty()) fail("type", name + " has no parameter `" + keywords[0].first + "`", here);
    Value result;
    if (f.node->kind == NodeKind::Lambda) {
        result = evaluate(*f.node->items[0], scope);
    } else {
        returned_ = Value();
        const Flow flow = block(f.node->body, scope);
        result = flow == Flow::Return ? returned_ : Value();
    }
    --calls_;
    if (calls_ > 0) span_ = here; // the outermost call leaves where it returned
    return result;
}

} // namespace cubridge::ir::spec
