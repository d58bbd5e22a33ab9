// The frame of the GPU programs: rows of checks, printed as they end, and written down for tests/gpu/run.sh.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/fault.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace cubridge::gpu {

constexpr int no_gpu = 77; // exit status: nothing could be checked here

/// Counts verdicts. With CUBRIDGE_CHECK_ROWS set, each is also appended to that file as "verdict<TAB>ms<TAB>name",
/// and the GPU as "gpu<TAB>0<TAB>name".
class Checks {
public:
    Checks() {
        if (const char* file = std::getenv("CUBRIDGE_CHECK_ROWS")) rows_ = std::fopen(file, "a");
    }
    ~Checks() {
        if (rows_ != nullptr) std::fclose(rows_);
    }
    Checks(const Checks&) = delete;
    Checks& operator=(const Checks&) = delete;

    /// Runs `body`, which returns what is wrong; an empty text passes.
    template <class Body> void run(const char* name, Body body) {
        const auto begin = std::chrono::steady_clock::now();
        const std::string wrong = body();
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
        ++(wrong.empty() ? passed_ : failed_);
        std::printf("%s  %9.2f ms  %s%s%s\n", wrong.empty() ? "ok    " : "FAILED", took.count(), name,
                    wrong.empty() ? "" : ": ", wrong.c_str());
        std::fflush(stdout);
        if (rows_ != nullptr) {
            std::fprintf(rows_, "%s\t%.3f\t%s\n", wrong.empty() ? "passed" : "failed", took.count(), name);
            std::fflush(rows_);
        }
    }

    /// Notes which GPU the rows are about.
    void machine(const std::string& name) {
        if (rows_ != nullptr) std::fprintf(rows_, "gpu\t0\t%s\n", name.c_str());
    }

    /// Prints the last line; the program's exit status.
    int finish() const {
        std::printf("%d passed, %d failed\n", passed_, failed_);
        return failed_ == 0 ? 0 : 1;
    }

private:
    int passed_ = 0, failed_ = 0;
    std::FILE* rows_ = nullptr;
};

/// Inside a check's body: leaves it with a text unless `condition` holds.
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) return std::string(#condition " is not so");                                                 \
    } while (false)

/// Inside a check's body: leaves it with the fault's text unless `outcome` is a value.
#define CHECK_DONE(outcome)                                                                                            \
    do {                                                                                                               \
        if (const auto& done = (outcome); !done) return std::string(#outcome ": ") + done.fault().text();              \
    } while (false)

} // namespace cubridge::gpu
