// The queue of messages and the thread that empties it.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/registry/herald.h"
#include "cubridge/runtime/json.h"
#include "runtime/registry/thread.h"
#include <array>
#include <system_error>
#include <unistd.h>

namespace cubridge::runtime {
namespace {

constexpr std::size_t kMost = 1000;
constexpr std::array<const char*, 5> kLevels = {"", "error", "warn", "info", "trace"};

} // namespace

std::string quoted(const std::string& text) {
    return text.find_first_of(" \"=\n\t") == text.npos && !text.empty() ? text : Json(text).text();
}

void Herald::log(Level level, const std::string& line) {
    if (logs(level)) push(Line{level, std::string("level=") + kLevels[static_cast<std::size_t>(level)] + " " + line});
}

void Herald::notify(const Progress& progress) {
    if (settings_.notify) push(progress);
}

bool Herald::on_thread() const {
    return id_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

void Herald::push(Message message) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    queue_.push_back(std::move(message));
    if (queue_.size() > kMost) {
        queue_.pop_front();
        ++lost_;
    }
    try {
        if (!thread_.joinable()) thread_ = start_thread("cubridge-herald", [this] { run(); });
    } catch (const std::system_error&) { // no thread to be had: the next message tries again
        return;
    }
    wake_.notify_one();
}

void Herald::run() {
    id_ = std::this_thread::get_id();
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
        if (queue_.empty()) return;
        if (lost_ != 0) {
            queue_.front() = Line{Level::Warn, "level=warn event=lost count=" + std::to_string(lost_ + 1)};
            lost_ = 0;
        }
        const Message message = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        deliver(message);
        lock.lock();
    }
}

void Herald::deliver(const Message& message) const {
    if (const auto* progress = std::get_if<Progress>(&message)) {
        settings_.notify(*progress);
        return;
    }
    const auto& line = std::get<Line>(message);
    if (settings_.log) {
        settings_.log(line.level, line.text);
    } else if (settings_.log_to_stderr) {
        const std::string text = line.text + "\n";
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
    }
}

void Herald::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        wake_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

} // namespace cubridge::runtime
