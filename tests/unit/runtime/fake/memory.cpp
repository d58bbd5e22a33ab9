// Memory of the fake driver is the host's; its clock goes on by launches alone: a microsecond for each KiB of shared
// memory. SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <cuda.h>

double fake_clock = 0; // milliseconds

extern "C" {

CUresult cuDeviceGetName(char* name, int size, CUdevice) {
    std::strncpy(name, "Fake", static_cast<size_t>(size));
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t* free, size_t* total) {
    *free = *total = size_t{4} << 30;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr* at, size_t bytes) {
    void* p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    *at = reinterpret_cast<CUdeviceptr>(p);
    return p == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr at) {
    std::free(reinterpret_cast<void*>(at));
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream) {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream) {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream) {
    std::memset(reinterpret_cast<void*>(at), value, bytes);
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(new double(0));
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
    delete reinterpret_cast<double*>(event);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream) {
    *reinterpret_cast<double*>(event) = fake_clock;
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float* ms, CUevent begin, CUevent end) {
    *ms = static_cast<float>(*reinterpret_cast<double*>(end) - *reinterpret_cast<double*>(begin));
    return CUDA_SUCCESS;
}
}
