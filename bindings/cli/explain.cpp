// cubridge explain: how a specification was understood, and what rules make of it.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/commands.h"
#include "bindings/cli/machine.h"
#include "bindings/cli/status.h"
#include "bindings/cli/target.h"
#include "bindings/cli/terminal.h"
#include "cubridge/ir/candidate.h"
#include "cubridge/runtime/adapter.h"
#include <fmt/format.h>

namespace cubridge::cli {
namespace {

void indented(const Terminal& out, const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size());
        out.line("    " + text.substr(at, end - at));
        at = end + 1;
    }
}

int explain_one(const std::string& word, const Options& options, const Terminal& out, const Terminal& complaints) {
    const Target target = open_target(word, options);
    const auto parsed = parse_target(target, options);
    if (!parsed) {
        complaints.line(complaints.paint(Colour::Bad, "error: ") + word + ":" +
                        parsed.error().render(target.source.text));
        return kNotAccepted;
    }
    const auto& specification = **parsed;
    out.line(word);
    out.line(specification.has_variant() ? "  understood as"
                                         : "  a program; no attention, because " + specification.no_variant_reason());
    indented(out, specification.subject());
    for (const auto& note : specification.notes()) out.line("  chosen: " + note);
    ir::Request request = options.request;
    if (request.arch.empty()) request.arch = "sm_90a";
    int heads_q = options.heads_q, heads_kv = options.heads_kv;
    std::vector<std::string> notes;
    const auto completed = runtime::complete(specification, request, heads_q, heads_kv, notes);
    for (const auto& note : notes) out.line("  chosen: " + note);
    if (!completed) {
        out.line("  no kernel: " + completed.error().message);
        return kNoKernel;
    }
    const auto candidate = ir::Candidate::transfer(specification, *completed);
    if (!candidate) {
        out.line("  the generic kernel: " + candidate.error().message);
        if (!candidate.error().hint.empty()) out.line("  hint: " + candidate.error().hint);
        return kDone;
    }
    out.line("  expert " + candidate->expert() + ", changed by");
    for (const auto& rule : candidate->rules()) out.line("    " + rule);
    const auto run = candidate->execute(specification, options.seed);
    out.line("  " + run.record);
    if (!run.passed) return kUnverified;
    const auto lowered = candidate->lower(specification, *completed);
    if (!lowered) {
        out.line("  the generic kernel: " + lowered.error().message);
        return kDone;
    }
    out.line(fmt::format("  {} statements keep the expert's CUDA, {} are printed", lowered->copied, lowered->printed));
    indented(out, lowered->difference);
    return kDone;
}

} // namespace

int explain(const Options& options) {
    if (options.words.empty()) throw Usage("explain: which specification?");
    const Terminal out(stdout), complaints(stderr);
    int worst = kDone;
    for (const auto& word : options.words) worst = std::max(worst, explain_one(word, options, out, complaints));
    return worst;
}

} // namespace cubridge::cli
