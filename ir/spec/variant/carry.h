// A Variant in a pool of its own, so that rules may build in it on any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/spec/variant.h"

namespace cubridge::ir {

/// A copy that shares nothing. `tail`: the queries are the last rows of a square text: the text's Sq is Sk, and row i
/// of the kernel is the text's row i + Sk - Sq, for everything but the loads of q. Rows before the text's first keep no
/// key: they are 0, and -inf as LSE, which a part that is never empty then is able to be.
Variant carry(const Variant& variant, bool tail);

} // namespace cubridge::ir
