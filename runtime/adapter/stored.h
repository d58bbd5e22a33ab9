// Which of the stored kernels of a key serves. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/store.h"
#include "cubridge/runtime/artifact.h"
#include <functional>

namespace cubridge::runtime {

/// What a record gives: nothing where it is no artifact or does not fit the text.
using Take = std::function<std::optional<Artifact>(std::optional<cache::Record>)>;

/// In this order: what was tuned on that device (empty: on any), what was made from that text, from any, and last what
/// was tuned on another device.
std::optional<Artifact> best_stored(cache::Store& store, const cache::Digest& key, const cache::Digest& source,
                                    const std::string& device, const Take& take);

} // namespace cubridge::runtime
