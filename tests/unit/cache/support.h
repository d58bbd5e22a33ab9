// What the tests of this room share: folders, records, child processes, warnings collected.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/open_store.h"
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <random>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cubridge::cache {

/// A folder of its own, removed at the end, with what is in it.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string pattern = testing::TempDir() + "cubridge-XXXXXX";
        path_ = mkdtemp(pattern.data()) ? pattern : std::string();
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        if (owner_ == getpid()) std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::string& path() const { return path_; }
    std::string store() const { return path_ + "/store"; }
    std::string file() const { return store() + "/store-1.db"; }

private:
    std::string path_;
    pid_t owner_ = getpid();
};

inline Digest key_of(std::int64_t number) {
    return Digester("test-key").number(number).finish();
}

/// A sealed record; `salt` makes another content under the same key.
inline Record make_record(std::int64_t key, std::size_t size = 1000, std::int64_t rank = 1, std::int64_t salt = 0) {
    Record record;
    record.key = key_of(key);
    record.build = "rules 1; nvrtc 13.0";
    record.arch = "sm_90a";
    record.made_by = "rules";
    record.rank = rank;
    record.created = 1764500000 + salt;
    record.metadata = R"({"salt": )" + std::to_string(salt) + ", \"key\": " + std::to_string(key) + "}";
    std::string cubin(size, '\0');
    std::minstd_rand random(static_cast<unsigned>(key * 977 + salt + 1));
    for (auto& byte : cubin) byte = static_cast<char>(random() >> 8);
    record.blobs = {{"cubin", std::move(cubin)}, {"source", "__global__ void kernel() {}\n"}, {"empty", ""}};
    seal(record);
    return record;
}

/// Warnings as they come, from any thread.
class Heard {
public:
    std::function<void(const Warning&)> sink() {
        return [this](const Warning& warning) {
            std::lock_guard lock(mutex_);
            warnings_.push_back(warning);
        };
    }
    int count(Trouble trouble) {
        std::lock_guard lock(mutex_);
        int out = 0;
        for (const auto& warning : warnings_) out += warning.trouble == trouble ? 1 : 0;
        return out;
    }
    std::size_t size() {
        std::lock_guard lock(mutex_);
        return warnings_.size();
    }
    std::string text() {
        std::lock_guard lock(mutex_);
        std::string out;
        for (const auto& warning : warnings_) out += std::string(name(warning.trouble)) + ": " + warning.message + "\n";
        return out;
    }

private:
    std::mutex mutex_;
    std::vector<Warning> warnings_;
};

inline OpenOptions in_folder(const std::string& folder, Heard* heard = nullptr) {
    OpenOptions options;
    options.folder = folder;
    if (heard) options.warn = heard->sink();
    return options;
}

/// Runs `work` in a child; 0 is success, other exit statuses are the work's, 1000 + n death by signal n.
inline pid_t start_child(const std::function<int()>& work) {
    const pid_t child = fork();
    if (child != 0) return child;
    int status = 250;
    try {
        status = work();
    } catch (...) {
    }
    _exit(status); // no destructors or buffers of the parent
}
inline int await_child(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
inline int in_child(const std::function<int()>& work) {
    return await_child(start_child(work));
}

/// In a child without privileges, because root is stopped by no mode. Who runs the tests unprivileged stays who they
/// are.
inline int as_nobody(const std::function<int()>& work) {
    return in_child([&] {
        constexpr unsigned NOBODY = 65534;
        if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)) return 251;
        return work();
    });
}

inline std::string slurp(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}
inline void spill(const std::string& path, std::string_view bytes) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
inline unsigned mode_of(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777u : 0;
}
inline std::vector<std::string> files_in(const std::string& folder, const std::string& prefix = {}) {
    std::vector<std::string> out;
    std::error_code error;
    for (const auto& item : std::filesystem::directory_iterator(folder, error))
        if (item.path().filename().string().starts_with(prefix)) out.push_back(item.path().filename().string());
    return out;
}

} // namespace cubridge::cache
