// Programs as texts: what the command line and tools call. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/program.h"
#include "ir/cuir/execute.h"
#include "ir/experts/experts.h"
#include "ir/lower/lower.h"
#include "ir/transfer/reference.h"
#include <algorithm>

namespace cubridge::ir {
namespace {

/// Nothing but an Error leaves.
template <class T, class F> Result<T> guarded(const char* what, F f) {
    try {
        return f();
    } catch (const Failure& failure) {
        return failure.error;
    } catch (const std::exception& e) {
        return Error{"internal", std::string(what) + " failed: " + e.what(), {}, "please report the program"};
    }
}

ProgramFinding public_finding(const cuir::Finding& f) {
    return {f.kind, f.role, f.message, f.line, f.other, f.text(), f.run.empty() ? 0 : 1, f.run};
}

/// The same sentence but for its numbers: agents, phases, elements.
bool same(const ProgramFinding& a, const cuir::Finding& b) {
    const auto words = [](std::string text) {
        text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }), text.end());
        return text;
    };
    if (a.kind != b.kind || a.line != b.line || a.other != b.other || words(a.role) != words(b.role)) return false;
    return b.kind == "value" || words(a.message) == words(b.message); // a value may be nan in one run only
}

void collect(std::vector<ProgramFinding>& all, const cuir::Finding& f) {
    const auto known = std::find_if(all.begin(), all.end(), [&](const auto& a) { return same(a, f); });
    if (known == all.end())
        all.push_back(public_finding(f));
    else
        ++known->runs;
}

} // namespace

std::span<const ExpertText> built_in_experts() {
    static const std::vector<ExpertText> all = [] {
        std::vector<ExpertText> out;
        for (const auto& e : experts::all()) out.push_back({e.name, e.text});
        return out;
    }();
    return all;
}

Result<std::string> lift_program(std::string_view cuda) {
    return guarded<std::string>("lifting", [&]() -> Result<std::string> {
        auto program = lower::lift(cuda);
        if (!program) return program.error();
        return cuir::print(*program);
    });
}

Result<LoweredProgram> lower_program(std::string_view text, const std::string& expert) {
    return guarded<LoweredProgram>("lowering", [&]() -> Result<LoweredProgram> {
        auto program = cuir::read(text);
        if (!program) return program.error();
        const auto* main = program->main();
        const std::string name = !expert.empty() || main == nullptr ? expert : main->attribute("expert");
        for (const auto& e : experts::all()) {
            if (e.name != name) continue;
            auto lowered = lower::lower(e.text, *program);
            if (!lowered) return lowered.error();
            for (const auto& complaint : lower::read_back(e.text, lowered->cuda, *program))
                return Error{"margin", complaint, {}, "please report the program"};
            auto shape = lower::shape_of(*program);
            if (!shape) return shape.error();
            LoweredProgram out;
            out.expert = name;
            out.cuda = std::move(lowered->cuda);
            out.copied = lowered->copied;
            for (auto& p : lowered->printed) out.printed.push_back({p.line, std::move(p.statement), std::move(p.rule)});
            out.difference = std::move(lowered->difference);
            for (const auto& g : shape->grids)
                if (main != nullptr && g.kernel == main->name())
                    out.threads = g.threads, out.shared_bytes = g.shared_bytes;
            return out;
        }
        return Error{"name", "there is no expert `" + name + "`", {}, "name one with --expert"};
    });
}

Result<ProgramExecution> execute_program(std::string_view text, const Specification& specification, int seeds) {
    return guarded<ProgramExecution>("executing", [&]() -> Result<ProgramExecution> {
        auto program = cuir::read(text);
        if (!program) return program.error();
        ProgramExecution out;
        for (const auto& f : cuir::check(*program)) out.findings.push_back(public_finding(f));
        if (!out.findings.empty()) return out;
        for (int seed = 1; seed <= seeds && out.findings.empty(); ++seed) {
            auto trial = transfer::trial_of(*program, specification, static_cast<std::uint64_t>(seed));
            if (!trial) return trial.error();
            out.runs += static_cast<int>(trial->runs.size());
            for (const auto& f : cuir::verify(*program, *trial, transfer::reference_of(specification)))
                collect(out.findings, f);
        }
        return out;
    });
}

} // namespace cubridge::ir
