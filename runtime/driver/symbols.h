// The one table of libcuda symbols: every driver call of the library goes through it. Filled by dlopen at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/fault.h"
#include <cuda.h>

// cuda.h maps cuMemAlloc to cuMemAlloc_v2 and so on. The names below pass through those macros, so that the member, its
// type and the symbol looked up are always the same version: the one that this build's headers declare.
#define CUBRIDGE_CUDA_SYMBOLS(REQUIRED, OPTIONAL)                                                                      \
    REQUIRED(cuInit)                                                                                                   \
    REQUIRED(cuDriverGetVersion)                                                                                       \
    REQUIRED(cuDeviceGetCount)                                                                                         \
    REQUIRED(cuDeviceGet)                                                                                              \
    REQUIRED(cuDeviceGetName)                                                                                          \
    REQUIRED(cuDeviceGetUuid)                                                                                          \
    REQUIRED(cuDeviceGetAttribute)                                                                                     \
    REQUIRED(cuDeviceTotalMem)                                                                                         \
    REQUIRED(cuDevicePrimaryCtxRetain)                                                                                 \
    REQUIRED(cuDevicePrimaryCtxRelease)                                                                                \
    REQUIRED(cuCtxPushCurrent)                                                                                         \
    REQUIRED(cuCtxPopCurrent)                                                                                          \
    REQUIRED(cuCtxGetCurrent)                                                                                          \
    REQUIRED(cuThreadExchangeStreamCaptureMode)                                                                        \
    REQUIRED(cuLibraryLoadData)                                                                                        \
    REQUIRED(cuLibraryUnload)                                                                                          \
    REQUIRED(cuLibraryGetKernel)                                                                                       \
    REQUIRED(cuKernelGetFunction)                                                                                      \
    REQUIRED(cuFuncGetAttribute)                                                                                       \
    REQUIRED(cuFuncSetAttribute)                                                                                       \
    REQUIRED(cuLaunchKernel)                                                                                           \
    REQUIRED(cuMemGetInfo)                                                                                             \
    REQUIRED(cuMemAlloc)                                                                                               \
    REQUIRED(cuMemFree)                                                                                                \
    REQUIRED(cuMemcpyHtoDAsync)                                                                                        \
    REQUIRED(cuMemcpyDtoHAsync)                                                                                        \
    REQUIRED(cuMemsetD8Async)                                                                                          \
    REQUIRED(cuMemsetD32Async)                                                                                         \
    REQUIRED(cuStreamCreate)                                                                                           \
    REQUIRED(cuStreamDestroy)                                                                                          \
    REQUIRED(cuStreamSynchronize)                                                                                      \
    REQUIRED(cuStreamQuery)                                                                                            \
    REQUIRED(cuStreamIsCapturing)                                                                                      \
    REQUIRED(cuStreamBeginCapture)                                                                                     \
    REQUIRED(cuStreamEndCapture)                                                                                       \
    REQUIRED(cuGraphInstantiateWithFlags)                                                                              \
    REQUIRED(cuGraphLaunch)                                                                                            \
    REQUIRED(cuGraphDestroy)                                                                                           \
    REQUIRED(cuGraphExecDestroy)                                                                                       \
    REQUIRED(cuEventCreate)                                                                                            \
    REQUIRED(cuEventDestroy)                                                                                           \
    REQUIRED(cuEventRecord)                                                                                            \
    REQUIRED(cuEventQuery)                                                                                             \
    REQUIRED(cuEventSynchronize)                                                                                       \
    OPTIONAL(cuEventElapsedTime)                                                                                       \
    OPTIONAL(cuLaunchKernelEx)                                                                                         \
    OPTIONAL(cuLibraryGetKernelCount)                                                                                  \
    OPTIONAL(cuLibraryGetGlobal)                                                                                       \
    OPTIONAL(cuTensorMapEncodeTiled)

namespace cubridge::runtime {

/// Pointers into libcuda. A required one is never null in a table that `load_symbols` gave; an optional one may be, on
/// an older driver. Immutable; any thread.
struct Symbols {
#define CUBRIDGE_MEMBER(name) decltype(&::name) name = nullptr; // NOLINT(bugprone-macro-parentheses)
    CUBRIDGE_CUDA_SYMBOLS(CUBRIDGE_MEMBER, CUBRIDGE_MEMBER)
#undef CUBRIDGE_MEMBER
};

/// Opens `file` and fills the table. The library stays open until the process ends: its own exit handlers need it.
/// Calls nothing in it. Faults: "no_driver", naming the file, or the symbols that the driver is too old to have.
Outcome<Symbols> load_symbols(const char* file);

} // namespace cubridge::runtime
