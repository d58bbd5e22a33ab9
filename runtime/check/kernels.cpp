// Compiling what a plan needs. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/kernels.h"
#include "cubridge/ir/generic.h"
#include "ir/lower/delays.h"
#include "runtime/check/pool.h"

namespace cubridge::runtime {

namespace {

ir::Result<Built> compiled(const char* what, ir::Result<ir::GenericKernel> printed, const std::string& arch,
                           const CheckOptions& options) {
    if (!printed) return printed.error();
    CompileJob job;
    job.source = std::move(printed->cuda);
    job.arch = arch;
    auto done = options.compiler->compile(job);
    if (!done)
        return ir::Error{done.fault().kind, std::string(what) + ": " + done.fault().message, {}, done.fault().detail};
    return Built{std::move(done->cubin), std::move(printed->plan)};
}

void with_delays(UnitKernels& out, const Artifact& kernel, const CheckOptions& options) {
    auto cuda = ir::lower::with_delays(kernel.cuda);
    auto made =
        cuda ? compiled("the build with delays", ir::GenericKernel{std::move(*cuda), kernel.plan}, kernel.arch, options)
             : ir::Result<Built>(cuda.error());
    if (made)
        out.delayed = std::move(*made);
    else
        out.not_delayed = made.error().message;
}

void production(UnitKernels& out, const std::shared_ptr<const ir::Specification>& specification,
                const ir::Request& request, const CheckOptions& options) {
    AdaptOptions how;
    how.compiler = options.compiler;
    how.store = options.store;
    how.locks = options.locks;
    if (!options.expert.empty()) how.experts = {options.expert};
    how.workers = 1 << 10; // the threads here are the limit
    Report report = adapt(specification, request, how);
    if (!report.artifact) {
        out.error =
            report.error ? *report.error : ir::Error{"internal", "adapting gave neither a kernel nor a reason", {}, ""};
        return;
    }
    out.by_rules = report.artifact->build.made_by == "rules";
    out.expert = report.artifact->build.expert;
    for (const Stage& s : report.stages) {
        const bool by_rules = s.name == "transfer" || s.name == "execute" || s.name == "lower" || s.name == "compile";
        if (!by_rules || s.reason.empty()) continue;
        if (out.by_rules)
            out.passed_over.push_back(s.name + ": " + s.reason);
        else
            out.reason = s.name + ": " + s.reason;
    }
    if (options.delayed > 0 && out.by_rules) with_delays(out, *report.artifact, options);
    out.kernel = {std::move(report.artifact->cubin), std::move(report.artifact->plan)};
}

} // namespace

Unit in_float64(const Unit& unit) {
    Unit out = unit;
    out.request.q_dtype = out.request.kv_dtype = out.request.o_dtype = ir::DType::F64;
    return out;
}

std::vector<UnitKernels> make_kernels(const std::shared_ptr<const ir::Specification>& specification,
                                      const std::vector<Unit>& units, const std::string& arch,
                                      const CheckOptions& options) {
    std::vector<UnitKernels> out(units.size());
    std::vector<std::optional<ir::Error>> errors(units.size());
    // The kernels first: with their baselines, which only kernels by rules have, they take longest.
    parallel(2 * units.size(), options.threads, [&](std::size_t n) {
        const std::size_t u = n % units.size();
        Unit unit = n < units.size() ? units[u] : in_float64(units[u]);
        unit.request.arch = arch;
        UnitKernels& to = out[u];
        if (n >= units.size()) {
            auto exact =
                compiled("the float64 build", ir::generic_kernel(*specification, unit.request, true), arch, options);
            if (exact)
                to.exact = std::move(*exact);
            else
                errors[u] = exact.error();
            return;
        }
        production(to, specification, unit.request, options);
        if (to.error || !to.by_rules || unit.request.o_dtype == ir::DType::F32) return;
        auto baseline = compiled("the baseline", ir::baseline_kernel(*specification, unit.request), arch, options);
        if (baseline)
            to.baseline = std::move(*baseline);
        else
            to.error = baseline.error();
    });
    for (std::size_t u = 0; u < units.size(); ++u)
        if (!out[u].error) out[u].error = errors[u];
    return out;
}

} // namespace cubridge::runtime
