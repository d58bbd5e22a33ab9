// Opens the driver and describes its devices.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/driver.h"
#include "runtime/driver/errors.h"
#include "runtime/driver/symbols.h"
#include <cstdlib>
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

std::string text_of(const CUuuid& uuid) {
    std::string text = "GPU";
    for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
        if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
    }
    return text;
}

} // namespace

std::string arch_of(int major, int minor) {
    const bool suffix = major >= 10 || (major == 9 && minor == 0);
    return fmt::format("sm_{}{}{}", major, minor, suffix ? "a" : "");
}

int number_of_arch(const std::string& arch) {
    return arch.size() > 3 ? std::atoi(arch.c_str() + 3) : 0;
}

bool runs_on(const std::string& kernel, const std::string& device) {
    const int of_kernel = number_of_arch(kernel), of_device = number_of_arch(device);
    return of_kernel / 10 == of_device / 10 && of_kernel <= of_device;
}

std::string device_text(const Device& device) {
    return fmt::format("{}, {} SMs", device.name, device.multiprocessors);
}

Driver::Driver(Symbols symbols) : symbols_(std::make_unique<const Symbols>(symbols)) {}
Driver::~Driver() = default;

Outcome<std::shared_ptr<Driver>> Driver::open(const char* file) {
    auto symbols = load_symbols(file);
    if (!symbols) return symbols.fault();
    return std::shared_ptr<Driver>(new Driver(*symbols));
}

Outcome<void> Driver::initialise() {
    std::call_once(initialised_, [this] {
        if (const auto code = symbols_->cuInit(0); code != CUDA_SUCCESS) refused_ = driver_fault(code, "cuInit");
    });
    if (refused_) return *refused_;
    return {};
}

Outcome<int> Driver::version() {
    int version = 0;
    if (const auto code = symbols_->cuDriverGetVersion(&version); code != CUDA_SUCCESS)
        return driver_fault(code, "cuDriverGetVersion");
    return version;
}

Outcome<std::vector<Device>> Driver::devices() {
    if (auto done = initialise(); !done) return done.fault();
    int count = 0;
    if (const auto code = symbols_->cuDeviceGetCount(&count); code != CUDA_SUCCESS)
        return driver_fault(code, "cuDeviceGetCount");
    if (count == 0) return driver_fault(CUDA_ERROR_NO_DEVICE, "cuDeviceGetCount");
    std::vector<Device> devices;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        auto one = device(ordinal);
        if (!one) return one.fault();
        devices.push_back(*std::move(one));
    }
    return devices;
}

Outcome<Device> Driver::device(int ordinal) {
    if (auto done = initialise(); !done) return done.fault();
    CUdevice handle = 0;
    if (const auto code = symbols_->cuDeviceGet(&handle, ordinal); code != CUDA_SUCCESS)
        return driver_fault(code, "cuDeviceGet");

    Device device;
    device.ordinal = ordinal;
    char name[256] = {};
    CUuuid uuid = {};
    int mode = 0;
    CUresult code = CUDA_SUCCESS;
    const auto read = [&](int& value, CUdevice_attribute attribute) {
        if (code == CUDA_SUCCESS) code = symbols_->cuDeviceGetAttribute(&value, attribute, handle);
    };
    read(device.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    read(device.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    read(device.multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    read(device.shared_memory_optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    read(mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
    if (code != CUDA_SUCCESS) return driver_fault(code, "cuDeviceGetAttribute");
    if (code = symbols_->cuDeviceGetName(name, sizeof name - 1, handle); code != CUDA_SUCCESS)
        return driver_fault(code, "cuDeviceGetName");
    if (code = symbols_->cuDeviceGetUuid(&uuid, handle); code != CUDA_SUCCESS)
        return driver_fault(code, "cuDeviceGetUuid");
    if (code = symbols_->cuDeviceTotalMem(&device.memory, handle); code != CUDA_SUCCESS)
        return driver_fault(code, "cuDeviceTotalMem");
    device.name = name;
    device.uuid = text_of(uuid);
    device.arch = arch_of(device.major, device.minor);
    device.exclusive = mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS;
    device.prohibited = mode == CU_COMPUTEMODE_PROHIBITED;
    return device;
}

} // namespace cubridge::runtime
