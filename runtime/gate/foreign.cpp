// SPDX-License-Identifier: Apache-2.0
#include "runtime/gate/foreign.h"
#include <fmt/format.h>

namespace cubridge::runtime::gates {

Outcome<CompileResult> guarded(const CompileJob& job, const std::function<Outcome<CompileResult>()>& compile) {
    if (!job.foreign) return compile();
    for (const auto& option : job.options)
        if (option.find("define-macro") != option.npos)
            return Fault{"gate", fmt::format("a foreign text is compiled without {}", option),
                         "write it into the text"};
    if (job.declared.kernels.empty()) return Fault{"gate", "a foreign text that declares no kernels", "see Declared"};
    const auto constants = text_gate(job.source, job.declared);
    if (!constants) return constants.fault();
    auto result = compile();
    if (!result) return result;
    if (auto fine = cubin_gate(result->cubin, job.declared, *constants); !fine) return fine.fault();
    return result;
}

} // namespace cubridge::runtime::gates
