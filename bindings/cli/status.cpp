// From what went wrong to an exit status. SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/status.h"

namespace cubridge::cli {

int status_of_kind(const std::string& kind) {
    if (kind == "verify" || kind == "hang") return kUnverified;
    if (kind == "compile" || kind == "gate" || kind == "option" || kind == "empty") return kNotCompiled;
    if (kind == "no_compiler" || kind == "environment" || kind == "no_driver" || kind == "no_device" ||
        kind == "context_lost" || kind == "memory" || kind == "driver" || kind == "busy")
        return kEnvironment;
    return kNoKernel;
}

} // namespace cubridge::cli
