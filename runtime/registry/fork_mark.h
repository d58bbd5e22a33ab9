// Tells a child made by fork from its parent, without a system call. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/mman.h>
#include <unistd.h>

namespace cubridge::runtime {

/// A page that the kernel empties in a child (Linux 4.14); where it can't, the process id.
class ForkMark {
public:
    ForkMark() : pid_(getpid()) {
        void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) return;
        if (madvise(page, 4096, MADV_WIPEONFORK) == 0) {
            mark_ = static_cast<volatile int*>(page);
            *mark_ = 1;
        } else {
            munmap(page, 4096);
        }
    }
    ~ForkMark() {
        if (mark_ != nullptr) munmap(const_cast<int*>(mark_), 4096);
    }
    bool forked() const { return mark_ != nullptr ? *mark_ == 0 : getpid() != pid_; }
    ForkMark(const ForkMark&) = delete;
    ForkMark& operator=(const ForkMark&) = delete;

private:
    const pid_t pid_;
    volatile int* mark_ = nullptr;
};

} // namespace cubridge::runtime
