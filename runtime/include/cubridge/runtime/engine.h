// Engine: the library as it is embedded. Owns everything that answers name; one a process is enough.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/specification.h"
#include "cubridge/runtime/launch.h"
#include "cubridge/runtime/settings.h"
#include "cubridge/runtime/status.h"
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace cubridge::runtime {

/// A specification as callers hold it. Immutable; lives as long as its engine; any thread.
class Text {
public:
    struct State;
    explicit Text(std::unique_ptr<State> state);
    ~Text();
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;

    const ir::Specification& specification() const;
    /// Names of the operands that a launch gives, in order.
    const std::vector<std::string>& operands() const;
    const void* owner() const { return owner_; }
    const State& state() const { return *state_; }

private:
    friend class Engine;
    const std::unique_ptr<State> state_;
    const void* const owner_;
};

/// A request as plain numbers, defaults filled in: what the table is keyed by. All bytes count, so it has no padding.
struct Query {
    const Text* text = nullptr;
    std::array<char, 12> arch{};
    std::int32_t device = 0;
    std::int32_t q_dtype = 0, kv_dtype = 0, o_dtype = 0; ///< as cubridge.h numbers them, never SAME
    std::int32_t head_dim = 0, head_dim_v = 0, group = 1, heads = 0;
    std::int32_t layout = 0, page_size = 0, phase = 0, rows = 0, empty_rows = 0, lse = 0, alignment = 16;
    std::uint32_t flags = 0, unused = 0; ///< unused: 0, up to a whole word
    bool operator==(const Query&) const = default;
};
static_assert(std::has_unique_object_representations_v<Query> && sizeof(Query) % 8 == 0,
              "hashed and compared by words: a byte of padding, which no copy keeps, would make every query a new one");

enum class Want { BestNow = 0, Exact = 1, Cached = 2 };

/// Views and pointers live as long as the engine.
struct Answer {
    enum class Kind { Ready = 0, Fallback = 1, Pending = 2, Rejected = 3 } kind = Kind::Rejected;
    std::uint32_t reasons = 0;
    const ServedKernel* kernel = nullptr;
    std::uint64_t job = 0;
    std::string_view message; ///< one reason a line; empty when ready
};

struct Progress {
    std::uint64_t job = 0;
    bool running = false;
    Status status = Status::Ok;
    std::uint32_t ready = 0, total = 1;
    std::string stage;
};

struct Figure {
    const char* name;
    std::uint64_t value;
    bool gauge;
};

/// Any function may be called from any thread. None throws anything but std::bad_alloc. Destroying it cancels all jobs
/// and joins its threads; nothing that it handed out may be in use. In a child of fork only `forked()` and `abandon()`
/// may be called.
class Engine {
public:
    /// Opens no device and no compiler. Unsupported where `settings` ask for what is not built.
    static Verdict open(Settings settings, std::unique_ptr<Engine>& engine);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Equal sources give the same pointer.
    Verdict parse(const ir::Source& source, const Text*& text);
    /// A hit takes no lock and allocates nothing. Misuse where a field of the query is out of range.
    Verdict get(const Query& query, Want want, Answer& answer);
    std::uint64_t generation() const;

    Verdict poll(std::uint64_t job, Progress& progress);
    Verdict wait(std::uint64_t job, std::int64_t timeout_ms); ///< the job's own end, or Timeout
    Verdict cancel(std::uint64_t job);
    Verdict seal(bool sealed);

    /// Bytes of workspace within the bounds of `args`, whether or not there is a kernel yet.
    Verdict workspace(const Query& query, const LaunchArgs& args, std::size_t& bytes);

    std::vector<Figure> figures() const;

    /// In a child of fork: all threads and locks of this engine stayed with the parent.
    bool forked() const;
    /// Leaves everything where it is: what a child may do instead of destroying it.
    static void abandon(std::unique_ptr<Engine> engine);

private:
    struct State;
    explicit Engine(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace cubridge::runtime
