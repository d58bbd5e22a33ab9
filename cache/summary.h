// Rules that all stores share: which record is better, what may be published.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/store.h"

namespace cubridge::cache {

inline constexpr std::int64_t LARGEST_RECORD = std::int64_t{256} << 20;
inline constexpr std::int64_t COARSE_USE = 3600; ///< seconds within which a second use is not written

Summary summarise(const Record& record, std::int64_t used);

/// True if `a` is to be served rather than `b`, of the same key. Equal ones: false.
bool better(const Summary& a, const Summary& b);

/// OK, INVALID or TOO_LARGE.
Outcome check_publishable(const Record& record, std::int64_t budget);

} // namespace cubridge::cache
