// cubridge cache verify: rows read and checked, and with --gpu their kernels run again. SPDX-License-Identifier:
// Apache-2.0
#include "bindings/cli/cache_verify.h"
#include "bindings/cli/status.h"
#include "cubridge/runtime/adapter.h"
#include <algorithm>
#include <fmt/format.h>

namespace cubridge::cli {

namespace {

using runtime::Json;
using runtime::Rerun;

Json findings_of(const cache::Verification& v) {
    auto out = Json::array();
    for (const auto& f : v.bad) out.push(Json::object().add("id", f.id.hex()).add("reason", f.reason));
    return out;
}

/// Kernels run again, one after the other.
class Reruns {
public:
    Reruns(const Options& options, Machine& machine, const Terminal& out, const Terminal& progress)
        : options_(options), machine_(machine), out_(out), progress_(progress) {}

    void run(const std::optional<cache::Digest>& only) {
        const auto arch = machine_.verifier()->arch();
        if (!arch) {
            fault_ = arch.fault();
            return;
        }
        arch_ = *arch;
        std::vector<cache::Digest> ids;
        for (const cache::Summary& s : machine_.store().list())
            if ((!only || s.id == *only) && std::find(ids.begin(), ids.end(), s.id) == ids.end()) ids.push_back(s.id);
        for (const cache::Digest& id : ids) {
            progress_.transient(id.hex(12) + ": verify");
            const auto seed = options_.seeded ? options_.seed : 0;
            take(id, runtime::verify_again(machine_.store(), id, machine_.compiler(), *machine_.verifier(), seed),
                 only.has_value());
        }
        progress_.transient("");
    }

    /// What was wrong comes first, then what could not be run.
    int status() const { return wrong_ > 0 ? kUnverified : fault_ || missed_ > 0 ? kEnvironment : kDone; }

    void json(Json& into) const {
        auto error = Json::object();
        if (fault_) error.add("kind", fault_->kind).add("message", fault_->message).add("hint", fault_->hint);
        into.add("arch", fault_ ? Json() : Json(arch_)).add("error", fault_ ? std::move(error) : Json());
        into.add("kernels", kernels_);
    }

    void summary() const {
        if (fault_)
            Terminal(stderr).line("cubridge: nothing was run: " + fault_->text());
        else
            out_.line(fmt::format("{} passed, {} not, {} not run, on {}", passed_, wrong_, missed_ + elsewhere_,
                                  arch_.empty() ? "a GPU" : arch_));
    }

private:
    void take(const cache::Digest& id, const Rerun& r, bool named) {
        using Verdict = Rerun::Verdict;
        // Of an architecture that is not here nothing was asked, unless by its name.
        int& count = r.verdict == Verdict::Passed            ? passed_
                     : r.verdict == Verdict::Wrong           ? wrong_
                     : r.verdict == Verdict::NotRun || named ? missed_
                                                             : elsewhere_;
        ++count;
        const char* verdict = r.verdict == Verdict::Passed  ? "passed"
                              : r.verdict == Verdict::Wrong ? "not passed"
                                                            : "not run";
        kernels_.push(Json::object()
                          .add("id", id.hex())
                          .add("arch", r.arch)
                          .add("verdict", verdict)
                          .add("reason", r.why)
                          .add("hint", r.hint)
                          .add("seed", static_cast<std::int64_t>(r.seed))
                          .add("renewed", r.id ? Json(r.id->hex()) : Json())
                          .add("verification", r.verification ? r.verification->json() : Json()));
        if (options_.json) return;
        std::string line = id.hex(12) + "  " + verdict + ": ";
        if (r.verdict == Verdict::Passed)
            line += r.verification->record + (r.id ? ", now " + r.id->hex(12) : "");
        else
            line += r.why + (r.seed != 0 ? fmt::format(" (seed {})", r.seed) : "");
        if (r.verdict == Verdict::Wrong && r.hint.empty()) line += "; it was set aside";
        if (!r.hint.empty()) line += "; " + r.hint;
        out_.line(line);
    }

    const Options& options_;
    Machine& machine_;
    const Terminal& out_;
    const Terminal& progress_;
    std::string arch_;
    std::optional<runtime::Fault> fault_; ///< why nothing can be run at all
    Json kernels_ = Json::array();
    int passed_ = 0, wrong_ = 0, missed_ = 0, elsewhere_ = 0;
};

} // namespace

int verify_rows(const Options& options, const std::optional<cache::Digest>& id, Machine& machine, const Terminal& out,
                const Terminal& progress) {
    const cache::Verification v = machine.store().verify(id);
    const int rows = v.bad.empty() && v.outcome ? kDone : kUnverified;
    if (!options.json) {
        for (const auto& f : v.bad) out.line(f.id.hex(12) + "  " + f.reason);
        out.line(fmt::format("{} checked, {} bad{}{}", v.checked, v.bad.size(), v.outcome.reason.empty() ? "" : ": ",
                             v.outcome.reason));
    }
    auto json = Json::object();
    json.add("checked", v.checked).add("bad", findings_of(v));
    json.add("outcome", cache::name(v.outcome.code)).add("reason", v.outcome.reason);
    int status = rows;
    if (options.gpu) {
        Reruns reruns(options, machine, out, progress);
        reruns.run(id);
        reruns.json(json);
        if (!options.json) reruns.summary();
        if (status == kDone) status = reruns.status();
    }
    if (options.json) out.line(json.text());
    return status;
}

} // namespace cubridge::cli
