// cubridge worker: the role in which the library starts this executable. SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/worker.h"
#include "bindings/cli/commands.h"
#include "bindings/cli/status.h"

namespace cubridge::cli {

int worker(const Options& options) {
    constexpr int kSocket = 3; // where the library puts it
    const int status = options.words.empty() ? runtime::serve_as_worker(kSocket) : kUsage;
    if (status == kUsage) throw Usage("worker is what the library starts for itself; it is of no use by hand");
    return status;
}

} // namespace cubridge::cli
