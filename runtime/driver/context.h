// A device's primary context, and what a thread has to do to work in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/driver.h"
#include "runtime/driver/symbols.h"

namespace cubridge::runtime {

/// The primary context of one device, retained for as long as this lives: the one that PyTorch and the CUDA runtime use
/// too. Never created with flags of ours, never reset. Any thread. Retaining takes 125 ms where the process has none
/// yet.
class Context {
public:
    static Outcome<std::shared_ptr<Context>> retain(std::shared_ptr<Driver> driver, int ordinal);
    ~Context();

    const Symbols& cuda() const { return driver_->symbols(); }
    const Device& device() const { return device_; }
    CUcontext handle() const { return handle_; }

    /// Bytes free on the device now, other processes counted.
    Outcome<std::size_t> free_memory() const;

    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

private:
    Context(std::shared_ptr<Driver> driver, Device device, CUdevice device_handle, CUcontext handle);

    const std::shared_ptr<Driver> driver_;
    const Device device_;
    const CUdevice device_handle_;
    const CUcontext handle_;
};

/// Makes a context the thread's current one until the end of the scope. A thread may have any other, or none, before:
/// both happen in engines. Costs one query where it is current already.
class ScopedContext {
public:
    explicit ScopedContext(const Context& context);
    ~ScopedContext();
    /// What the push answered; nothing else may be called if it is a Fault.
    const Outcome<void>& state() const { return state_; }

    ScopedContext(const ScopedContext&) = delete;
    ScopedContext& operator=(const ScopedContext&) = delete;

private:
    const Symbols& cuda_;
    bool pushed_ = false;
    Outcome<void> state_;
};

/// Puts the calling thread into RELAXED capture mode until the end of the scope: in the default mode a mere cuMemAlloc
/// here invalidates a GLOBAL capture that another thread is making. Every thread of ours lives inside one of these.
class RelaxedCapture {
public:
    explicit RelaxedCapture(const Symbols& cuda);
    ~RelaxedCapture();

    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

private:
    const Symbols& cuda_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool exchanged_ = false;
};

} // namespace cubridge::runtime
