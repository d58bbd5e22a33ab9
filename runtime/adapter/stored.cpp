// SPDX-License-Identifier: Apache-2.0
#include "runtime/adapter/stored.h"
#include <fmt/format.h>

namespace cubridge::runtime {

std::optional<Artifact> best_stored(cache::Store& store, const cache::Digest& key, const cache::Digest& source,
                                    const std::string& device, const Take& take) {
    using cache::Summary;
    // As BuildId::text() and Artifact::to_record() write them.
    const std::string text = " text=" + source.hex(16), here = fmt::format(" tuned=\"{}\"", device);
    const auto has = [](const Summary& s, const std::string& what) { return s.build.find(what) != s.build.npos; };
    const auto is_tuned = [&](const Summary& s) { return has(s, " tuned=\""); };
    bool elsewhere = false;
    const auto fits = [&](const Summary& s) {
        const bool other = !device.empty() && is_tuned(s) && !has(s, here);
        elsewhere = elsewhere || other;
        return !other;
    };
    const auto own = [&](const Summary& s) { return fits(s) && s.build.ends_with(text); };
    auto record =
        store.find(key, [&](const Summary& s) { return fits(s) && (is_tuned(s) || s.build.ends_with(text)); });
    const bool some = record.has_value();
    auto found = take(std::move(record));
    if (!found && some) found = take(store.find(key, own)); // what was tuned is another text's
    if (!found) found = take(store.find(key, fits));
    if (!found && elsewhere) found = take(store.find(key));
    return found;
}

} // namespace cubridge::runtime
