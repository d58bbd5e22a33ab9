// SPDX-License-Identifier: Apache-2.0
#include "cache/file.h"
#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace cubridge::cache {

void File::close() noexcept {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

File open_file(const std::string& path, int flags, unsigned mode) {
    int descriptor;
    do descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    while (descriptor < 0 && errno == EINTR);
    return File(descriptor);
}

bool lock_within(const File& file, int operation, std::chrono::milliseconds patience) {
    using namespace std::chrono;
    const auto end = steady_clock::now() + patience;
    // A blocking flock can't be bounded without signals, which belong to the host: so it is polled, quickly at first,
    // as calls are short.
    for (auto pause = microseconds(100);; pause = std::min<microseconds>(pause * 2, milliseconds(5))) {
        if (flock(file.get(), operation | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK && errno != EINTR) return false;
        if (steady_clock::now() >= end) return false;
        std::this_thread::sleep_for(pause);
    }
}

std::string error_text(int error) {
    return std::generic_category().message(error);
}

} // namespace cubridge::cache
