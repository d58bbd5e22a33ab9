// The messages: what the library asks of its worker and what that answers. Values; each is read back as it was written.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/compiler.h"
#include "cubridge/runtime/verifier.h"
#include "cubridge/runtime/worker.h"
#include "runtime/worker/wire.h"

namespace cubridge::runtime::worker {

/// The first frame, from the library. Its first value is the build id in every version of the protocol.
struct Hello {
    std::string build;
    NvrtcSettings nvrtc;
    std::uint64_t memory = 0; ///< bytes that any request may allow; 0: no limit
    bool gpu = false;         ///< runs kernels; else compiles
    std::uint64_t room = 0;   ///< bytes of GPU memory that must be free
};

/// The answer. `fault` of kind "build": the worker is of another build; "no_compiler": it found no NVRTC; of one that
/// runs kernels, what it found wrong with the GPU.
struct Ready {
    std::string build;
    int pid = 0;
    Fault fault;                    ///< kind empty: none
    std::string identity, location; ///< of NVRTC, or the name of the GPU
    Confinement confinement;
};

struct Request {
    CompileJob job;           ///< its deadline counts from when the worker has it
    std::uint64_t memory = 0; ///< bytes of address space; 0: no limit
    bool gated = true;        ///< false in the tests of what stands behind the gate
};

/// VerifyJob as it travels: the specification is parsed again from its source.
struct Question {
    ir::Source source;
    int heads = 0;
    ir::Request request;
    Built kernel, exact;
    std::optional<Built> baseline;
    std::int64_t tile_rows = 0, tile_keys = 0; ///< 0: unknown
    int stages = 1;
    std::uint64_t seed = 0;
    std::chrono::milliseconds launch{0};
};

/// `fault` of a kind that is not empty: nothing can be said of the kernel.
struct Answer {
    VerifyResult result;
    Fault fault;
    bool spent = false; ///< the context is of no more use
};

void put(Writer& out, const Fault& fault);
Fault fault_of(Reader& in);

std::string write(const Hello& hello);
std::string write(const Ready& ready);
std::string write(const Request& request);
std::string write(const Outcome<CompileResult>& answer);
std::string write(const Question& question);
std::string write(const Answer& answer);

/// False where the body is not what such a message writes.
bool read(std::string_view body, Hello& hello);
bool read(std::string_view body, Ready& ready);
bool read(std::string_view body, Request& request);
bool read(std::string_view body, Outcome<CompileResult>& answer);
bool read(std::string_view body, Question& question);
bool read(std::string_view body, Answer& answer);

} // namespace cubridge::runtime::worker
