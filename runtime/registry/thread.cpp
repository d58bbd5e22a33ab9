// A thread inherits its creator's signal mask: so the mask is set here for the moment of creation.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/registry/thread.h"
#include <csignal>
#include <pthread.h>

namespace cubridge::runtime {
namespace {

class NoSignals {
public:
    NoSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    NoSignals(const NoSignals&) = delete;
    NoSignals& operator=(const NoSignals&) = delete;

private:
    sigset_t before_;
};

} // namespace

std::thread start_thread(std::string name, std::function<void()> body) {
    const NoSignals scope;
    return std::thread([name = std::move(name), body = std::move(body)] {
        pthread_setname_np(pthread_self(), name.c_str());
        body();
    });
}

} // namespace cubridge::runtime
