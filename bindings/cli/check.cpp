// cubridge check: numbers against the float64 reference. SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/check.h"
#include "bindings/cli/commands.h"
#include "bindings/cli/json.h"
#include "bindings/cli/machine.h"
#include "bindings/cli/status.h"
#include "bindings/cli/target.h"
#include "cubridge/runtime/adapter.h"
#include <fmt/format.h>
#include <fstream>
#include <memory>

namespace cubridge::cli {

namespace {

using runtime::CheckReport;

struct Checked {
    CheckReport report;
    ir::Source source;
    int status = kDone;
};

const char* name_of(CheckReport::Verdict v) {
    return v == CheckReport::Verdict::Passed ? "passed" : v == CheckReport::Verdict::Failed ? "failed" : "not run";
}

Checked refuse(Checked c, ir::Error error, int status) {
    c.report.error = std::move(error);
    c.status = status;
    return c;
}

Checked run(const std::string& word, const Options& options, Machine& machine, const Terminal& progress) {
    Checked c;
    try {
        c.source = open_target(word, options).source;
    } catch (const Usage& e) {
        return refuse(std::move(c), {"file", e.what(), {}, ""}, kUsage);
    }
    const auto specification = parse_target({word, c.source}, options);
    if (!specification) return refuse(std::move(c), specification.error(), kNotAccepted);
    runtime::CheckOptions how;
    how.seed = options.seed;
    how.cases = options.cases;
    how.small = options.small;
    how.heads_q = options.heads_q;
    how.heads_kv = options.heads_kv;
    how.progress = [&](const std::string& line) { progress.line(word + ": " + line); };
    if (options.gpu) {
        if (!machine.gpu())
            return refuse(std::move(c),
                          {machine.gpu().fault().kind, machine.gpu().fault().message, {}, machine.gpu().fault().hint},
                          kEnvironment);
        how.driver = machine.driver();
        how.compiler = machine.compiler();
        how.store = &machine.store();
        how.locks = &machine.locks();
    }
    ir::Request request = options.request;
    request.arch = machine.arch();
    int heads_q = options.heads_q, heads_kv = options.heads_kv;
    std::vector<std::string> notes = (*specification)->notes();
    const auto completed = runtime::complete(**specification, request, heads_q, heads_kv, notes);
    if (!completed) return refuse(std::move(c), completed.error(), kNoKernel);
    for (const std::string& n : notes) progress.line(word + ": chosen: " + n);
    c.report = runtime::check(*specification, *completed, how);
    if (c.report.error)
        c.status = status_of_kind(c.report.error->kind);
    else if (c.report.verdict == CheckReport::Verdict::Failed)
        c.status = kUnverified;
    return c;
}

std::string said(const Options& options) {
    std::string s;
    for (const std::string& w : options.said) s += (s.empty() ? "" : " ") + w;
    return s;
}

std::string json_of(const std::string& word, const Options& options, const Checked& c) {
    const CheckReport& r = c.report;
    List failures, not_done;
    for (const std::string& f : r.failures) failures.add(quoted(f));
    for (const std::string& n : r.not_done) not_done.add(quoted(n));
    Object o;
    o.text("specification", word)
        .text("options", said(options))
        .text("verdict", name_of(r.verdict))
        .boolean("gpu", options.gpu);
    if (r.error)
        o.raw("error", Object()
                           .text("kind", r.error->kind)
                           .text("message", r.error->message)
                           .integer("line", r.error->span.line)
                           .integer("column", r.error->span.column)
                           .text("hint", r.error->hint)
                           .done());
    else
        o.raw("error", "null");
    return o.integer("seed", static_cast<std::int64_t>(options.seed))
        .integer("cases", r.planned)
        .integer("against_text", r.against_text)
        .integer("against_f64", r.against_f64)
        .integer("kernels", r.kernels)
        .real("worst_ratio", r.worst_ratio)
        .text("worst_case", r.worst_case)
        .raw("failures", failures.done())
        .raw("not_done", not_done.done())
        .real("ms", r.ms)
        .done();
}

std::string complaint(const std::string& word, const Checked& c, const Terminal& on) {
    const std::string text =
        c.status == kUsage ? c.report.error->message : word + ":" + c.report.error->render(c.source.text);
    return on.paint(Colour::Bad, "error: ") + text;
}

void print(const std::string& word, const Options& options, const Checked& c, const Terminal& out,
           const Terminal& complaints) {
    const CheckReport& r = c.report;
    if (r.error) {
        if (c.status != kUsage) out.line(word + ": " + out.paint(Colour::Bad, "not checked"));
        complaints.line(complaint(word, c, complaints));
        return;
    }
    const bool passed = r.verdict == CheckReport::Verdict::Passed;
    std::string line = word + ": " + out.paint(passed ? Colour::Good : Colour::Bad, name_of(r.verdict));
    line += options.gpu
                ? fmt::format(
                      ", {} cases against the text, {} against float64, worst {:.2f} times the baseline (2 is allowed)",
                      r.against_text, r.against_f64, r.worst_ratio)
                : fmt::format(", {} of {} cases, the scalarised text against the text, worst {:.2g} of what is allowed",
                              r.against_text, r.planned, r.worst_ratio);
    out.line(line + fmt::format(", seed {}, {:.0f} ms", options.seed, r.ms));
    for (const std::string& f : r.failures) out.line("  " + out.paint(Colour::Bad, "wrong: ") + f);
    for (const std::string& n : r.not_done) out.line("  not done: " + n);
}

// --resume: the specifications that passed with these options and this seed. A line is what json_of() printed.
class Resume {
public:
    Resume(const Options& options) : options_(options) {
        if (options.resume.empty()) return;
        std::ifstream before(options.resume);
        for (std::string line; std::getline(before, line);) lines_.push_back(line);
        file_.open(options.resume, std::ios::app);
        if (!file_) throw Usage(options.resume + " can't be written");
    }
    bool passed(const std::string& word) const {
        const std::string begin = start(word), seed = fmt::format("\"seed\": {},", options_.seed);
        for (const std::string& l : lines_)
            if (l.compare(0, begin.size(), begin) == 0 && l.find(seed) != std::string::npos) return true;
        return false;
    }
    void add(const std::string& json) {
        if (file_.is_open()) file_ << json << std::endl;
    }

private:
    std::string start(const std::string& word) const {
        std::string s = Object()
                            .text("specification", word)
                            .text("options", said(options_))
                            .text("verdict", "passed")
                            .boolean("gpu", options_.gpu)
                            .done();
        s.pop_back();
        return s;
    }
    const Options& options_;
    std::vector<std::string> lines_;
    std::ofstream file_;
};

} // namespace

int check(const Options& options) {
    if (options.words.empty()) throw Usage("check: which specification?");
    const Terminal out(stdout), progress(stderr, options.quiet), complaints(stderr);
    Machine machine(options, progress);
    Resume resume(options);
    int worst = kDone;
    for (const std::string& word : options.words) {
        if (resume.passed(word)) {
            progress.line(word + ": passed before");
            continue;
        }
        const Checked c = run(word, options, machine, progress);
        const std::string json = json_of(word, options, c);
        resume.add(json);
        if (options.json) {
            out.line(json);
            if (c.report.error) complaints.line(complaint(word, c, complaints));
        } else
            print(word, options, c, out, complaints);
        worst = std::max(worst, c.status);
    }
    return worst;
}

} // namespace cubridge::cli
