// The message of a thread, and the version.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/c/handles.h"
#include <algorithm>

namespace cubridge::c {
namespace {

thread_local char message[4096];

} // namespace

void set_message(std::string_view text) noexcept {
    const std::size_t size = std::min(text.size(), sizeof message - 1);
    std::memcpy(message, text.data(), size);
    message[size] = 0;
}

} // namespace cubridge::c

const char* cubridge_message(void) {
    return cubridge::c::message;
}

int32_t cubridge_version(void) {
    return CUBRIDGE_VERSION;
}
