// Streams, events and captured graphs.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver/stream.h"
#include "runtime/driver/call.h"

namespace cubridge::runtime {
namespace {

/// NOT_READY is an answer here, not an error.
template <class Query> Outcome<bool> ask(const Context& context, const char* name, Query query) {
    bool ready = true;
    auto done = within(context, name, [&](const Symbols& cuda) {
        const CUresult code = query(cuda);
        ready = code != CUDA_ERROR_NOT_READY;
        return ready ? code : CUDA_SUCCESS;
    });
    if (!done) return done.fault();
    return ready;
}

} // namespace

Graph::~Graph() {
    (void)within(*context_, "cuGraphDestroy", [&](const Symbols& cuda) {
        (void)cuda.cuGraphExecDestroy(executable_);
        return cuda.cuGraphDestroy(graph_);
    });
}

Outcome<void> Graph::launch(CUstream stream) const {
    return within(*context_, "cuGraphLaunch",
                  [&](const Symbols& cuda) { return cuda.cuGraphLaunch(executable_, stream); });
}

Outcome<std::shared_ptr<Stream>> Stream::create(std::shared_ptr<Context> context) {
    CUstream handle = nullptr;
    auto done = within(*context, "cuStreamCreate",
                       [&](const Symbols& cuda) { return cuda.cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING); });
    if (!done) return done.fault();
    return std::shared_ptr<Stream>(new Stream(std::move(context), handle));
}

Stream::~Stream() {
    (void)within(*context_, "cuStreamDestroy", [&](const Symbols& cuda) { return cuda.cuStreamDestroy(handle_); });
}

Outcome<void> Stream::synchronise() const {
    return within(*context_, "cuStreamSynchronize",
                  [&](const Symbols& cuda) { return cuda.cuStreamSynchronize(handle_); });
}

Outcome<bool> Stream::finished() const {
    return ask(*context_, "cuStreamQuery", [&](const Symbols& cuda) { return cuda.cuStreamQuery(handle_); });
}

Outcome<void> Stream::begin_capture(CUstreamCaptureMode mode) const {
    return within(*context_, "cuStreamBeginCapture",
                  [&](const Symbols& cuda) { return cuda.cuStreamBeginCapture(handle_, mode); });
}

Outcome<std::shared_ptr<Graph>> Stream::end_capture() const {
    CUgraph graph = nullptr;
    if (auto done = within(*context_, "cuStreamEndCapture",
                           [&](const Symbols& cuda) { return cuda.cuStreamEndCapture(handle_, &graph); });
        !done)
        return done.fault();
    CUgraphExec executable = nullptr;
    auto done = within(*context_, "cuGraphInstantiateWithFlags", [&](const Symbols& cuda) {
        const CUresult code = cuda.cuGraphInstantiateWithFlags(&executable, graph, 0);
        if (code != CUDA_SUCCESS) (void)cuda.cuGraphDestroy(graph);
        return code;
    });
    if (!done) return done.fault();
    return std::make_shared<Graph>(context_, graph, executable);
}

Outcome<bool> is_capturing(const Context& context, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (const auto code = context.cuda().cuStreamIsCapturing(stream, &status); code != CUDA_SUCCESS)
        return driver_fault(code, "cuStreamIsCapturing");
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

Outcome<std::shared_ptr<Event>> Event::create(std::shared_ptr<Context> context) {
    CUevent handle = nullptr;
    auto done = within(*context, "cuEventCreate",
                       [&](const Symbols& cuda) { return cuda.cuEventCreate(&handle, CU_EVENT_DEFAULT); });
    if (!done) return done.fault();
    return std::shared_ptr<Event>(new Event(std::move(context), handle));
}

Event::~Event() {
    (void)within(*context_, "cuEventDestroy", [&](const Symbols& cuda) { return cuda.cuEventDestroy(handle_); });
}

Outcome<void> Event::record(CUstream stream) const {
    return within(*context_, "cuEventRecord", [&](const Symbols& cuda) { return cuda.cuEventRecord(handle_, stream); });
}

Outcome<bool> Event::reached() const {
    return ask(*context_, "cuEventQuery", [&](const Symbols& cuda) { return cuda.cuEventQuery(handle_); });
}

Outcome<void> Event::synchronise() const {
    return within(*context_, "cuEventSynchronize",
                  [&](const Symbols& cuda) { return cuda.cuEventSynchronize(handle_); });
}

Outcome<float> Event::since(const Event& begin) const {
    float milliseconds = 0;
    auto done = within(*context_, "cuEventElapsedTime", [&](const Symbols& cuda) {
        return cuda.cuEventElapsedTime != nullptr ? cuda.cuEventElapsedTime(&milliseconds, begin.handle_, handle_)
                                                  : CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER;
    });
    if (!done) return done.fault();
    return milliseconds;
}

} // namespace cubridge::runtime
