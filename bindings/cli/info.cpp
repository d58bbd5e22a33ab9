// cubridge info: what this machine has and lacks. SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/commands.h"
#include "bindings/cli/machine.h"
#include "bindings/cli/status.h"
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/runtime/artifact.h"
#include "cubridge/runtime/json.h"
#include <fmt/format.h>

namespace cubridge::cli {

namespace {

using runtime::Json;

struct Findings {
    Json json = Json::object();
    Table table;
    std::vector<std::string> gaps; ///< one line each: what is missing, what to do
};

void look_at_gpus(Machine& machine, Findings& f) {
    auto gpus = Json::array();
    const auto& first = machine.gpu();
    if (!first) {
        // None at all is a machine that adapts for others; one that doesn't answer is a fault.
        const bool none = first.fault().kind == "no_driver" || first.fault().kind == "no_device";
        f.table.row({"gpu", "none", "kernels are adapted and compiled for a named arch, and not run"});
        if (!none) f.gaps.push_back("gpu: " + first.fault().text());
        f.json.add("gpu_missing", first.fault().text());
    } else if (const auto all = machine.driver()->devices()) {
        for (const runtime::Device& d : *all) {
            f.table.row({fmt::format("gpu {}", d.ordinal), d.name,
                         fmt::format("{}  {}  {:.1f} GiB  {} multiprocessors{}", d.uuid, d.arch,
                                     static_cast<double>(d.memory) / (1 << 30), d.multiprocessors,
                                     d.exclusive ? "  exclusive" : "")});
            gpus.push(Json::object()
                          .add("name", d.name)
                          .add("uuid", d.uuid)
                          .add("arch", d.arch)
                          .add("memory", static_cast<std::int64_t>(d.memory))
                          .add("multiprocessors", d.multiprocessors));
            if (d.prohibited)
                f.gaps.push_back("gpu: " + d.name +
                                 " is in compute mode PROHIBITED; set it with nvidia-smi -c DEFAULT");
        }
        if (const auto version = machine.driver()->version()) {
            f.table.row({"driver", fmt::format("made for CUDA {}.{}", *version / 1000, *version % 1000 / 10), ""});
            f.json.add("driver", *version);
        }
    }
    f.json.add("gpus", std::move(gpus));
}

void look_at_compiler(Findings& f) {
    const auto opened = runtime::open_nvrtc(nvrtc_settings());
    const auto identity = opened ? (*opened)->identity() : runtime::Outcome<std::string>(opened.fault());
    if (identity) {
        f.table.row({"nvrtc", *identity, (*opened)->location()});
        f.json.add("nvrtc", Json::object().add("identity", *identity).add("file", (*opened)->location()));
        return;
    }
    f.table.row({"nvrtc", "none", ""});
    f.json.add("nvrtc", Json());
    f.gaps.push_back("nvrtc: " + identity.fault().text());
}

void look_at_worker(Findings& f) {
    const auto workers = worker_compiler();
    const auto held = workers->confinement();
    if (!held) {
        f.table.row({"worker", "none", held.fault().text()});
        f.json.add("worker", Json::object().add("build", runtime::build_id()).add("error", held.fault().text()));
        return;
    }
    f.table.row({"worker", std::string("build ") + runtime::build_id(), held->text()});
    auto missing = Json::array();
    for (const auto& what : held->missing) missing.push(what);
    f.json.add("worker", Json::object()
                             .add("build", runtime::build_id())
                             .add("seccomp", held->seccomp)
                             .add("landlock", held->landlock)
                             .add("memory_limit", held->memory)
                             .add("missing", std::move(missing)));
}

void look_at_verifier(Machine& machine, Findings& f) {
    if (!machine.gpu()) return;
    const auto held = machine.verifier()->confinement();
    f.table.row({"verifier", held ? "ready" : "none", held ? held->text() : held.fault().text()});
    auto json = Json::object().add("ready", static_cast<bool>(held));
    if (held)
        json.add("seccomp", held->seccomp).add("landlock", held->landlock);
    else
        json.add("error", held.fault().text());
    f.json.add("verifier", std::move(json));
}

void look_at_store(const Options& options, Machine& machine, Findings& f) {
    cache::Store& store = machine.store();
    const auto stats = store.stats(); // opens it: only then the place is known
    const cache::Place place = store.place();
    const bool memory = place.file.empty();
    f.table.row({"store", memory ? "memory" : place.file,
                 fmt::format("{} kernels  {} B{}{}", stats.entries, stats.bytes, place.read_only ? "  read-only" : "",
                             place.reason.empty() ? "" : "  " + place.reason)});
    f.json.add("store", Json::object()
                            .add("file", place.file)
                            .add("kernels", stats.entries)
                            .add("bytes", stats.bytes)
                            .add("read_only", place.read_only)
                            .add("reason", place.reason));
    if ((memory || place.read_only) && options.cache != std::string())
        f.gaps.push_back(
            "store: " + (place.reason.empty() ? std::string("kernels are kept in memory only") : place.reason) +
            "; name a writable local folder with --cache");
}

} // namespace

int info(const Options& options) {
    if (!options.words.empty()) throw Usage("info takes no argument");
    const Terminal out(stdout), silent(stderr, true);
    Machine machine(options, silent);
    Findings f;
    f.json.add("version", CUBRIDGE_VERSION)
        .add("key_format", runtime::kKeyFormat)
        .add("kernel_abi", ir::abi::kKernelAbi);
    f.table.row({"cubridge", CUBRIDGE_VERSION,
                 fmt::format("formats: key {}, kernel ABI {}", runtime::kKeyFormat, ir::abi::kKernelAbi)});
    look_at_gpus(machine, f);
    look_at_compiler(f);
    look_at_worker(f);
    look_at_verifier(machine, f);
    look_at_store(options, machine, f);
    if (options.json) {
        auto gaps = Json::array();
        for (const std::string& g : f.gaps) gaps.push(g);
        out.line(f.json.add("gaps", std::move(gaps)).text());
    } else {
        out.line(f.table.text());
        for (const std::string& g : f.gaps) out.line(out.paint(Colour::Warning, "missing: ") + g);
        if (f.gaps.empty()) out.line("All that adapting needs is here.");
    }
    return f.gaps.empty() ? kDone : kEnvironment;
}

} // namespace cubridge::cli
