// Running a specification's text in a domain, FlexAttention's own text around its functions included.
// SPDX-License-Identifier: Apache-2.0
#include "ir/spec/concrete.h"
#include "ir/spec/state.h"
#include "ir/spec/symbolic.h"
#include <algorithm>

namespace cubridge::ir::spec {

namespace {

const syntax::Node* find_function(const syntax::Node& module, const std::string& name) {
    const syntax::Node* found = nullptr;
    for (const auto& s : module.body)
        if (s->kind == syntax::Kind::FunctionDef && s->text == name) found = s.get();
    return found;
}

bool is_batch_name(const std::string& n) {
    return n == "b" || n == "batch" || n == "batch_idx" || n == "b_idx" || n == "bidx" || n == "_b";
}

enum class Form { Attention, Score, Mask };

Form form_of(const syntax::Node& f) {
    const auto& p = f.params;
    if (p.size() == 5 && is_batch_name(p[1].name)) return Form::Score;
    if (p.size() == 4 && is_batch_name(p[0].name)) return Form::Mask;
    return Form::Attention;
}

} // namespace

std::string flex_wrapper(const syntax::Node& module, const Source& source) {
    const auto need = [&](const std::string& name) {
        const syntax::Node* f = find_function(module, name);
        if (f) return f;
        std::string known;
        for (const auto& s : module.body)
            if (s->kind == syntax::Kind::FunctionDef) known += (known.empty() ? "`" : ", `") + s->text + "`";
        fail("name", "the text defines no function `" + name + "`", {},
             known.empty() ? "write def attention(q, k, v, ...)" : "it defines " + known);
    };
    const syntax::Node* f = need(source.function);
    Form form = form_of(*f);
    std::string score, mask;
    if (!source.mask.empty()) {
        const syntax::Node* m = need(source.mask);
        if (form_of(*m) != Form::Mask)
            fail("type", "`" + source.mask + "` is no mask_mod: it takes (b, h, q_idx, kv_idx)", m->span);
        if (form != Form::Score)
            fail("type", "`" + source.function + "` is no score_mod: it takes (score, b, h, q_idx, kv_idx)", f->span);
        score = source.function, mask = source.mask;
    } else if (form == Form::Score) {
        score = source.function;
    } else if (form == Form::Mask) {
        mask = source.function;
    } else {
        return "";
    }
    std::string t = "import torch as __torch\n"
                    "import math as __math\n"
                    "def __flex__(query, key, value):\n"
                    "    group = query.size(1) // key.size(1)\n"
                    "    k, v = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)\n"
                    "    s = query @ k.transpose(-2, -1) / __math.sqrt(query.size(-1))\n"
                    "    b = __torch.arange(query.size(0)).view(-1, 1, 1, 1)\n"
                    "    h = __torch.arange(query.size(1)).view(1, -1, 1, 1)\n"
                    "    i = __torch.arange(query.size(2)).view(1, 1, -1, 1)\n"
                    "    j = __torch.arange(key.size(2)).view(1, 1, 1, -1)\n";
    if (!score.empty()) t += "    s = " + score + "(s, b, h, i, j)\n";
    if (!mask.empty()) t += "    s = __torch.where(" + mask + "(b, h, i, j), s, -__math.inf)\n";
    t += "    some = (s != -__math.inf).any(-1, keepdim=True)\n"
         "    return __torch.where(some, __torch.softmax(s, -1), 0.0) @ v\n";
    return t;
}

std::vector<TensorRef> follow(const Specification::State& state, Domain& domain, const std::vector<Value>& parameters,
                              const std::function<Value(const std::string&, const Value&)>& on_global, Span* where) {
    Interpreter in(*state.module, domain);
    try {
        in.run_module();
        if (state.wrapper) in.run(*state.wrapper);
        const Value* found = in.global(state.function);
        if (!found || !found->is<FunctionValue>())
            fail("name", "`" + state.function + "` is not a function", {},
                 "write def " + state.function + "(q, k, v, ...)");
        const Value f = *found;
        in.on_global = on_global;
        Values positional;
        std::vector<std::pair<std::string, Value>> keywords;
        bool keyword_only = false;
        for (const auto& p : f.as<FunctionValue>().node->params) {
            keyword_only = keyword_only || p.form == syntax::Param::Form::Bar;
            const std::size_t next = positional.size() + keywords.size();
            if (p.form != syntax::Param::Form::Normal || next >= parameters.size()) continue;
            if (keyword_only)
                keywords.emplace_back(p.name, parameters[next]);
            else
                positional.push_back(parameters[next]);
        }
        const Value result = in.call(f, std::move(positional), std::move(keywords));
        std::vector<TensorRef> out;
        const Values items = result.is<Sequence>() ? *result.as<Sequence>().items : Values{result};
        for (const Value& v : items) {
            if (!v.is<TensorRef>())
                fail("type", "the function returns " + kind_of(v) + ", not a tensor", f.as<FunctionValue>().node->span,
                     "return the output, or (output, lse)");
            out.push_back(v.as<TensorRef>());
        }
        if (out.empty() || out.size() > 2)
            fail("type", "the function returns " + std::to_string(out.size()) + " tensors",
                 f.as<FunctionValue>().node->span, "return the output, or (output, lse)");
        if (where) *where = in.span();
        return out;
    } catch (Failure& f) {
        if (f.error.span.line == 0) f.error.span = in.span();
        if (where) *where = in.span();
        throw;
    } catch (const Restart&) {
        if (where) *where = in.span();
        throw;
    }
}

std::vector<Array> evaluate_text(const Specification::State& state, const std::vector<Argument>& inputs,
                                 std::int64_t budget, Meter* meter) {
    ConcreteDomain domain(budget, meter);
    return evaluate_text(state, inputs, domain, nullptr);
}

std::vector<Array> evaluate_text(const Specification::State& state, const std::vector<Argument>& inputs,
                                 ConcreteDomain& domain, Span* where) {
    const auto value = [&](std::size_t k) -> Value {
        const Input& x = state.scalar.inputs[k];
        if (x.fate == Input::Fate::Absent) return Value();
        if (!inputs[k] || x.fate == Input::Fate::Static) {
            if (x.dtype == DType::Bool) return x.value != 0;
            if (!is_float(x.dtype)) return static_cast<std::int64_t>(x.value);
            return x.value;
        }
        const Array& a = *inputs[k];
        if (x.role == Input::Role::Scalar) {
            if (!is_float(x.dtype)) return static_cast<std::int64_t>(a.values.at(0));
            return a.values.at(0);
        }
        const bool qkv = x.role != Input::Role::Tensor;
        return domain.make(tensor::from_values(a.shape, a.values, x.dtype, !qkv));
    };
    std::vector<Value> parameters;
    for (std::size_t k = 0; k < state.scalar.inputs.size(); ++k)
        if (!state.scalar.inputs[k].global) parameters.push_back(value(k));
    const auto on_global = [&](const std::string& name, const Value& v) {
        for (std::size_t k = 0; k < state.scalar.inputs.size(); ++k)
            if (state.scalar.inputs[k].global && state.scalar.inputs[k].name == name) return value(k);
        return v;
    };
    std::vector<Array> out;
    for (const TensorRef& t : follow(state, domain, parameters, on_global, where)) {
        const tensor::Tensor& x = ConcreteDomain::at(t);
        out.push_back({x.dtype, x.shape, *x.data});
    }
    return out;
}

} // namespace cubridge::ir::spec
