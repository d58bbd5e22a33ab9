// The NVIDIA driver and the GPUs that this process may use. libcuda is opened at run time, never linked.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/fault.h"
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace cubridge::runtime {

struct Symbols;

/// One GPU as the driver describes it. A value.
struct Device {
    int ordinal = 0;             ///< counts the visible GPUs from 0
    std::string name;            ///< "NVIDIA H200"
    std::string uuid;            ///< "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
    std::string arch;            ///< what kernels are compiled for: see arch_of()
    int major = 0, minor = 0;    ///< compute capability
    int multiprocessors = 0;     ///< of this device, or of this slice of one
    int shared_memory_optin = 0; ///< bytes one block may ask for
    std::size_t memory = 0;      ///< bytes in all
    bool exclusive = false;      ///< compute mode EXCLUSIVE_PROCESS: no second process gets a context
    bool prohibited = false;     ///< compute mode PROHIBITED: nobody does
};

/// "sm_90a" for 9.0 and "sm_<n>a" from 10.0 on, where the features that fast kernels need have the suffix; plain below.
std::string arch_of(int major, int minor);
/// 90 of "sm_90a"; 0 for what is none.
int number_of_arch(const std::string& arch);
/// A cubin for `kernel` on a GPU that is `device`: of one major number, and no newer.
bool runs_on(const std::string& kernel, const std::string& device);

/// "NVIDIA H200, 132 SMs": what a measurement holds for.
std::string device_text(const Device& device);

/// An open driver. Any thread may use it. Opening and closing cost nothing on the GPU: cuInit runs with the first call
/// that asks about devices, so that a process which only opens it may still fork. libcuda stays mapped until the
/// process ends.
class Driver {
public:
    /// Faults: "no_driver". `file` is for tests; a toolkit's stub has another name and is never taken.
    static Outcome<std::shared_ptr<Driver>> open(const char* file = "libcuda.so.1");
    ~Driver();

    /// cuInit, once; later calls repeat its answer. Faults: "no_device" and others of driver_fault().
    Outcome<void> initialise();

    /// 13000 for CUDA 13.0: the newest toolkit this driver was made for.
    Outcome<int> version();

    /// All visible GPUs, in the driver's order. None is a Fault ("no_device"), never an empty list.
    Outcome<std::vector<Device>> devices();
    Outcome<Device> device(int ordinal);

    const Symbols& symbols() const { return *symbols_; }

    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;

private:
    explicit Driver(Symbols symbols);

    const std::unique_ptr<const Symbols> symbols_;
    std::once_flag initialised_;
    std::optional<Fault> refused_; ///< what cuInit answered
};

} // namespace cubridge::runtime
