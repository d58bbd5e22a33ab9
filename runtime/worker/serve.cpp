// The worker's side.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler/nvrtc_compiler.h"
#include "runtime/worker/confine.h"
#include "runtime/worker/gpu_service.h"
#include "runtime/worker/messages.h"
#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <sys/socket.h>
#include <unistd.h>

namespace cubridge::runtime {
namespace {

using namespace worker;

enum Exit { kServed = 0, kUsage = 2, kFailed = 7 };

Fault no_memory() {
    return Fault{"memory", "compiling took more memory than it was allowed", "", NVRTC_ERROR_OUT_OF_MEMORY};
}

/// NVRTC, loaded and used once before anything is taken away: what it opens lazily is open then.
class Service {
public:
    explicit Service(int socket) : socket_(socket) {}

    int run() {
        Hello hello;
        auto frame = receive_frame(socket_, Clock::time_point::max());
        if (!frame || frame->message != Message::Hello || !worker::read(frame->body, hello)) return kFailed;
        Ready ready = greeting(hello);
        if (hello.gpu && ready.fault.kind.empty()) return serve_gpu(socket_, hello, std::move(ready));
        if (ready.fault.kind.empty()) prepare(hello, ready);
        if (!send_frame(socket_, Message::Ready, worker::write(ready), Clock::time_point::max())) return kServed;
        if (!ready.fault.kind.empty()) return kFailed;
        for (;;) {
            frame = receive_frame(socket_, Clock::time_point::max());
            if (!frame) return frame.fault().kind == "closed" ? kServed : kFailed;
            Request request;
            if (frame->message != Message::Compile || !worker::read(frame->body, request)) return kFailed;
            const auto answer = compile(request);
            if (!send_frame(socket_, Message::Compiled, worker::write(answer), Clock::time_point::max()))
                return kServed;
        }
    }

private:
    static Ready greeting(const Hello& hello) {
        Ready ready;
        ready.build = build_id();
        ready.pid = getpid();
        if (hello.build != build_id())
            ready.fault = {"build", fmt::format("it is of build {}, not {}", build_id(), hello.build)};
        return ready;
    }

    void prepare(const Hello& hello, Ready& ready) {
        limit_resources(hello.memory, ready.confinement);
        auto found = find_nvrtc(hello.nvrtc);
        if (!found) {
            ready.fault = found.fault();
            return;
        }
        compiler_ = std::make_unique<NvrtcCompiler>(*found);
        ungated_ = std::make_unique<NvrtcCompiler>(*found, false);
        for (auto* compiler : {compiler_.get(), ungated_.get()}) {
            auto identity = compiler->identity();
            if (!identity) {
                ready.fault = identity.fault();
                return;
            }
            ready.identity = *identity;
        }
        ready.location = compiler_->location();
        const auto slash = ready.location.rfind('/');
        lock_down(slash == std::string::npos ? "" : ready.location.substr(0, slash), ready.confinement);
    }

    Outcome<CompileResult> compile(const Request& request) {
        limit_compile(request.memory, request.job.deadline);
        try {
            auto result = (request.gated ? compiler_ : ungated_)->compile(request.job);
            if (!result && (result.fault().code == NVRTC_ERROR_OUT_OF_MEMORY ||
                            result.fault().message.find("catastrophic error: out of memory") != std::string::npos))
                return no_memory();
            return result;
        } catch (const std::bad_alloc&) {
            return no_memory();
        }
    }

    const int socket_;
    std::unique_ptr<NvrtcCompiler> compiler_, ungated_;
};

} // namespace

int serve_as_worker(int socket) {
    int type = 0;
    socklen_t size = sizeof type;
    if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) return kUsage;
    settle(socket);
    return Service(socket).run();
}

} // namespace cubridge::runtime
