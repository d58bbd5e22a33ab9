// SPDX-License-Identifier: Apache-2.0
#include "cache/warner.h"
#include "cache/fork_guard.h"

namespace cubridge::cache {

std::string_view name(Trouble trouble) {
    switch (trouble) {
    case Trouble::NETWORK_FILE_SYSTEM: return "network_file_system";
    case Trouble::UNTRUSTED: return "untrusted";
    case Trouble::UNWRITABLE: return "unwritable";
    case Trouble::WRITE_FAILED: return "write_failed";
    case Trouble::CORRUPT: return "corrupt";
    case Trouble::UNKNOWN_FORMAT: return "unknown_format";
    case Trouble::QUARANTINED: return "quarantined";
    case Trouble::UNREADABLE: return "unreadable";
    }
    return "unknown";
}

void Warner::say(Trouble trouble, const std::string& path, const std::string& message) noexcept {
    constexpr std::int64_t HOUR = 3600;
    try {
        if (!callback_) return;
        const auto now = clock_();
        {
            const Visit visit;
            if (!visit.safe()) return;
            std::lock_guard lock(mutex_);
            auto& said = said_.at(static_cast<std::size_t>(trouble));
            if (said && (trouble != Trouble::WRITE_FAILED || now - *said < HOUR)) return;
            said = now;
        }
        callback_(Warning{trouble, path, message});
    } catch (...) { // the host's callback must not bring down a look-up
    }
}

} // namespace cubridge::cache
