// What goes over the socket between the library and its worker: frames, and values in them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/fault.h"
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cubridge::runtime::worker {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kMagic = 0x4b574243; // "CBWK", little-endian
constexpr std::uint32_t kVersion = 2;
constexpr std::uint32_t kMostBytes = 64u << 20; // of one frame; a text is at most 8 MiB, three cubins far less

/// What the body of a frame is.
enum class Message : std::uint32_t { Hello = 1, Ready, Compile, Compiled, Verify, Verified };

/// magic, version, message, bytes of the body; each of 32 bits, in the machine's byte order: both ends are on it.
struct Head {
    std::uint32_t magic = kMagic, version = kVersion, message = 0, bytes = 0;
};

/// Values one after another: numbers as they are, texts and lists after their length.
class Writer {
public:
    Writer& number(std::uint64_t value);
    Writer& real(double value);
    Writer& text(std::string_view value);
    Writer& bytes(const std::vector<std::byte>& value);
    Writer& texts(const std::vector<std::string>& values);
    std::string body;
};

/// Reads what a Writer wrote. After the first value that isn't there all are empty and `fine()` is false; nothing is
/// allocated that the body does not hold.
class Reader {
public:
    explicit Reader(std::string_view body) : rest_(body) {}
    std::uint64_t number();
    int whole(); ///< a number that an int holds, and is not negative
    double real();
    std::string text();
    std::vector<std::byte> bytes();
    std::vector<std::string> texts();
    /// The length of a list whose elements take at least `least` bytes each.
    std::size_t count(std::size_t least);
    bool fine() const { return fine_; }
    bool done() const { return fine_ && rest_.empty(); }

private:
    std::string_view take(std::size_t bytes);
    std::string_view rest_;
    bool fine_ = true;
};

struct Frame {
    Message message{};
    std::string body;
};

/// Called about every 20 ms while a frame is waited for; false ends the wait.
struct Watch {
    virtual bool look() = 0;

protected:
    ~Watch() = default;
};

/// Whole frames over a stream socket. No signal is raised where the other end is gone. Faults: "closed" (the other end
/// is gone), "deadline", "watch" (`watch` ended it), "garbage" (what came is no frame of this version).
Outcome<void> send_frame(int socket, Message message, std::string_view body, Clock::time_point deadline,
                         Watch* watch = nullptr);
Outcome<Frame> receive_frame(int socket, Clock::time_point deadline, Watch* watch = nullptr);

} // namespace cubridge::runtime::worker
