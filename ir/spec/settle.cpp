// The last steps of a parse: certification of the Scalar, recognising the Variant, naming the Subject.
// SPDX-License-Identifier: Apache-2.0
#include "ir/spec/state.h"

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
    state.subject = "cubridge-program 1\n" + debug_text(s.out[0].body) + "\n";
}

} // namespace cubridge::ir::spec
