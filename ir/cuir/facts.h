// What a value is, as far as the text tells: in which base a score is, whether it is masked, whether a row statistic is
// complete, whether warps of one agent may disagree about it. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/code.h"

namespace cubridge::ir::cuir {

struct Fact {
    enum class Statistic : std::uint8_t {
        None,
        Zero,     ///< a constant 0: nothing to add up
        Partial,  ///< each thread holds a share of it
        Compared, ///< what a comparison of a partial one gave: for a vote only
        Complete,
    };
    /// By which power of log2(e) a natural score was multiplied: 0 natural, 1 for exp2. Constants fit everywhere.
    enum : int { kConstant = 1000, kUnknown = 1001 };

    Statistic statistic = Statistic::None;
    int base = kConstant;
    bool factor = false; ///< a number of the text that may hide a change of base
    bool score = false, masked = false, weight = false;
    bool loaded = false; ///< from an operand, with real values
    bool minus_inf = false;
    bool vote = false;
    bool unset = false;      ///< a name that has no value on this path
    std::vector<Fact> items; ///< of a tuple

    bool operator==(const Fact&) const = default;
};

/// On either of two paths.
Fact join(const Fact& a, const Fact& b);
Fact fact_of(const Value& number);
Fact fact_of(const Expr& constant);

/// Operators on facts; what they must not be given is said through found().
class FactRules {
public:
    virtual ~FactRules() = default;
    Fact elementwise(Op op, const std::vector<Fact>& x);
    /// A partial statistic is used whole in `where`.
    void whole(const Fact& f, const char* where);

protected:
    virtual void found(std::string message) = 0;

private:
    Fact function(Op op, const Fact& x, Fact out);
    int together(const Fact& a, const Fact& b, const char* how);
    Fact::Statistic sum_of(const Fact& a, const Fact& b);
};

} // namespace cubridge::ir::cuir
