// Starting, reading, ending. SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/capture.h"
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cubridge::runtime {

namespace {

using Clock = std::chrono::steady_clock;

Fault not_started(const std::string& file, int error) {
    return {"environment", file + " can't be started: " + std::strerror(error)};
}

/// Reads to the end of `from`, or until `end`. False: it took too long.
bool read_all(int from, Clock::time_point end, std::string& to) {
    std::array<char, 1 << 16> bytes{};
    while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        if (left <= 0) return false;
        pollfd wanted{from, POLLIN, 0};
        const int ready = poll(&wanted, 1, static_cast<int>(std::min<long long>(left, 1 << 20)));
        if (ready < 0 && errno != EINTR) return true;
        if (ready <= 0) continue;
        const ssize_t got = read(from, bytes.data(), bytes.size());
        if (got > 0)
            to.append(bytes.data(), static_cast<std::size_t>(got));
        else if (got == 0 || errno != EINTR)
            return true;
    }
}

} // namespace

Outcome<Captured> capture(const std::vector<std::string>& arguments, std::chrono::milliseconds longest) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return not_started(arguments[0], errno);
    std::vector<char*> words;
    for (const auto& a : arguments) words.push_back(const_cast<char*>(a.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[1], 1);
    posix_spawn_file_actions_adddup2(&files, ends[1], 2);
    const bool limited = longest.count() > 0;
    if (limited) {
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    }
    pid_t child = 0;
    const int error = posix_spawn(&child, words[0], &files, &attributes, words.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    close(ends[1]);
    Captured out;
    if (error == 0) {
        const auto end = Clock::now() + (limited ? longest : std::chrono::milliseconds(std::chrono::hours(24 * 365)));
        if (!read_all(ends[0], end, out.output)) {
            out.ended = true;
            kill(-child, SIGKILL);
        }
        int status = 0;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        out.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    close(ends[0]);
    if (error != 0) return not_started(arguments[0], error);
    return out;
}

} // namespace cubridge::runtime
