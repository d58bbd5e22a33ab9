// CUDA text to a cubin. One interface, so that an in-process compiler, one in a worker and none at all pass the same
// tests. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/gate.h"
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace cubridge::runtime {

/// A header that the source may include. It exists in memory only; no header is ever read from a file.
struct Header {
    std::string name; ///< as between <> or "": no path
    std::string text; ///< trusted: it is the library's own, and the include gate does not look into it
};

struct CompileJob {
    std::string source;               ///< CUDA C++, UTF-8; untrusted
    std::string name = "kernel.cu";   ///< what messages call the source: letters, digits, "_-." only
    std::string arch;                 ///< "sm_90a": a real architecture with its suffix
    std::vector<std::string> options; ///< after those that are always given; only options that touch no file
    std::vector<Header> headers;
    std::chrono::milliseconds deadline{0}; ///< 0: none. A request: NVRTC's front end may overrun it by many seconds
    bool foreign = false; ///< no rule of ours printed it: where it should be compiled in a worker, then only there; and
                          ///< it passes the gates on either side of the compiler or is not given out
    Declared declared{};  ///< of a foreign text: what it says of itself
};

/// One kernel as ptxas reports it.
struct CompiledEntry {
    std::string name;
    int registers = 0;
    int stack = 0;        ///< bytes per thread, spills included
    int spill_stores = 0; ///< bytes
    int spill_loads = 0;  ///< bytes
    int shared = 0;       ///< static, bytes per block
    int barriers = 0;
};

struct CompileResult {
    std::vector<std::byte> cubin; ///< never empty. The same for the same job and compiler, byte for byte
    std::string log;              ///< warnings, only lines about the source; often empty
    std::vector<CompiledEntry> entries;
    /// What ptxas says of asynchronous products and of registers that are given out by hand: serialised, with waits put
    /// in, ignored. One line each; empty where all is as the source says.
    std::vector<std::string> remarks;
    double milliseconds = 0;
    std::string compiler;          ///< identity()
    std::string where = "process"; ///< or "worker": which process compiled
    std::string note;              ///< why not in a worker where that was asked for; else empty
};

/// Compiles. Any thread, several at a time. Faults: "no_compiler", "option", "gate" (the source asks for something that
/// it may not have, and was not compiled; or its cubin has what was not declared), "arch", "compile" (`detail` is the
/// log, only lines about the source), "deadline", "empty". No state outlives a call.
class Compiler {
public:
    virtual ~Compiler() = default;
    virtual Outcome<CompileResult> compile(const CompileJob& job) = 0;

    /// "nvrtc 13.0 <16 hex digits>": the version, and a digest of what it makes of a fixed probe, since builds of one
    /// version differ. Computed once, with the first call (about 60 ms). Faults: "no_compiler" and those of the probe.
    virtual Outcome<std::string> identity() = 0;

    /// The file it was loaded from; empty where there is none.
    virtual std::string location() const = 0;
};

struct NvrtcSettings {
    std::string file;                 ///< full path of libnvrtc (the user's CUBRIDGE_NVRTC). Given: this or none
    std::vector<std::string> folders; ///< more folders to search; each may also hold a wheel's nvidia/ tree
};

/// NVRTC in this process. Order: `file`; one that is mapped already; the folders of a mapped libcudart or torch;
/// `folders`; the dynamic linker's path; the usual toolkit folders. Faults: "no_compiler", naming what was tried.
Outcome<std::shared_ptr<Compiler>> open_nvrtc(const NvrtcSettings& settings = {});

/// Answers every job with `reason` (of kind "no_compiler"): the compiler of a machine that only serves its store.
std::shared_ptr<Compiler> no_compiler(Fault reason);

} // namespace cubridge::runtime
