// Primary contexts and the state of a thread.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver/context.h"
#include "runtime/driver/errors.h"

namespace cubridge::runtime {

Context::Context(std::shared_ptr<Driver> driver, Device device, CUdevice device_handle, CUcontext handle)
    : driver_(std::move(driver)), device_(std::move(device)), device_handle_(device_handle), handle_(handle) {}

// An answer of DEINITIALIZED is what the end of a process looks like: nothing is left to release.
Context::~Context() {
    (void)cuda().cuDevicePrimaryCtxRelease(device_handle_);
}

Outcome<std::shared_ptr<Context>> Context::retain(std::shared_ptr<Driver> driver, int ordinal) {
    auto device = driver->device(ordinal);
    if (!device) return device.fault();
    const auto& cuda = driver->symbols();
    CUdevice device_handle = 0;
    if (const auto code = cuda.cuDeviceGet(&device_handle, ordinal); code != CUDA_SUCCESS)
        return driver_fault(code, "cuDeviceGet");
    CUcontext handle = nullptr;
    if (const auto code = cuda.cuDevicePrimaryCtxRetain(&handle, device_handle); code != CUDA_SUCCESS)
        return driver_fault(code, "cuDevicePrimaryCtxRetain");
    return std::shared_ptr<Context>(new Context(std::move(driver), *std::move(device), device_handle, handle));
}

Outcome<std::size_t> Context::free_memory() const {
    const ScopedContext scope(*this);
    if (!scope.state()) return scope.state().fault();
    std::size_t free = 0, total = 0;
    if (const auto code = cuda().cuMemGetInfo(&free, &total); code != CUDA_SUCCESS)
        return driver_fault(code, "cuMemGetInfo");
    return free;
}

ScopedContext::ScopedContext(const Context& context) : cuda_(context.cuda()) {
    CUcontext current = nullptr;
    if (cuda_.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context.handle()) return;
    const auto code = cuda_.cuCtxPushCurrent(context.handle());
    pushed_ = code == CUDA_SUCCESS;
    if (!pushed_) state_ = driver_fault(code, "cuCtxPushCurrent");
}

ScopedContext::~ScopedContext() {
    CUcontext popped = nullptr;
    if (pushed_) (void)cuda_.cuCtxPopCurrent(&popped);
}

RelaxedCapture::RelaxedCapture(const Symbols& cuda) : cuda_(cuda) {
    exchanged_ = cuda_.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
}

RelaxedCapture::~RelaxedCapture() {
    if (exchanged_) (void)cuda_.cuThreadExchangeStreamCaptureMode(&mode_);
}

} // namespace cubridge::runtime
