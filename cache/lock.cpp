// SPDX-License-Identifier: Apache-2.0
#include "cubridge/cache/lock.h"
#include "cache/file.h"
#include "cache/folder.h"
#include "cache/fork_guard.h"
#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <mutex>
#include <set>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace cubridge::cache {

/// The folder, and who holds what where there is none. Shared by the locks that were taken from it.
struct Locks::Table {
    explicit Table(std::string path) : folder(std::move(path)) {}

    /// The file of a lock, made if need be. Nothing if the place can't have one, or isn't ours alone.
    File file(const std::string& name) const {
        if (folder.empty()) return {};
        const auto locks = folder + "/lock";
        if (make_folders(locks) != 0) return {};
        struct stat status {};
        for (const auto& part : {folder, locks})
            if (stat(part.c_str(), &status) != 0 || !why_untrusted(status).empty()) return {};
        const auto path = locks + "/" + name;
        File made = open_file(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (made) fchmod(made.get(), 0600);
        return made ? std::move(made) : open_file(path, O_RDWR | O_NOFOLLOW);
    }

    bool take(const std::string& name) {
        const Visit visit;
        if (!visit.safe()) return false;
        std::lock_guard guard(mutex);
        if (owner != getpid()) { // a child: what is noted are the parent's threads
            owner = getpid();
            held.clear();
        }
        return held.insert(name).second;
    }

    void give_back(const std::string& name) {
        const Visit visit;
        if (!visit.safe()) return;
        std::lock_guard guard(mutex);
        if (owner == getpid()) held.erase(name);
    }

    const std::string folder;
    std::mutex mutex;
    std::set<std::string> held; ///< names held among this process's threads, where no file can say so
    pid_t owner = getpid();
};

struct Lock::State {
    State(File held, std::shared_ptr<Locks::Table> of, std::string as)
        : file(std::move(held)), table(std::move(of)), name(std::move(as)), owner(getpid()) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    File file; ///< none: held in the table, under the name
    std::shared_ptr<Locks::Table> table;
    std::string name;
    pid_t owner;

    ~State() {
        // A child's descriptor is the parent's lock: unlocking it would free what the parent still needs; closing
        // doesn't.
        if (owner != getpid()) return;
        if (file)
            flock(file.get(), LOCK_UN); // explicitly: a child that was forked meanwhile holds a descriptor, too
        else
            table->give_back(name);
    }
};

Lock::Lock(std::unique_ptr<State> state) : state_(std::move(state)) {}
Lock::Lock() noexcept = default;
Lock::Lock(Lock&&) noexcept = default;
Lock& Lock::operator=(Lock&&) noexcept = default;
Lock::~Lock() = default;

bool Lock::shared() const {
    return state_ && state_->file;
}

void Lock::release() noexcept {
    state_.reset();
}

namespace {

// For whoever looks into the folder; no program reads it.
void sign(const File& file) {
    const auto text = fmt::format("pid {} since {}\n", getpid(), static_cast<long long>(std::time(nullptr)));
    if (ftruncate(file.get(), 0) != 0 || pwrite(file.get(), text.data(), text.size(), 0) < 0) return;
}

template <class Try> Waited wait(Deadline deadline, const Cancel& cancel, Try attempt) {
    using namespace std::chrono;
    for (auto pause = milliseconds(1);; pause = std::min(pause * 2, milliseconds(20))) {
        if (cancel && cancel()) return {Wait::CANCELLED, {}};
        if (Lock lock = attempt()) return {Wait::HELD, std::move(lock)};
        const auto left = duration_cast<milliseconds>(deadline - steady_clock::now());
        if (left.count() <= 0) return {Wait::TIMED_OUT, {}};
        std::this_thread::sleep_for(std::min(pause, left));
    }
}

std::string file_name(const Digest& key) {
    return key.hex(16);
}

} // namespace

Lock Locks::take(const std::string& name) {
    if (File file = table_->file(name)) {
        // Two opens are two descriptions, and flock is per description: so threads exclude each other, too.
        if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
            sign(file);
            return Lock(std::make_unique<Lock::State>(std::move(file), table_, name));
        }
        if (errno == EWOULDBLOCK || errno == EINTR) return {};
    } // else there is no file to be had, or it can't be locked: among threads, then
    if (!table_->take(name)) return {};
    return Lock(std::make_unique<Lock::State>(File(), table_, name));
}

Locks::Locks(std::string folder) : table_(std::make_shared<Table>(std::move(folder))) {}
Locks::~Locks() = default;

Lock Locks::try_lock(const Digest& key) {
    return take(file_name(key));
}

Waited Locks::lock(const Digest& key, Deadline deadline, const Cancel& cancel) {
    return wait(deadline, cancel, [&] { return try_lock(key); });
}

Lock Locks::try_slot(int count) {
    for (int i = 0; i < std::max(count, 1); ++i)
        if (Lock lock = take(fmt::format("slot.{}", i))) return lock;
    return {};
}

Waited Locks::slot(int count, Deadline deadline, const Cancel& cancel) {
    return wait(deadline, cancel, [&] { return try_slot(count); });
}

} // namespace cubridge::cache
