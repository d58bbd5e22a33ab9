// The fast path from a specification to CUDA: an expert's program, edited by rules until it computes the variant,
// executed against the specification, and lowered into the expert's CUDA. Each step can be refused with a reason; the
// generic kernel is then what remains. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/generic.h"
#include "cubridge/ir/launch.h"
#include "cubridge/ir/specification.h"
#include <memory>
#include <string>
#include <vector>

namespace cubridge::ir {

/// The version of experts, rules and executor together: what an artifact that names another was made without.
const std::string& candidate_version();

/// A program that rules made. Immutable; shared; any thread.
class Candidate {
public:
    /// Errors: kind "no_rule" names what no rule handles; "unsupported" what of the request no expert has.
    /// Any thread: nothing is built in the specification's own pool of expressions.
    static Result<Candidate> transfer(const Specification& specification, const Request& request);

    const std::string& expert() const;             ///< "prefill_sm80"
    const std::string& expert_program() const;     ///< CuIR
    const std::string& program() const;            ///< CuIR
    const std::vector<std::string>& rules() const; ///< what was applied, in order

    struct Execution {
        bool passed = false;
        int runs = 0;
        std::string record; ///< one line: what was run, or the first finding
    };
    /// Static checks, then the program against the specification's evaluator on small shapes. Milliseconds.
    Execution execute(const Specification& specification, std::uint64_t seed = 1) const;

    struct Lowered {
        GenericKernel kernel; ///< CUDA and plan
        int copied = 0, printed = 0;
        std::string difference; ///< of the two programs
    };
    /// CUDA of the program, read back and counted. Errors: "no_rule", "margin".
    Result<Lowered> lower(const Specification& specification, const Request& request) const;
    /// How what lower() gives is launched, without its CUDA.
    Result<launch::Plan> plan(const Specification& specification, const Request& request) const;

private:
    struct State;
    explicit Candidate(std::shared_ptr<const State> state) : state_(std::move(state)) {}
    std::shared_ptr<const State> state_;
};

} // namespace cubridge::ir
