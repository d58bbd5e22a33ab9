// The system calls that a confined worker may make.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace cubridge::runtime::worker {

/// Installs the filter in all threads of this process, for good: memory, threads of its own, descriptors that are open,
/// time; with `reading` also opening files to read (Landlock says which). Anything else fails with EPERM. False, and
/// `why`, where the kernel or the machine has no such filter. Needs PR_SET_NO_NEW_PRIVS.
bool filter_system_calls(bool reading, std::string& why);

/// For a process that drives a GPU: all calls but those that reach other processes, the network or the system's
/// settings. Otherwise as above.
bool deny_system_calls(std::string& why);

} // namespace cubridge::runtime::worker
