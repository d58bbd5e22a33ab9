// Compiling what a plan needs. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/kernels.h"
#include "cubridge/ir/generic.h"
#include "runtime/check/pool.h"

namespace cubridge::runtime {

namespace {

void production(UnitKernels& out, const std::shared_ptr<const ir::Specification>& specification,
                const ir::Request& request, const CheckOptions& options) {
    AdaptOptions how;
    how.compiler = options.compiler;
    how.store = options.store;
    how.locks = options.locks;
    how.workers = 1 << 10; // the threads here are the limit
    Report report = adapt(specification, request, how);
    if (!report.artifact) {
        out.error =
            report.error ? *report.error : ir::Error{"internal", "adapting gave neither a kernel nor a reason", {}, ""};
        return;
    }
    out.by_rules = report.artifact->build.made_by == "rules";
    for (const Stage& s : report.stages)
        if (!out.by_rules && !s.reason.empty() && (s.name == "transfer" || s.name == "execute" || s.name == "lower"))
            out.reason = s.name + ": " + s.reason;
    out.cubin = std::move(report.artifact->cubin);
    out.plan = std::move(report.artifact->plan);
}

void exact(UnitKernels& out, const ir::Specification& specification, const ir::Request& request,
           const CheckOptions& options) {
    auto printed = ir::generic_kernel(specification, request, true);
    if (!printed) {
        out.error = printed.error();
        return;
    }
    CompileJob job;
    job.source = std::move(printed->cuda);
    job.arch = request.arch;
    auto compiled = options.compiler->compile(job);
    if (!compiled) {
        out.error = ir::Error{
            compiled.fault().kind, "the float64 build: " + compiled.fault().message, {}, compiled.fault().detail};
        return;
    }
    out.cubin64 = std::move(compiled->cubin);
    out.plan64 = std::move(printed->plan);
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
    std::vector<UnitKernels> exact_builds(units.size());
    parallel(2 * units.size(), options.threads, [&](std::size_t n) {
        Unit unit = n % 2 == 0 ? units[n / 2] : in_float64(units[n / 2]);
        unit.request.arch = arch;
        if (n % 2 == 0)
            production(out[n / 2], specification, unit.request, options);
        else
            exact(exact_builds[n / 2], *specification, unit.request, options);
    });
    for (std::size_t n = 0; n < units.size(); ++n) {
        out[n].cubin64 = std::move(exact_builds[n].cubin64);
        out[n].plan64 = std::move(exact_builds[n].plan64);
        if (!out[n].error) out[n].error = exact_builds[n].error;
    }
    return out;
}

} // namespace cubridge::runtime
