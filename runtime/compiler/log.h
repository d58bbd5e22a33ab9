// What may be shown of an NVRTC log, and what ptxas says in it about the kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/compiler.h"

namespace cubridge::runtime {

/// The lines of `log` about the job's source or its headers, and those of the tools themselves. A compiler that was
/// made to include a file of the host quotes it in its log, and logs are shown to language models: so messages about
/// any other file go, with all that follows them, and so does a quoted line that is not in one of our texts. Reports of
/// ptxas go too.
std::string cut_log(const std::string& log, const CompileJob& job);

/// Registers, stack, spills, shared memory and barriers of each entry, in the order of compiling.
std::vector<CompiledEntry> entries_of(const std::string& log);

/// CompileResult::remarks: lines of ptxas with a number of its family for warpgroups (C7510, C7517, ...), or that say
/// the same without one.
std::vector<std::string> remarks_of(const std::string& log);

} // namespace cubridge::runtime
