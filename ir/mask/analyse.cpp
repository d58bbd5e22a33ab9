// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/mask/extent.h"
#include "ir/mask/ranges.h"

namespace cubridge::ir::mask {

Analysis analyse(ExprPool& pool, Expr keep, Expr keys) {
    Analysis a;
    try {
        Extent extent(pool, a.tables);
        const Truth t = extent.truth(keep);
        a.any = t.any;
        a.every = t.every;
        a.ranges = closed_form(pool, keep, keys ? keys : pool.dim(dims::Sk));
    } catch (const Failure&) { // a constant beyond 64 bits, too many nodes: nothing is known then
        if (!a.any) a.tables.clear();
        a.ranges.clear();
    }
    if (!a.any) a.any = pool.boolean(true);
    if (!a.every) a.every = pool.boolean(false);
    return a;
}

} // namespace cubridge::ir::mask
