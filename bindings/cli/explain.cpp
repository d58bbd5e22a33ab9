// cubridge explain: how a specification was understood, and what rules make of it.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/commands.h"
#include "bindings/cli/machine.h"
#include "bindings/cli/status.h"
#include "bindings/cli/target.h"
#include "bindings/cli/terminal.h"
#include "cubridge/ir/candidate.h"
#include "cubridge/runtime/adapter.h"
#include "cubridge/runtime/json.h"
#include <fmt/format.h>

namespace cubridge::cli {
namespace {

using runtime::Json;

/// What there is to say of one specification, as far as it came.
struct Explained {
    std::string word;
    Target target;
    std::shared_ptr<const ir::Specification> specification; ///< null where the text was refused
    std::vector<std::string> chosen;
    std::vector<std::pair<std::string, std::string>> passed_over; ///< experts, and why each is not taken
    std::vector<ir::Configuration> configurations;
    std::optional<ir::Candidate> candidate;
    ir::Candidate::Execution execution;
    std::optional<ir::Candidate::Lowered> lowered;
    std::optional<ir::Error> generic; ///< why the generic kernel serves
    std::optional<ir::Error> error;   ///< why no kernel does
    int status = kDone;
};

/// As far as the expert's program comes; `generic` says what ended it.
void try_expert(Explained& e, const std::string& expert, const ir::Request& request, std::uint64_t seed) {
    e.candidate.reset();
    e.lowered.reset();
    e.generic.reset();
    e.status = kDone;
    auto candidate = ir::Candidate::transfer(*e.specification, request, expert);
    if (!candidate) {
        e.generic = candidate.error();
        return;
    }
    e.candidate = std::move(*candidate);
    e.execution = e.candidate->execute(*e.specification, seed);
    if (!e.execution.passed) {
        e.generic = ir::Error{"execute", e.execution.record, {}, ""};
        e.status = kUnverified;
        return;
    }
    auto lowered = e.candidate->lower(*e.specification, request);
    if (lowered)
        e.lowered = std::move(*lowered);
    else
        e.generic = lowered.error();
}

Explained run(const std::string& word, const Options& options) {
    Explained e;
    e.word = word;
    const auto refused = [&](ir::Error error, int status) {
        e.error = std::move(error);
        e.status = status;
        return e;
    };
    try {
        e.target = open_target(word, options);
    } catch (const Usage& usage) {
        return refused({"file", usage.what(), {}, ""}, kUsage);
    }
    auto parsed = parse_target(e.target, options);
    if (!parsed) return refused(parsed.error(), kNotAccepted);
    e.specification = *parsed;
    e.chosen = e.specification->notes();
    ir::Request request = options.request;
    if (request.arch.empty()) request.arch = "sm_90a";
    int heads_q = options.heads_q, heads_kv = options.heads_kv;
    std::vector<std::string> notes;
    const auto completed = runtime::complete(*e.specification, request, heads_q, heads_kv, notes);
    e.chosen.insert(e.chosen.end(), notes.begin(), notes.end());
    if (!completed) return refused(completed.error(), kNoKernel);
    auto experts = ir::Candidate::in_turn(*e.specification, *completed);
    if (!experts) {
        e.generic = experts.error();
        return e;
    }
    ir::Shape shape = options.shape.value_or(ir::Shape());
    shape.heads_kv = heads_kv;
    if (auto all = ir::Candidate::configurations(*e.specification, *completed, shape))
        e.configurations = std::move(*all);
    if (!options.expert.empty()) *experts = {options.expert};
    for (const auto& expert : *experts) {
        try_expert(e, expert, *completed, options.seed);
        if (!e.generic) break;
        e.passed_over.emplace_back(expert, e.generic->message);
    }
    return e;
}

Json json_of(const Explained& e) {
    const auto texts = [](const std::vector<std::string>& list) {
        auto out = Json::array();
        for (const auto& text : list) out.push(text);
        return out;
    };
    auto others = Json::array();
    for (const auto& [expert, why] : e.passed_over)
        others.push(Json::object().add("expert", expert).add("reason", why));
    auto configurations = Json::array();
    for (const auto& c : e.configurations) configurations.push(runtime::json_of(c));
    const bool known = e.specification != nullptr, made = e.candidate.has_value(), printed = e.lowered.has_value();
    Json error;
    if (e.error)
        error = Json::object()
                    .add("kind", e.error->kind)
                    .add("message", e.error->message)
                    .add("line", e.error->span.line)
                    .add("column", e.error->span.column)
                    .add("hint", e.error->hint);
    return Json::object()
        .add("specification", e.word)
        .add("error", std::move(error))
        .add("variant", known ? Json(e.specification->subject()) : Json())
        .add("chosen", texts(e.chosen))
        .add("expert", made ? Json(e.candidate->expert()) : Json())
        .add("rules", texts(made ? e.candidate->rules() : std::vector<std::string>{}))
        .add("configurations", std::move(configurations))
        .add("executed", made ? Json(e.execution.record) : Json())
        .add("passed_over", std::move(others))
        .add("generic_because", e.generic ? Json(e.generic->message) : Json())
        .add("copied", printed ? Json(e.lowered->copied) : Json())
        .add("printed", printed ? Json(e.lowered->printed) : Json())
        .add("difference", printed ? Json(e.lowered->difference) : Json());
}

void indented(const Terminal& out, const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size());
        out.line("    " + text.substr(at, end - at));
        at = end + 1;
    }
}

void complain(const Explained& e, const Terminal& on) {
    on.line(on.paint(Colour::Bad, "error: ") +
            (e.status == kUsage ? e.error->message : e.word + ":" + e.error->render(e.target.source.text)));
}

void print(const Explained& e, const Terminal& out) {
    if (e.specification == nullptr) return;
    out.line(e.word);
    out.line(e.specification->has_variant()
                 ? "  understood as"
                 : "  a program; no attention, because " + e.specification->no_variant_reason());
    indented(out, e.specification->subject());
    for (const auto& note : e.chosen) out.line("  chosen: " + note);
    for (const auto& [expert, why] : e.passed_over) out.line("  not from expert " + expert + ": " + why);
    if (e.candidate) {
        out.line("  expert " + e.candidate->expert() + ", changed by");
        for (const auto& rule : e.candidate->rules()) out.line("    " + rule);
        if (e.execution.passed) out.line("  " + e.execution.record);
    }
    if (!e.configurations.empty()) {
        out.line("  configurations, by the model");
        Table table;
        for (const auto& c : e.configurations)
            table.row({c.name, fmt::format("{} keys", c.keys), c.order, fmt::format("{:.0f} us", c.us),
                       fmt::format("{} tiles, {} masked{}", c.tiles, c.masked, c.guessed ? ", guessed" : "")});
        out.line(table.text(4));
    }
    if (e.lowered) {
        out.line(
            fmt::format("  {} regions keep the expert's CUDA, {} are printed", e.lowered->copied, e.lowered->printed));
        indented(out, e.lowered->difference);
    }
    if (e.generic) {
        out.line("  the generic kernel: " + e.generic->message);
        if (!e.generic->hint.empty()) out.line("  hint: " + e.generic->hint);
    }
}

} // namespace

int explain(const Options& options) {
    if (options.words.empty()) throw Usage("explain: which specification?");
    const Terminal out(stdout), complaints(stderr);
    int worst = kDone;
    for (const auto& word : options.words) {
        const auto e = run(word, options);
        if (options.json)
            out.line(json_of(e).text());
        else
            print(e, out);
        if (e.error) complain(e, complaints);
        worst = std::max(worst, e.status);
    }
    return worst;
}

} // namespace cubridge::cli
