// Independent pieces of work on several threads. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>

namespace cubridge::runtime {

/// Calls work(0) to work(count - 1), each once, in no order, on `threads` threads (0: as many as there are cores), the
/// caller's included; returns when all are done. The first exception is thrown again, when the rest has stopped.
void parallel(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

} // namespace cubridge::runtime
