// The last steps of a parse: certification of the Scalar, recognising the Variant, naming the Subject.
// SPDX-License-Identifier: Apache-2.0
#include "ir/spec/state.h"
#include "ir/spec/variant/match.h"
#include <algorithm>

namespace cubridge::ir::spec {

void settle(Specification::State& state, const ParseOptions& options) {
    Scalar& s = state.scalar;
    if (options.certify) {
        if (!s.branches.empty()) { // do the branches on sizes say anything that the general way does not?
            try {
                certify_scalar(state, options.seed);
                s.branches.clear();
            } catch (const Failure&) {
                join_branches(s);
                certify_scalar(state, options.seed);
            }
        } else {
            certify_scalar(state, options.seed);
        }
    } else {
        join_branches(s);
    }
    const std::vector<Fact> facts = s.facts;
    try {
        Variant v = variant::match(s);
        variant::canonicalise(s, v);
        s.facts.insert(s.facts.end(), v.facts.begin(), v.facts.end());
        const auto is_open = [](const Part& p) { return p.empty == Part::Empty::Other; };
        auto empty = Part::Empty::Zero;
        if (options.certify && std::any_of(v.parts.begin(), v.parts.end(), is_open)) {
            const auto found = find_empty(state, v);
            if (!found) fail("unsupported", "rows without keys give something of their own");
            empty = *found;
            for (Part& p : v.parts)
                if (is_open(p)) p.empty = empty;
        }
        if (options.certify) {
            const std::string d = certify_variant(state, variant::expand(s, v, empty), options.seed);
            if (!d.empty()) fail("unsupported", "the recognised form is not the text: " + d);
            const auto biases = variant::additive_biases(v);
            if (!biases.empty() && !certify_hidden(state, variant::expand(s, v, empty), biases, options.seed)) {
                for (Part& p : v.parts)
                    p.empty = Part::Empty::Zero; // rows can be empty after all, and the text minds them
                if (!certify_hidden(state, variant::expand(s, v, Part::Empty::Zero), biases, options.seed) ||
                    !certify_variant(state, variant::expand(s, v, Part::Empty::Zero), options.seed).empty())
                    fail("unsupported", "rows whose biases are -inf throughout give something of their own");
            }
        }
        v.row_is_empty = empty_row(v);
        v.row_lse = natural_lse(v);
        variant::write_text(s, v);
        state.subject = v.text;
        state.variant = std::move(v);
    } catch (const Failure& f) {
        if (f.error.kind == "limit") throw;
        s.facts = facts;
        state.no_variant_reason = f.error.message;
        state.subject = variant::program_text(s);
    }
}

} // namespace cubridge::ir::spec
