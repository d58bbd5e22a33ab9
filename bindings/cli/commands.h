// The commands: each takes the options and answers an exit status. They may throw Usage.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bindings/cli/options.h"

namespace cubridge::cli {

int adapt(const Options& options);
int check(const Options& options);
int specs(const Options& options);
int cache_command(const Options& options);
int info(const Options& options);
int lower(const Options& options);
int lift(const Options& options);
int exec(const Options& options);
int explain(const Options& options);
int sanitize(const Options& options); ///< check --sanitize
int worker(const Options& options);   ///< started by the library, by nobody else

const char* help_of(const std::string& command); ///< of a command; of all for an unknown or empty name

} // namespace cubridge::cli
