// cubridge adapt: from a specification to a kernel in the store. SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/commands.h"
#include "bindings/cli/emit.h"
#include "bindings/cli/machine.h"
#include "bindings/cli/status.h"
#include "bindings/cli/target.h"
#include "cubridge/runtime/tune.h"
#include <chrono>
#include <filesystem>
#include <fmt/format.h>

namespace cubridge::cli {

namespace {

using runtime::Report;
using runtime::Stage;

struct Adaptation {
    std::string word;
    ir::Source source;
    std::shared_ptr<const ir::Specification> specification; ///< null where the text was refused
    ir::Request request;
    Report report;
    std::vector<std::string> chosen; ///< where the text or the command line left something open
    int status = kDone;
};

class Clock {
public:
    double ms() const {
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_).count();
    }

private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

Adaptation fail(Adaptation a, Report::Status verdict, ir::Error error, int status) {
    a.report.status = verdict;
    a.report.error = std::move(error);
    a.status = status;
    return a;
}

Adaptation run(const std::string& word, const Options& options, Machine& machine, const Terminal& progress) {
    Adaptation a;
    a.word = word;
    a.request = options.request;
    Clock clock;
    try {
        a.source = open_target(word, options).source;
    } catch (const Usage& e) {
        return fail(std::move(a), Report::Status::Failed, {"file", e.what(), {}, ""}, kUsage);
    }
    progress.transient(word + ": parse");
    auto parsed = parse_target({word, a.source}, options);
    Stage parse{"parse", clock.ms(), parsed ? Stage::Verdict::Ok : Stage::Verdict::Failed,
                parsed ? "" : parsed.error().message};
    if (!parsed) {
        a.report.stages = {parse};
        a.report.total_ms = clock.ms();
        return fail(std::move(a), Report::Status::Failed, parsed.error(), kNotAccepted);
    }
    a.specification = *parsed;
    a.request.arch = machine.arch();
    int heads_q = options.heads_q, heads_kv = options.heads_kv;
    auto completed = runtime::complete(*a.specification, a.request, heads_q, heads_kv, a.chosen);
    if (!completed) {
        a.report.stages = {parse};
        a.report.total_ms = clock.ms();
        return fail(std::move(a), Report::Status::Rejected, completed.error(), kNoKernel);
    }
    a.request = *completed;
    runtime::AdaptOptions how;
    how.compiler = machine.compiler();
    how.store = &machine.store();
    how.locks = &machine.locks();
    if (options.verify) {
        how.verifier = machine.verifier();
        how.verified = true;
    }
    if (!options.expert.empty()) how.experts = {options.expert};
    how.progress = [&](const std::string& stage) { progress.transient(word + ": " + stage); };
    if (options.request.arch.empty() && machine.gpu()) how.device = runtime::device_text(*machine.gpu());
    if (options.tune) {
        ir::Shape shape = options.shape.value_or(ir::Shape());
        shape.heads_kv = heads_kv;
        auto measurer = machine.measurer();
        if (!measurer) {
            const auto& fault = measurer.fault();
            a.report.stages = {parse};
            return fail(std::move(a), Report::Status::Failed, {fault.kind, fault.message, {}, fault.hint},
                        kEnvironment);
        }
        a.report = runtime::tune(a.specification, a.request, how, **measurer, shape);
    } else {
        a.report = runtime::adapt(a.specification, a.request, how);
    }
    a.report.stages.insert(a.report.stages.begin(), parse);
    a.report.total_ms = clock.ms();
    a.report.warnings.insert(a.report.warnings.end(), a.chosen.begin(), a.chosen.end());
    a.chosen.insert(a.chosen.begin(), a.specification->notes().begin(), a.specification->notes().end());
    if (a.report.status == Report::Status::Failed || a.report.status == Report::Status::Rejected)
        a.status = status_of_kind(a.report.error ? a.report.error->kind : "");
    return a;
}

const char* name_of(Report::Status s) {
    switch (s) {
    case Report::Status::Ready: return "ready";
    case Report::Status::Fallback: return "fallback";
    case Report::Status::Rejected: return "rejected";
    case Report::Status::Failed: break;
    }
    return "failed";
}

std::string stages_of(const Report& report, const Terminal& out) {
    Table table;
    for (const Stage& s : report.stages) {
        const char* verdict = s.verdict == Stage::Verdict::Ok        ? "ok"
                              : s.verdict == Stage::Verdict::Skipped ? "skipped"
                                                                     : "failed";
        // The last column only may be painted: padding counts bytes.
        const Colour colour = s.verdict == Stage::Verdict::Failed ? Colour::Bad : Colour::Faint;
        table.row({s.name, fmt::format("{:9.2f} ms", s.ms), verdict,
                   out.paint(colour, s.reason.substr(0, s.reason.find('\n')))});
    }
    return table.text(2);
}

void print_tuning(const runtime::Tuning& tuning, const Terminal& out) {
    const auto& s = tuning.shape;
    out.line(fmt::format("  tuned on {}: {} requests of {} queries and {} keys, {} KV heads", tuning.device, s.batch,
                         s.rows, s.keys, s.heads_kv));
    Table table;
    for (const auto& r : tuning.rows)
        table.row({r.configuration.name, fmt::format("{} keys", r.configuration.keys), r.configuration.order,
                   fmt::format("model {:.0f} us", r.configuration.us),
                   r.launches == 0 ? r.refused : fmt::format("{:.1f} us +-{:.1f}%", r.us, 100 * r.spread),
                   r.chosen ? "chosen" : ""});
    out.line(table.text(4));
}

void print_made(const Adaptation& a, const Terminal& out) {
    const runtime::Artifact& made = *a.report.artifact;
    Table table;
    for (const auto& e : made.entries)
        table.row({"entry", e.name, fmt::format("{} registers", e.registers), fmt::format("{} B stack", e.stack),
                   fmt::format("{} B spilled", e.spill_stores + e.spill_loads)});
    if (!table.empty()) out.line(table.text(2));
    const std::string from = made.build.expert.empty() ? "" : " from " + made.build.expert;
    if (made.tuning) print_tuning(*made.tuning, out);
    out.line(fmt::format("  kernel {}  {} bytes, {}, by {}{}, {}", made.id.hex(12), made.cubin.size(), made.arch,
                         made.build.made_by, from, made.verification.record));
}

std::string complaint(const Adaptation& a, const Terminal& on) {
    const std::string text =
        a.status == kUsage ? a.report.error->message : a.word + ":" + a.report.error->render(a.source.text);
    return on.paint(Colour::Bad, "error: ") + text;
}

void print(const Adaptation& a, const Terminal& out, const Terminal& progress) {
    const Report& report = a.report;
    const bool made = report.artifact.has_value() && a.status == kDone;
    const Colour colour = made ? Colour::Good : Colour::Bad;
    std::string head = a.word + ": " + out.paint(colour, name_of(report.status));
    if (made) head += fmt::format(" ({}) in {:.0f} ms", report.tier, report.total_ms);
    if (a.status != kUsage) out.line(head);
    if (!report.stages.empty()) out.line(stages_of(report, out));
    if (made) print_made(a, out);
    if (made && report.compiled_in == "worker") out.line("  compiled in a worker");
    for (const std::string& w : report.warnings) // of --worker, where there was none
        if (w.starts_with("compiled in this process")) out.line("  " + w);
    for (const std::string& c : a.chosen) out.line("  chosen: " + c);
    if (report.error) {
        progress.line(complaint(a, progress));
    } else if (made && report.artifact->verification.level != runtime::Verified::Gpu) {
        const char* so_far =
            report.artifact->tuning ? "was only timed, and compared with other configurations" : "has not run";
        out.line(fmt::format("  not done: the kernel {}; --verify runs it, and `cubridge check --gpu` many like it, "
                             "where there is a GPU",
                             so_far));
    }
}

} // namespace

int adapt(const Options& options) {
    if (options.words.empty()) throw Usage("adapt: which specification?");
    const Terminal out(stdout), progress(stderr, options.quiet);
    const Terminal complaints(stderr);
    Machine machine(options, progress);
    int worst = kDone, number = 0;
    for (const std::string& word : options.words) {
        Adaptation a = run(word, options, machine, progress);
        for (const std::string& c : machine.complaints()) a.report.warnings.push_back(c);
        const std::string json = a.report.json(a.specification.get(), a.request);
        if (options.json) {
            progress.transient("");
            out.line(json);
            if (a.report.error) complaints.line(complaint(a, complaints));
        } else {
            print(a, out, complaints);
        }
        if (!options.emit.empty()) {
            // Several specifications get a folder each.
            std::string folder = options.emit;
            if (options.words.size() > 1)
                folder += "/" + std::to_string(++number) + "-" + std::filesystem::path(word).stem().string();
            if (const std::string wrong = emit(folder, a.specification.get(), a.report, json); !wrong.empty()) {
                complaints.line("cubridge: " + wrong);
                a.status = std::max<int>(a.status, kEnvironment);
            }
        }
        worst = std::max(worst, a.status);
    }
    return worst;
}

} // namespace cubridge::cli
