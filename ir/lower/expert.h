// An expert's file with all that lowering asks about it. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/lower/facts.h"
#include "ir/lower/regions.h"

namespace cubridge::ir::lower {

/// Movable: the statements that `places` and `analysis` point to stay where they are.
struct Expert {
    Margin margin;
    cuir::Program program;
    Places places;
    Analysis analysis;

    static Result<Expert> read(std::string_view text);
};

} // namespace cubridge::ir::lower
