// SPDX-License-Identifier: Apache-2.0
#include "cubridge/cache/open_store.h"
#include "cache/folder.h"
#include "cache/local_store.h"
#include "cache/sqlite/schema.h"
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cubridge::cache {

namespace {

struct Candidate {
    std::string folder;
    Outcome verdict; ///< as inspect() gives it; UNWRITABLE also for a network
    bool usable() const { return verdict.code == Code::OK || verdict.code == Code::MISSING; }
    bool readable() const { return verdict.code == Code::READ_ONLY; }
};

bool is_folder(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::vector<std::string> default_folders(const Environment& environment) {
    std::vector<std::string> out;
    // The XDG specification: a path that isn't absolute is ignored. A HOME that doesn't exist is not made.
    if (environment.xdg_cache_home.starts_with('/')) out.push_back(environment.xdg_cache_home + "/cubridge");
    if (environment.home.starts_with('/') && is_folder(environment.home))
        out.push_back(environment.home + "/.cache/cubridge");
    out.push_back(fmt::format("/var/tmp/cubridge-{}", geteuid()));
    return out;
}

/// Looks at places and picks one.
class Search {
public:
    Search(const OpenOptions& options, Warner& warner) : options_(options), warner_(warner) {}

    Candidate inspect_one(std::string folder) {
        const auto type = options_.file_system(existing_part(folder));
        if (const char* network = type ? network_file_system(*type) : nullptr) {
            const auto why = fmt::format("it is on a network file system ({})", network);
            warner_.say(Trouble::NETWORK_FILE_SYSTEM, folder, "the store is not used: " + why);
            return {std::move(folder), {Code::UNWRITABLE, why}};
        }
        auto verdict = inspect(folder);
        if (verdict.code == Code::UNTRUSTED) {
            ++refused;
            warner_.say(Trouble::UNTRUSTED, folder, "the store is not used: " + verdict.reason);
        }
        return {std::move(folder), std::move(verdict)};
    }

    /// The first that can be written; else the first with something to read; else the first, with why it can't be used.
    Candidate choose(const std::vector<std::string>& folders) {
        std::vector<Candidate> seen;
        for (const auto& folder : folders) {
            seen.push_back(inspect_one(folder));
            if (seen.back().usable()) return seen.back();
        }
        for (const auto& candidate : seen) {
            struct stat status {};
            if (candidate.readable() && stat((candidate.folder + "/" + sqlite::FILE_NAME).c_str(), &status) == 0)
                return candidate;
        }
        return seen.front();
    }

    std::int64_t refused = 0;

private:
    const OpenOptions& options_;
    Warner& warner_;
};

std::string absolute(const std::string& folder) {
    std::error_code error;
    auto path = std::filesystem::absolute(folder, error).lexically_normal().string();
    if (error) return folder;
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path;
}

std::int64_t system_clock() {
    using namespace std::chrono;
    return duration_cast<seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

} // namespace

std::unique_ptr<Store> open_store(OpenOptions options) {
    if (!options.clock) options.clock = system_clock;
    if (!options.file_system) options.file_system = system_file_system;
    auto warner = std::make_shared<Warner>(options.warn, options.clock);
    Place place;
    std::unique_ptr<SqliteStore> disk;
    Search search(options, *warner);
    if (!options.folder || !options.folder->empty()) {
        const auto chosen = options.folder ? search.inspect_one(absolute(*options.folder))
                                           : search.choose(default_folders(options.environment));
        place.reason = chosen.usable() ? std::string() : fmt::format("{}: {}", chosen.folder, chosen.verdict.reason);
        if (chosen.usable() || chosen.readable()) {
            place.read_only = options.read_only || chosen.readable();
            disk = std::make_unique<SqliteStore>(
                SqliteStore::Config{chosen.folder, options.budget, place.read_only, options.clock, warner});
            place.folder = chosen.folder;
            place.file = disk->place().file;
        }
        if (!place.reason.empty() && !options.read_only)
            warner->say(Trouble::UNWRITABLE, chosen.folder,
                        fmt::format("kernels are kept in memory only: {}{}", chosen.verdict.reason,
                                    disk ? "; what is stored there is served" : ""));
    }
    auto memory = std::make_unique<MemoryStore>(options.memory_budget, options.clock);
    return std::make_unique<LocalStore>(std::move(disk), std::move(memory), std::move(warner), std::move(place),
                                        search.refused);
}

} // namespace cubridge::cache
