// Counters of an engine, spread so that threads that count at once don't share a cache line.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cubridge::runtime {

// Names as docs/operations.md has them.
#define CUBRIDGE_COUNTERS(X)                                                                                           \
    X(answers_ready)                                                                                                   \
    X(answers_fallback)                                                                                                \
    X(answers_pending)                                                                                                 \
    X(answers_rejected)                                                                                                \
    X(answers_while_sealed_missing)                                                                                    \
    X(hits_memory)                                                                                                     \
    X(hits_store)                                                                                                      \
    X(misses)                                                                                                          \
    X(adaptations_started)                                                                                             \
    X(adaptations_ok)                                                                                                  \
    X(adaptations_failed)                                                                                              \
    X(adaptations_cancelled)                                                                                           \
    X(adaptations_joined)                                                                                              \
    X(adaptation_ms)                                                                                                   \
    X(compile_ms)                                                                                                      \
    X(verify_ms)                                                                                                       \
    X(verified_gpu)                                                                                                    \
    X(verified_executor)                                                                                               \
    X(verify_rejected)                                                                                                 \
    X(verify_unavailable)                                                                                              \
    X(made_by_rules)                                                                                                   \
    X(made_by_model)                                                                                                   \
    X(made_by_generic)

enum class Counter : std::size_t {
#define CUBRIDGE_COUNTER(name) name,
    CUBRIDGE_COUNTERS(CUBRIDGE_COUNTER)
#undef CUBRIDGE_COUNTER
        Count
};

/// Any thread; adding never blocks.
class Counters {
public:
    void add(Counter counter, std::uint64_t value = 1) noexcept {
        shard().value[static_cast<std::size_t>(counter)].fetch_add(value, std::memory_order_relaxed);
    }
    std::uint64_t sum(Counter counter) const noexcept {
        std::uint64_t out = 0;
        for (const auto& s : shards_) out += s.value[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
        return out;
    }

private:
    static constexpr std::size_t kShards = 64;
    struct alignas(64) Shard {
        std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Counter::Count)> value{};
    };
    Shard& shard() noexcept {
        static std::atomic<std::size_t> next{0};
        static thread_local const std::size_t own = next.fetch_add(1, std::memory_order_relaxed) % kShards;
        return shards_[own];
    }
    std::array<Shard, kShards> shards_;
};

} // namespace cubridge::runtime
