// Loads cubins eagerly, and launches.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver/library.h"
#include "runtime/driver/elf.h"
#include "runtime/driver/errors.h"
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

constexpr int default_dynamic_shared = 48 * 1024; // above it a kernel has to be told

Fault too_much_shared(const char* name, int wanted, int available) {
    return Fault{"artifact",
                 fmt::format("kernel {} needs {} bytes of shared memory, the device gives {}", name, wanted, available),
                 "the kernel was made for another GPU: make one for this"};
}

} // namespace

Outcome<std::shared_ptr<Library>> Library::load(std::shared_ptr<Context> context, std::span<const std::byte> image) {
    if (!is_whole_elf(image))
        return Fault{"artifact", fmt::format("the cubin of {} bytes is torn or no cubin", image.size()),
                     "it is to be set aside and made again"};
    const ScopedContext scope(*context);
    if (!scope.state()) return scope.state().fault();
    CUlibrary handle = nullptr;
    const auto code =
        context->cuda().cuLibraryLoadData(&handle, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (code != CUDA_SUCCESS) return driver_fault(code, "cuLibraryLoadData");
    return std::shared_ptr<Library>(new Library(std::move(context), handle));
}

Library::~Library() {
    (void)context_->cuda().cuLibraryUnload(handle_);
}

Outcome<Kernel> Library::kernel(const char* name, int dynamic_shared) const {
    const ScopedContext scope(*context_);
    if (!scope.state()) return scope.state().fault();
    const auto& cuda = context_->cuda();
    CUkernel entry = nullptr;
    if (const auto code = cuda.cuLibraryGetKernel(&entry, handle_, name); code != CUDA_SUCCESS) {
        auto fault = driver_fault(code, fmt::format("cuLibraryGetKernel({})", name).c_str());
        if (code == CUDA_ERROR_NOT_FOUND) fault.kind = kind_of(Trouble::Artifact);
        return fault;
    }
    Kernel kernel;
    if (const auto code = cuda.cuKernelGetFunction(&kernel.function, entry); code != CUDA_SUCCESS)
        return driver_fault(code, "cuKernelGetFunction");

    CUresult code = CUDA_SUCCESS;
    const auto read = [&](int& value, CUfunction_attribute attribute) {
        if (code == CUDA_SUCCESS) code = cuda.cuFuncGetAttribute(&value, attribute, kernel.function);
    };
    read(kernel.registers, CU_FUNC_ATTRIBUTE_NUM_REGS);
    read(kernel.local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    read(kernel.static_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    read(kernel.max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    if (code != CUDA_SUCCESS) return driver_fault(code, "cuFuncGetAttribute");

    const int available = context_->device().shared_memory_optin - kernel.static_shared;
    if (dynamic_shared > available) return too_much_shared(name, dynamic_shared, available);
    if (dynamic_shared + kernel.static_shared > default_dynamic_shared) {
        code =
            cuda.cuFuncSetAttribute(kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic_shared);
        if (code != CUDA_SUCCESS) return driver_fault(code, "cuFuncSetAttribute");
    }
    return kernel;
}

Outcome<CUdeviceptr> Library::global(const char* name, std::size_t bytes) const {
    const ScopedContext scope(*context_);
    if (!scope.state()) return scope.state().fault();
    const auto& cuda = context_->cuda();
    CUdeviceptr at = 0;
    std::size_t size = 0;
    const auto code = cuda.cuLibraryGetGlobal != nullptr ? cuda.cuLibraryGetGlobal(&at, &size, handle_, name)
                                                         : CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER;
    if (code == CUDA_SUCCESS && size == bytes) return at;
    if (code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_FOUND)
        return Fault{"artifact", fmt::format("the cubin has no variable {} of {} bytes", name, bytes)};
    return driver_fault(code, "cuLibraryGetGlobal");
}

Outcome<void> launch(const Context& context, const Kernel& kernel, const LaunchShape& shape, void** arguments,
                     CUstream stream) {
    const auto& [grid, block, shared] = shape;
    const auto code = context.cuda().cuLaunchKernel(kernel.function, grid[0], grid[1], grid[2], block[0], block[1],
                                                    block[2], shared, stream, arguments, nullptr);
    if (code == CUDA_SUCCESS) return {};
    auto fault = driver_fault(code, "cuLaunchKernel");
    fault.detail = fmt::format("grid {} x {} x {}, block {} x {} x {} (at most {} threads), {} bytes of shared memory",
                               grid[0], grid[1], grid[2], block[0], block[1], block[2], kernel.max_threads, shared);
    return fault;
}

} // namespace cubridge::runtime
