// Fills the table of libcuda symbols.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver/symbols.h"
#include <dlfcn.h>
#include <fmt/format.h>

#define CUBRIDGE_TEXT_OF(name) #name
#define CUBRIDGE_TEXT(name) CUBRIDGE_TEXT_OF(name)

namespace cubridge::runtime {

Outcome<Symbols> load_symbols(const char* file) {
    void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* reason = dlerror();
        return Fault{"no_driver",
                     fmt::format("the NVIDIA driver's library can't be opened ({})", reason ? reason : file),
                     "kernels can still be made for a named architecture; to run them, install the driver, or give the "
                     "container access to the GPU"};
    }
    Symbols table;
    std::string missing;
#define CUBRIDGE_FIND(name) table.name = reinterpret_cast<decltype(table.name)>(dlsym(library, CUBRIDGE_TEXT(name)));
#define CUBRIDGE_NEED(name)                                                                                            \
    CUBRIDGE_FIND(name)                                                                                                \
    if (table.name == nullptr) missing += missing.empty() ? CUBRIDGE_TEXT(name) : ", " CUBRIDGE_TEXT(name);
    CUBRIDGE_CUDA_SYMBOLS(CUBRIDGE_NEED, CUBRIDGE_FIND)
    // The second version has the same signature and came in the middle of a driver generation.
    if (table.cuEventElapsedTime == nullptr)
        table.cuEventElapsedTime =
            reinterpret_cast<decltype(table.cuEventElapsedTime)>(dlsym(library, CUBRIDGE_TEXT_OF(cuEventElapsedTime)));
    if (!missing.empty())
        return Fault{"no_driver", fmt::format("{} lacks {}", file, missing),
                     "the driver is older than CUDA 12; update it"};
    return table;
}

} // namespace cubridge::runtime
