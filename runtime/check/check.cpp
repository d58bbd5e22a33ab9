// Running a plan: references on all cores, kernels on the GPU, verdicts. SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/check.h"
#include "ir/spec/state.h"
#include "runtime/check/given.h"
#include "runtime/check/gpu.h"
#include "runtime/check/inputs.h"
#include "runtime/check/judge.h"
#include "runtime/check/plan.h"
#include "runtime/check/pool.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <mutex>
#include <thread>

namespace cubridge::runtime {

namespace {

constexpr int kMostTame = 3;
constexpr std::int64_t kTextBudget = std::int64_t{1} << 28; // elements of all temporaries
constexpr std::int64_t kScalarElements = std::int64_t{1} << 19;
constexpr std::int64_t kLseElements = std::int64_t{1} << 22; // of the products of one LSE of the Variant on the CPU
constexpr double kScalarTolerance = 1e-11, kBuildTolerance = 1e-9;
constexpr int kRealReferences = 4; // cases at the real head dims that the CPU evaluates
constexpr std::size_t kMostFailures = 10;

// A case with its numbers and what the text makes of them.
struct Prepared {
    Case c;
    std::vector<ir::Argument> inputs;
    std::optional<Outputs> text; ///< nothing: the CPU did not evaluate it
    std::string refused;         ///< why the text gave nothing, however tame the numbers
};

enum class Which : std::size_t { Kernel, Exact, Baseline };

class Checker {
public:
    Checker(std::shared_ptr<const ir::Specification> specification, const ir::Request& request,
            const CheckOptions& options, std::optional<Given> given = {})
        : spec_(std::move(specification)), request_(request), options_(options), given_(std::move(given)) {
        // Built here, once: the pool of expressions takes one thread at a time.
        if (spec_->outputs() == 1 && spec_->variant() != nullptr)
            if (const ir::Expr lse = ir::natural_lse(*spec_->variant())) {
                const auto& shape = spec_->scalar().out[0].shape;
                lse_.push_back({{shape[0], shape[1], shape[2]}, lse, ir::DType::F32});
            }
    }

    CheckReport run() {
        const auto begin = std::chrono::steady_clock::now();
        auto plan = given_ ? CheckPlan{{{request_, true}}, std::move(given_->cases), {}}
                           : make_check_plan(*spec_, request_, options_);
        if (!plan) {
            report_.error = plan.error();
        } else {
            plan_ = std::move(*plan);
            report_.planned = static_cast<int>(plan_.cases.size());
            report_.not_done = plan_.notes;
            say(fmt::format("plan: {} cases, {} kernels, seed {}, about {:.0f} s", plan_.cases.size(),
                            plan_.units.size(), options_.seed, estimate()));
            if (options_.driver)
                on_gpu();
            else
                on_cpu();
        }
        if (report_.error && report_.error->kind == "hang") abandon(std::move(gpu_));
        if (!report_.error)
            report_.verdict = report_.failures.empty() && report_.against_text + report_.against_f64 > 0
                                  ? CheckReport::Verdict::Passed
                                  : CheckReport::Verdict::Failed;
        if (report_.verdict == CheckReport::Verdict::Failed && report_.failures.empty())
            report_.failures.push_back("not one case could be compared");
        report_.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
        return std::move(report_);
    }

private:
    void say(const std::string& line) const {
        if (options_.progress) options_.progress(line);
    }

    double threads() const {
        return options_.threads > 0 ? options_.threads : std::max(1U, std::thread::hardware_concurrency());
    }

    // Seconds: a tenth a reference, half a second a compile, three builds a kernel, a few hundredths a case on the GPU.
    double estimate() const {
        const double cases = static_cast<double>(plan_.cases.size()), kernels = static_cast<double>(plan_.units.size());
        return options_.driver
                   ? 1 + cases * (0.1 / threads() + 0.04 + 0.002 * options_.delayed) + 1.5 * kernels / threads()
                   : 0.5 + cases * 0.2 / threads();
    }

    const Unit& unit_of(const Case& c) const { return plan_.units[static_cast<std::size_t>(c.unit)]; }

    void failed(const Case& c, const std::string& what) {
        if (report_.failures.size() < kMostFailures)
            report_.failures.push_back(c.text(unit_of(c)) + ": " + what);
        else if (report_.failures.size() == kMostFailures)
            report_.failures.push_back("... and more");
    }

    // Of the float64 build: check() counts it, but of a kernel that is given it says nothing.
    void exact_failed(const Case& c, const std::string& what) {
        if (given_)
            give_up(of_reference(c.text(unit_of(c)) + ": " + what));
        else
            failed(c, what);
    }

    static Fault of_reference(std::string what) {
        return {"reference", std::move(what), "nothing is said of the kernel by this; please report"};
    }

    void rate(const Case& c, const Judgement& j) {
        if (j.ratio <= report_.worst_ratio) return;
        report_.worst_ratio = j.ratio;
        report_.worst_case = c.text(unit_of(c));
    }

    ir::Result<Outputs> evaluate(const Prepared& p) const {
        const Unit& unit = unit_of(p.c);
        const bool with_lse =
            unit.request.lse != ir::Request::Lse::None && !lse_.empty() &&
            p.c.B * p.c.Hq * p.c.Sk * std::max(p.c.Sq, p.c.Sk) * unit.request.head_dim <= kLseElements;
        return reference(*spec_, unit, p.c, p.inputs, [&](const std::vector<ir::Argument>& inputs) {
            auto got = spec_->evaluate(inputs, kTextBudget);
            if (got && with_lse) {
                try {
                    got->push_back(ir::spec::evaluate_outputs(spec_->scalar(), lse_, inputs)[0]);
                } catch (const ir::Failure& f) {
                    return ir::Result<std::vector<ir::Array>>(f.error);
                }
            }
            return got;
        });
    }

    // Draws a case and evaluates the text on it: tamer numbers as long as the text refuses them.
    Prepared prepare(Case c) const {
        Prepared p;
        for (; c.tame <= kMostTame; ++c.tame) {
            p.c = c;
            p.inputs = draw_inputs(*spec_, unit_of(c), c, options_.seed);
            auto got = evaluate(p);
            if (got) {
                p.text = std::move(*got);
                p.refused.clear();
                return p;
            }
            p.refused = got.error().message;
            // Many texts have no meaning without a key; what they make of one is no less to be seen.
            if (unit_of(c).request.rows == ir::Request::Rows::AsWritten)
                std::replace(c.kv_len.begin(), c.kv_len.end(), std::int64_t{0}, std::int64_t{1});
        }
        return p;
    }

    // Evaluates the text on the cases the CPU can do, on all cores; the others get numbers as tame as those needed.
    std::vector<Prepared> prepare_all() {
        std::vector<Prepared> out(plan_.cases.size());
        std::vector<std::size_t> here;
        int real = 0;
        for (std::size_t k = 0; k < plan_.cases.size(); ++k) {
            const Case& c = plan_.cases[k];
            if (c.small() && (!unit_of(c).real || real++ < kRealReferences)) here.push_back(k);
        }
        parallel(here.size(), options_.threads, [&](std::size_t n) { out[here[n]] = prepare(plan_.cases[here[n]]); });
        int tame = 0;
        for (const std::size_t k : here)
            if (out[k].text) tame = std::max(tame, out[k].c.tame);
        parallel(out.size(), options_.threads, [&](std::size_t k) {
            if (out[k].c.number != 0) return;
            out[k].c = plan_.cases[k];
            out[k].c.tame = tame;
            out[k].inputs = draw_inputs(*spec_, unit_of(out[k].c), out[k].c, options_.seed);
        });
        return out;
    }

    // ---- Without a GPU: the scalarised text against the text
    // ----------------------------------------------------------
    void on_cpu() {
        report_.not_done.push_back("kernels: nothing ran, for want of a GPU or of --gpu");
        std::mutex mutex;
        int too_large = 0, refused = 0;
        std::string why;
        parallel(plan_.cases.size(), options_.threads, [&](std::size_t k) {
            const Case& c = plan_.cases[k];
            const ir::Request& r = unit_of(c).request;
            const std::int64_t rows = r.rows == ir::Request::Rows::Tail ? c.Sk : c.Sq;
            if (c.B * c.Hq * rows * c.Sk * std::max(r.head_dim, r.head_dim_v) >
                kScalarElements * (unit_of(c).real ? 8 : 1)) {
                const std::lock_guard<std::mutex> hold(mutex);
                ++too_large;
                return;
            }
            const Prepared p = prepare(c);
            ir::Result<Outputs> other = ir::Error{};
            if (p.text)
                other = reference(*spec_, unit_of(c), p.c, p.inputs, [&](const std::vector<ir::Argument>& inputs) {
                    return spec_->evaluate_scalar(inputs);
                });
            const std::lock_guard<std::mutex> hold(mutex);
            if (!p.text || !other) {
                ++refused;
                why = p.text ? other.error().message : p.refused;
                return;
            }
            ++report_.against_text;
            Judgement j = judge_exact(other->o, p.text->o, kScalarTolerance);
            if (j.wrong.empty() && !p.text->lse.values.empty() && !other->lse.values.empty())
                j = judge_exact(other->lse, p.text->lse, kScalarTolerance);
            rate(p.c, j);
            if (!j.wrong.empty()) failed(p.c, j.wrong);
        });
        if (too_large > 0) report_.not_done.push_back(fmt::format("{} cases: too large for the CPU", too_large));
        if (refused > 0)
            report_.not_done.push_back(fmt::format("{} cases: the text refuses their sizes ({})", refused, why));
    }

    // ---- On the GPU
    // ---------------------------------------------------------------------------------------------------
    void on_gpu() {
        auto opened = Gpu::open(options_.driver, options_.device);
        if (!opened) return give_up(opened.fault());
        gpu_ = std::move(*opened);
        gpu_->limit(options_.longest_launch);
        if (options_.delayed > 0 && options_.compiler)
            if (const auto done = gpu_->accompany(*options_.compiler); !done)
                report_.not_done.push_back("a load beside delayed launches: " + done.fault().text());
        std::vector<UnitKernels> kernels;
        if (given_)
            kernels.push_back(std::move(given_->kernels));
        else
            kernels = make_kernels(spec_, plan_.units, gpu_->device().arch, options_);
        if (!load(kernels)) return;
        say(fmt::format("{} kernels compiled", report_.kernels));
        std::vector<Prepared> all = prepare_all();
        bool trusted = true; // the float64 build, so far
        for (Prepared& p : all)
            if (p.text && usable(p.c)) trusted = small(p) && trusted;
        int skipped = 0;
        for (Prepared& p : all) {
            if (report_.error) return;
            if (p.text || !usable(p.c) || !p.refused.empty()) continue;
            if (trusted)
                large(p);
            else
                ++skipped;
        }
        if (skipped > 0)
            report_.not_done.push_back(
                fmt::format("{} large cases: the float64 build does not equal the text", skipped));
        const auto refused =
            std::count_if(all.begin(), all.end(), [](const Prepared& p) { return !p.refused.empty(); });
        if (refused > 0) report_.not_done.push_back(fmt::format("{} cases: the text refuses their sizes", refused));
    }

    void give_up(const Fault& fault) { report_.error = ir::Error{fault.kind, fault.message, {}, fault.hint}; }

    // False where nothing is left to run.
    bool load(const std::vector<UnitKernels>& kernels) {
        loaded_.resize(kernels.size());
        delayed_.resize(kernels.size());
        std::optional<ir::Error> first;
        for (std::size_t k = 0; k < kernels.size(); ++k) {
            const UnitKernels& u = kernels[k];
            if (u.error) {
                if (!first) first = u.error;
                const ir::Request& r = plan_.units[k].request;
                report_.not_done.push_back(
                    fmt::format("group {}, head dims {}:{}: {}", r.group, r.head_dim, r.head_dim_v, u.error->message));
                continue;
            }
            std::vector<LoadedKernel> all;
            for (const Built* b : {&u.kernel, &u.exact, u.baseline ? &*u.baseline : nullptr}) {
                if (!b) continue;
                auto loaded = gpu_->load(b->cubin, b->plan);
                if (!loaded && given_ && b == &u.exact && loaded.fault().kind != "memory")
                    return give_up(of_reference("the float64 build does not load: " + loaded.fault().text())), false;
                if (!loaded) return give_up(loaded.fault()), false;
                all.push_back(std::move(*loaded));
            }
            report_.kernels += static_cast<int>(all.size());
            loaded_[k] = std::move(all);
            if (u.delayed) {
                auto delayed = gpu_->load_delayed(*u.delayed);
                if (!delayed) return give_up(delayed.fault()), false;
                delayed_[k] = std::move(*delayed);
                ++report_.kernels;
            }
            ++(u.by_rules ? report_.by_rules : report_.generic);
            const auto once = [](std::vector<std::string>& list, const std::string& text) {
                if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
            };
            if (options_.delayed > 0 && !u.delayed)
                once(report_.not_done, "delays: " + (u.by_rules ? u.not_delayed : "none in a generic kernel"));
            if (u.by_rules)
                ++report_.experts[u.expert];
            else
                once(report_.generic_because, u.reason);
            for (const auto& why : u.passed_over) once(report_.passed_over, why);
        }
        if (report_.kernels == 0) report_.error = first;
        return report_.kernels > 0;
    }

    bool usable(const Case& c) const { return !loaded_[static_cast<std::size_t>(c.unit)].empty(); }

    double lse_scale(const Case& c) const {
        return unit_of(c).request.lse == ir::Request::Lse::Log2 ? 1 / std::log(2.0) : 1;
    }

    std::vector<std::int64_t> out_shape(const Case& c) const {
        const auto dims = dims_of_request(*spec_, c, unit_of(c).request, c.Sk);
        auto shape = sizes_of(spec_->scalar(), spec_->scalar().out[0].shape, *dims);
        shape[2] = c.Sq;
        return shape;
    }

    std::optional<Launched> run(const Prepared& p, Which which) {
        const LoadedKernel& kernel = loaded_[static_cast<std::size_t>(p.c.unit)][static_cast<std::size_t>(which)];
        const Unit unit = which == Which::Kernel ? unit_of(p.c) : in_float64(unit_of(p.c));
        const std::string who = which == Which::Exact      ? "the float64 build: "
                                : which == Which::Baseline ? "the baseline: "
                                                           : "";
        auto done = gpu_->run(kernel, *spec_, unit, p.c, p.inputs, out_shape(p.c), which == Which::Kernel ? 2 : 1);
        if (!done && done.fault().kind == "memory") {
            give_up(done.fault());
            return std::nullopt;
        }
        if (const std::string wrong = done ? done->wrong : done.fault().text(); !wrong.empty()) {
            which == Which::Exact ? exact_failed(p.c, who + wrong) : failed(p.c, who + wrong);
            if (!done && fatal(done.fault()) && !report_.error) give_up(done.fault());
            return std::nullopt;
        }
        return std::move(*done);
    }

    // Launches with delays leave what the kernel leaves. They differ by luck: each case has seeds of its own.
    void late(const Prepared& p) {
        const auto& delayed = delayed_[static_cast<std::size_t>(p.c.unit)];
        if (!delayed) return;
        const Repeats repeats{*delayed, options_.delayed,
                              options_.seed * 7919 + static_cast<std::uint64_t>(p.c.number)};
        const LoadedKernel& kernel = loaded_[static_cast<std::size_t>(p.c.unit)][0];
        const auto wrong = gpu_->repeat(kernel, repeats, *spec_, unit_of(p.c), p.c, p.inputs, out_shape(p.c));
        if (!wrong && wrong.fault().kind == "memory") return give_up(wrong.fault());
        if (wrong && wrong->empty()) {
            report_.delayed += options_.delayed;
            return;
        }
        failed(p.c, "with delays: " + (wrong ? *wrong : wrong.fault().text()));
        if (!wrong && fatal(wrong.fault())) give_up(wrong.fault());
    }

    static bool fatal(const Fault& fault) { return fault.kind == "context_lost" || fault.kind == "hang"; }

    // The kernel, by its baseline if it has one. `scale` makes the reference's LSE the request's. False: there is
    // nothing to judge.
    bool judge(const Prepared& p, const Outputs& expected, double scale) {
        const auto got = run(p, Which::Kernel);
        if (!got) return false;
        late(p);
        if (report_.error) return false;
        std::optional<Launched> baseline;
        if (loaded_[static_cast<std::size_t>(p.c.unit)].size() > static_cast<std::size_t>(Which::Baseline)) {
            baseline = run(p, Which::Baseline);
            if (!baseline) return false;
        }
        const std::size_t parts = spec_->variant() != nullptr ? spec_->variant()->parts.size() : 1;
        Judgement j = judge_output(got->outputs.o, expected.o, unit_of(p.c).request.o_dtype, std::max(p.c.Sq, p.c.Sk),
                                   baseline ? &baseline->outputs.o : nullptr, parts);
        rate(p.c, j);
        if (j.wrong.empty() && !got->outputs.lse.values.empty() && !expected.lse.values.empty())
            j.wrong =
                judge_lse(got->outputs.lse, expected.lse, scale, baseline ? &baseline->outputs.lse : nullptr).wrong;
        if (!j.wrong.empty()) failed(p.c, j.wrong);
        return true;
    }

    // Kernel and float64 build against the text; true if the float64 build equals it.
    bool small(const Prepared& p) {
        if (report_.error) return false;
        report_.against_text += judge(p, *p.text, lse_scale(p.c)) ? 1 : 0;
        if (report_.error) return false;
        const auto exact = run(p, Which::Exact);
        if (!exact) return false;
        Judgement j = judge_exact(exact->outputs.o, p.text->o, kBuildTolerance);
        if (j.wrong.empty() && !exact->outputs.lse.values.empty() && !p.text->lse.values.empty()) {
            ir::Array lse = p.text->lse;
            for (double& v : lse.values) v *= lse_scale(p.c);
            j = judge_exact(exact->outputs.lse, lse, kBuildTolerance);
        }
        if (!j.wrong.empty()) exact_failed(p.c, "the float64 build: " + j.wrong);
        return j.wrong.empty();
    }

    void large(const Prepared& p) {
        const auto exact = run(p, Which::Exact);
        if (!exact || report_.error) return;
        report_.against_f64 += judge(p, exact->outputs, 1) ? 1 : 0;
    }

    const std::shared_ptr<const ir::Specification> spec_;
    const ir::Request request_;
    const CheckOptions& options_;
    std::optional<Given> given_;
    std::vector<ir::ScalarOutput> lse_; ///< of the Variant, where the text returns none
    CheckReport report_;
    CheckPlan plan_;
    std::unique_ptr<Gpu> gpu_;
    std::vector<std::optional<Delayed>> delayed_;   ///< by unit
    std::vector<std::vector<LoadedKernel>> loaded_; ///< by unit, then by Which; none: the unit can't be made
};

} // namespace

CheckReport check(const std::shared_ptr<const ir::Specification>& specification, const ir::Request& request,
                  const CheckOptions& options) {
    return Checker(specification, request, options).run();
}

CheckReport check_given(const std::shared_ptr<const ir::Specification>& specification, const ir::Request& request,
                        const CheckOptions& options, Given given) {
    return Checker(specification, request, options, std::move(given)).run();
}

} // namespace cubridge::runtime
