// The worker: a process of its own for what this one had better not do itself. It compiles text that is not trusted:
// NVRTC's front end can't be interrupted, reads any file that a text names, and dies with the process that it is in.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/compiler.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cubridge::runtime {

/// What holds a worker back while it compiles. What the kernel has not is left out and said.
struct Confinement {
    bool seccomp = false; ///< no socket, no process, no file but those that `landlock` lets it read; without it: none
    int landlock = 0;     ///< the kernel's ABI; files of NVRTC's own folder alone may be read. 0: not in force
    bool memory = false;  ///< a limit of address space (none in a build with sanitizers; the library watches then)
    std::vector<std::string> missing; ///< what is not in force, and why

    /// "seccomp yes, landlock no (...)": one line for people.
    std::string text() const;
};

struct WorkerSettings {
    std::string file;    ///< the `cubridge` executable; empty: ../bin beside this library, beside it, then PATH
    NvrtcSettings nvrtc; ///< what the worker is to load; empty: what this process would
    int processes = 2;   ///< at a time: a process compiles one text at a time
    std::uint64_t memory = std::uint64_t{4} << 30; ///< bytes that a compile may take; 0: no limit
    std::chrono::milliseconds longest{120000};     ///< for a compile that has no deadline of its own
    /// Compiles where no worker can be started, unless the text is CompileJob::foreign. Null: nothing does.
    std::shared_ptr<Compiler> otherwise;
    bool gated = true; ///< false in the tests of what stands behind the include gate
};

/// Compiles in workers, which are started when something is to be compiled and kept. Faults beyond those of Compiler:
/// "worker" (it could not be started, died, or answered what is no answer), "memory"; "deadline" is kept whatever the
/// text: the process is killed. Whatever becomes of a worker, the host gets no signal, no exit, and no child to wait
/// for. A text that killed a worker twice is refused from then on.
class WorkerCompiler : public Compiler {
public:
    /// What is in force in a worker, which is started if there is none.
    virtual Outcome<Confinement> confinement() = 0;
    /// The executable that is, or would be, started; empty where there is none.
    virtual std::string executable() const = 0;
};

/// Starts nothing.
std::shared_ptr<WorkerCompiler> open_worker(WorkerSettings settings);

/// The worker's side: `cubridge worker` does nothing else. Serves on `socket`, confined, until its other end is closed;
/// answers an exit status.
int serve_as_worker(int socket);

/// A digest of the sources that this library was built from: a worker of another build is refused.
const char* build_id();

} // namespace cubridge::runtime
