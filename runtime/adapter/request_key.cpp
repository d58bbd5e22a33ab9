// The request key, as docs/request-key.md lists its fields.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/runtime/artifact.h"

namespace cubridge::runtime {

cache::Digest request_key(const ir::Specification& specification, const ir::Request& request) {
    const auto& inputs = specification.inputs();
    const auto order = specification.order();
    const bool paged = request.layout == ir::Request::Layout::Paged;
    cache::Digester key("cubridge-request-key");
    key.number(kKeyFormat).number(ir::abi::kKernelAbi).field(specification.subject());
    key.number(static_cast<std::int64_t>(order.size()));
    for (const int number : order) {
        const auto& input = inputs[static_cast<std::size_t>(number)];
        key.field(ir::short_name(input.dtype)).number(input.rank);
    }
    key.field(ir::short_name(request.q_dtype)).field(ir::short_name(request.kv_dtype));
    key.field(ir::short_name(request.o_dtype));
    key.number(request.head_dim).number(request.head_dim_v == 0 ? request.head_dim : request.head_dim_v);
    key.number(request.group == 0 ? 1 : request.group);
    key.number(specification.heads() == 0 ? 0 : request.heads);
    key.number(static_cast<std::int64_t>(request.layout)).number(paged ? request.page_size : 0);
    key.number(static_cast<std::int64_t>(request.phase));
    key.number(static_cast<std::int64_t>(request.rows)).number(static_cast<std::int64_t>(request.empty_rows));
    key.number(static_cast<std::int64_t>(request.lse));
    key.number(request.alignment == 0 ? 16 : request.alignment);
    key.number(request.flags).field(request.arch);
    return key.finish();
}

} // namespace cubridge::runtime
