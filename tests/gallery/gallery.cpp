// SPDX-License-Identifier: Apache-2.0
#include "tests/gallery/gallery.h"
#include "bindings/cli/options.h"
#include "bindings/cli/target.h"
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/ir/program.h"
#include "cubridge/runtime/adapter.h"
#include "cubridge/runtime/gate.h"
#include "cubridge/runtime/json.h"
#include "ir/cuir/execute.h"
#include "ir/lower/lower.h"
#include "ir/transfer/reference.h"
#include "ir/transfer/transfer.h"
#include "runtime/adapter/gate.h"
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace cubridge::gallery {
namespace {

using runtime::Json;

std::string text_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) throw std::runtime_error(file + " can't be read");
    std::stringstream out;
    out << in.rdbuf();
    return out.str();
}

std::string member(const Json& json, const char* name, const std::string& file, bool needed = true) {
    const auto* v = json.find(name);
    if (v != nullptr && v->string() != nullptr) return *v->string();
    if (needed) throw std::runtime_error(file + " has no text \"" + name + "\"");
    return {};
}

Candidate read(const std::filesystem::path& folder) {
    const std::string file = (folder / "candidate.json").string();
    const auto json = Json::parse(text_of(file));
    if (!json) throw std::runtime_error(file + " is no JSON");
    Candidate c;
    c.name = folder.filename().string();
    c.what = member(*json, "what", file);
    c.specification = member(*json, "specification", file);
    c.kind = member(*json, "kind", file);
    c.program = member(*json, "text", file) == "cuir";
    c.shows = member(*json, "shows", file);
    c.caught_by = member(*json, "caught_by", file, false);
    c.finding = member(*json, "finding", file, false);
    const auto* arguments = json->find("arguments");
    const auto* edits = json->find("edits");
    if (arguments == nullptr || arguments->items() == nullptr || edits == nullptr || edits->items() == nullptr)
        throw std::runtime_error(file + " lacks arguments or edits");
    for (const auto& a : *arguments->items())
        if (a.string() != nullptr) c.arguments.push_back(*a.string());
    for (const auto& e : *edits->items()) {
        const auto* pair = e.items();
        if (pair == nullptr || pair->size() != 2 || (*pair)[0].string() == nullptr || (*pair)[1].string() == nullptr)
            throw std::runtime_error(file + " has an edit that is no pair of texts");
        c.edits.emplace_back(*(*pair)[0].string(), *(*pair)[1].string());
    }
    return c;
}

/// Where edits don't apply, why.
std::string apply(std::string& text, const std::vector<std::pair<std::string, std::string>>& edits) {
    for (const auto& [from, to] : edits) {
        const auto at = text.find(from);
        if (at == text.npos || text.find(from, at + 1) != text.npos)
            return "does not stand there once: " + from.substr(0, 120);
        text.replace(at, from.size(), to);
    }
    return {};
}

/// What the executor finds first in a program, as it is run for a candidate of rules.
std::string executed(const ir::cuir::Program& program, const ir::Specification& specification,
                     const ir::Request& request) {
    for (const auto& f : ir::cuir::check(program)) return f.kind + ": " + f.text();
    const auto trial = ir::transfer::trial_of(program, specification, 1);
    if (!trial) return trial.error().message;
    for (const auto& f : ir::cuir::verify(program, *trial, ir::transfer::reference_of(specification, request)))
        return f.kind + ": " + f.whole();
    return "";
}

std::string one_line(const std::string& text) {
    return text.substr(0, std::min(text.find('\n'), std::size_t{400}));
}

} // namespace

/// A kernel by rules, before any edit.
struct Gallery::Base {
    std::shared_ptr<const ir::Specification> specification;
    ir::Request request;
    std::string expert_text, program, cuda;
    ir::launch::Plan plan;
    std::vector<std::string> warpgroups;
    std::unique_ptr<runtime::References> references;
};

std::vector<Candidate> read_all(const std::string& folder) {
    std::vector<Candidate> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.is_directory() && std::filesystem::exists(entry.path() / "candidate.json"))
            out.push_back(read(entry.path()));
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return out;
}

const Layer* Examined::first() const {
    for (const auto& l : layers)
        if (!l.finding.empty()) return &l;
    return nullptr;
}

Gallery::Gallery(std::string specifications, std::shared_ptr<runtime::Compiler> compiler,
                 std::shared_ptr<runtime::Verifier> verifier)
    : specifications_(std::move(specifications)), compiler_(std::move(compiler)), verifier_(std::move(verifier)) {}

Gallery::~Gallery() = default;

Gallery::Base* Gallery::base_of(const Candidate& c, std::string& broken) {
    const std::string key = fmt::format("{} {}", c.specification, fmt::join(c.arguments, " "));
    if (const auto it = bases_.find(key); it != bases_.end()) return it->second.get();
    auto base = std::make_unique<Base>();
    try {
        const std::string file = specifications_ + "/" + c.specification;
        const bool built_in = c.specification.find(".py") == std::string::npos;
        std::vector<std::string> words = {"adapt", built_in ? c.specification : file};
        words.insert(words.end(), c.arguments.begin(), c.arguments.end());
        const auto options = cli::parse_options(words);
        const auto target = cli::open_target(options.words.at(0), options);
        auto parsed = cli::parse_target(target, options);
        if (!parsed) return broken = parsed.error().message, nullptr;
        base->specification = *parsed;
        int heads_q = options.heads_q, heads_kv = options.heads_kv;
        std::vector<std::string> notes;
        auto request = runtime::complete(**parsed, options.request, heads_q, heads_kv, notes);
        if (!request) return broken = request.error().message, nullptr;
        base->request = *request;
        auto experts = ir::Candidate::in_turn(**parsed, *request);
        if (!options.expert.empty()) experts = std::vector<std::string>{options.expert};
        if (!experts) return broken = experts.error().message, nullptr;
        const auto made = ir::Candidate::transfer(**parsed, *request, experts->front());
        if (!made) return broken = made.error().message, nullptr;
        auto lowered = made->lower(**parsed, *request);
        if (!lowered) return broken = lowered.error().message, nullptr;
        base->program = made->program();
        base->cuda = std::move(lowered->kernel.cuda);
        base->plan = std::move(lowered->kernel.plan);
        base->warpgroups = std::move(lowered->warpgroups);
        const std::string expert = made->expert().substr(0, made->expert().find('/'));
        for (const auto& e : ir::built_in_experts())
            if (e.name == expert) base->expert_text = e.text;
    } catch (const std::exception& e) {
        return broken = e.what(), nullptr;
    }
    return bases_.emplace(key, std::move(base)).first->second.get();
}

Examined Gallery::examine(const Candidate& c, bool all) {
    Examined out;
    Base* const base = base_of(c, out.broken);
    if (base == nullptr) return out;
    std::string text = c.program ? base->program : base->cuda;
    if (out.broken = apply(text, c.edits); !out.broken.empty()) return out;
    const auto layer = [&](const char* name, auto body) { // whether what comes after it is to be tried
        const auto begin = std::chrono::steady_clock::now();
        Layer l{name, one_line(body()), 0};
        l.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
        out.layers.push_back(l);
        return l.finding.empty() || all;
    };
    const std::string block = std::string(ir::abi::kernel_abi_text()) + "\n";
    std::string program = base->program, cuda = text;
    if (c.program) {
        program = text;
        const bool on = layer("program", [&]() -> std::string {
            const auto read = ir::cuir::read(text);
            if (!read) return read.error().message;
            return executed(*read, *base->specification, base->request);
        });
        if (!on) return out;
        const auto lowered = ir::lower_program(text);
        if (!lowered) return out.layers.push_back({"census", lowered.error().message, 0}), out;
        cuda = block + lowered->cuda;
    } else {
        const bool on = layer("text",
                              [&]() -> std::string {
                                  const auto gate = runtime::text_gate(text, runtime::declared_by(base->plan));
                                  return gate ? "" : gate.fault().message;
                              }) &&
                        layer("census", [&]() -> std::string {
                            const auto lifted = ir::lower::lift(text);
                            if (!lifted) return lifted.error().message;
                            const auto at = text.starts_with(block) ? block.size() : 0;
                            const auto complaints = ir::lower::read_back(base->expert_text, text.substr(at), *lifted);
                            if (!complaints.empty()) return complaints.front();
                            if (lifted->main() == nullptr) return "there is no kernel in the margin";
                            return executed(*lifted, *base->specification, base->request);
                        });
        if (!on) return out;
    }
    runtime::Artifact artifact;
    artifact.plan = base->plan;
    const bool on = layer("compile", [&]() -> std::string {
        runtime::CompileJob job;
        job.source = cuda;
        job.name = "candidate.cu";
        job.arch = base->request.arch;
        auto compiled = compiler_->compile(job);
        if (!compiled) return compiled.fault().message;
        artifact.cubin = std::move(compiled->cubin);
        artifact.entries = std::move(compiled->entries);
        const auto report = runtime::gate(artifact, base->warpgroups, compiled->remarks);
        if (!report.refused.empty()) return report.refused;
        const auto declared = runtime::declared_by(base->plan);
        const auto constants = runtime::text_gate(cuda, declared);
        const auto cubin = runtime::cubin_gate(artifact.cubin, declared, constants ? *constants : runtime::Constants{});
        return cubin ? "" : cubin.fault().message;
    });
    if (!on || artifact.cubin.empty() || verifier_ == nullptr) return out;
    layer("gpu", [&]() -> std::string {
        auto& references = base->references;
        if (references == nullptr)
            references = std::make_unique<runtime::References>(*base->specification, base->request, compiler_);
        if (const auto ready = references->ready(); !ready) return "broken: " + ready.fault().text();
        runtime::VerifyJob job;
        job.specification = base->specification;
        job.request = base->request;
        job.kernel = {artifact.cubin, artifact.plan};
        job.exact = references->exact();
        job.baseline = references->baseline();
        job.program = program;
        const auto result = verifier_->verify(job);
        if (!result) return "broken: " + result.fault().text();
        return result->passed ? "" : result->record();
    });
    return out;
}

} // namespace cubridge::gallery
