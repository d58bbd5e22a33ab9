// The messages: what the library asks of its worker and what that answers. Values; each is read back as it was written.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/compiler.h"
#include "cubridge/runtime/worker.h"
#include "runtime/worker/wire.h"

namespace cubridge::runtime::worker {

/// The first frame, from the library. Its first value is the build id in every version of the protocol.
struct Hello {
    std::string build;
    NvrtcSettings nvrtc;
    std::uint64_t memory = 0; ///< bytes that any request may allow; 0: no limit
};

/// The answer. `fault` of kind "build": the worker is of another build; "no_compiler": it found no NVRTC.
struct Ready {
    std::string build;
    int pid = 0;
    Fault fault; ///< kind empty: none
    std::string identity, location;
    Confinement confinement;
};

struct Request {
    CompileJob job;           ///< its deadline counts from when the worker has it
    std::uint64_t memory = 0; ///< bytes of address space; 0: no limit
    bool gated = true;        ///< false in the tests of what stands behind the gate
};

std::string write(const Hello& hello);
std::string write(const Ready& ready);
std::string write(const Request& request);
std::string write(const Outcome<CompileResult>& answer);

/// False where the body is not what such a message writes.
bool read(std::string_view body, Hello& hello);
bool read(std::string_view body, Ready& ready);
bool read(std::string_view body, Request& request);
bool read(std::string_view body, Outcome<CompileResult>& answer);

} // namespace cubridge::runtime::worker
