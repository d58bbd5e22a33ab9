// What an engine is configured with: the caller's struct, then the environment, then defaults (docs/operations.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/open_store.h"
#include "cubridge/runtime/compiler.h"
#include "cubridge/runtime/verifier.h"
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cubridge::runtime {

struct Progress;

enum class Mode { Adapt, Cached, Off };
enum class Level { Silent = 0, Error = 1, Warn = 2, Info = 3, Trace = 4 };

/// A value. What the caller leaves unset comes from the environment in `complete_settings()`.
struct Settings {
    std::optional<std::string> store; ///< folder; empty: memory only; unset: the usual places
    std::optional<int> workers;       ///< adaptations at a time; -1: none
    bool executor = false;            ///< kernels that no GPU has run are served
    std::string worker;               ///< the `cubridge` executable; empty: beside the library, then PATH
    std::string verify_gpu;           ///< UUID or number of the GPU that runs kernels first; empty: the one asked for
    std::string visible;              ///< CUDA_VISIBLE_DEVICES: the names of MIG slices are known from there only
    /// Opens what runs kernels on a GPU, named as CUDA_VISIBLE_DEVICES names it; empty: open_verifier().
    std::function<std::shared_ptr<Verifier>(const std::string& device)> verifier;
    std::string nvrtc;                  ///< full path of libnvrtc; empty: searched for
    std::shared_ptr<Compiler> compiler; ///< null: NVRTC, opened when something is to be compiled
    std::function<void(Level, const std::string& line)> log;
    std::function<void(const Progress&)> notify;

    Mode mode = Mode::Adapt; ///< the environment's alone: it can only take away
    std::int64_t store_max = std::int64_t{2} << 30;
    std::chrono::seconds deadline{120};
    Level level = Level::Warn; ///< of log lines; Silent unless there is somewhere to send them
    bool log_to_stderr = false;
    std::string trace;                 ///< file for one JSON line a look-up; empty: none
    cache::Environment places;         ///< where the usual places are
    std::vector<std::string> warnings; ///< values that were not understood, variables that do not exist
};

/// Reads the variables CUBRIDGE_* once, from a table "NAME=VALUE" as `environ` is. A bad value is a warning and the
/// default.
Settings complete_settings(Settings given, const char* const* environment);

} // namespace cubridge::runtime
