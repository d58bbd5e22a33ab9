// SPDX-License-Identifier: Apache-2.0
#include "ir/expr/meter.h"
#include "cubridge/ir/error.h"

namespace cubridge::ir {

void Meter::refuse() const {
    fail("limit", "following the text takes more work than a parse is given", {},
         "write the attention with whole-tensor operations, without long loops and with fewer sizes left open");
}

} // namespace cubridge::ir
