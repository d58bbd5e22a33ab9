# Where cuda.h and nvrtc.h are. Only headers are needed to build: libcuda and libnvrtc are opened at run time.
# An installed toolkit comes first; else the headers that the set-up unpacked from the PyPI wheels into the build folder.
set(cubridge_cuda_hints $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda)
file(GLOB cubridge_cuda_wheels ${CMAKE_BINARY_DIR}/cuda-wheels/nvidia/* ${CMAKE_SOURCE_DIR}/build/cuda-wheels/nvidia/*)
find_path(CUBRIDGE_CUDA_INCLUDE cuda.h HINTS ${cubridge_cuda_hints} ${cubridge_cuda_wheels}
          PATH_SUFFIXES include targets/x86_64-linux/include)
find_path(CUBRIDGE_NVRTC_INCLUDE nvrtc.h HINTS ${CUBRIDGE_CUDA_INCLUDE} ${cubridge_cuda_hints} ${cubridge_cuda_wheels}
          PATH_SUFFIXES include targets/x86_64-linux/include)
if(NOT CUBRIDGE_CUDA_INCLUDE OR NOT CUBRIDGE_NVRTC_INCLUDE)
  message(FATAL_ERROR "cuda.h or nvrtc.h not found. Install the CUDA toolkit, set CUDA_HOME, or run .ci/setup, which "
                      "brings the headers from the PyPI wheels nvidia-cuda-runtime and nvidia-cuda-nvrtc.")
endif()
