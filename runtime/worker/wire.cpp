// Frames and values.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker/wire.h"
#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

namespace cubridge::runtime::worker {
namespace {

constexpr auto kPause = std::chrono::milliseconds(20);

Fault closed() {
    return Fault{"closed", "the other end of the socket is gone"};
}

/// Until the socket is ready for `events`.
Outcome<void> wait(int socket, short events, Clock::time_point deadline, Watch* watch) {
    for (;;) {
        const auto now = Clock::now();
        if (now >= deadline) return Fault{"deadline", "no answer in time"};
        auto left = std::chrono::ceil<std::chrono::milliseconds>(std::min<Clock::duration>(
            deadline - now, watch != nullptr ? Clock::duration(kPause) : std::chrono::hours(1)));
        pollfd one{socket, events, 0};
        const int ready = poll(&one, 1, static_cast<int>(left.count()));
        if (ready > 0) return {};
        if (ready < 0 && errno != EINTR) return closed();
        if (watch != nullptr && !watch->look()) return Fault{"watch", "the wait was ended"};
    }
}

Outcome<void> send_all(int socket, std::string_view bytes, Clock::time_point deadline, Watch* watch) {
    while (!bytes.empty()) {
        const auto sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        } else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (auto ready = wait(socket, POLLOUT, deadline, watch); !ready) return ready;
        } else if (errno != EINTR) {
            return closed();
        }
    }
    return {};
}

Outcome<void> receive_all(int socket, char* at, std::size_t bytes, Clock::time_point deadline, Watch* watch) {
    while (bytes > 0) {
        const auto got = recv(socket, at, bytes, MSG_DONTWAIT);
        if (got > 0) {
            at += got;
            bytes -= static_cast<std::size_t>(got);
        } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (auto ready = wait(socket, POLLIN, deadline, watch); !ready) return ready;
        } else if (got == 0 || errno != EINTR) {
            return closed();
        }
    }
    return {};
}

} // namespace

Writer& Writer::number(std::uint64_t value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    body.append(bytes, sizeof value);
    return *this;
}

Writer& Writer::real(double value) {
    return number(std::bit_cast<std::uint64_t>(value));
}

Writer& Writer::text(std::string_view value) {
    number(value.size());
    body.append(value);
    return *this;
}

Writer& Writer::bytes(const std::vector<std::byte>& value) {
    return text({reinterpret_cast<const char*>(value.data()), value.size()});
}

Writer& Writer::texts(const std::vector<std::string>& values) {
    number(values.size());
    for (const auto& value : values) text(value);
    return *this;
}

std::string_view Reader::take(std::size_t bytes) {
    if (!fine_ || bytes > rest_.size()) {
        fine_ = false;
        return {};
    }
    const auto taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
}

std::uint64_t Reader::number() {
    std::uint64_t value = 0;
    if (const auto bytes = take(sizeof value); fine_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

int Reader::whole() {
    const auto value = number();
    if (value > INT_MAX) fine_ = false;
    return fine_ ? static_cast<int>(value) : 0;
}

double Reader::real() {
    return std::bit_cast<double>(number());
}

std::string Reader::text() {
    return std::string(take(number()));
}

std::vector<std::byte> Reader::bytes() {
    const auto taken = take(number());
    const auto* begin = reinterpret_cast<const std::byte*>(taken.data());
    return {begin, begin + taken.size()};
}

std::size_t Reader::count(std::size_t least) {
    const auto value = number();
    if (value > rest_.size() / least) fine_ = false;
    return fine_ ? value : 0;
}

std::vector<std::string> Reader::texts() {
    std::vector<std::string> values(count(sizeof(std::uint64_t)));
    for (auto& value : values) value = text();
    return values;
}

Outcome<void> send_frame(int socket, Message message, std::string_view body, Clock::time_point deadline, Watch* watch) {
    if (body.size() > kMostBytes)
        return Fault{"garbage", fmt::format("a message of {} bytes is more than a frame holds", body.size())};
    Head head;
    head.message = static_cast<std::uint32_t>(message);
    head.bytes = static_cast<std::uint32_t>(body.size());
    char bytes[sizeof head];
    std::memcpy(bytes, &head, sizeof head);
    if (auto sent = send_all(socket, {bytes, sizeof bytes}, deadline, watch); !sent) return sent;
    return send_all(socket, body, deadline, watch);
}

Outcome<Frame> receive_frame(int socket, Clock::time_point deadline, Watch* watch) {
    Head head;
    char bytes[sizeof head];
    if (auto got = receive_all(socket, bytes, sizeof bytes, deadline, watch); !got) return got.fault();
    std::memcpy(&head, bytes, sizeof head);
    if (head.magic != kMagic) return Fault{"garbage", "what came does not begin as a message"};
    if (head.version != kVersion)
        return Fault{"garbage", fmt::format("the other end speaks version {} of the protocol, this one {}",
                                            head.version, kVersion)};
    if (head.bytes > kMostBytes)
        return Fault{"garbage", fmt::format("a message of {} bytes was announced", head.bytes)};
    Frame frame{static_cast<Message>(head.message), {}};
    while (frame.body.size() < head.bytes) { // grows with what came, not with what was announced
        const auto at = frame.body.size();
        frame.body.resize(std::min<std::size_t>(head.bytes, at + (1u << 20)));
        if (auto got = receive_all(socket, frame.body.data() + at, frame.body.size() - at, deadline, watch); !got)
            return got.fault();
    }
    return frame;
}

} // namespace cubridge::runtime::worker
