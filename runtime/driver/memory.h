// Device memory of our own. Serving never allocates: only checks, the verifier and preparation do.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/driver/context.h"
#include <cstddef>
#include <cstdint>

namespace cubridge::runtime {

/// Bytes on one device, freed with the object: only after every stream has passed their last use. Offsets and sizes are
/// in bytes and must lie inside. Any thread; inside a RelaxedCapture wherever somebody may be capturing.
class Buffer {
public:
    /// Aligned to 256 bytes, contents undefined. Zero bytes give a buffer with address 0. Faults: "memory", "capture".
    static Outcome<std::shared_ptr<Buffer>> allocate(std::shared_ptr<Context> context, std::size_t bytes);
    ~Buffer();

    CUdeviceptr address() const { return address_; }
    std::size_t bytes() const { return bytes_; }

    /// Both enqueue and return; host memory must stay as it is until the stream has passed the copy.
    Outcome<void> upload(const void* from, std::size_t bytes, CUstream stream, std::size_t offset = 0) const;
    Outcome<void> download(void* to, std::size_t bytes, CUstream stream, std::size_t offset = 0) const;
    /// Enqueues; every byte becomes `value`, or every 32-bit word (the size must be a multiple of 4).
    Outcome<void> fill(std::uint8_t value, CUstream stream) const;
    Outcome<void> fill_words(std::uint32_t value, CUstream stream) const;

    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

private:
    Buffer(std::shared_ptr<Context> context, CUdeviceptr address, std::size_t bytes)
        : context_(std::move(context)), address_(address), bytes_(bytes) {}
    Outcome<void> inside(std::size_t bytes, std::size_t offset) const;

    const std::shared_ptr<Context> context_;
    const CUdeviceptr address_;
    const std::size_t bytes_;
};

} // namespace cubridge::runtime
