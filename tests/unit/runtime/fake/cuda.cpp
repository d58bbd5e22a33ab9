// A driver without a GPU: a library with libcuda's symbols that says yes, and of what a launch enqueues keeps a log in
// text. Tests find the functions fake_* by name. SPDX-License-Identifier: Apache-2.0
#include "ir/include/cubridge/ir/kernel_abi.h"
#include <csignal>
#include <cstring>
#include <cuda.h>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>

extern double fake_clock;

namespace {

std::string log_text;
int encodes = 0;
CUresult encoding = CUDA_SUCCESS;
alignas(128) unsigned char block[3456]; // docs/kernel-abi.md
unsigned seed = 0;                      // the variable of every cubin
char other;                             // the kernel that has no argument block

/// What kernels do: the word in a file beside this library, for processes that can't be told otherwise.
std::string behaviour() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&block), &info) == 0) return {};
    std::string word;
    std::ifstream(std::filesystem::path(info.dli_fname).replace_filename("behaviour")) >> word;
    return word;
}

/// To all of an output of 64 columns of 16 bits.
void write_zeros(const cubridge::ir::abi::cb_args& a, bool one) {
    for (int b = 0; b < a.requests; ++b)
        for (int h = 0; h < a.heads_q; ++h)
            for (int i = 0; i < a.max_q; ++i)
                std::memset(static_cast<char*>(a.o.data) + 2 * (b * a.o.outer + h * a.o.head + i * a.o.row), 0, 128);
    if (one) *static_cast<char*>(a.o.data) = 1;
}

} // namespace

extern "C" {

const char* fake_log() {
    return log_text.c_str();
}
int fake_encodes() {
    return encodes;
}
const void* fake_block() {
    return block;
}
void fake_reset(int answer_of_encoding) {
    log_text.clear();
    encodes = 0;
    seed = 0;
    encoding = static_cast<CUresult>(answer_of_encoding);
    std::memset(block, 0, sizeof block);
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR            ? 9
             : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT              ? 132
             : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 232448
                                                                                  : 0;
    return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void* address,
                                const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill) {
    ++encodes;
    if (encoding != CUDA_SUCCESS || rank != 5) return encoding;
    map->opaque[0] = reinterpret_cast<cuuint64_t>(address);
    for (unsigned d = 0; d < 5; ++d) map->opaque[1 + d] = dims[d];
    for (unsigned d = 0; d < 4; ++d) map->opaque[6 + d] = strides[d];
    map->opaque[10] = box[1];
    return CUDA_SUCCESS;
}

CUresult cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t words, CUstream) {
    log_text += "set " + std::to_string(at) + " " + std::to_string(value) + " " + std::to_string(words) + "\n";
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* at, size_t* bytes, CUlibrary, const char*) {
    *at = reinterpret_cast<CUdeviceptr>(&seed);
    *bytes = sizeof seed;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary, const char* name) {
    *kernel = std::string_view(name) == "company" ? reinterpret_cast<CUkernel>(&other) : nullptr;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    *function = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                        unsigned shared, CUstream, void** parameters, void**) {
    if (function == reinterpret_cast<CUfunction>(&other)) {
        log_text += "company " + std::to_string(x) + "\n";
        return CUDA_SUCCESS;
    }
    log_text += "launch " + std::to_string(x) + " " + std::to_string(threads) + " " + std::to_string(shared) +
                (seed != 0 ? " seed " + std::to_string(seed) : "") + "\n";
    std::memcpy(block, parameters[0], sizeof block);
    fake_clock += static_cast<double>(shared) / 1024 / 1000;
    const std::string how = behaviour();
    if (how == "crash") std::raise(SIGSEGV);
    if (how == "sleep") sleep(100);
    if (how == "zeros" || how == "late" || how == "stuck") // late: two of four seeds show it
        write_zeros(*reinterpret_cast<const cubridge::ir::abi::cb_args*>(block), how == "late" && seed % 4 == 3);
    if (how == "fault") return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (how == "unlike" || how == "unlike_fault") { // a kernel, twice, then what it is held against
        static int launches = 0;
        if (launches++ % 3 < 2)
            write_zeros(*reinterpret_cast<const cubridge::ir::abi::cb_args*>(block), false);
        else if (how == "unlike_fault")
            return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream) {
    return behaviour() == "hang" || (behaviour() == "stuck" && seed != 0) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
}
