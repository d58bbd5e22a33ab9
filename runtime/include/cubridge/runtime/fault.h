// What went wrong below the runtime: in the driver, the compiler or the system. Values, owned by whoever holds them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace cubridge::runtime {

/// Why a call gave nothing. `kind` is a stable word that programs may compare; the rest is for people.
///   driver:   "no_driver", "no_device", "artifact" (this cubin can't be used here; make it again), "context_lost"
///   (sticky:
///             every later call in this process fails), "memory", "capture", "busy" (try later), "driver" (anything
///             else)
///   compiler: "no_compiler", "arch", "option", "gate", "compile", "deadline", "empty"; of one in a worker also
///             "memory" and "worker" (it can't be started, or died)
struct Fault {
    std::string kind;
    std::string message;  ///< one sentence: which call, what it answered
    std::string hint{};   ///< what to do about it; may be empty
    int code = 0;         ///< CUresult or nvrtcResult; 0 where there is none
    std::string detail{}; ///< several lines, e.g. a compile log; may be empty

    /// "message; hint" on one line.
    std::string text() const { return hint.empty() ? message : message + "; " + hint; }
};

/// A value or the Fault that took its place.
template <class T> class Outcome {
public:
    Outcome(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Outcome(Fault fault) : state_(std::in_place_index<1>, std::move(fault)) {}
    explicit operator bool() const { return state_.index() == 0; }
    T& operator*() & { return std::get<0>(state_); }
    const T& operator*() const& { return std::get<0>(state_); }
    T&& operator*() && { return std::get<0>(std::move(state_)); }
    T* operator->() { return &std::get<0>(state_); }
    const T* operator->() const { return &std::get<0>(state_); }
    const Fault& fault() const { return std::get<1>(state_); }

private:
    std::variant<T, Fault> state_;
};

/// Done, or the Fault that prevented it.
template <> class Outcome<void> {
public:
    Outcome() = default;
    Outcome(Fault fault) : fault_(std::move(fault)) {}
    explicit operator bool() const { return !fault_; }
    const Fault& fault() const { return *fault_; }

private:
    std::optional<Fault> fault_;
};

} // namespace cubridge::runtime
