// Threads of ours: all signals blocked, named, joined. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <thread>

namespace cubridge::runtime {

/// Starts a thread on which no signal of the process is delivered. `name`: at most 15 bytes. Throws std::system_error
/// where the system has no thread left.
std::thread start_thread(std::string name, std::function<void()> body);

} // namespace cubridge::runtime
