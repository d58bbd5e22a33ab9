// cubridge cache list | show | verify. SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/cache_verify.h"
#include "bindings/cli/commands.h"
#include "bindings/cli/machine.h"
#include "bindings/cli/status.h"
#include "cubridge/runtime/artifact.h"
#include "cubridge/runtime/json.h"
#include <ctime>
#include <fmt/format.h>

namespace cubridge::cli {

namespace {

using runtime::Json;

std::string when(std::int64_t seconds) {
    const std::time_t t = static_cast<std::time_t>(seconds);
    std::tm parts{};
    char text[32] = "";
    if (gmtime_r(&t, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

// The kernel that an ID, or the beginning of one, names.
cache::Digest named(cache::Store& store, const std::string& id) {
    if (id.empty() || id.find_first_not_of("0123456789abcdef") != std::string::npos)
        throw Usage("cache: `" + id + "` is no ID");
    std::optional<cache::Digest> found;
    for (const cache::Summary& s : store.list()) {
        if (s.id.hex().compare(0, id.size(), id) != 0 || (found && *found == s.id)) continue;
        if (found) throw Usage("cache: `" + id + "` names more than one kernel");
        found = s.id;
    }
    if (!found)
        throw Usage("cache: there is no kernel `" + id + "` in " +
                    (store.place().file.empty() ? "memory" : store.place().file));
    return *found;
}

int list(const Options& options, cache::Store& store, const Terminal& out) {
    Table table;
    for (const cache::Summary& s : store.list()) {
        if (options.json)
            out.line(Json::object()
                         .add("id", s.id.hex())
                         .add("request_key", s.key.hex())
                         .add("arch", s.arch)
                         .add("made_by", s.made_by)
                         .add("build", s.build)
                         .add("bytes", s.bytes)
                         .add("created", when(s.created))
                         .add("used", when(s.used))
                         .add("pinned", s.pinned)
                         .text());
        else
            table.row({s.id.hex(12), s.arch, s.made_by, fmt::format("{:>7} B", s.bytes), when(s.used)});
    }
    if (!table.empty())
        out.line(table.text());
    else if (!options.json)
        out.line("no kernels in " + (store.place().file.empty() ? std::string("memory") : store.place().file));
    return kDone;
}

int show(const Options& options, cache::Store& store, const Terminal& out) {
    const cache::Digest id = named(store, options.words[1]);
    const auto record = store.load(id);
    const auto artifact = record ? runtime::Artifact::from_record(*record)
                                 : ir::Error{"artifact", "the row is damaged", {}, "it will be made again"};
    if (!artifact) {
        Terminal(stderr).line("cubridge: " + id.hex(12) + ": " + artifact.error().message);
        return kUnverified;
    }
    const runtime::Artifact& a = *artifact;
    if (options.json) {
        auto entries = Json::array();
        for (const auto& e : a.entries)
            entries.push(Json::object()
                             .add("name", e.name)
                             .add("registers", e.registers)
                             .add("stack", e.stack)
                             .add("spills", e.spill_stores + e.spill_loads));
        out.line(Json::object()
                     .add("id", a.id.hex())
                     .add("request_key", a.key.hex())
                     .add("arch", a.arch)
                     .add("made_by", a.build.made_by)
                     .add("build", a.build.text())
                     .add("variant", a.subject)
                     .add("cubin_bytes", static_cast<std::int64_t>(a.cubin.size()))
                     .add("entries", std::move(entries))
                     .add("plan", a.plan.text())
                     .add("verified", a.verification.record)
                     .add("verification", a.verification.json())
                     .add("tuning", a.tuning ? a.tuning->json() : Json())
                     .add("created", when(a.created))
                     .add("cuda", a.cuda)
                     .text());
        return kDone;
    }
    out.line("kernel    " + a.id.hex());
    out.line("key       " + a.key.hex());
    out.line("arch      " + a.arch);
    out.line("build     " + a.build.text());
    out.line("verified  " + a.verification.record);
    if (const auto& g = a.verification.gpu)
        out.line(fmt::format("on a GPU  {} cases, {} of them against the text; seed {}, error {:.2f} of 2; {}, driver "
                             "for CUDA {}.{}; {}, verification {}",
                             g->cases, g->against_text, g->seed, a.verification.error_ratio, g->device,
                             g->driver / 1000, g->driver % 1000 / 10, when(g->date), g->format));
    out.line("created   " + when(a.created));
    for (const auto& e : a.entries)
        out.line(fmt::format("entry     {}: {} registers, {} B stack, {} B spilled", e.name, e.registers, e.stack,
                             e.spill_stores + e.spill_loads));
    out.line("\n" + a.subject);
    out.line(a.plan.text());
    return kDone;
}

int verify(const Options& options, Machine& machine, const Terminal& out, const Terminal& progress) {
    std::optional<cache::Digest> id;
    if (options.words.size() == 2) id = named(machine.store(), options.words[1]);
    return verify_rows(options, id, machine, out, progress);
}

} // namespace

int cache_command(const Options& options) {
    const std::string what = options.words.empty() ? "" : options.words[0];
    const std::size_t count = options.words.size();
    const Terminal out(stdout), progress(stderr, options.quiet);
    Machine machine(options, progress);
    if (what == "list" && count == 1) return list(options, machine.store(), out);
    if (what == "show" && count == 2) return show(options, machine.store(), out);
    if (what == "verify" && count <= 2) return verify(options, machine, out, progress);
    throw Usage("cache: write list, show ID, or verify [ID] [--gpu]");
}

} // namespace cubridge::cli
