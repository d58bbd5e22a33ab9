// cubridge lower, lift, exec: CuIR programs as a person edits them. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/program.h"
#include "bindings/cli/commands.h"
#include "bindings/cli/status.h"
#include "bindings/cli/target.h"
#include "bindings/cli/terminal.h"
#include "cubridge/runtime/json.h"
#include <filesystem>
#include <fmt/format.h>

namespace cubridge::cli {
namespace {

using runtime::Json;

int refused(const Terminal& complaints, const std::string& word, const ir::Error& error, const std::string& text) {
    complaints.line(complaints.paint(Colour::Bad, "error: ") + word + ":" + error.render(text));
    return error.kind == "no_rule" ? kNoKernel : kNotAccepted;
}

const std::string& only_word(const Options& options, const char* what) {
    if (options.words.size() != 1) throw Usage(options.command + ": " + what);
    return options.words[0];
}

} // namespace

int lift(const Options& options) {
    const std::string& word = only_word(options, "which FILE.cu, or the name of an expert?");
    const Terminal out(stdout), complaints(stderr);
    std::string text;
    for (const auto& expert : ir::built_in_experts())
        if (expert.name == word) text = expert.text;
    if (text.empty()) text = read_text(word);
    const auto program = ir::lift_program(text);
    if (!program) return refused(complaints, word, program.error(), text);
    std::fwrite(program->data(), 1, program->size(), stdout);
    return kDone;
}

int lower(const Options& options) {
    const std::string& word = only_word(options, "which PROGRAM.py?");
    const Terminal out(stdout), complaints(stderr);
    const std::string text = read_text(word);
    const auto lowered = ir::lower_program(text, options.expert);
    if (!lowered) return refused(complaints, word, lowered.error(), text);
    if (options.json) {
        auto printed = Json::array();
        for (const auto& p : lowered->printed) {
            auto one = Json::object();
            one.add("line", p.line).add("statement", p.statement).add("rule", p.rule);
            printed.push(std::move(one));
        }
        auto all = Json::object();
        all.add("expert", lowered->expert);
        all.add("copied", lowered->copied).add("printed", std::move(printed)).add("difference", lowered->difference);
        all.add("threads", lowered->threads).add("shared_bytes", lowered->shared_bytes).add("cuda", lowered->cuda);
        out.line(all.text());
        return kDone;
    }
    std::fwrite(lowered->cuda.data(), 1, lowered->cuda.size(), stdout);
    complaints.line(fmt::format("{}: {} regions copied, {} printed; {} threads, {} bytes of shared memory",
                                lowered->expert, lowered->copied, lowered->printed.size(), lowered->threads,
                                lowered->shared_bytes));
    for (const auto& p : lowered->printed)
        complaints.line(fmt::format("  line {}: {}  ({})", p.line, p.statement, p.rule));
    return kDone;
}

int exec(const Options& options) {
    const std::string& word = only_word(options, "which PROGRAM.py?");
    if (options.spec.empty()) throw Usage("exec: --spec SPEC.py says what the program is to compute");
    const Terminal out(stdout), complaints(stderr);
    const std::string text = read_text(word);
    const Target target = open_target(options.spec, options);
    const auto specification = parse_target(target, options);
    if (!specification) return refused(complaints, options.spec, specification.error(), target.source.text);
    const auto done = ir::execute_program(text, **specification, options.seeds);
    if (!done) return refused(complaints, word, done.error(), text);
    if (options.json) {
        auto findings = Json::array();
        for (const auto& f : done->findings) {
            auto one = Json::object();
            one.add("kind", f.kind).add("role", f.role).add("line", f.line).add("other", f.other);
            one.add("message", f.message).add("text", f.text).add("runs", f.runs).add("run", f.run);
            findings.push(std::move(one));
        }
        auto all = Json::object();
        all.add("findings", std::move(findings)).add("runs", done->runs);
        out.line(all.text());
    } else {
        for (const auto& f : done->findings) {
            out.line(out.paint(Colour::Bad, f.kind) + ": " + f.text);
            if (f.runs > 0) out.line(fmt::format("    in {} of {} runs, first with {}", f.runs, done->runs, f.run));
        }
        out.line(fmt::format("{}: {} findings in {} runs", word, done->findings.size(), done->runs));
    }
    return done->findings.empty() ? kDone : kUnverified;
}

} // namespace cubridge::cli
