// Device memory of our own.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver/memory.h"
#include "runtime/driver/call.h"
#include <fmt/format.h>

namespace cubridge::runtime {

Outcome<std::shared_ptr<Buffer>> Buffer::allocate(std::shared_ptr<Context> context, std::size_t bytes) {
    CUdeviceptr address = 0;
    if (bytes > 0) {
        auto done =
            within(*context, "cuMemAlloc", [&](const Symbols& cuda) { return cuda.cuMemAlloc(&address, bytes); });
        if (!done) {
            Fault fault = done.fault();
            fault.detail = fmt::format("{} bytes were asked for", bytes);
            return fault;
        }
    }
    return std::shared_ptr<Buffer>(new Buffer(std::move(context), address, bytes));
}

Buffer::~Buffer() {
    if (address_ != 0)
        (void)within(*context_, "cuMemFree", [&](const Symbols& cuda) { return cuda.cuMemFree(address_); });
}

Outcome<void> Buffer::inside(std::size_t bytes, std::size_t offset) const {
    if (offset <= bytes_ && bytes <= bytes_ - offset) return {};
    return Fault{"driver", fmt::format("a copy of {} bytes at {} leaves a buffer of {}", bytes, offset, bytes_), "",
                 static_cast<int>(CUDA_ERROR_INVALID_VALUE)};
}

Outcome<void> Buffer::upload(const void* from, std::size_t bytes, CUstream stream, std::size_t offset) const {
    if (auto fits = inside(bytes, offset); !fits || bytes == 0) return fits;
    return within(*context_, "cuMemcpyHtoDAsync",
                  [&](const Symbols& cuda) { return cuda.cuMemcpyHtoDAsync(address_ + offset, from, bytes, stream); });
}

Outcome<void> Buffer::download(void* to, std::size_t bytes, CUstream stream, std::size_t offset) const {
    if (auto fits = inside(bytes, offset); !fits || bytes == 0) return fits;
    return within(*context_, "cuMemcpyDtoHAsync",
                  [&](const Symbols& cuda) { return cuda.cuMemcpyDtoHAsync(to, address_ + offset, bytes, stream); });
}

Outcome<void> Buffer::fill(std::uint8_t value, CUstream stream) const {
    if (bytes_ == 0) return {};
    return within(*context_, "cuMemsetD8Async",
                  [&](const Symbols& cuda) { return cuda.cuMemsetD8Async(address_, value, bytes_, stream); });
}

Outcome<void> Buffer::fill_words(std::uint32_t value, CUstream stream) const {
    if (bytes_ == 0) return {};
    return within(*context_, "cuMemsetD32Async",
                  [&](const Symbols& cuda) { return cuda.cuMemsetD32Async(address_, value, bytes_ / 4, stream); });
}

} // namespace cubridge::runtime
