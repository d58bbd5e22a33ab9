// Store, compiler and GPU of this machine. SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/machine.h"
#include <cstdlib>
#include <mutex>

namespace cubridge::cli {

namespace {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

// Any thread, like every Compiler.
class LateCompiler : public runtime::Compiler {
public:
    runtime::Outcome<runtime::CompileResult> compile(const runtime::CompileJob& job) override {
        return real().compile(job);
    }
    runtime::Outcome<std::string> identity() override { return real().identity(); }
    std::string location() const override { return real_ ? real_->location() : ""; }

private:
    runtime::Compiler& real() {
        std::call_once(once_, [this] {
            auto opened = runtime::open_nvrtc(nvrtc_settings());
            real_ = opened ? *opened : runtime::no_compiler(opened.fault());
        });
        return *real_;
    }
    std::once_flag once_;
    std::shared_ptr<runtime::Compiler> real_;
};

} // namespace

runtime::NvrtcSettings nvrtc_settings() {
    runtime::NvrtcSettings settings;
    settings.file = environment("CUBRIDGE_NVRTC");
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
        if (const std::string folder = environment(name); !folder.empty()) {
            settings.folders.push_back(folder + "/lib64");
            settings.folders.push_back(folder + "/targets/x86_64-linux/lib");
        }
    if (const std::string wheels = environment("CUBRIDGE_CUDA_WHEELS"); !wheels.empty())
        settings.folders.push_back(wheels);
    return settings;
}

std::shared_ptr<runtime::WorkerCompiler> worker_compiler(std::shared_ptr<runtime::Compiler> otherwise) {
    runtime::WorkerSettings settings;
    settings.file = "/proc/self/exe"; // also where the file was replaced since
    settings.nvrtc = nvrtc_settings();
    settings.otherwise = std::move(otherwise);
    return runtime::open_worker(std::move(settings));
}

std::shared_ptr<runtime::Verifier> Machine::verifier() {
    if (verifier_) return verifier_;
    runtime::VerifierSettings settings;
    settings.file = "/proc/self/exe";
    settings.device = environment("CUBRIDGE_VERIFY_GPU");
    if (settings.device.empty()) settings.device = environment("CUDA_VISIBLE_DEVICES");
    return verifier_ = runtime::open_verifier(std::move(settings));
}

cache::Store& Machine::store() {
    if (store_) return *store_;
    cache::OpenOptions open;
    open.folder = options_.cache;
    open.environment = {environment("XDG_CACHE_HOME"), environment("HOME")};
    open.warn = [this](const cache::Warning& w) {
        complaints_.push_back(w.message);
        progress_.line(progress_.paint(Colour::Warning, "warning: ") + w.message);
    };
    store_ = cache::open_store(std::move(open));
    return *store_;
}

cache::Locks& Machine::locks() {
    if (!locks_) locks_ = std::make_unique<cache::Locks>(store().place().folder);
    return *locks_;
}

std::shared_ptr<runtime::Compiler> Machine::compiler() {
    if (!compiler_) compiler_ = std::make_shared<LateCompiler>();
    if (options_.worker && !worker_) worker_ = worker_compiler(compiler_);
    if (worker_) return worker_;
    return compiler_;
}

const runtime::Outcome<runtime::Device>& Machine::gpu() {
    if (gpu_) return *gpu_;
    auto driver = runtime::Driver::open();
    if (!driver)
        gpu_ = driver.fault();
    else {
        driver_ = *driver;
        gpu_ = driver_->device(0);
    }
    return *gpu_;
}

runtime::Outcome<std::shared_ptr<runtime::Measurer>> Machine::measurer() {
    if (measurer_) return measurer_;
    if (!gpu()) {
        auto fault = gpu().fault();
        fault.message = "--tune measures on a GPU: " + fault.message;
        return fault;
    }
    const runtime::Device& device = *gpu();
    if (arch() != device.arch)
        return runtime::Fault{"arch",
                              "--tune measures on " + device.name + ", which is " + device.arch + ", not " + arch(),
                              "leave --arch out", 0, ""};
    auto opened = runtime::gpu_measurer(driver_, device.ordinal);
    if (!opened) return opened.fault();
    measurer_ = std::move(*opened);
    return measurer_;
}

std::string Machine::arch() {
    if (!options_.request.arch.empty()) return options_.request.arch;
    return gpu() ? gpu()->arch : "sm_90a";
}

} // namespace cubridge::cli
