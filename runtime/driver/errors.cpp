// What each CUresult means for us. Names are kept here too, so that a text needs no driver.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver/errors.h"
#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace cubridge::runtime {
namespace {

struct Row {
    int code;
    Trouble trouble;
    const char* name;
    const char* hint;
};

// Sorted by code. What is not here is Other, without a hint.
constexpr Row rows[] = {
    {1, Trouble::Other, "INVALID_VALUE",
     "an argument is outside what the call accepts: check sizes, grid, block and shared memory"},
    {2, Trouble::Memory, "OUT_OF_MEMORY",
     "free device memory, or ask for kernels before the engine reserves the rest of it"},
    {3, Trouble::Other, "NOT_INITIALIZED",
     "in a child of fork() the driver can't be used: start the process anew (exec, spawn)"},
    {4, Trouble::Other, "DEINITIALIZED", "the process is ending; nothing needs to be done"},
    {34, Trouble::NoDevice, "STUB_LIBRARY",
     "a toolkit's stub of libcuda was opened: take its folder out of LD_LIBRARY_PATH"},
    {36, Trouble::Other, "CALL_REQUIRES_NEWER_DRIVER", "update the NVIDIA driver"},
    {46, Trouble::Busy, "DEVICE_UNAVAILABLE",
     "another process holds the GPU (compute mode EXCLUSIVE_PROCESS, or MPS): release it or name another GPU"},
    {100, Trouble::NoDevice, "NO_DEVICE",
     "no GPU is visible: check nvidia-smi, CUDA_VISIBLE_DEVICES and the container's device access"},
    {101, Trouble::NoDevice, "INVALID_DEVICE", "there is no such device: ordinals count the visible GPUs from 0"},
    {200, Trouble::Artifact, "INVALID_IMAGE", "the cubin is damaged: it is to be set aside and made again"},
    {201, Trouble::Other, "INVALID_CONTEXT", "no context of this device is current on the thread"},
    {209, Trouble::Artifact, "NO_BINARY_FOR_GPU", "the cubin was made for another architecture: make one for this GPU"},
    {214, Trouble::ContextLost, "ECC_UNCORRECTABLE",
     "the GPU's memory has a hardware fault: reset or replace the GPU, restart the process"},
    {218, Trouble::Artifact, "INVALID_PTX", "the kernel's PTX was refused: it is to be set aside and made again"},
    {220, Trouble::ContextLost, "NVLINK_UNCORRECTABLE",
     "NVLink has a hardware fault: reset the GPU, restart the process"},
    {221, Trouble::Artifact, "JIT_COMPILER_NOT_FOUND",
     "the kernel holds PTX and the driver has no compiler for it: make a cubin for this GPU"},
    {222, Trouble::Artifact, "UNSUPPORTED_PTX_VERSION",
     "the kernel's PTX is newer than the driver: make a cubin, or update the driver"},
    {400, Trouble::Other, "INVALID_HANDLE", "a stream, event or function was destroyed, or belongs to another context"},
    {500, Trouble::Other, "NOT_FOUND", "the cubin has no kernel of that name"},
    {600, Trouble::Busy, "NOT_READY", "the work is not done yet"},
    {700, Trouble::ContextLost, "ILLEGAL_ADDRESS",
     "a kernel read or wrote outside its memory; the process must be restarted"},
    {701, Trouble::Other, "LAUNCH_OUT_OF_RESOURCES",
     "too many threads, registers or too much shared memory for one block"},
    {702, Trouble::ContextLost, "LAUNCH_TIMEOUT", "a kernel ran too long; the process must be restarted"},
    {709, Trouble::ContextLost, "CONTEXT_IS_DESTROYED", "somebody destroyed or reset the device's primary context"},
    {710, Trouble::ContextLost, "ASSERT", "a device-side assertion failed; the process must be restarted"},
    {714, Trouble::ContextLost, "HARDWARE_STACK_ERROR", "a kernel corrupted its stack; the process must be restarted"},
    {715, Trouble::ContextLost, "ILLEGAL_INSTRUCTION",
     "a kernel ran an illegal instruction; the process must be restarted"},
    {716, Trouble::ContextLost, "MISALIGNED_ADDRESS",
     "a kernel made a misaligned access; the process must be restarted"},
    {717, Trouble::ContextLost, "INVALID_ADDRESS_SPACE",
     "a kernel used an address of the wrong space; the process must be restarted"},
    {718, Trouble::ContextLost, "INVALID_PC", "a kernel jumped outside its code; the process must be restarted"},
    {719, Trouble::ContextLost, "LAUNCH_FAILED", "a kernel failed; the process must be restarted"},
    {720, Trouble::Other, "COOPERATIVE_LAUNCH_TOO_LARGE",
     "a cooperative grid must fit on the GPU at once: use fewer blocks"},
    {800, Trouble::Other, "NOT_PERMITTED",
     "the driver forbids this call here, e.g. by MPS or by confidential computing"},
    {801, Trouble::Other, "NOT_SUPPORTED", "this GPU or driver lacks the feature"},
    {802, Trouble::Busy, "SYSTEM_NOT_READY", "the GPU is still starting (fabric manager?): try later"},
    {803, Trouble::NoDevice, "SYSTEM_DRIVER_MISMATCH",
     "libcuda and the kernel module are of different versions: reboot, or rebuild the container"},
    {804, Trouble::NoDevice, "COMPAT_NOT_SUPPORTED_ON_DEVICE",
     "the compatibility package of libcuda does not support this GPU: remove it from LD_LIBRARY_PATH"},
    {805, Trouble::Busy, "MPS_CONNECTION_FAILED", "the MPS server can't be reached"},
    {807, Trouble::Busy, "MPS_SERVER_NOT_READY", "the MPS server is not ready"},
    {808, Trouble::Busy, "MPS_MAX_CLIENTS_REACHED", "too many MPS clients"},
    {809, Trouble::Busy, "MPS_MAX_CONNECTIONS_REACHED", "too many MPS connections"},
    {900, Trouble::Capture, "STREAM_CAPTURE_UNSUPPORTED",
     "a stream is being captured: do this before, or on a thread in RELAXED capture mode"},
    {901, Trouble::Capture, "STREAM_CAPTURE_INVALIDATED", "an earlier call broke the capture: begin it again"},
    {902, Trouble::Capture, "STREAM_CAPTURE_MERGE", "this would join two captures"},
    {903, Trouble::Capture, "STREAM_CAPTURE_UNMATCHED", "the capture was not begun in this stream"},
    {904, Trouble::Capture, "STREAM_CAPTURE_UNJOINED",
     "a stream forked from the capture was not joined before its end"},
    {905, Trouble::Capture, "STREAM_CAPTURE_ISOLATION", "a dependency crosses the border of the capture"},
    {906, Trouble::Capture, "STREAM_CAPTURE_IMPLICIT",
     "the legacy stream would be drawn into the capture: use a stream of your own"},
    {907, Trouble::Capture, "CAPTURED_EVENT", "the event was recorded in a capture and can't be used outside of it"},
    {908, Trouble::Capture, "STREAM_CAPTURE_WRONG_THREAD", "a capture must be ended on the thread that began it"},
    {909, Trouble::Busy, "TIMEOUT", "the call timed out: try later"},
    {913, Trouble::Artifact, "FUNCTION_NOT_LOADED", "the kernel was not loaded on this device"},
    {999, Trouble::Other, "UNKNOWN", "the driver gives no reason: see the kernel log (dmesg, Xid lines)"},
};

const Row* row_of(CUresult code) {
    const auto number = static_cast<int>(code);
    const auto* row = std::lower_bound(std::begin(rows), std::end(rows), number,
                                       [](const Row& left, int right) { return left.code < right; });
    return row != std::end(rows) && row->code == number ? row : nullptr;
}

} // namespace

Trouble trouble_of(CUresult code) {
    if (code == CUDA_SUCCESS) return Trouble::None;
    const auto* row = row_of(code);
    return row != nullptr ? row->trouble : Trouble::Other;
}

const char* kind_of(Trouble trouble) {
    switch (trouble) {
    case Trouble::None: return "none";
    case Trouble::Artifact: return "artifact";
    case Trouble::ContextLost: return "context_lost";
    case Trouble::Memory: return "memory";
    case Trouble::Capture: return "capture";
    case Trouble::Busy: return "busy";
    case Trouble::NoDevice: return "no_device";
    case Trouble::Other: break;
    }
    return "driver";
}

std::string name_of(CUresult code) {
    if (code == CUDA_SUCCESS) return "CUDA_SUCCESS";
    const auto* row = row_of(code);
    return row != nullptr ? fmt::format("CUDA_ERROR_{}", row->name)
                          : fmt::format("CUresult {}", static_cast<int>(code));
}

Fault driver_fault(CUresult code, const char* call) {
    const auto* row = row_of(code);
    Fault fault;
    fault.kind = kind_of(trouble_of(code));
    fault.message = fmt::format("{}: {} ({})", call, name_of(code), static_cast<int>(code));
    fault.hint = row != nullptr ? row->hint : "look the code up in cuda.h";
    fault.code = static_cast<int>(code);
    return fault;
}

} // namespace cubridge::runtime
