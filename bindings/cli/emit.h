// --emit: an adaptation as files. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/adapter.h"
#include <string>

namespace cubridge::cli {

/// Writes variant.txt, kernel.cu, kernel.cubin, plan.txt (those there are) and report.json into `folder`, which is made
/// if need be. Returns what went wrong, or an empty text.
std::string emit(const std::string& folder, const ir::Specification* specification, const runtime::Report& report,
                 const std::string& json);

} // namespace cubridge::cli
