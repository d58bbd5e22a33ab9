// Which lines of a file in margin form belong to which statement. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/program.h"
#include "ir/lower/lower.h"
#include <map>

namespace cubridge::ir::lower {

bool closes(const Margin::Segment& s); ///< "# end"

/// Segments by number: the statement's own, and the one that closes its block (of a kernel's name: the kernel).
struct Block {
    std::size_t open = 0, close = 0;
};

using Places = std::map<const cuir::Statement*, Block>;

/// Every segment belongs to one statement; every block is closed by its own `# end`. The program is the margin's lift.
Result<Places> places_of(const Margin& margin, const cuir::Program& program);

} // namespace cubridge::ir::lower
