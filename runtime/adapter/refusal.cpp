// Refusals by trial: change one field, print again.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/adapter/refusal.h"
#include "cubridge/ir/generic.h"
#include "cubridge/runtime/why.h"

namespace cubridge::runtime {

std::uint32_t reasons_of_refusal(const ir::Specification& specification, const ir::Request& request,
                                 const ir::Error& error) {
    if (error.kind != "domain" && error.kind != "unsupported") return why::kFailed;
    const auto accepted = [&](auto change) {
        ir::Request tried = request;
        change(tried);
        return static_cast<bool>(ir::generic_kernel(specification, tried));
    };
    using Request = ir::Request;
    if (request.layout != Request::Layout::Dense &&
        accepted([](Request& r) { r.layout = Request::Layout::Dense, r.page_size = 0; }))
        return why::kLayout;
    if (request.lse != Request::Lse::None && accepted([](Request& r) { r.lse = Request::Lse::None; })) return why::kLse;
    for (const int group : {1, request.heads, 4, 8})
        if (group > 0 && group != request.group && accepted([&](Request& r) { r.group = group; })) return why::kHeads;
    if (request.heads != specification.heads() && accepted([&](Request& r) { r.heads = specification.heads(); }))
        return why::kHeads;
    if (accepted([](Request& r) { r.head_dim_v = r.head_dim; }) ||
        accepted([](Request& r) { r.head_dim = r.head_dim_v = 128; }) ||
        accepted([](Request& r) { r.head_dim = 576, r.head_dim_v = 512; }))
        return why::kHeadDim;
    return why::kVariant;
}

} // namespace cubridge::runtime
