// An expert's program, made to compute a variant: transfer, execution, lowering, launch plan.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/candidate.h"
#include "cubridge/ir/kernel_abi.h"
#include "ir/cost/operations.h"
#include "ir/cuir/execute.h"
#include "ir/experts/experts.h"
#include "ir/lower/agents.h"
#include "ir/lower/lower.h"
#include "ir/lower/plan.h"
#include "ir/spec/variant.h"
#include "ir/spec/variant/carry.h"
#include "ir/transfer/reference.h"
#include "ir/transfer/transfer.h"
#include <algorithm>

namespace cubridge::ir {

struct Candidate::State {
    const experts::Expert* expert = nullptr;
    cuir::Program program;
    std::string name, expert_text, text;
    std::vector<std::string> rules;
    Request request;
};

namespace {

Error unsupported(std::string message, std::string hint = "") {
    return {"unsupported", std::move(message), {}, std::move(hint)};
}

/// An expert with the program in its margin.
struct Known {
    const experts::Expert* expert;
    Result<cuir::Program> program;
    std::string arch; ///< "sm_80": it and later ones; "sm_90a": that one alone

    explicit Known(const experts::Expert& e) : expert(&e), program(lower::lift(e.text)) {
        if (const auto* main = program ? program->main() : nullptr) arch = main->attribute("arch");
    }
    bool alone() const { return arch.ends_with('a') || arch.ends_with('f'); }
    bool fits(const std::string& to) const { return alone() ? to == arch : to.empty() || number(to) >= number(arch); }
    int number() const { return number(arch); }
    /// Of its key tiles, the widest first. An expert that may spill registers has one.
    std::vector<const char*> forms(const Request& request) const {
        if (!alone()) return {""};
        if (std::max(request.head_dim, request.head_dim_v) > 192) return {"", "/64"};
        return {"", "/96", "/64"};
    }

private:
    static int number(const std::string& text) {
        int out = 0;
        for (const char c : text)
            if (c >= '0' && c <= '9') out = out * 10 + (c - '0');
        return out;
    }
};

/// In the order in which they are tried.
const std::vector<Known>& known_experts() {
    static const std::vector<Known> all = [] {
        std::vector<Known> out;
        for (const auto& e : experts::all()) out.emplace_back(e);
        std::stable_sort(out.begin(), out.end(), [](const Known& a, const Known& b) {
            return std::pair(a.alone(), a.number()) > std::pair(b.alone(), b.number());
        });
        return out;
    }();
    return all;
}

/// What no expert has, whatever the variant.
std::optional<Error> refused(const Request& request) {
    if (request.layout != Request::Layout::Dense) return unsupported("experts read dense tensors only");
    if (request.q_dtype != request.kv_dtype || request.q_dtype != request.o_dtype ||
        (request.q_dtype != DType::BF16 && request.q_dtype != DType::F16))
        return unsupported("experts take queries, keys, values and output of one type, bf16 or fp16");
    if (request.alignment % 16 != 0) return unsupported("experts copy 16 bytes at a time: the alignment is less");
    return std::nullopt;
}

/// Rows before the text's first are 0, and -inf as LSE: what rules make of a row without keys must be that.
std::optional<Error> refused_tail(const Variant& v, const Request& request) {
    for (const Part& p : v.parts) {
        const bool zero = p.empty == Part::Empty::Never || p.empty == Part::Empty::Zero ||
                          request.empty_rows == Request::EmptyRows::Zero;
        if (!zero || p.weights.kind == Weights::Kind::Ratio ||
            (!p.weights.extra.empty() && request.lse != Request::Lse::None))
            return unsupported("rows before the first of a square text are no rows without keys of this variant",
                               "ask for rows as written, or for empty rows as zero");
    }
    return std::nullopt;
}

/// What no expert would change.
std::optional<Error> refused(const Specification& specification, const Request& request) {
    if (!specification.has_variant())
        return Error{
            "no_rule", "the text is not recognised as attention: " + specification.no_variant_reason(), {}, ""};
    if (auto error = refused(request)) return error;
    if (request.rows == Request::Rows::Tail) return refused_tail(*specification.variant(), request);
    return std::nullopt;
}

/// Operands of the kernel in canonical order, as the generic kernel's plan has them.
Result<std::vector<launch::Operand>> operands_of(const Specification& specification, const launch::Plan& generic) {
    std::vector<launch::Operand> out;
    for (const int number : specification.order()) {
        const auto& name = specification.inputs()[static_cast<std::size_t>(number)].name;
        const auto it = std::find_if(generic.operands.begin(), generic.operands.end(),
                                     [&](const launch::Operand& o) { return o.name == name; });
        if (it == generic.operands.end()) return unsupported("operand `" + name + "` is not in the launch plan");
        out.push_back(*it);
    }
    return out;
}

/// Codes name operands by number: of the generic plan's order; here they become the canonical one's.
Result<launch::Code> renumbered(launch::Code code, const std::vector<launch::Operand>& from,
                                const std::vector<launch::Operand>& to) {
    for (auto& step : code.steps) {
        if (step.what != launch::Code::Do::PushOperand) continue;
        const auto& name = from[static_cast<std::size_t>(step.value / 4)].name;
        const auto it = std::find_if(to.begin(), to.end(), [&](const auto& o) { return o.name == name; });
        if (it == to.end()) return unsupported("a size of operand `" + name + "` decides the launch");
        step.value = (it - to.begin()) * 4 + step.value % 4;
    }
    return code;
}

Result<launch::Plan> plan_of(const Specification& specification, const Request& request, const cuir::Program& program) {
    auto generic = generic_kernel(specification, request);
    if (!generic) return generic.error();
    auto operands = operands_of(specification, generic->plan);
    if (!operands) return operands.error();
    launch::Plan plan;
    plan.abi = generic->plan.abi;
    plan.writes_lse = generic->plan.writes_lse;
    plan.operands = std::move(*operands);
    for (auto& o : plan.operands)
        for (auto& least : o.least) {
            auto code = renumbered(least, generic->plan.operands, plan.operands);
            if (!code) return code.error();
            least = std::move(*code);
        }
    for (auto c : generic->plan.conditions) {
        auto left = renumbered(c.left, generic->plan.operands, plan.operands);
        auto right = renumbered(c.right, generic->plan.operands, plan.operands);
        if (!left || !right) return left ? right.error() : left.error();
        c.left = std::move(*left);
        c.right = std::move(*right);
        plan.conditions.push_back(std::move(c));
    }
    auto shape = lower::shape_of(program);
    if (!shape) return shape.error();
    if (auto error = lower::fill_plan(plan, *shape, program)) return *error;
    return plan;
}

} // namespace

const std::string& candidate_version() {
    static const std::string version = "rules-7";
    return version;
}

const std::string& Candidate::expert() const {
    return state_->name;
}
const std::string& Candidate::expert_program() const {
    return state_->expert_text;
}
const std::string& Candidate::program() const {
    return state_->text;
}
const std::vector<std::string>& Candidate::rules() const {
    return state_->rules;
}

bool Candidate::crowded() const {
    const auto* main = state_->program.main();
    return main != nullptr && lower::has_warpgroups(*main) && cost::work_of(*main).every.gathers > 0;
}

Result<std::vector<std::string>> Candidate::experts(const Specification& specification, const Request& request) {
    try {
        if (auto error = refused(specification, request)) return *error;
        std::vector<std::string> out;
        for (const auto& known : known_experts())
            if (known.fits(request.arch))
                for (const char* form : known.forms(request)) out.push_back(std::string(known.expert->name) + form);
        if (out.empty()) return unsupported("no expert is for " + request.arch);
        return out;
    } catch (const Failure& f) {
        return f.error;
    } catch (const std::exception& e) {
        return Error{"internal", std::string("looking for experts failed: ") + e.what(), {}, "please report the text"};
    }
}

Result<Candidate> Candidate::transfer(const Specification& specification, const Request& request,
                                      const std::string& name) {
    try {
        if (auto error = refused(specification, request)) return *error;
        const auto& all = known_experts();
        const std::string plain = name.substr(0, name.find('/'));
        std::string form = name.substr(plain.size());
        const auto known =
            std::find_if(all.begin(), all.end(), [&](const Known& k) { return k.expert->name == plain; });
        if (known == all.end()) return Error{"name", "there is no expert `" + name + "`", {}, ""};
        if (!known->program) return known->program.error();
        if (!known->fits(request.arch))
            return unsupported("the expert is for " + known->arch + ", not for " + request.arch);
        const cuir::Program& expert = *known->program;
        auto state = std::make_shared<State>();
        state->expert = known->expert;
        Variant tail;
        const bool shifted = request.rows == Request::Rows::Tail;
        if (shifted) tail = carry(*specification.variant(), true);
        transfer::Target target{shifted ? tail : *specification.variant(), {}, request, specification.outputs() == 2};
        for (const int number : specification.order()) {
            const auto& input = specification.inputs()[static_cast<std::size_t>(number)];
            target.operands.push_back({input.dtype, input.rank});
        }
        for (const char* order : {"by_head", "heaviest_first"})
            if (form.ends_with(std::string("/") + order)) {
                target.order = order;
                form.resize(form.size() - target.order.size() - 1);
                break;
            }
        if (!form.empty()) {
            const auto forms = known->forms(request);
            if (std::find(forms.begin(), forms.end(), form) == forms.end())
                return Error{"name", "expert `" + plain + "` has no form `" + name + "` for these head dims", {}, ""};
            target.keys = std::stoi(form.substr(1));
        }
        auto made = transfer::transfer(expert, target);
        if (!made) return made.error();
        state->name = name;
        state->expert_text = cuir::print(expert);
        state->program = std::move(made->program);
        state->text = cuir::print(state->program);
        state->rules = std::move(made->rules);
        state->request = request;
        return Candidate(std::move(state));
    } catch (const Failure& f) {
        return f.error;
    } catch (const std::exception& e) {
        return Error{"internal", std::string("transfer failed: ") + e.what(), {}, "please report the text"};
    }
}

Candidate::Execution Candidate::execute(const Specification& specification, std::uint64_t seed) const {
    Execution out;
    try {
        for (const auto& finding : cuir::check(state_->program)) {
            out.record = finding.text();
            return out;
        }
        auto trial = transfer::trial_of(state_->program, specification, seed);
        if (!trial) {
            out.record = trial.error().message;
            return out;
        }
        out.runs = static_cast<int>(trial->runs.size());
        for (const auto& finding :
             cuir::verify(state_->program, *trial, transfer::reference_of(specification, state_->request))) {
            out.record = finding.whole();
            return out;
        }
        out.passed = true;
        out.record = "executor: " + std::to_string(out.runs) + " runs; not run on a GPU";
    } catch (const Failure& f) {
        out.record = f.error.message;
    } catch (const std::exception& e) {
        out.record = std::string("executing failed: ") + e.what();
    }
    return out;
}

Result<Candidate::Lowered> Candidate::lower(const Specification& specification, const Request& request) const {
    try {
        auto lowered = lower::lower(state_->expert->text, state_->program);
        if (!lowered) return lowered.error();
        for (const auto& complaint : lower::read_back(state_->expert->text, lowered->cuda, state_->program))
            return Error{"margin", complaint, {}, "please report the text"};
        auto plan = plan_of(specification, request, state_->program);
        if (!plan) return plan.error();
        Lowered out;
        out.kernel.cuda = std::string(abi::kernel_abi_text()) + "\n" + lowered->cuda;
        out.kernel.plan = std::move(*plan);
        out.copied = lowered->copied;
        out.printed = static_cast<int>(lowered->printed.size());
        out.difference = std::move(lowered->difference);
        for (const auto& kernel : state_->program.kernels)
            if (lower::has_warpgroups(kernel)) out.warpgroups.push_back(kernel.name());
        return out;
    } catch (const Failure& f) {
        return f.error;
    } catch (const std::exception& e) {
        return Error{"internal", std::string("lowering failed: ") + e.what(), {}, "please report the text"};
    }
}

Result<launch::Plan> Candidate::plan(const Specification& specification, const Request& request) const {
    try {
        return plan_of(specification, request, state_->program);
    } catch (const Failure& f) {
        return f.error;
    } catch (const std::exception& e) {
        return Error{"internal", std::string("planning failed: ") + e.what(), {}, "please report the text"};
    }
}

} // namespace cubridge::ir
