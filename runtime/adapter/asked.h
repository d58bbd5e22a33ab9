// What a kernel was made for, as JSON: in reports, and in records to verify it again. SPDX-License-Identifier:
// Apache-2.0
#pragma once
#include "cubridge/runtime/artifact.h"

namespace cubridge::runtime {

/// Without its arch, which stands beside it.
Json json_of(const ir::Request& request);
/// Without the text, which may be no UTF-8.
Json json_of(const Asked& asked);
/// Nothing where it is not what json_of() wrote.
std::optional<Asked> asked_of(const Json& json, const std::string& text, const std::string& arch);

} // namespace cubridge::runtime
