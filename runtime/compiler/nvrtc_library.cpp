// The search for libnvrtc.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler/nvrtc_library.h"
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <set>
#include <string_view>
#include <unistd.h>

namespace cubridge::runtime {
namespace {

constexpr const char* sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
constexpr const char* toolkits[] = {"/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda", "/usr/lib/nvidia-cuda-toolkit"};
constexpr int open_flags = RTLD_NOW | RTLD_LOCAL;

/// Folders of the CUDA runtime and of PyTorch in this process: their NVRTC is the one that fits the rest of it.
std::vector<std::string> mapped_folders() {
    std::set<std::string> found;
    const auto visit = [](dl_phdr_info* info, std::size_t, void* data) {
        const std::string_view path = info->dlpi_name != nullptr ? info->dlpi_name : "";
        const auto slash = path.rfind('/');
        if (slash == std::string_view::npos) return 0;
        const auto base = path.substr(slash + 1);
        for (const std::string_view start : {"libcudart", "libtorch", "libc10_cuda"})
            if (base.substr(0, start.size()) == start)
                static_cast<std::set<std::string>*>(data)->emplace(path.substr(0, slash));
        return 0;
    };
    dl_iterate_phdr(visit, &found);
    return {found.begin(), found.end()};
}

/// The first of `folders` that has a libnvrtc which opens. What was there and did not open goes into `tried`.
void* open_in(const std::vector<std::string>& folders, std::string& tried) {
    for (const auto& folder : folders)
        for (const char* soname : sonames) {
            const auto file = folder + '/' + soname;
            if (access(file.c_str(), R_OK) != 0) continue;
            if (void* library = dlopen(file.c_str(), open_flags)) return library;
            const char* reason = dlerror();
            tried += fmt::format("; {}", reason != nullptr ? reason : file);
        }
    return nullptr;
}

void* search(const NvrtcSettings& settings, std::string& tried) {
    for (const char* soname : sonames)
        if (void* library = dlopen(soname, open_flags | RTLD_NOLOAD)) return library;
    for (const auto& folder : mapped_folders())
        if (void* library = open_in(folders_beside(folder), tried)) return library;
    for (const auto& folder : settings.folders)
        if (void* library = open_in(folders_beside(folder), tried)) return library;
    for (const char* soname : sonames)
        if (void* library = dlopen(soname, open_flags)) return library;
    for (const std::string toolkit : toolkits)
        if (void* library = open_in({toolkit + "/lib64", toolkit + "/lib", toolkit + "/targets/x86_64-linux/lib",
                                     toolkit + "/targets/sbsa-linux/lib"},
                                    tried))
            return library;
    return nullptr;
}

/// The builtins come from the same folder: the wheels' libnvrtc has no run path and would not find them itself.
void open_builtins(const Nvrtc& nvrtc) {
    const auto folder = nvrtc.file.substr(0, nvrtc.file.rfind('/'));
    const bool alternative = nvrtc.file.find(".alt.so") != std::string::npos;
    const auto file =
        fmt::format("{}/libnvrtc-builtins{}.so.{}.{}", folder, alternative ? ".alt" : "", nvrtc.major, nvrtc.minor);
    if (access(file.c_str(), R_OK) == 0) (void)dlopen(file.c_str(), open_flags);
}

Fault absent(std::string message) {
    return Fault{
        "no_compiler", std::move(message),
        "install CUDA's NVRTC (pip install nvidia-cuda-nvrtc), or set CUBRIDGE_NVRTC to the full path of libnvrtc.so; "
        "kernels that are stored already are served without it"};
}

} // namespace

std::vector<std::string> folders_beside(const std::string& folder) {
    const auto packages =
        folder + "/../.."; // .../site-packages for torch/lib, .../site-packages/nvidia for cuda_runtime/lib
    return {folder,
            folder + "/nvidia/cu13/lib",
            folder + "/nvidia/cuda_nvrtc/lib",
            packages + "/nvidia/cu13/lib",
            packages + "/nvidia/cuda_nvrtc/lib",
            packages + "/cu13/lib",
            packages + "/cuda_nvrtc/lib"};
}

NvrtcSettings settings_for_child(const NvrtcSettings& settings) {
    if (!settings.file.empty()) return settings;
    for (const char* soname : sonames) {
        void* library = dlopen(soname, open_flags | RTLD_NOLOAD);
        if (library == nullptr) continue;
        link_map* map = nullptr;
        NvrtcSettings named;
        if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr)
            named.file = map->l_name;
        dlclose(library);
        if (!named.file.empty()) return named;
    }
    NvrtcSettings all = settings;
    const auto mapped = mapped_folders();
    all.folders.insert(all.folders.begin(), mapped.begin(), mapped.end());
    return all;
}

Outcome<Nvrtc> find_nvrtc(const NvrtcSettings& settings) {
    std::string tried;
    void* library = nullptr;
    if (settings.file.empty()) {
        library = search(settings, tried);
        if (library == nullptr)
            return absent(fmt::format("no NVRTC was found ({} or {}, in this process, the linker's path and the usual "
                                      "toolkit folders){}",
                                      sonames[0], sonames[1], tried));
    } else {
        library = dlopen(settings.file.c_str(), open_flags);
        if (library == nullptr) {
            const char* reason = dlerror();
            return absent(fmt::format("the NVRTC that was named can't be opened: {}", reason ? reason : settings.file));
        }
    }

    Nvrtc nvrtc;
    nvrtc.file = settings.file;
    link_map* map = nullptr;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr)
        nvrtc.file = map->l_name;
#define CUBRIDGE_FIND(name)                                                                                            \
    nvrtc.name = reinterpret_cast<decltype(nvrtc.name)>(dlsym(library, #name));                                        \
    if (nvrtc.name == nullptr)                                                                                         \
        return absent(fmt::format("{} lacks {}: it is no NVRTC, or an old one", nvrtc.file, #name));
    CUBRIDGE_NVRTC_SYMBOLS(CUBRIDGE_FIND)
#undef CUBRIDGE_FIND
    nvrtc.set_flow_callback =
        reinterpret_cast<decltype(nvrtc.set_flow_callback)>(dlsym(library, "nvrtcSetFlowCallback"));

    if (nvrtc.nvrtcVersion(&nvrtc.major, &nvrtc.minor) != NVRTC_SUCCESS || nvrtc.major < 12)
        return absent(
            fmt::format("{} is version {}.{}; 12.0 or newer is needed", nvrtc.file, nvrtc.major, nvrtc.minor));
    open_builtins(nvrtc);
    int count = 0;
    if (nvrtc.nvrtcGetNumSupportedArchs(&count) == NVRTC_SUCCESS && count > 0) {
        nvrtc.archs.resize(static_cast<std::size_t>(count));
        if (nvrtc.nvrtcGetSupportedArchs(nvrtc.archs.data()) != NVRTC_SUCCESS) nvrtc.archs.clear();
    }
    return nvrtc;
}

} // namespace cubridge::runtime
