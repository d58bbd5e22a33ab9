// SPDX-License-Identifier: Apache-2.0
#include "runtime/adapter/references.h"

namespace cubridge::runtime {

References::References(const ir::Specification& specification, const ir::Request& request,
                       const std::shared_ptr<Compiler>& compiler) {
    ir::Request in_float64 = request;
    in_float64.q_dtype = in_float64.kv_dtype = in_float64.o_dtype = ir::DType::F64;
    begin(exact_, ir::generic_kernel(specification, in_float64, true), request.arch, compiler);
    if (request.o_dtype == ir::DType::F32 || !specification.has_variant()) return;
    begin(baseline_.emplace(), ir::baseline_kernel(specification, request), request.arch, compiler);
}

void References::begin(Part& part, ir::Result<ir::GenericKernel> printed, const std::string& arch,
                       const std::shared_ptr<Compiler>& compiler) {
    if (!printed) {
        part.fault = {printed.error().kind, printed.error().message, printed.error().hint};
        return;
    }
    CompileJob job;
    job.source = std::move(printed->cuda);
    job.name = "reference.cu";
    job.arch = arch;
    part.built.plan = std::move(printed->plan);
    part.compiling = std::make_unique<Compiling>(compiler, std::move(job));
}

Outcome<void> References::end(Part& part, const char* what) {
    if (part.compiling) {
        auto done = part.compiling->get();
        part.compiling.reset();
        if (done)
            part.built.cubin = std::move(done->cubin);
        else
            part.fault = done.fault();
    }
    if (part.fault.kind.empty()) return {};
    Fault fault = part.fault;
    fault.message = std::string(what) + ": " + fault.message;
    return fault;
}

Outcome<void> References::ready() {
    if (auto done = end(exact_, "the float64 build"); !done) return done;
    if (!baseline_) return {};
    if (auto done = end(*baseline_, "the baseline"); !done) return done;
    if (!baseline_built_) baseline_built_ = baseline_->built;
    return {};
}

} // namespace cubridge::runtime
