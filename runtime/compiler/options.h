// What a compile may be asked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/compiler/nvrtc_library.h"

namespace cubridge::runtime {

/// Checks name, arch and options of a job. Faults: "arch", listing what this NVRTC has; "option": only those pass that
/// read and write no file and leave the language as it is, since NVRTC would also take include folders, response files
/// and traces.
Outcome<void> check_options(const CompileJob& job, const std::vector<int>& archs);

/// The options that every compile gets, before the job's own. The report of ptxas changes the cubin's bytes, so it is
/// always on.
std::vector<std::string> standing_options(const std::string& arch);

/// Those among them that an older NVRTC may not know; a compile works without.
const std::vector<std::string>& dispensable_options();

} // namespace cubridge::runtime
