// The worker's side of running kernels. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/worker/messages.h"

namespace cubridge::runtime::worker {

/// Answers until the other end of the socket is closed; an exit status. `ready` holds the build and the process.
int serve_gpu(int socket, const Hello& hello, Ready ready);

} // namespace cubridge::runtime::worker
