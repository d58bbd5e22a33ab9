// Finding and reading what a command is about. SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/target.h"
#include "bindings/cli/status.h"
#include "cubridge/runtime/builtin.h"
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sys/stat.h>

namespace cubridge::cli {

namespace {

constexpr int kDefaultHeads = 32;
constexpr std::size_t kMostBytes = std::size_t{16} << 20; // the front end's own limit is far below

std::string read_file(const std::string& path) {
    struct stat about {};
    if (stat(path.c_str(), &about) != 0) throw Usage(path + ": " + std::strerror(errno));
    if (!S_ISREG(about.st_mode) && !S_ISFIFO(about.st_mode) && !S_ISCHR(about.st_mode))
        throw Usage(path + ": is no file");
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
    if (!file) throw Usage(path + ": " + std::strerror(errno));
    std::string text;
    char piece[65536];
    while (const std::size_t n = std::fread(piece, 1, sizeof piece, file.get())) {
        text.append(piece, n);
        if (text.size() > kMostBytes) throw Usage(path + ": is larger than 16 MiB");
    }
    if (std::ferror(file.get()) != 0) throw Usage(path + ": can't be read");
    return text;
}

bool exists(const std::string& path) {
    struct stat about {};
    return stat(path.c_str(), &about) == 0;
}

} // namespace

std::string read_text(const std::string& path) {
    return read_file(path);
}

Target open_target(const std::string& word, const Options& options) {
    Target t;
    t.word = word;
    std::string path = word, functions;
    // A file may have a colon in its name; a function never has a slash or a dot.
    if (const auto colon = word.rfind(':');
        colon != std::string::npos && !exists(word) && word.find_first_of("/.", colon) == std::string::npos) {
        path = word.substr(0, colon);
        functions = word.substr(colon + 1);
        if (functions.empty()) throw Usage("`" + word + "` names no function after the colon");
    }
    if (!functions.empty()) {
        const auto plus = functions.find('+');
        t.source.function = functions.substr(0, plus);
        if (plus != std::string::npos) t.source.mask = functions.substr(plus + 1);
        if (t.source.function.empty() || (plus != std::string::npos && t.source.mask.empty()))
            throw Usage("`" + word + "` should read SPEC.py:SCORE_MOD+MASK_MOD");
    }
    const runtime::BuiltIn* known = exists(path) ? nullptr : runtime::find_built_in(path);
    if (known == nullptr && !exists(path) && path.find_first_of("/.") == std::string::npos)
        throw Usage("`" + path + "` is neither a file nor a specification of the library (see `cubridge specs`)");
    t.source.text = known != nullptr ? std::string(known->text) : read_file(path);
    t.source.settings = options.settings;
    return t;
}

ir::Result<std::shared_ptr<const ir::Specification>> parse_target(const Target& target, const Options& options) {
    ir::ParseOptions how;
    how.heads = options.heads_q;
    auto parsed = ir::Specification::parse(target.source, how);
    if (!parsed || options.heads_q != 0 || (*parsed)->heads() == 0) return parsed;
    how.heads = kDefaultHeads;
    return ir::Specification::parse(target.source, how);
}

} // namespace cubridge::cli
