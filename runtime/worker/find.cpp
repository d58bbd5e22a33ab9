// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker/find.h"
#include "cubridge/runtime/worker.h"
#include <cstdlib>
#include <dlfcn.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace cubridge::runtime::worker {
namespace {

bool executable(const std::string& file) {
    struct stat info {};
    return stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(file.c_str(), X_OK) == 0;
}

} // namespace

std::string find_executable(const std::string& given) {
    if (!given.empty()) return given;
    Dl_info library{};
    if (dladdr(reinterpret_cast<const void*>(&build_id), &library) != 0 && library.dli_fname != nullptr) {
        const std::string file = library.dli_fname;
        const auto folder = file.substr(0, file.rfind('/'));
        if (folder.size() < file.size())
            for (const std::string place : {"/../bin/cubridge", "/cubridge"})
                if (executable(folder + place)) return folder + place;
    }
    const char* path = std::getenv("PATH");
    for (std::string_view rest = path != nullptr ? path : ""; !rest.empty();) {
        const auto end = rest.find(':');
        const std::string file = std::string(rest.substr(0, end)) + "/cubridge";
        if (file.front() == '/' && executable(file)) return file;
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
    return {};
}

} // namespace cubridge::runtime::worker
