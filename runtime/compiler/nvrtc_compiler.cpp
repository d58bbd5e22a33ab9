// Compiles with NVRTC.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler/nvrtc_compiler.h"
#include "runtime/compiler/include_gate.h"
#include "runtime/compiler/log.h"
#include "runtime/compiler/options.h"
#include "runtime/gate/foreign.h"
#include <fmt/format.h>
#include <openssl/evp.h>

namespace cubridge::runtime {
namespace {

using Clock = std::chrono::steady_clock;

/// A program of NVRTC, destroyed whatever happens to it.
class Program {
public:
    Program(const Nvrtc& nvrtc, const CompileJob& job) : nvrtc_(nvrtc) {
        std::vector<const char*> texts, names;
        for (const auto& header : job.headers) {
            texts.push_back(header.text.c_str());
            names.push_back(header.name.c_str());
        }
        state = nvrtc_.nvrtcCreateProgram(&handle, job.source.c_str(), job.name.c_str(), static_cast<int>(texts.size()),
                                          texts.data(), names.data());
    }
    ~Program() {
        if (handle != nullptr) (void)nvrtc_.nvrtcDestroyProgram(&handle);
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    std::string log() const {
        std::size_t size = 0;
        if (nvrtc_.nvrtcGetProgramLogSize(handle, &size) != NVRTC_SUCCESS || size <= 1) return {};
        std::string text(size, '\0');
        if (nvrtc_.nvrtcGetProgramLog(handle, text.data()) != NVRTC_SUCCESS) return {};
        text.resize(size - 1); // its size counts the NUL
        return text;
    }

    std::vector<std::byte> cubin() const {
        std::size_t size = 0;
        if (nvrtc_.nvrtcGetCUBINSize(handle, &size) != NVRTC_SUCCESS) return {};
        std::vector<std::byte> bytes(size);
        if (size > 0 && nvrtc_.nvrtcGetCUBIN(handle, reinterpret_cast<char*>(bytes.data())) != NVRTC_SUCCESS) return {};
        return bytes;
    }

    nvrtcProgram handle = nullptr;
    nvrtcResult state = NVRTC_SUCCESS;

private:
    const Nvrtc& nvrtc_;
};

int overdue(void* deadline, void*) {
    return Clock::now() >= *static_cast<Clock::time_point*>(deadline) ? 1 : 0;
}

/// The first line of a log that reports an error: what a person wants to see without reading all of it.
std::string first_error(const std::string& log) {
    auto at = log.find("error");
    if (at == std::string::npos) at = log.find("fatal");
    if (at == std::string::npos) return {};
    const auto begin = log.rfind('\n', at) + 1;
    return log.substr(begin, log.find('\n', at) - begin);
}

std::string hex_digest(const std::vector<std::byte>& bytes) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) != 1) return {};
    std::string text;
    for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
    return text;
}

} // namespace

Outcome<CompileResult> NvrtcCompiler::compile(const CompileJob& job) {
    if (auto fine = check_options(job, nvrtc_.archs); !fine) return fine.fault();
    if (gated_) {
        std::vector<std::string> headers;
        for (const auto& header : job.headers) headers.push_back(header.name);
        if (auto fine = include_gate(job.source, headers); !fine) return fine.fault();
    }
    auto compiler = identity();
    if (!compiler) return compiler.fault();
    auto result = gated_ ? gates::guarded(job, [&] { return build(job); }) : build(job);
    if (result) result->compiler = *compiler;
    return result;
}

Outcome<CompileResult> NvrtcCompiler::build(const CompileJob& job) {
    const auto begin = Clock::now();
    auto deadline = begin + job.deadline;
    const auto& dispensable = dispensable_options();
    for (;;) {
        const Program program(nvrtc_, job);
        if (program.state != NVRTC_SUCCESS)
            return Fault{"compile", fmt::format("nvrtcCreateProgram: {}", nvrtc_.nvrtcGetErrorString(program.state)),
                         "", program.state};
        auto options = standing_options(job.arch);
        const auto refused = refused_.load();
        for (std::size_t i = 0; i < dispensable.size(); ++i)
            if ((refused >> i & 1u) != 0) std::erase(options, dispensable[i]);
        options.insert(options.end(), job.options.begin(), job.options.end());
        std::vector<const char*> pointers;
        pointers.reserve(options.size());
        for (const auto& option : options) pointers.push_back(option.c_str());
        if (job.deadline.count() > 0 && nvrtc_.set_flow_callback != nullptr)
            (void)nvrtc_.set_flow_callback(program.handle, overdue, &deadline);

        const auto code =
            nvrtc_.nvrtcCompileProgram(program.handle, static_cast<int>(pointers.size()), pointers.data());
        const auto log = program.log();
        if (code == NVRTC_ERROR_INVALID_OPTION) {
            unsigned unknown = 0;
            for (std::size_t i = 0; i < dispensable.size(); ++i) {
                const auto name = dispensable[i].substr(0, dispensable[i].find('='));
                if (log.find(name) != std::string::npos) unknown |= 1u << i;
            }
            if ((unknown & ~refused) != 0) {
                refused_ |= unknown;
                continue;
            }
        }
        CompileResult result;
        result.log = cut_log(log, job);
        result.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
        if (code != NVRTC_SUCCESS) {
            const bool arch =
                log.find("gpu-architecture") != std::string::npos || log.find("nv_arch") != std::string::npos;
            Fault fault{"compile", first_error(result.log), "", code, result.log};
            if (fault.message.empty()) fault.message = fmt::format("NVRTC: {}", nvrtc_.nvrtcGetErrorString(code));
            if (arch) {
                fault.kind = "arch";
                fault.message = fmt::format("this compiler has no architecture \"{}\"", job.arch);
                fault.hint = "the suffixes a and f exist from sm_90 and sm_100 on";
            } else if (code == NVRTC_ERROR_INVALID_OPTION) {
                fault.kind = "option";
            } else if (job.deadline.count() > 0 && Clock::now() >= deadline) {
                fault.kind = "deadline";
                fault.message = fmt::format("compiling was given up after {:.0f} ms", result.milliseconds);
            }
            return fault;
        }
        result.cubin = program.cubin();
        if (result.cubin.empty())
            return Fault{"empty", fmt::format("NVRTC made no code for {}", job.arch), "", 0, result.log};
        result.entries = entries_of(log);
        result.remarks = remarks_of(log);
        return result;
    }
}

Outcome<std::string> NvrtcCompiler::identity() {
    const std::lock_guard lock(probing_);
    if (!identity_.empty()) return identity_;
    auto made = probe();
    if (made) identity_ = *made;
    return made;
}

Outcome<std::string> NvrtcCompiler::probe() {
    CompileJob job;
    job.name = "probe.cu";
    job.arch = nvrtc_.archs.empty() ? "sm_80" : fmt::format("sm_{}", nvrtc_.archs.front());
    job.source = "extern \"C\" __global__ void probe(float* x, int n) {\n"
                 "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                 "    if (i < n) x[i] = exp2f(x[i]) / (1.0f + x[i]);\n"
                 "}\n";
    auto result = build(job);
    if (!result) return result.fault();
    return fmt::format("nvrtc {}.{} {}", nvrtc_.major, nvrtc_.minor, hex_digest(result->cubin).substr(0, 16));
}

Outcome<std::shared_ptr<Compiler>> open_nvrtc(const NvrtcSettings& settings) {
    auto nvrtc = find_nvrtc(settings);
    if (!nvrtc) return nvrtc.fault();
    return std::shared_ptr<Compiler>(std::make_shared<NvrtcCompiler>(*std::move(nvrtc)));
}

} // namespace cubridge::runtime
