// What the tests of adapter, registry and launch share: a specification, folders that vanish, a compiler without NVRTC.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/open_store.h"
#include "cubridge/runtime/adapter.h"
#include <atomic>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

namespace cubridge::runtime::testing_support {

/// What it computes a driver that only notes can write: zeros.
inline constexpr char kZero[] = R"(
import torch

def attention(q, k, v):
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    return torch.softmax(s, -1) @ (v * 0)
)";

inline constexpr char kCausal[] = R"(
import torch

def attention(q, k, v, window=64):
    n, m = q.shape[-2], k.shape[-2]
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    i = torch.arange(n)[:, None]
    j = torch.arange(m)[None, :]
    s = s.masked_fill((j > i) & (j - i < window), float("-inf"))
    return torch.softmax(s, -1) @ v
)";

inline std::shared_ptr<const ir::Specification> parsed(const std::string& text,
                                                       const std::string& function = "attention") {
    ir::Source source;
    source.text = text;
    source.function = function;
    ir::ParseOptions options;
    options.heads = 8;
    auto result = ir::Specification::parse(source, options);
    if (!result) {
        ADD_FAILURE() << result.error().render(text);
        return nullptr;
    }
    return *result;
}

/// For an architecture that has portable experts only, so that stages are those of one.
inline ir::Request request_for(const char* arch = "sm_80", int head_dim = 64) {
    ir::Request r;
    r.head_dim = r.head_dim_v = head_dim;
    r.arch = arch;
    return r;
}

/// One that rules refuse: no expert computes in float32.
inline ir::Request generic_request(const char* arch = "sm_80") {
    ir::Request r = request_for(arch);
    r.q_dtype = r.kv_dtype = r.o_dtype = ir::DType::F32;
    return r;
}

/// Names of stages in order; `?` skipped, `!` failed.
inline std::string stages_of(const Report& report) {
    std::string out;
    for (const auto& s : report.stages)
        out += s.name + (s.verdict == Stage::Verdict::Ok ? " " : s.verdict == Stage::Verdict::Failed ? "! " : "? ");
    return out;
}

/// A folder that goes with the object.
class Folder {
public:
    Folder() {
        static std::atomic<int> number{0};
        path_ = (std::filesystem::temp_directory_path() /
                 ("cubridge-test-" + std::to_string(getpid()) + "-" + std::to_string(number++)))
                    .string();
        std::filesystem::remove_all(path_);
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }
    std::unique_ptr<cache::Store> open() const {
        cache::OpenOptions options;
        options.folder = path_;
        return cache::open_store(std::move(options));
    }

private:
    std::string path_;
};

/// Answers each job with a small whole ELF file and the entries that the source defines; counts, and takes its time.
class FakeCompiler final : public Compiler {
public:
    Outcome<CompileResult> compile(const CompileJob& job) override {
        ++compiles;
        const int now = ++at_work;
        for (int seen = most_at_work; seen < now && !most_at_work.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::sleep_for(pause);
        for (int n = 0; n < 6000 && most_at_work < meets; ++n)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        --at_work;
        const bool by_rules = job.name == "attention.cu";
        if (fails || (by_rules && (fails_on_rules || fails_next-- > 0)))
            return Fault{kind, "the source does not compile", "", 0, "kernel.cu(1): error"};
        CompileResult result;
        Elf64_Ehdr header{}; // and one empty section: the least that is whole
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        header.e_ident[EI_DATA] = ELFDATA2LSB;
        header.e_machine = 190; // EM_CUDA
        header.e_shoff = sizeof header;
        header.e_shnum = 1;
        header.e_shentsize = sizeof(Elf64_Shdr);
        result.cubin.resize(sizeof header + sizeof(Elf64_Shdr));
        std::memcpy(result.cubin.data(), &header, sizeof header);
        const std::string mark = "(const __grid_constant__ cb_args "; // what all entries take
        for (auto at = job.source.find(mark); at != job.source.npos; at = job.source.find(mark, at + 1)) {
            const auto from = job.source.find_last_of(' ', at) + 1;
            CompiledEntry entry;
            entry.name = job.source.substr(from, at - from);
            entry.registers = 40;
            entry.spill_loads = spills > 0 && job.source.find(spills_at) != job.source.npos ? spills : 0;
            result.entries.push_back(entry);
        }
        result.compiler = "fake 1";
        return result;
    }
    Outcome<std::string> identity() override { return std::string("fake 1"); }
    std::string location() const override { return {}; }

    std::atomic<int> compiles{0}, at_work{0}, most_at_work{0};
    std::chrono::milliseconds pause{0};
    std::atomic<int> meets{0}; ///< a compile ends when so many have been at work at once, or after a minute
    bool fails = false;
    std::string kind = "compile";   ///< of those faults
    std::atomic<int> fails_next{0}; ///< so many experts' kernels to come do not compile
    bool fails_on_rules = false;    ///< an expert's kernel does not compile, whatever rules made of it
    int spills = 0;
    std::string spills_at; ///< in kernels whose text has this; empty: in all
};

} // namespace cubridge::runtime::testing_support
