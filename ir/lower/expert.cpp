// An expert's file, read. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/expert.h"

namespace cubridge::ir::lower {

Result<Expert> Expert::read(std::string_view text) {
    try {
        auto margin = take_apart(text);
        if (!margin) return margin.error();
        auto program = lift(text);
        if (!program) return program.error();
        auto at = places_of(*margin, *program);
        if (!at) return at.error();
        auto analysis = analyse(*program);
        return Expert{std::move(*margin), std::move(*program), std::move(*at), std::move(analysis)};
    } catch (const Failure& f) {
        return f.error;
    }
}

} // namespace cubridge::ir::lower
