// The generic kernel of a Specification: what the Variant knows beyond the Scalar is handed to the printer.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/generic.h"
#include "ir/generic/generic.h"
#include "ir/spec/variant.h"

namespace cubridge::ir {

Result<GenericKernel> generic_kernel(const Specification& specification, const Request& request, bool f64) {
    try {
        generic::Options options;
        // float32 outputs leave no rounding for the kernel to hide behind: sums in float32 exceed twice the error of a
        // careful float32 baseline (measured: up to 5 times), so such a request is computed in double.
        options.f64 = f64 || request.o_dtype == DType::F32;
        const Variant* v = specification.variant();
        const bool wants_zero = request.empty_rows == Request::EmptyRows::Zero;
        const bool wants_lse = request.lse != Request::Lse::None && specification.outputs() < 2;
        if (v && wants_zero) options.row_is_empty = v->row_is_empty;
        if (wants_zero && !options.row_is_empty)
            return Error{"unsupported",
                         "empty rows can be set to zero only where the text is recognised as attention",
                         {},
                         "ask for rows as written; " + specification.no_variant_reason()};
        if (v && wants_lse) options.lse = v->row_lse;
        if (wants_lse && !options.lse)
            return Error{"unsupported",
                         "the text returns no LSE and has no softmax to take one from",
                         {},
                         "return (output, lse) in the text"};
        auto k = generic::print(specification.scalar(), request, options);
        if (!k) return k.error();
        return GenericKernel{std::move(k->cuda), std::move(k->plan)};
    } catch (const Failure& f) {
        return f.error;
    } catch (const std::exception& e) {
        return Error{"internal", std::string("printing the generic kernel failed: ") + e.what(), {}, ""};
    }
}

} // namespace cubridge::ir
