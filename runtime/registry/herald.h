// Herald: brings log lines and progress to the caller, one at a time, on a thread of ours.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/engine.h"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <variant>

namespace cubridge::runtime {

/// No lock of the engine is held while a callback runs, so it may call the engine. A queue that the caller doesn't keep
/// up with is cut: the newest 1000 messages are kept and the loss is said. Any thread.
class Herald {
public:
    explicit Herald(const Settings& settings) : settings_(settings) {}
    ~Herald() { stop(); }
    /// Delivers what waits, then ends the thread.
    void stop();
    /// `line` is logfmt without its level.
    void log(Level level, const std::string& line);
    void notify(const Progress& progress);
    bool logs(Level level) const { return level <= settings_.level; }
    /// Is the calling thread the one that runs callbacks?
    bool on_thread() const;

private:
    struct Line {
        Level level;
        std::string text;
    };
    using Message = std::variant<Line, Progress>;
    void push(Message message);
    void run();
    void deliver(const Message& message) const;

    const Settings& settings_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Message> queue_;
    std::size_t lost_ = 0;
    bool stopping_ = false;
    std::thread thread_;
    std::atomic<std::thread::id> id_{};
};

/// A value of a log line: quoted where it must be.
std::string quoted(const std::string& text);

} // namespace cubridge::runtime
