// A launch: what the caller passes, and the kernel that takes it. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/runtime/status.h"
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct CUstream_st;

namespace cubridge::runtime {

/// As cubridge_args, field by field. Borrowed for the length of one call.
struct LaunchArgs {
    ir::abi::cb_tensor q{}, k{}, v{}, o{}, lse{};
    ir::abi::cb_scale k_scale{}, v_scale{};
    std::span<const ir::abi::cb_operand> operands; ///< those that the specification lists, in its order
    int requests = 0, heads_kv = 0, head_begin = 0, total_q = 0, max_q = 0, max_kv = 0;
    const int* cu_seqlens_q = nullptr;
    const int* cu_seqlens_k = nullptr;
    const int* seq_lens_k = nullptr;
    const int* first_k = nullptr;
    const int* page_table = nullptr;
    const int* page_begin = nullptr;
    long long page_stride = 0;
    void* workspace = nullptr;
    std::size_t workspace_size = 0;
    unsigned flags = 0;
};

/// A kernel that an answer names. Immutable; lives as long as its engine; any thread.
class ServedKernel {
public:
    struct State;
    explicit ServedKernel(std::unique_ptr<State> state);
    ~ServedKernel();
    ServedKernel(const ServedKernel&) = delete;
    ServedKernel& operator=(const ServedKernel&) = delete;

    const std::string& id() const;
    const std::string& variant() const;
    const std::string& report() const; ///< JSON
    int made() const;                  ///< 0 rules, 1 model, 2 generic
    int from() const;                  ///< 0 made here, 1 store
    int verified() const;              ///< 0 GPU, 1 executor, -1 neither
    float error_ratio() const;
    bool exact() const;

    /// Checks all that can be checked on the host, then enqueues one grid an entry. Allocates nothing, waits for
    /// nothing. Misuse, Unsupported, Cuda; unless it is Ok, nothing was enqueued (except when the driver refuses a
    /// later grid). The thread's context must be the stream's.
    Verdict launch(const LaunchArgs& args, CUstream_st* stream) const;
    /// Bytes of workspace that a launch within the bounds of `args` needs.
    Verdict workspace(const LaunchArgs& args, std::size_t& bytes) const;

    const State& state() const { return *state_; }

private:
    const std::unique_ptr<State> state_;
};

} // namespace cubridge::runtime
