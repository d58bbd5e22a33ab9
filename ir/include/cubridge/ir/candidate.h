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

/// Lengths that a configuration is judged by. Kernels take any; the default stands for long sequences.
struct Shape {
    std::int64_t batch = 4, rows = 4096, keys = 4096;
    int heads_kv = 0; ///< 0: as many as share 32 query heads
    bool operator==(const Shape&) const = default;
};

/// One of the programs that rules can make of an expert for a variant.
struct Configuration {
    std::string name;  ///< the expert's, as Candidate::transfer takes it: "prefill_sm90/96/by_head"
    int keys = 0;      ///< of a tile
    std::string order; ///< of work items: "by_head", "heaviest_first"
    double us = 0;     ///< of a launch at the Shape, by a model (docs/choosing.md); 0: it has none of this program
    std::int64_t tiles = 0, masked = 0; ///< key tiles that work items visit, and those of them that need the mask
    bool guessed = false;               ///< data decide which: half of them, as if
};

/// A program that rules made. Immutable; shared; any thread.
class Candidate {
public:
    /// The experts for the request's architecture, in the order in which they are to be tried: one for this
    /// architecture alone before portable ones. "prefill_sm90/96" is the same with 96 keys a tile at most: worth trying
    /// where the compiler ran out of registers. Errors: what no expert would change: "no_rule" for a text that is no
    /// attention, "unsupported" for what of the request no expert has.
    static Result<std::vector<std::string>> experts(const Specification& specification, const Request& request);
    /// What can be made of the first expert that rules can change, at most four, the cheapest first: the one that
    /// experts() begins with, unless the model finds another cheaper by more than its own error. Errors: those of
    /// transfer() for the last expert.
    static Result<std::vector<Configuration>> configurations(const Specification& specification, const Request& request,
                                                             const Shape& shape = {});
    /// What is tried in turn until one can be made: experts(), and before them the first of configurations() where that
    /// is another one.
    static Result<std::vector<std::string>> in_turn(const Specification& specification, const Request& request);
    /// From one of them, or in the order of work items that the name ends with (`prefill_sm90/by_head`). Errors: those
    /// of experts(); "no_rule" names what no rule handles; "unsupported" where the expert is for another architecture,
    /// "name" where there is none of that name. Any thread: nothing is built in the specification's own pool of
    /// expressions.
    static Result<Candidate> transfer(const Specification& specification, const Request& request,
                                      const std::string& expert);

    const std::string& expert() const;             ///< "prefill_sm80"
    const std::string& expert_program() const;     ///< CuIR
    const std::string& program() const;            ///< CuIR
    const std::vector<std::string>& rules() const; ///< what was applied, in order
    /// Every element of a tile reads a table beside products of warpgroups, whose registers are given out by hand: the
    /// compiler may run out of them, and the form with fewer keys is worth compiling at the same time.
    bool crowded() const;

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
        /// Kernels with roles of warpgroups: their registers are given out by hand and their products run beside other
        /// work. A compiler that spills or serialises made them another kernel.
        std::vector<std::string> warpgroups;
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
