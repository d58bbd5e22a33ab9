// Is a query one that can be asked, and what does it ask of ir? SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/engine.h"

namespace cubridge::runtime {

/// Misuse where a field has no meaning. Ok with `reasons` set where it has one that no kernel of this version meets.
Verdict admit(const Query& query, std::uint32_t& reasons, std::string& why);

/// Of an admitted query. `arch` is the query's, or the device's where that is empty.
ir::Request request_of(const Query& query, const std::string& arch);

std::string arch_of(const Query& query);

} // namespace cubridge::runtime
