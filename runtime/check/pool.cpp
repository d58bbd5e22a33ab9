// A loop over threads. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/pool.h"
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace cubridge::runtime {

void parallel(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::exception_ptr failed;
    const auto loop = [&] {
        for (std::size_t k = next++; k < count; k = next++) {
            try {
                work(k);
            } catch (...) {
                const std::lock_guard<std::mutex> hold(mutex);
                if (!failed) failed = std::current_exception();
                next = count;
            }
        }
    };
    const std::size_t wanted =
        threads > 0 ? static_cast<std::size_t>(threads) : std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::thread> others;
    for (std::size_t k = 1; k < std::min(wanted, count); ++k) {
        try {
            others.emplace_back(loop);
        } catch (const std::system_error&) { // no more threads: those there are do the work
            break;
        }
    }
    loop();
    for (std::thread& t : others) t.join();
    if (failed) std::rethrow_exception(failed);
}

} // namespace cubridge::runtime
