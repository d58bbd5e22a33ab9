// What a CUresult means for us, and its text.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/fault.h"
#include <cuda.h>

namespace cubridge::runtime {

/// What the caller has to do about an error, which is all that tells one from another.
enum class Trouble {
    None,
    Artifact,    ///< this cubin can't be used on this device or driver: set it aside and make it again
    ContextLost, ///< sticky: the context, and with it the process's use of the GPU, is gone. Never blame a stored
                 ///< kernel
    Memory,      ///< the device's memory is full
    Capture,     ///< not allowed while a stream is being captured
    Busy,        ///< not done yet, or the device is held by another process: try later
    NoDevice,    ///< no GPU that this process may use
    Other,
};

Trouble trouble_of(CUresult code);

/// The stable word that `Fault::kind` carries.
const char* kind_of(Trouble trouble);

/// "CUDA_ERROR_INVALID_IMAGE" for the codes this library knows, "CUresult 1234" for others. Needs no driver.
std::string name_of(CUresult code);

/// The Fault of a call that answered `code`: "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1)", with what to do about it.
Fault driver_fault(CUresult code, const char* call);

} // namespace cubridge::runtime
