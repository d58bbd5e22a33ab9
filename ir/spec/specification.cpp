// From a text to a Specification. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/specification.h"
#include "ir/spec/state.h"

namespace cubridge::ir {

namespace {

// Is there a sum of products of query and key? Without one the text is no attention.
bool has_query_key_product(const Scalar& s) {
    std::unordered_map<Expr, unsigned> seen; // 1: reads q, 2: reads k, 4: a sum over both
    const auto visit = [&](auto&& self, Expr e) -> unsigned {
        if (const auto it = seen.find(e); it != seen.end()) return it->second;
        unsigned r = e->kind == Kind::Load && e->number == 0 ? 1 : e->kind == Kind::Load && e->number == 1 ? 2 : 0;
        for (const Expr a : e->args) r |= self(self, a);
        if (e->kind == Kind::Reduce && e->reduce == ReduceOp::Sum && (r & 3) == 3) r |= 4;
        seen.emplace(e, r);
        return r;
    };
    return (visit(visit, s.out[0].body) & 4) != 0;
}

} // namespace

Specification::Specification(std::unique_ptr<State> state) : state_(std::move(state)) {}
Specification::~Specification() = default;

Result<std::shared_ptr<const Specification>> Specification::parse(const Source& source, const ParseOptions& options) {
    try {
        auto state = std::make_unique<State>();
        state->source = source;
        auto module = syntax::parse(source.text);
        if (!module) return module.error();
        state->module = *module;
        state->function = source.function.empty() ? "attention" : source.function;
        state->source.function = state->function;
        const std::string wrapper = spec::flex_wrapper(*state->module, state->source);
        if (!wrapper.empty()) {
            auto w = syntax::parse(wrapper);
            if (!w) return w.error();
            state->wrapper = *w;
            state->function = "__flex__";
        }
        spec::resolve(*state, options);
        if (!has_query_key_product(state->scalar))
            fail("unsupported", "the text multiplies no query with a key: it is no attention", {},
                 "the scores are q @ k.transpose(-2, -1)");
        spec::settle(*state, options);
        return std::shared_ptr<const Specification>(std::make_shared<Specification>(std::move(state)));
    } catch (const Failure& f) {
        return f.error;
    } catch (const std::bad_alloc&) {
        return Error{"limit", "following the text takes more memory than there is", {}, "use smaller constants"};
    } catch (const std::exception& e) {
        return Error{"internal", std::string("following the text failed: ") + e.what(), {}, "please report the text"};
    }
}

const Source& Specification::source() const {
    return state_->source;
}
const std::vector<Input>& Specification::inputs() const {
    return state_->scalar.inputs;
}
const std::string& Specification::subject() const {
    return state_->subject;
}
bool Specification::has_variant() const {
    return state_->variant.has_value();
}
const std::string& Specification::no_variant_reason() const {
    return state_->no_variant_reason;
}
std::vector<int> Specification::order() const {
    std::vector<int> all;
    if (state_->variant) {
        all = state_->variant->order;
    } else {
        for (std::size_t n = 0; n < state_->scalar.inputs.size(); ++n) all.push_back(static_cast<int>(n));
    }
    std::vector<int> out;
    for (const int n : all) {
        const Input& input = state_->scalar.inputs[static_cast<std::size_t>(n)];
        if (n > 2 && (input.fate == Input::Fate::Operand || input.fate == Input::Fate::Bound)) out.push_back(n);
    }
    return out;
}
const Scalar& Specification::scalar() const {
    return state_->scalar;
}
const Variant* Specification::variant() const {
    return state_->variant ? &*state_->variant : nullptr;
}
int Specification::heads() const {
    return state_->scalar.heads;
}
std::uint64_t Specification::work() const {
    return state_->scalar.pool->meter().used();
}
const std::vector<std::string>& Specification::notes() const {
    return state_->notes;
}
std::size_t Specification::outputs() const {
    return state_->scalar.out.size();
}

Result<std::vector<Array>> Specification::evaluate(const std::vector<Argument>& inputs, std::int64_t budget) const {
    try {
        return spec::evaluate_text(*state_, inputs, budget);
    } catch (const Failure& f) {
        return f.error;
    } catch (const std::exception& e) {
        return Error{"internal", std::string("evaluating the text failed: ") + e.what(), {}, ""};
    }
}

Result<std::vector<Array>> Specification::evaluate_scalar(const std::vector<Argument>& inputs) const {
    try {
        return spec::evaluate_outputs(state_->scalar, state_->scalar.out, inputs);
    } catch (const Failure& f) {
        return f.error;
    } catch (const std::exception& e) {
        return Error{"internal", std::string("evaluating the Scalar failed: ") + e.what(), {}, ""};
    }
}

} // namespace cubridge::ir
