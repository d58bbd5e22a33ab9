// File descriptors and flock. Nothing here throws.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <string>
#include <utility>

namespace cubridge::cache {

/// Owns a descriptor.
class File {
public:
    File() = default;
    explicit File(int descriptor) : descriptor_(descriptor) {}
    File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    File& operator=(File&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~File() { close(); }
    void close() noexcept;
    int get() const { return descriptor_; }
    explicit operator bool() const { return descriptor_ >= 0; }

private:
    int descriptor_ = -1;
};

/// open(2) with O_CLOEXEC, restarted after signals.
File open_file(const std::string& path, int flags, unsigned mode = 0);

/// flock that gives up after `patience`; operation is LOCK_SH or LOCK_EX.
bool lock_within(const File& file, int operation, std::chrono::milliseconds patience);

/// errno as text, "No space left on device".
std::string error_text(int error);

} // namespace cubridge::cache
