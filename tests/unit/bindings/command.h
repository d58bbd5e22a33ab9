// Runs the command as a user does. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/json.h"
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace cubridge::test {

struct Ran {
    int status = -1; ///< exit status; 128 + n for signal n
    std::string out, error;
    std::vector<std::string> lines() const {
        std::vector<std::string> all;
        std::istringstream stream(out);
        for (std::string l; std::getline(stream, l);) all.push_back(l);
        return all;
    }
    /// Line `k` of stdout as JSON; null where it is none.
    runtime::Json json(std::size_t k = 0) const {
        const auto all = lines();
        if (k >= all.size()) return {};
        return runtime::Json::parse(all[k]).value_or(runtime::Json());
    }
};

/// A folder of its own for each test, removed at the end.
class Folder {
public:
    Folder() {
        std::array<char, 64> name{};
        std::snprintf(name.data(), name.size(), "%s/cubridge-test-XXXXXX",
                      std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "/tmp");
        path_ = mkdtemp(name.data());
    }
    ~Folder() { [[maybe_unused]] const int done = std::system(("rm -rf '" + path_ + "'").c_str()); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    const std::string& path() const { return path_; }
    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(path_ + "/" + name, std::ios::binary) << text;
        return path_ + "/" + name;
    }
    std::string read(const std::string& name) const {
        std::ifstream file(path_ + "/" + name, std::ios::binary);
        std::stringstream text;
        text << file.rdbuf();
        return text.str();
    }

private:
    std::string path_;
};

inline std::string shell_quoted(const std::string& s) {
    std::string q = "'";
    for (const char c : s) c == '\'' ? q += "'\\''" : q += c;
    return q + "'";
}

/// The command with these arguments; its user's store is `home`.
inline Ran run_command(const std::vector<std::string>& arguments, const Folder& home) {
    std::string line = "env XDG_CACHE_HOME=" + shell_quoted(home.path()) + " " + shell_quoted(CUBRIDGE_CLI);
    for (const std::string& a : arguments) line += " " + shell_quoted(a);
    line +=
        " >" + shell_quoted(home.path() + "/stdout") + " 2>" + shell_quoted(home.path() + "/stderr") + " </dev/null";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), home.read("stdout"), home.read("stderr")};
}

} // namespace cubridge::test
