// What a Specification holds, shared by the files that make it. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/spec/interpreter.h"
#include "ir/spec/scalar.h"
#include "ir/spec/variant.h"
#include <array>
#include <set>

namespace cubridge::ir {

struct Specification::State {
    Source source;
    syntax::NodePtr module;
    syntax::NodePtr wrapper; ///< the attention around FlexAttention functions; else null
    std::string function;    ///< that is called: source.function, or the wrapper's
    Scalar scalar;
    std::optional<Variant> variant;
    std::string subject, no_variant_reason;
    std::vector<std::string> notes;
};

namespace spec {

class ConcreteDomain;

/// What FlexAttention does with a score_mod and a mask_mod, as a text; empty where `function` is no such function.
std::string flex_wrapper(const syntax::Node& module, const Source& source);

/// Calls the specification's function in `domain` with `arguments` in the order of inputs; module globals among the
/// inputs are given through `on_global`. Returns the outputs: one tensor, or an output and an LSE. `where`, if not
/// null, gets the place that the text came to last, also where it throws.
std::vector<TensorRef> follow(const Specification::State& state, Domain& domain, const std::vector<Value>& parameters,
                              const std::function<Value(const std::string&, const Value&)>& on_global, Span* where);

/// Infers ranks, types, statics and sizes, and traces the text. Fills scalar and notes; throws Failure.
void resolve(Specification::State& state, const ParseOptions& options);

/// The text on arrays; throws Failure. `meter`, if any, counts the work of a parse.
std::vector<Array> evaluate_text(const Specification::State& state, const std::vector<Argument>& inputs,
                                 std::int64_t budget, Meter* meter = nullptr);
/// The same in a domain of the caller's. `where`, if not null, gets the place that the text came to last.
std::vector<Array> evaluate_text(const Specification::State& state, const std::vector<Argument>& inputs,
                                 ConcreteDomain& domain, Span* where);
/// Any expressions over the specification's inputs, by the sizes that the inputs have. `meter` as above; with one, the
/// arrays of all nodes together are bounded as well.
std::vector<Array> evaluate_outputs(const Scalar& scalar, const std::vector<ScalarOutput>& out,
                                    const std::vector<Argument>& inputs, Meter* meter = nullptr);

/// Random inputs for the sizes: what certification and `check` draw. Values of Int operands are drawn so that
/// comparisons and indices hit their edges.
/// Signed: numbers of either sign and 0. Nothing: every integer 0, every truth value false.
enum class Draw { Usual, Signed, Nothing };
std::vector<Argument> random_inputs(const Scalar& scalar, const std::map<int, std::int64_t>& dims, std::uint64_t seed,
                                    Draw draw = Draw::Usual, Meter* meter = nullptr);
/// Small sizes that satisfy the facts, edges first, each once.
std::vector<std::map<int, std::int64_t>> small_sizes(const Scalar& scalar, std::uint64_t seed);
/// Sizes near those (B, Hk, group, Sq, Sk, D, Dv) that satisfy the facts; nothing where they can't be bent to them.
/// `tables`: of captured axes that the text leaves free.
std::optional<std::map<int, std::int64_t>> sizes_near(const Scalar& scalar, const std::array<std::int64_t, 7>& wanted,
                                                      std::int64_t tables, std::uint64_t seed);
/// A few sizes beyond the numbers that the text writes or holds (`j < 100`), and more heads; at a bounded cost.
std::vector<std::map<int, std::int64_t>> crossing_sizes(const Scalar& scalar, std::uint64_t seed);
/// Integers that the text writes, or that its constants are; not those that operands hold. Absolute values, 4 and up.
std::set<std::int64_t> numbers_of(const Scalar& scalar);
/// Do the sizes go beyond all such numbers in `e`?
bool is_crossed(const Scalar& scalar, Expr e, const std::vector<std::map<int, std::int64_t>>& sizes);

/// Throws Failure of kind "internal" naming the shape where Scalar and text disagree. Says how many shapes were
/// compared.
int certify_scalar(const Specification::State& state, std::uint64_t seed);
/// What rows without keys give, found on a case that has such rows; Never where no case has one, nothing where it is
/// none of the known answers.
std::optional<Part::Empty> find_empty(const Specification::State& state, const Variant& v);
/// Is the Variant the text where captured biases are -inf, in some rows throughout?
bool certify_hidden(const Specification::State& state, const std::vector<ScalarOutput>& out,
                    const std::set<int>& biases, std::uint64_t seed);
/// Joins the branches on sizes into the outputs.
void join_branches(Scalar& scalar);
/// Certifies, recognises the Variant and names the Subject. Throws Failure.
void settle(Specification::State& state, const ParseOptions& options);
/// Nothing, or where other outputs than the Scalar's (a Variant's) differ from the text.
std::string certify_variant(const Specification::State& state, const std::vector<ScalarOutput>& out,
                            std::uint64_t seed);

} // namespace spec
} // namespace cubridge::ir
