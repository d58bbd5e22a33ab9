// What a text leaves open: which captured values are tensors, of which rank and type, which parameters are structure,
// which sizes are equal. Found by following the text under a guess and letting its failures say what was wrong.
// SPDX-License-Identifier: Apache-2.0
#include "ir/spec/state.h"
#include "ir/spec/symbolic.h"
#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <set>

namespace cubridge::ir::spec {

namespace {

constexpr int kMaxRank = 4;       // a cubridge_operand has four axes
constexpr int kMaxGuesses = 300;  // runs under different guesses
constexpr int kMaxRestarts = 400; // runs under more and more assumptions
constexpr int kMaxPaths = 16;     // ways through the text's branches on sizes
constexpr std::size_t kMaxInputs = 40;

struct Guess {
    std::vector<int> rank; // by input
    std::vector<DType> dtype;
    bool operator<(const Guess& o) const { return std::tie(rank, dtype) < std::tie(o.rank, o.dtype); }
};

struct Path {
    std::vector<std::pair<Expr, bool>> branches;
    std::vector<ScalarOutput> out;
};

class Resolver {
public:
    Resolver(Specification::State& state, const ParseOptions& options)
        : state_(state), options_(options), scalar_(state.scalar) {}

    void run() {
        scalar_.pool = std::make_shared<ExprPool>();
        scalar_.pool->meter().set_limit(options_.work);
        declare();
        search();
        finish();
    }

private:
    struct Open { // what inference may change
        bool rank = false, dtype = false;
    };

    void declare();
    void declare_input(const std::string& name, const syntax::Param* p, const Value* fallback, Span span);
    bool annotated(const syntax::Node& a, Input& x, Open& open);
    void search();
    bool trace(const Guess& guess, const Assumptions& know); // false: another guess is due, see failure_ and blame_
    Value global(const std::string& name, const Value& v);
    Value as_value(std::size_t k);
    void finish();
    ScalarOutput output(const SymbolicTensor& t, std::size_t which);

    Specification::State& state_;
    const ParseOptions& options_;
    Scalar& scalar_;
    std::vector<Open> open_;
    std::vector<Path> paths_;
    Assumptions know_;
    Guess guess_;
    SymbolicDomain* domain_ = nullptr;
    Error failure_;
    std::uint64_t blame_ = 0;
    std::map<int, unsigned> uses_;
    std::set<int> statics_; // found so far, whatever the guess
};

bool names_tensor(const syntax::Node& a) {
    return a.text == "Tensor";
}

// `int`, `float`, `torch.Tensor`, "f32[Hq, D]", Optional[...]
bool Resolver::annotated(const syntax::Node& a, Input& x, Open& open) {
    if (a.kind == syntax::Kind::Name || a.kind == syntax::Kind::Attribute) {
        if (a.text == "int")
            x.role = Input::Role::Scalar, x.dtype = DType::I32;
        else if (a.text == "float")
            x.role = Input::Role::Scalar, x.dtype = DType::F32;
        else if (a.text == "bool")
            x.role = Input::Role::Scalar, x.dtype = DType::Bool;
        else if (names_tensor(a))
            x.role = Input::Role::Tensor;
        else
            return false;
        if (x.role == Input::Role::Scalar) open = {};
        return true;
    }
    if (a.kind == syntax::Kind::Subscript) return annotated(*a.items[1], x, open);
    if (a.kind == syntax::Kind::Binary && a.text == "|")
        return annotated(*a.items[0], x, open) || annotated(*a.items[1], x, open);
    if (a.kind == syntax::Kind::String) {
        const auto bracket = a.text.find('[');
        const auto type = dtype_from_short(a.text.substr(0, bracket));
        if (!type) return false;
        x.dtype = *type;
        open.dtype = false;
        if (bracket != std::string::npos) {
            const std::string axes = a.text.substr(bracket + 1, a.text.rfind(']') - bracket - 1);
            x.rank = axes.find_first_not_of(' ') == std::string::npos
                         ? 0
                         : 1 + static_cast<int>(std::count(axes.begin(), axes.end(), ','));
            if (x.rank > kMaxRank) fail("limit", "`" + x.name + "` has more than four axes", a.span);
            open.rank = false;
        }
        return true;
    }
    return false;
}

void Resolver::declare_input(const std::string& name, const syntax::Param* p, const Value* fallback, Span span) {
    if (scalar_.inputs.size() >= kMaxInputs) fail("limit", "more than 40 parameters and captured values", span);
    Input x;
    x.name = name;
    x.span = span;
    x.global = p == nullptr;
    Open open{true, true};
    const auto found = state_.source.settings.find(name);
    const Setting* setting = found == state_.source.settings.end() ? nullptr : &found->second;
    const bool has_default = fallback != nullptr;
    x.role = Input::Role::Tensor;
    if (p && p->annotation) annotated(*p->annotation, x, open);
    const bool number = has_default && fallback->number();
    if (number && !(x.role == Input::Role::Scalar)) {
        x.role = Input::Role::Scalar;
        x.dtype = fallback->is<bool>() ? DType::Bool : fallback->is<std::int64_t>() ? DType::I32 : DType::F32;
    }
    const auto hold = [&](double v, Input::Fate fate) {
        x.fate = x.dtype == DType::Bool ? Input::Fate::Static : fate;
        x.value = v;
        open = {};
    };
    if (setting && setting->kind == Setting::Kind::Absent) {
        x.fate = Input::Fate::Absent;
        open = {};
    } else if (setting && setting->kind == Setting::Kind::Constant) {
        if (x.role != Input::Role::Scalar) {
            x.role = Input::Role::Scalar;
            const bool whole = std::fabs(setting->value) < 9e15 && setting->value == std::trunc(setting->value);
            x.dtype = whole ? DType::I32 : DType::F32;
        }
        hold(setting->value, Input::Fate::Bound);
    } else if (setting) {
        if (setting->dtype) x.dtype = *setting->dtype, open.dtype = false;
        if (setting->rank) x.rank = *setting->rank, open.rank = false, x.role = Input::Role::Tensor;
        if (x.rank > kMaxRank) fail("limit", "`" + name + "` has more than four axes", span);
        if (x.role == Input::Role::Scalar) open = {};
        x.fate = Input::Fate::Operand;
    } else if (number) {
        hold(fallback->is<bool>()           ? (fallback->as<bool>() ? 1 : 0)
             : fallback->is<std::int64_t>() ? static_cast<double>(fallback->as<std::int64_t>())
                                            : fallback->as<double>(),
             Input::Fate::Bound);
    } else if (has_default && fallback->none()) {
        x.fate = Input::Fate::Absent;
        open = {};
    } else if (has_default && !fallback->is<TensorRef>()) {
        fail("unsupported", "the default of `" + name + "` is " + kind_of(*fallback), span, "use a number or None");
    } else if (x.role == Input::Role::Scalar && x.dtype == DType::Bool) {
        fail("domain", "`" + name + "` decides the structure and has no value", span,
             "give it one: --set " + name + "=1, or a default in the text");
    }
    if (x.fate == Input::Fate::Absent || x.fate == Input::Fate::Static) x.rank = 0;
    if (x.role == Input::Role::Scalar) x.rank = 0;
    scalar_.inputs.push_back(std::move(x));
    open_.push_back(open);
}

void Resolver::declare() {
    ExprPool scratch;
    Assumptions none;
    SymbolicDomain domain(scratch, none);
    Interpreter in(*state_.module, domain);
    try {
        in.run_module();
        if (state_.wrapper) in.run(*state_.wrapper);
    } catch (Failure& f) {
        if (f.error.span.line == 0) f.error.span = in.span();
        throw;
    } catch (const Restart&) {
        fail("unsupported", "the module's own statements compute with launch sizes", in.span());
    }
    const Value* f = in.global(state_.function);
    if (!f || !f->is<FunctionValue>()) {
        std::string known;
        for (const auto& s : state_.module->body)
            if (s->kind == syntax::Kind::FunctionDef) known += (known.empty() ? "`" : ", `") + s->text + "`";
        fail("name", "the text defines no function `" + state_.function + "`", {},
             known.empty() ? "write def attention(q, k, v, ...)" : "it defines " + known);
    }
    const auto& fn = f->as<FunctionValue>();
    std::size_t count = 0;
    for (std::size_t k = 0; k < fn.node->params.size(); ++k) {
        const auto& p = fn.node->params[k];
        using Form = syntax::Param::Form;
        if (p.form == Form::Bar || p.form == Form::Slash) continue;
        if (p.form != Form::Normal)
            fail("unsupported", "`*" + p.name + "` in the parameters of `" + state_.function + "`", p.span,
                 "name the parameters");
        if (count < 3) {
            Input x;
            x.name = p.name;
            x.span = p.span;
            x.role = count == 0 ? Input::Role::Query : count == 1 ? Input::Role::Key : Input::Role::Value;
            x.rank = 4;
            const auto set = state_.source.settings.find(p.name);
            const bool operand = set != state_.source.settings.end() && set->second.kind == Setting::Kind::Operand;
            if (p.fallback && count == 2 && !operand)
                x.fate = Input::Fate::Absent, x.rank = 0;
            else if (p.fallback && count < 2)
                fail("type", "`" + p.name + "` is the " + (count == 0 ? "query" : "key") + " and takes no default",
                     p.span, "the first three parameters are query, key and value");
            scalar_.inputs.push_back(x);
            open_.push_back({});
        } else {
            const Value fallback = p.fallback ? (*fn.fallbacks)[k] : Value();
            declare_input(p.name, &p, p.fallback ? &fallback : nullptr, p.span);
        }
        ++count;
    }
    if (count < 3)
        fail(
            "type",
            "`" + state_.function + "` has " + std::to_string(count) +
                " parameters: the first three are query, key and value",
            fn.node->span,
            "write def " + state_.function +
                "(q, k, v, ...); a FlexAttention function takes (score, b, h, q_idx, kv_idx) or (b, h, q_idx, kv_idx)");
    for (const auto& setting : state_.source.settings) {
        const std::string& name = setting.first;
        const bool parameter =
            std::any_of(scalar_.inputs.begin(), scalar_.inputs.end(), [&](const Input& x) { return x.name == name; });
        const Value* g = in.global(name);
        if (!parameter && !g) {
            std::string known;
            for (std::size_t k = 3; k < scalar_.inputs.size(); ++k)
                known += (known.empty() ? "" : ", ") + scalar_.inputs[k].name;
            fail("name", "`" + name + "` is no parameter of `" + state_.function + "`", {},
                 known.empty() ? "it has none beyond q, k, v" : "it has " + known);
        }
    }
}

Value Resolver::as_value(std::size_t k) {
    const Input& x = scalar_.inputs[k];
    const int n = static_cast<int>(k);
    if (x.fate == Input::Fate::Absent) return Value();
    if (x.role == Input::Role::Scalar) {
        const bool fixed = x.fate == Input::Fate::Static || statics_.contains(n) || know_.statics.contains(n);
        if (fixed && x.fate == Input::Fate::Operand)
            fail("domain", "`" + x.name + "` decides the structure of the text and has no value", x.span,
                 "give it one: --set " + x.name + "=VALUE, or a default in the text");
        if (fixed && x.dtype == DType::Bool) return x.value != 0;
        if (fixed && !is_float(x.dtype)) return static_cast<std::int64_t>(x.value);
        if (fixed) return x.value;
        return domain_->scalar(n, is_float(x.dtype) ? Type::Real : Type::Int);
    }
    const bool qkv = x.role != Input::Role::Tensor;
    std::vector<int> sizes;
    if (qkv) {
        static constexpr int known[3][4] = {{dims::B, dims::Hq, dims::Sq, dims::D},
                                            {dims::kB, dims::Hk, dims::Sk, dims::kD},
                                            {dims::vB, dims::Hv, dims::vS, dims::Dv}};
        sizes.assign(known[k], known[k] + 4);
    } else {
        for (int a = 0; a < guess_.rank[k]; ++a) sizes.push_back(dims::of(n, a));
    }
    if (!qkv && guess_.rank[k] == 0 && (statics_.contains(n) || know_.statics.contains(n)))
        fail("domain", "`" + x.name + "` decides the structure of the text and has no value", x.span,
             "give it one: --set " + x.name + "=VALUE, or a default in the text");
    const DType type = qkv ? DType::F32 : guess_.dtype[k];
    return domain_->input(n, type, sizes, qkv, !qkv && (open_[k].dtype || open_[k].rank));
}

Value Resolver::global(const std::string& name, const Value& v) {
    std::size_t k = 0;
    while (k < scalar_.inputs.size() && !(scalar_.inputs[k].global && scalar_.inputs[k].name == name)) ++k;
    if (k == scalar_.inputs.size()) {
        declare_input(name, nullptr, &v, {});
        guess_.rank.push_back(scalar_.inputs[k].rank);
        guess_.dtype.push_back(scalar_.inputs[k].dtype);
        throw Restart{};
    }
    return as_value(k);
}

bool Resolver::trace(const Guess& guess, const Assumptions& know) {
    guess_ = guess;
    know_ = know;
    for (int n = 0; n < kMaxRestarts; ++n) {
        SymbolicDomain domain(*scalar_.pool, know_);
        domain_ = &domain;
        Span where;
        try {
            std::vector<Value> parameters;
            for (std::size_t k = 0; k < scalar_.inputs.size(); ++k)
                if (!scalar_.inputs[k].global) parameters.push_back(as_value(k));
            know_.heads_available = options_.heads > 0 ? options_.heads : 8;
            const auto on_global = [&](const std::string& name, const Value& v) { return global(name, v); };
            const auto result = follow(state_, domain, parameters, on_global, &where);
            Path path;
            path.branches = know_.branches;
            for (std::size_t k = 0; k < result.size(); ++k) path.out.push_back(output(domain.at(result[k]), k));
            paths_.push_back(std::move(path));
            uses_ = domain.uses();
            domain_ = nullptr;
            return true;
        } catch (const Restart&) {
            for (Fact& f : know_.facts)
                if (f.span.line == 0) f.span = where;
            statics_.insert(know_.statics.begin(), know_.statics.end());
        } catch (Failure& f) {
            failure_ = f.error;
            blame_ = domain.blame();
            domain_ = nullptr;
            return false;
        }
    }
    failure_ = {"limit", "the sizes in the text do not settle", {}, "state shapes more plainly"};
    blame_ = 0;
    return false;
}

// The output must be [B, heads, Sq, Dv'], the LSE [B, heads, Sq].
ScalarOutput Resolver::output(const SymbolicTensor& t, std::size_t which) {
    const std::size_t rank = which == 0 ? 4 : 3;
    const auto shape_text = [&] {
        std::string s;
        for (const Expr e : t.shape) s += (s.empty() ? "" : ", ") + debug_text(e);
        return "[" + s + "]";
    };
    const char* expected = which == 0 ? "[B, heads, Sq, Dv]" : "[B, heads, Sq]";
    if (t.sorted) fail("unsupported", "the function returns an argsort");
    if (t.shape.size() != rank)
        fail("shape",
             std::string("the ") + (which == 0 ? "output" : "second output, the LSE,") + " has the shape " +
                 shape_text() + ", expected " + expected,
             {}, which == 0 ? "return the output as [B, heads, Sq, Dv]" : "");
    if (t.dtype == DType::Bool || is_integer(t.dtype))
        fail("type", std::string("the output is of ") + torch_name(t.dtype) + ", expected a float tensor");
    if (which == 0) {
        bool lengths = false; // of keys or queries in the last axis: scores, or a transposed output
        const auto visit = [&](auto&& self, Expr e) -> void {
            lengths = lengths || (e->kind == Kind::Dim &&
                                  (e->number == dims::Sq || e->number == dims::Sk || e->number == dims::vS));
            for (const Expr a : e->args) self(self, a);
        };
        visit(visit, domain_->resolve(t.shape[3]));
        if (lengths)
            fail("shape", "the output has the shape " + shape_text() + ", expected [B, heads, Sq, Dv]", {},
                 "multiply the weights with v");
    }
    domain_->unify(t.shape[0], scalar_.pool->dim(dims::B), "the output's batch");
    domain_->unify(t.shape[2], scalar_.pool->dim(dims::Sq), "the output's rows");
    return {t.shape, t.body, t.dtype};
}

void Resolver::search() {
    std::deque<Guess> queue;
    std::set<Guess> seen;
    Guess first;
    for (const Input& x : scalar_.inputs) first.rank.push_back(x.rank), first.dtype.push_back(x.dtype);
    queue.push_back(first);
    std::optional<Error> best;
    bool settled_types = false;
    for (int n = 0; !queue.empty() && n < kMaxGuesses; ++n) {
        // smallest ranks first; among them the order in which they were thought of
        const auto least = std::min_element(queue.begin(), queue.end(), [](const Guess& a, const Guess& b) {
            return std::accumulate(a.rank.begin(), a.rank.end(), 0) < std::accumulate(b.rank.begin(), b.rank.end(), 0);
        });
        Guess g = *least;
        queue.erase(least);
        while (g.rank.size() < scalar_.inputs.size()) { // globals found meanwhile
            g.rank.push_back(scalar_.inputs[g.rank.size()].rank);
            g.dtype.push_back(scalar_.inputs[g.dtype.size()].dtype);
        }
        if (!seen.insert(g).second) continue;
        paths_.clear();
        // k and v as usual first: one batch, one length, as many heads, one inner size; then whatever the text says.
        Assumptions usual;
        for (const auto& [free, base] : {std::pair<int, int>{dims::kB, dims::B},
                                         {dims::vB, dims::B},
                                         {dims::kD, dims::D},
                                         {dims::vS, dims::Sk},
                                         {dims::Hv, dims::Hk}})
            usual.defined[free] = scalar_.pool->dim(base);
        const bool as_usual = trace(g, usual);
        const Error first_failure = failure_;
        const std::uint64_t first_blame = blame_;
        if (!as_usual) paths_.clear();
        if (!as_usual && failure_.kind == "shape" && !trace(g, {})) failure_ = first_failure, blame_ = first_blame;
        if (!paths_.empty()) {
            g = guess_;
            // The text fits. Types that were guessed as float but only compared with integers are integers.
            Guess typed = g;
            for (const auto& [input, use] : uses_) {
                const auto k = static_cast<std::size_t>(input);
                if (!open_[k].dtype || g.dtype[k] != DType::F32) continue;
                if (use == kUsedAsBool)
                    typed.dtype[k] = DType::Bool;
                else if ((use & kUsedAsInt) != 0 && (use & kUsedAsFloat) == 0)
                    typed.dtype[k] = DType::I32;
            }
            if (!settled_types && (typed < g || g < typed)) {
                settled_types = true;
                const std::vector<Path> kept = paths_;
                const Assumptions kept_know = know_;
                const Guess kept_guess = g;
                paths_.clear();
                const Assumptions again = kept_know; // with its facts: what is settled is not discovered again
                if (!trace(typed, again)) paths_ = kept, know_ = kept_know, guess_ = kept_guess;
            }
            return;
        }
        if (scalar_.pool->meter().exhausted()) throw Failure{failure_};
        // the furthest failure says most; at one place a refusal says more than a size that a wrong rank brought about
        if (!best || failure_.span.line > best->span.line ||
            (failure_.span.line == best->span.line && best->kind == "shape" && failure_.kind == "unsupported"))
            best = failure_;
        Guess base = guess_;
        const bool type_error = failure_.kind == "type";
        bool pushed = false;
        for (std::size_t k = 3; k < scalar_.inputs.size(); ++k) {
            if ((blame_ >> (k & 63) & 1) == 0) continue;
            if (type_error && open_[k].dtype && base.dtype[k] != DType::Bool) {
                Guess next = base;
                next.dtype[k] = base.dtype[k] == DType::F32 ? DType::I32 : DType::Bool;
                queue.push_back(next);
                pushed = true;
                if (base.dtype[k] == DType::F32) {
                    next.dtype[k] = DType::Bool;
                    queue.push_back(next);
                }
            }
            if (!type_error && open_[k].rank && base.rank[k] < kMaxRank) {
                Guess next = base;
                ++next.rank[k];
                queue.push_back(next);
                pushed = true;
            }
        }
        if (!pushed && queue.empty()) break;
    }
    throw Failure{best ? *best : failure_};
}

void Resolver::finish() {
    // The other ways through branches on sizes.
    Path general = paths_.front();
    std::vector<Path> others;
    const std::vector<Fact> facts = know_.facts;
    for (std::deque<std::vector<std::pair<Expr, bool>>> todo{general.branches}; !todo.empty();) {
        const auto taken = todo.front();
        todo.pop_front();
        for (std::size_t k = 0; k < taken.size(); ++k) {
            std::vector<std::pair<Expr, bool>> flipped(taken.begin(), taken.begin() + static_cast<std::ptrdiff_t>(k));
            flipped.emplace_back(taken[k].first, true);
            if (taken[k].second) continue;
            const bool known = std::any_of(others.begin(), others.end(), [&](const Path& p) {
                return p.branches.size() >= flipped.size() &&
                       std::equal(flipped.begin(), flipped.end(), p.branches.begin());
            });
            if (known) continue;
            if (others.size() + 1 >= kMaxPaths)
                fail("limit", "more than 16 ways through the text's conditions on sizes");
            Assumptions know = know_;
            know.branches = flipped;
            paths_.clear();
            if (trace(guess_, know)) {
                others.push_back(paths_.front());
                todo.push_back(paths_.front().branches);
            } else if (failure_.kind == "domain") { // an assert: the other way is a condition on the request
                const Expr c = flipped.back().first;
                if (c->kind == Kind::Cmp && c->args.size() == 1 && c->op == Op::Le) // not (e <= 0)
                    know_.facts.push_back({Fact::Kind::AtLeast, c->args[0], scalar_.pool->integer(1), failure_.span,
                                           debug_text(scalar_.pool->logical_not(c))});
                else if (c->kind == Kind::Not && c->args[0]->kind == Kind::Cmp && c->args[0]->op == Op::Eq &&
                         c->args[0]->args.size() == 1)
                    know_.facts.push_back({Fact::Kind::Equal, c->args[0]->args[0], scalar_.pool->integer(0),
                                           failure_.span, debug_text(c->args[0])});
                else
                    throw Failure{failure_};
            } else {
                throw Failure{failure_};
            }
        }
    }
    scalar_.out = general.out;
    // The way that generic sizes take is tried alone first; certification says whether the branches add anything.
    std::vector<std::pair<Expr, const Path*>> chain;
    for (const Path& p : others) {
        if (p.out.size() != general.out.size()) fail("type", "branches on sizes return different numbers of tensors");
        std::vector<Expr> all;
        for (const auto& [c, way] : p.branches) all.push_back(way ? c : scalar_.pool->logical_not(c));
        chain.emplace_back(scalar_.pool->logical_and(std::move(all)), &p);
    }
    // Inputs as they were settled.
    scalar_.shapes.clear();
    SymbolicDomain domain(*scalar_.pool, know_);
    for (std::size_t k = 0; k < scalar_.inputs.size(); ++k) {
        Input& x = scalar_.inputs[k];
        std::vector<Expr> shape;
        if (x.fate != Input::Fate::Absent && x.role == Input::Role::Tensor) {
            x.chosen = open_[k].rank || open_[k].dtype;
            x.rank = guess_.rank[k];
            x.dtype = guess_.dtype[k];
            for (int a = 0; a < x.rank; ++a)
                shape.push_back(domain.resolve(scalar_.pool->dim(dims::of(static_cast<int>(k), a))));
            if (x.chosen)
                state_.notes.push_back("`" + x.name + "` was read as " + short_name(x.dtype) + " of rank " +
                                       std::to_string(x.rank));
        } else if (x.role != Input::Role::Scalar && x.fate != Input::Fate::Absent) {
            static constexpr int known[3][4] = {{dims::B, dims::Hq, dims::Sq, dims::D},
                                                {dims::kB, dims::Hk, dims::Sk, dims::kD},
                                                {dims::vB, dims::Hv, dims::vS, dims::Dv}};
            for (const int d : known[k]) shape.push_back(domain.resolve(scalar_.pool->dim(d)));
        }
        if (x.role == Input::Role::Scalar &&
            (statics_.contains(static_cast<int>(k)) || x.fate == Input::Fate::Static) && x.fate != Input::Fate::Absent)
            x.fate = Input::Fate::Static;
        scalar_.shapes.push_back(std::move(shape));
    }
    for (ScalarOutput& o : scalar_.out) {
        for (Expr& e : o.shape) e = domain.resolve(e);
        o.body = scalar_.pool->cast(Type::Real, domain.resolve(o.body));
    }
    scalar_.facts = know_.facts;
    scalar_.heads = know_.heads;
    for (const auto& [c, p] : chain) scalar_.branches.push_back({c, p->out});
}

} // namespace

void resolve(Specification::State& state, const ParseOptions& options) {
    Resolver(state, options).run();
}

} // namespace cubridge::ir::spec
