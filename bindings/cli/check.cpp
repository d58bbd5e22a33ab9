// cubridge check: numbers against the float64 reference. SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/check.h"
#include "bindings/cli/commands.h"
#include "bindings/cli/machine.h"
#include "bindings/cli/status.h"
#include "bindings/cli/target.h"
#include "cubridge/runtime/adapter.h"
#include "cubridge/runtime/json.h"
#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <memory>

namespace cubridge::cli {

namespace {

using runtime::CheckReport;
using runtime::Json;

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
    how.expert = options.expert;
    how.small = options.small;
    how.longer = options.longer;
    how.delayed = options.delays;
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
    if (c.report.error && c.report.failures.empty())
        c.status = status_of_kind(c.report.error->kind);
    else if (c.report.error || c.report.verdict == CheckReport::Verdict::Failed)
        c.status = kUnverified;
    return c;
}

std::string said(const Options& options) {
    std::string s;
    for (const std::string& w : options.said) s += (s.empty() ? "" : " ") + w;
    return s;
}

Json texts(const std::vector<std::string>& list) {
    auto out = Json::array();
    for (const std::string& text : list) out.push(text);
    return out;
}

Json json_of(const std::string& word, const Options& options, const Checked& c) {
    const CheckReport& r = c.report;
    Json error;
    if (r.error)
        error = Json::object()
                    .add("kind", r.error->kind)
                    .add("message", r.error->message)
                    .add("line", r.error->span.line)
                    .add("column", r.error->span.column)
                    .add("hint", r.error->hint);
    auto experts = Json::object();
    for (const auto& [name, count] : r.experts) experts.add(name, count);
    return Json::object()
        .add("specification", word)
        .add("options", said(options))
        .add("verdict", name_of(r.verdict))
        .add("gpu", options.gpu)
        .add("error", std::move(error))
        .add("seed", static_cast<std::int64_t>(options.seed))
        .add("cases", r.planned)
        .add("against_text", r.against_text)
        .add("against_f64", r.against_f64)
        .add("kernels", r.kernels)
        .add("by_rules", r.by_rules)
        .add("experts", std::move(experts))
        .add("passed_over", texts(r.passed_over))
        .add("delayed", r.delayed)
        .add("generic", r.generic)
        .add("generic_because", texts(r.generic_because))
        .add("worst_ratio", r.worst_ratio)
        .add("worst_case", r.worst_case)
        .add("failures", texts(r.failures))
        .add("not_done", texts(r.not_done))
        .add("ms", r.ms);
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
        for (const std::string& f : r.failures) out.line("  " + out.paint(Colour::Bad, "wrong: ") + f);
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
    if (options.gpu) out.line(fmt::format("  kernels: {} from an expert by rules, {} generic", r.by_rules, r.generic));
    for (const auto& [name, count] : r.experts) out.line(fmt::format("    {} from {}", count, name));
    if (options.delays > 0) out.line(fmt::format("  delays: {} launches that differ in nothing", r.delayed));
    for (const std::string& p : r.passed_over) out.line("  passed over: " + p);
    for (const std::string& g : r.generic_because) out.line("  generic because of " + g);
    for (const std::string& n : r.not_done) out.line("  not done: " + n);
}

// --resume: the specifications that passed with these options and this seed. A line is what json_of() printed.
class Resume {
public:
    Resume(const Options& options) : options_(options) {
        if (options.resume.empty()) return;
        std::ifstream before(options.resume);
        for (std::string line; std::getline(before, line);)
            if (auto json = Json::parse(line)) lines_.push_back(std::move(*json)); // the last may be torn
        file_.open(options.resume, std::ios::app);
        if (!file_) throw Usage(options.resume + " can't be written");
    }
    bool passed(const std::string& word) const {
        const std::pair<const char*, Json> wanted[] = {{"specification", word},
                                                       {"options", said(options_)},
                                                       {"verdict", "passed"},
                                                       {"gpu", options_.gpu},
                                                       {"seed", static_cast<std::int64_t>(options_.seed)}};
        return std::any_of(lines_.begin(), lines_.end(), [&](const Json& line) {
            return std::all_of(std::begin(wanted), std::end(wanted), [&](const auto& member) {
                const Json* found = line.find(member.first);
                return found != nullptr && *found == member.second;
            });
        });
    }
    void add(const std::string& json) {
        if (file_.is_open()) file_ << json << std::endl;
    }

private:
    const Options& options_;
    std::vector<Json> lines_;
    std::ofstream file_;
};

} // namespace

int check(const Options& options) {
    if (options.words.empty()) throw Usage("check: which specification?");
    if (options.sanitize) return sanitize(options);
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
        const std::string json = json_of(word, options, c).text();
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
