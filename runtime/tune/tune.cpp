// Making every configuration, having them measured, keeping the fastest. SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/tune.h"
#include "cubridge/runtime/why.h"
#include <algorithm>
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeastGain = 0.01;

double since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

class Tuner {
public:
    Tuner(std::shared_ptr<const ir::Specification> specification, const ir::Request& request,
          const AdaptOptions& options, Measurer& measurer, const ir::Shape& shape)
        : specification_(std::move(specification)), request_(request), options_(options), measurer_(measurer) {
        options_.device = measurer.device();
        tuning_.device = measurer.device();
        tuning_.shape = shape;
    }

    Report run() {
        const auto begin = Clock::now();
        Report out = attempt();
        out.total_ms = since(begin);
        return out;
    }

private:
    Report attempt() {
        if (auto known = stored()) return std::move(*known);
        if (auto error = become_maker()) return ended(std::move(*error));
        if (auto known = options_.locks != nullptr ? stored() : std::nullopt) {
            known->joined = true;
            return std::move(*known);
        }
        auto all = ir::Candidate::configurations(*specification_, request_, tuning_.shape);
        if (!all) return untuned("there is nothing to choose from: " + all.error().message);
        make(std::move(*all));
        if (auto error = stopped()) return ended(std::move(*error));
        if (made_.empty()) return untuned("no configuration could be made: " + tuning_.rows[0].refused);
        if (auto error = measure()) return ended(std::move(*error));
        return kept();
    }

    /// Tuned by these rules, on such a device, at that shape.
    std::optional<Report> stored() const {
        if (options_.store == nullptr) return std::nullopt;
        AdaptOptions only;
        only.store = options_.store;
        only.device = options_.device;
        Report found = adapt(specification_, request_, only);
        if (!found.artifact || !found.artifact->tuning || found.artifact->tuning->device != tuning_.device ||
            found.artifact->tuning->shape != tuning_.shape || found.artifact->build.rules != rules_build())
            return std::nullopt;
        return found;
    }

    std::optional<ir::Error> become_maker() {
        if (options_.locks == nullptr) return std::nullopt;
        const auto hold = [&](cache::Waited waited, cache::Lock& to) {
            to = std::move(waited.lock);
            return waited.result == cache::Wait::HELD;
        };
        const auto key = request_key(*specification_, request_);
        if (hold(options_.locks->lock(key, options_.deadline, options_.cancelled), lock_) &&
            hold(options_.locks->slot(options_.workers, options_.deadline, options_.cancelled), slot_))
            return std::nullopt;
        if (auto error = stopped()) return error;
        return ir::Error{"deadline", "the deadline passed waiting for another maker of the same kernel", {}, ""};
    }

    /// Each alone, as if somebody had named it: what adapt() refuses is no choice.
    void make(std::vector<ir::Configuration> all) {
        say(fmt::format("{} configurations", all.size()));
        std::vector<Report> reports(all.size());
        for (std::size_t k = 0; k < all.size(); ++k) { // one after another: a slot is one adaptation at a time
            AdaptOptions one;
            one.compiler = options_.compiler;
            one.deadline = options_.deadline;
            one.cancelled = options_.cancelled;
            one.experts = {all[k].name};
            reports[k] = adapt(specification_, request_, one);
        }
        for (std::size_t k = 0; k < all.size(); ++k) {
            Tuning::Row row;
            row.configuration = std::move(all[k]);
            Report& r = reports[k];
            if (r.artifact && r.artifact->build.made_by == "rules") {
                made_.push_back({tuning_.rows.size(), std::move(r)});
            } else {
                row.refused = r.error ? r.error->message : "the generic kernel was made";
                for (const Stage& s : r.stages)
                    if (s.verdict != Stage::Verdict::Ok && s.reason.rfind(row.configuration.name, 0) == 0)
                        row.refused = s.name + ": " + s.reason;
            }
            tuning_.rows.push_back(std::move(row));
        }
        present_first();
    }

    /// What adapt() would have made is what others have to beat.
    void present_first() {
        const auto order = ir::Candidate::in_turn(*specification_, request_);
        if (!order) return;
        for (const auto& name : *order) {
            const auto it = std::find_if(made_.begin(), made_.end(),
                                         [&](const Made& m) { return tuning_.rows[m.row].configuration.name == name; });
            if (it == made_.end()) continue;
            std::rotate(made_.begin(), it, it + 1);
            return;
        }
    }

    std::optional<ir::Error> measure() {
        say("measure");
        const auto begin = Clock::now();
        std::vector<const Artifact*> artifacts;
        for (const auto& m : made_) artifacts.push_back(&*m.report.artifact);
        auto timings = measurer_.measure(*specification_, request_, tuning_.shape, artifacts);
        if (!timings) return ir::Error{timings.fault().kind, timings.fault().message, {}, timings.fault().hint};
        for (std::size_t k = 0; k < made_.size(); ++k) {
            auto& row = tuning_.rows[made_[k].row];
            const auto& t = (*timings)[k];
            row.us = t.us, row.spread = t.spread, row.launches = t.launches;
            if (t.wrong.empty()) continue;
            row.refused = "measure: " + t.wrong;
            warnings_.push_back(row.configuration.name + ": " + t.wrong + "; please report");
        }
        // The first serves unless another is faster beyond doubt.
        const auto& first = row_of(0);
        for (std::size_t k = 1; k < made_.size(); ++k) {
            const auto& row = row_of(k);
            const double doubt = std::max({first.spread, row.spread, kLeastGain});
            if (row.refused.empty() && row.us < first.us * (1 - doubt) && row.us < row_of(best_).us) best_ = k;
        }
        tuning_.rows[made_[best_].row].chosen = true;
        measured_ms_ = since(begin);
        return std::nullopt;
    }

    const Tuning::Row& row_of(std::size_t k) const { return tuning_.rows[made_[k].row]; }

    Report kept() {
        Report out = std::move(made_[best_].report);
        auto& stages = out.stages;
        std::erase_if(stages, [](const Stage& s) { return s.name == "lookup" || s.name == "store"; });
        stages.push_back({"measure", measured_ms_, Stage::Verdict::Ok, ""});
        out.warnings.insert(out.warnings.end(), warnings_.begin(), warnings_.end());
        Artifact& artifact = *out.artifact;
        artifact.build.tuned = tuning_.device;
        artifact.tuning = tuning_;
        auto& record = artifact.verification.record;
        const std::string unseen = "not run on a GPU";
        if (const auto at = record.find(unseen); at != record.npos)
            record.replace(at, unseen.size(), "timed on " + tuning_.device + ", not checked there");
        const auto begin = Clock::now();
        Stage store{"store", 0, Stage::Verdict::Ok, ""};
        const auto row = artifact.to_record();
        artifact.id = row.id;
        if (options_.store == nullptr) {
            store.verdict = Stage::Verdict::Skipped, store.reason = "no store";
        } else if (const auto outcome = options_.store->publish(row); !outcome) {
            store.verdict = Stage::Verdict::Failed, store.reason = outcome.reason;
            out.warnings.push_back("the kernel was not stored: " + outcome.reason);
        } else if (outcome.code == cache::Code::IN_MEMORY) {
            store.verdict = Stage::Verdict::Skipped, store.reason = "kept in memory only";
        }
        store.ms = since(begin);
        stages.push_back(std::move(store));
        return out;
    }

    Report untuned(const std::string& why) {
        lock_.release();
        slot_.release();
        Report out = adapt(specification_, request_, options_);
        out.warnings.push_back("not tuned: " + why);
        return out;
    }

    static Report ended(ir::Error error) {
        Report out;
        out.status = Report::Status::Failed;
        out.reasons = why::kFailed;
        out.error = std::move(error);
        return out;
    }

    std::optional<ir::Error> stopped() const {
        if (options_.cancelled && options_.cancelled())
            return ir::Error{"cancelled", "the adaptation was cancelled", {}, ""};
        if (Clock::now() >= options_.deadline)
            return ir::Error{"deadline", "the deadline passed while configurations were made", {}, "ask again later"};
        return std::nullopt;
    }

    void say(const std::string& what) const {
        if (options_.progress) options_.progress(what);
    }

    struct Made {
        std::size_t row; ///< of the tuning
        Report report;
    };

    const std::shared_ptr<const ir::Specification> specification_;
    const ir::Request& request_;
    AdaptOptions options_;
    Measurer& measurer_;
    Tuning tuning_;
    std::vector<Made> made_;
    std::size_t best_ = 0;
    double measured_ms_ = 0;
    std::vector<std::string> warnings_;
    cache::Lock lock_, slot_;
};

} // namespace

Report tune(const std::shared_ptr<const ir::Specification>& specification, const ir::Request& request,
            const AdaptOptions& options, Measurer& measurer, const ir::Shape& shape) {
    try {
        return Tuner(specification, request, options, measurer, shape).run();
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& e) {
        Report report;
        report.reasons = why::kFailed;
        report.error = ir::Error{"internal", std::string("tuning failed: ") + e.what(), {}, "please report the text"};
        return report;
    }
}

} // namespace cubridge::runtime
