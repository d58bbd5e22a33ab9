// The generic kernel of a Specification: what the Variant knows beyond the Scalar is handed to the printer.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/generic.h"
#include "ir/generic/generic.h"
#include "ir/spec/variant.h"

namespace cubridge::ir {

namespace {

Error no_variant(const char* message, const char* hint, const Specification& specification) {
    return {"unsupported", message, {}, hint + specification.no_variant_reason()};
}

// `row_is_empty` and `lse`: null where the text has no Variant that knows them.
Result<GenericKernel> printed(const Specification& specification, const Scalar& scalar, const Request& request,
                              bool f64, Expr row_is_empty, Expr lse) {
    generic::Options options;
    options.f64 = f64;
    if (request.empty_rows == Request::EmptyRows::Zero) options.row_is_empty = row_is_empty;
    if (request.empty_rows == Request::EmptyRows::Zero && !row_is_empty)
        return no_variant("empty rows can be set to zero only where the text is recognised as attention",
                          "ask for rows as written; ", specification);
    const bool wants_lse = request.lse != Request::Lse::None && specification.outputs() < 2;
    if (wants_lse) options.lse = lse;
    if (wants_lse && !lse)
        return Error{"unsupported",
                     "the text returns no LSE and has no softmax to take one from",
                     {},
                     "return (output, lse) in the text"};
    auto k = generic::print(scalar, request, options);
    if (!k) return k.error();
    return GenericKernel{std::move(k->cuda), std::move(k->plan)};
}

template <class F> Result<GenericKernel> guarded(F f) {
    try {
        return f();
    } catch (const Failure& failure) {
        return failure.error;
    } catch (const std::exception& e) {
        return Error{"internal", std::string("printing the generic kernel failed: ") + e.what(), {}, ""};
    }
}

} // namespace

Result<GenericKernel> generic_kernel(const Specification& specification, const Request& request, bool f64) {
    return guarded([&] {
        const Variant* v = specification.variant();
        // float32 outputs leave no rounding for the kernel to hide behind: sums in float32 exceed twice the error of a
        // careful float32 baseline (measured: up to 5 times), so such a request is computed in double.
        return printed(specification, specification.scalar(), request, f64 || request.o_dtype == DType::F32,
                       v ? v->row_is_empty : nullptr, v ? v->row_lse : nullptr);
    });
}

Result<GenericKernel> baseline_kernel(const Specification& specification, const Request& request) {
    return guarded([&]() -> Result<GenericKernel> {
        const Variant* v = specification.variant();
        if (!v) return no_variant("the text is not recognised as attention", "", specification);
        if (request.kv_dtype != DType::F16 && request.kv_dtype != DType::BF16)
            return Error{"unsupported", "weights are rounded to float16 or bfloat16 only", {}, ""};
        const Baseline b =
            baseline(specification.scalar(), *v, request.kv_dtype == DType::F16 ? Op::RoundF16 : Op::RoundBF16);
        Request wide = request;
        wide.q_dtype = wide.kv_dtype = wide.o_dtype = DType::F64;
        return printed(specification, b.scalar, wide, true, b.row_is_empty, b.row_lse);
    });
}

} // namespace cubridge::ir
