// What a kernel computes for each element of a tile of scores. Private to ir/cost. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/program.h"

namespace cubridge::ir::cost {

/// Operations an element, as the program's statements have them: a multiply-add is one.
struct Operations {
    double plain = 0;   ///< an issue slot each
    double special = 0; ///< of the special-function unit: exp2, reciprocals, ...
    double gathers = 0; ///< reads of a table at an index of the element's own

    Operations& operator+=(const Operations& o) {
        plain += o.plain, special += o.special, gathers += o.gathers;
        return *this;
    }
};

struct TileWork {
    Operations every, masked; ///< of every tile; beside that, of tiles that need the mask
};

/// Of a step of the loop that has the products: branches under a condition are seldom taken, but for `if masked`; of
/// two, the second is usual.
TileWork work_of(const cuir::Kernel& kernel);

} // namespace cubridge::ir::cost
