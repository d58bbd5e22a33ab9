// Finds libnvrtc at run time and holds its entry points.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/compiler.h"
#include <nvrtc.h>

#define CUBRIDGE_NVRTC_SYMBOLS(X)                                                                                      \
    X(nvrtcVersion)                                                                                                    \
    X(nvrtcGetErrorString)                                                                                             \
    X(nvrtcGetNumSupportedArchs)                                                                                       \
    X(nvrtcGetSupportedArchs)                                                                                          \
    X(nvrtcCreateProgram)                                                                                              \
    X(nvrtcDestroyProgram)                                                                                             \
    X(nvrtcCompileProgram)                                                                                             \
    X(nvrtcGetProgramLogSize)                                                                                          \
    X(nvrtcGetProgramLog)                                                                                              \
    X(nvrtcGetCUBINSize)                                                                                               \
    X(nvrtcGetCUBIN)

namespace cubridge::runtime {

/// Pointers into libnvrtc, which stays mapped until the process ends. Immutable once found; any thread.
struct Nvrtc {
#define CUBRIDGE_MEMBER(name) decltype(&::name) name = nullptr; // NOLINT(bugprone-macro-parentheses)
    CUBRIDGE_NVRTC_SYMBOLS(CUBRIDGE_MEMBER)
#undef CUBRIDGE_MEMBER
    int (*set_flow_callback)(nvrtcProgram, int (*)(void*, void*), void*) = nullptr; ///< since 12.8; may be null

    std::string file;
    int major = 0, minor = 0;
    std::vector<int> archs; ///< 80, 90, ... : what `sm_` may be followed by
};

/// See open_nvrtc() for the order of the search.
Outcome<Nvrtc> find_nvrtc(const NvrtcSettings& settings);

/// Settings by which a process that has nothing mapped finds what find_nvrtc(settings) would find here. Maps nothing.
NvrtcSettings settings_for_child(const NvrtcSettings& settings);

/// Where libnvrtc may lie if something of CUDA or of PyTorch lies in `folder`: toolkits and both layouts of the wheels.
std::vector<std::string> folders_beside(const std::string& folder);

} // namespace cubridge::runtime
