// The gallery of bad candidates on a real GPU: each is refused, by the layer that its folder names. Folders and
// specifications: $CUBRIDGE_GALLERY (tests/gallery), $CUBRIDGE_SPECS (../shared/specs); a record goes to
// $CUBRIDGE_GALLERY_RECORD if that is set. SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/driver.h"
#include "cubridge/runtime/json.h"
#include "tests/gallery/gallery.h"
#include "tests/gpu/check.h"
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <mutex>
#include <thread>

using namespace cubridge;
using namespace cubridge::runtime;

namespace {

constexpr int kThreads = 6; ///< each with a worker of its own

std::string variable(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != 0 ? value : otherwise;
}

} // namespace

int main() {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const auto driver = Driver::open();
    const auto device = driver ? (*driver)->device(0) : Outcome<Device>(driver.fault());
    const auto compiler = open_nvrtc();
    if (!device || !compiler) {
        std::printf("skipped: %s\n", (device ? compiler.fault() : device.fault()).text().c_str());
        return gpu::no_gpu;
    }
    gpu::Checks checks;
    checks.machine(device->name);
    const auto all = gallery::read_all(variable("CUBRIDGE_GALLERY", "tests/gallery"));
    const std::string specifications = variable("CUBRIDGE_SPECS", "../shared/specs");
    std::vector<gallery::Examined> seen(all.size()), alone(all.size()); // the latter: whatever layers before it say
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (int n = 0; n < kThreads; ++n)
        threads.emplace_back([&] {
            gallery::Gallery tries(specifications, *compiler, open_verifier({}));
            for (std::size_t k = next++; k < all.size(); k = next++) {
                seen[k] = tries.examine(all[k]);
                if (all[k].shows == "gpu" && all[k].caught_by != "gpu") alone[k] = tries.examine(all[k], true);
            }
        });
    for (auto& t : threads) t.join();
    auto rows = Json::array();
    int shown = 0, by_gpu = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
        const auto* first = seen[k].first();
        double ms = 0;
        for (const auto& l : seen[k].layers) ms += l.ms;
        const auto& last = alone[k].layers;
        const bool ran = !last.empty() && last.back().name == "gpu";
        const std::string gpu_says = ran ? last.back().finding : "";
        shown += ran ? 1 : 0;
        by_gpu += gpu_says.empty() ? 0 : 1;
        if (ran)
            std::printf("        the GPU alone: %s\n", gpu_says.empty() ? "nothing" : gpu_says.substr(0, 160).c_str());
        rows.push(Json::object()
                      .add("candidate", all[k].name)
                      .add("expected", all[k].caught_by)
                      .add("caught_by", first != nullptr         ? first->name
                                        : seen[k].broken.empty() ? "nobody"
                                                                 : "broken")
                      .add("finding", first != nullptr ? first->finding : seen[k].broken)
                      .add("gpu_alone", ran ? Json(gpu_says.empty() ? "nothing" : gpu_says) : Json())
                      .add("ms", ms));
        checks.run(all[k].name.c_str(), [&]() -> std::string {
            if (!seen[k].broken.empty()) return seen[k].broken;
            if (first == nullptr) return "nobody found what is wrong: " + all[k].what;
            if (first->finding.rfind("broken: ", 0) == 0) return first->finding;
            if (first->name != all[k].caught_by)
                return "found by " + first->name + ", not by " + all[k].caught_by + ": " + first->finding;
            if (first->finding.find(all[k].finding) == std::string::npos) return "another finding: " + first->finding;
            std::printf("        %s: %s\n", first->name.c_str(), first->finding.substr(0, 160).c_str());
            return "";
        });
    }
    std::printf("the GPU alone finds %d of %d that another layer has found before\n", by_gpu, shown);
    if (const auto file = variable("CUBRIDGE_GALLERY_RECORD", ""); !file.empty()) {
        char date[32];
        const std::time_t now = std::time(nullptr);
        std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
        std::ofstream(file) << Json::object()
                                   .add("date", date)
                                   .add("gpu", device->name)
                                   .add("commit", variable("CUBRIDGE_COMMIT", "unknown"))
                                   .add("rows", std::move(rows))
                                   .text()
                            << "\n";
    }
    return checks.finish();
}
