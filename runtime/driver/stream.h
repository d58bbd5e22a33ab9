// Streams, events and captured graphs, as the checks and the verifier use them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/driver/context.h"

namespace cubridge::runtime {

/// What a capture recorded, ready to be launched any number of times. Owned; one thread at a time.
class Graph {
public:
    Graph(std::shared_ptr<Context> context, CUgraph graph, CUgraphExec executable)
        : context_(std::move(context)), graph_(graph), executable_(executable) {}
    ~Graph();
    Outcome<void> launch(CUstream stream) const;

    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

private:
    const std::shared_ptr<Context> context_;
    const CUgraph graph_;
    const CUgraphExec executable_;
};

/// A stream of ours, which does not wait for the legacy stream. Owned; calls may come from any thread, a capture is
/// begun and ended on one.
class Stream {
public:
    static Outcome<std::shared_ptr<Stream>> create(std::shared_ptr<Context> context);
    ~Stream();

    CUstream handle() const { return handle_; }
    const std::shared_ptr<Context>& context() const { return context_; }

    Outcome<void> synchronise() const;
    /// Everything enqueued so far is done.
    Outcome<bool> finished() const;
    Outcome<void> begin_capture(CUstreamCaptureMode mode) const;
    Outcome<std::shared_ptr<Graph>> end_capture() const;

    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

private:
    Stream(std::shared_ptr<Context> context, CUstream handle) : context_(std::move(context)), handle_(handle) {}

    const std::shared_ptr<Context> context_;
    const CUstream handle_;
};

/// Whether any stream, also a caller's, is being captured (an invalidated capture counts). Its context must be current.
Outcome<bool> is_capturing(const Context& context, CUstream stream);

/// A point in a stream. Owned; any thread.
class Event {
public:
    static Outcome<std::shared_ptr<Event>> create(std::shared_ptr<Context> context);
    ~Event();

    Outcome<void> record(CUstream stream) const;
    Outcome<bool> reached() const;
    Outcome<void> synchronise() const;
    /// Milliseconds from `begin` to this event; both must have been reached.
    Outcome<float> since(const Event& begin) const;

    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

private:
    Event(std::shared_ptr<Context> context, CUevent handle) : context_(std::move(context)), handle_(handle) {}

    const std::shared_ptr<Context> context_;
    const CUevent handle_;
};

} // namespace cubridge::runtime
