// Requests, kernels, launches.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/c/handles.h"

namespace cubridge::c {

static_assert(sizeof(cubridge_operand) == sizeof(ir::abi::cb_operand), "one layout on both sides of the border");
static_assert(offsetof(cubridge_operand, per_request) == offsetof(ir::abi::cb_operand, per_request));
static_assert(sizeof(cubridge_tensor) == sizeof(ir::abi::cb_tensor) &&
              sizeof(cubridge_scale) == sizeof(ir::abi::cb_scale));
static_assert(sizeof(cubridge_config) == kConfig && sizeof(cubridge_llm) == kLlm &&
                  sizeof(cubridge_source) == kSource && sizeof(cubridge_request) == kRequest &&
                  sizeof(cubridge_result) == kResult && sizeof(cubridge_progress) == kProgress &&
                  sizeof(cubridge_args) == kArgs && sizeof(cubridge_info) == kInfo,
              "a struct has grown: these stay the sizes that were published first");

Verdict query_of(const cubridge_request* request, runtime::Query& q) {
    cubridge_request copy;
    // The common case reads the caller's struct where it lies: this is the hot path.
    const cubridge_request* r = request;
    if (request == nullptr || request->struct_size != sizeof(cubridge_request)) {
        if (auto v = read(request, "request", kRequest, copy); !v) return v;
        r = &copy;
    }
    if (r->spec == nullptr) return misuse("request.spec is NULL");
    if (r->mode < CUBRIDGE_BEST_NOW || r->mode > CUBRIDGE_CACHED) return misuse("request.mode is unknown");
    if (r->head_dim == 0) return misuse("request.head_dim is not set");
    q.text = text_of(r->spec);
    std::size_t k = 0;
    for (; k < q.arch.size() && r->arch[k] != 0; ++k) q.arch[k] = r->arch[k];
    for (; k < q.arch.size(); ++k) q.arch[k] = 0;
    q.device = r->device;
    q.q_dtype = r->q_dtype == CUBRIDGE_SAME ? CUBRIDGE_BF16 : r->q_dtype;
    q.kv_dtype = r->kv_dtype == CUBRIDGE_SAME ? q.q_dtype : r->kv_dtype;
    q.o_dtype = r->o_dtype == CUBRIDGE_SAME ? q.q_dtype : r->o_dtype;
    q.head_dim = r->head_dim;
    q.head_dim_v = r->head_dim_v == 0 ? r->head_dim : r->head_dim_v;
    q.group = r->group == 0 ? 1 : r->group;
    q.heads = r->heads;
    q.layout = r->layout;
    q.page_size = r->page_size;
    q.phase = r->phase;
    q.rows = r->rows;
    q.empty_rows = r->empty_rows;
    q.lse = r->lse;
    q.alignment = r->alignment == 0 ? 16 : r->alignment;
    q.flags = r->flags;
    return {};
}

namespace {

template <class To, class From> To same(const From& from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

} // namespace

Verdict arguments_of(const cubridge_args* args, runtime::LaunchArgs& out) {
    cubridge_args a;
    if (auto v = read(args, "args", kArgs, a); !v) return v;
    if (a.operands == nullptr && a.operand_count != 0) return misuse("args.operands is NULL");
    if (a.operand_count > ir::abi::kMaxOperands) return misuse("args.operand_count is more than any kernel has");
    using ir::abi::cb_scale;
    using ir::abi::cb_tensor;
    out.q = same<cb_tensor>(a.q), out.k = same<cb_tensor>(a.k), out.v = same<cb_tensor>(a.v);
    out.o = same<cb_tensor>(a.o), out.lse = same<cb_tensor>(a.lse);
    out.k_scale = same<cb_scale>(a.k_scale), out.v_scale = same<cb_scale>(a.v_scale);
    out.operands = {reinterpret_cast<const ir::abi::cb_operand*>(a.operands), a.operand_count};
    out.requests = a.requests, out.heads_kv = a.heads_kv, out.head_begin = a.head_begin;
    out.total_q = a.total_q, out.max_q = a.max_q, out.max_kv = a.max_kv;
    out.cu_seqlens_q = a.cu_seqlens_q, out.cu_seqlens_k = a.cu_seqlens_k, out.seq_lens_k = a.seq_lens_k;
    out.first_k = a.first_k, out.page_table = a.page_table, out.page_begin = a.page_begin;
    out.page_stride = a.page_stride;
    out.workspace = a.workspace, out.workspace_size = a.workspace_size;
    out.flags = a.flags;
    return {};
}

} // namespace cubridge::c

using namespace cubridge::c;
using cubridge::runtime::Want;

cubridge_status cubridge_get_kernel(cubridge_context* context, const cubridge_request* request,
                                    cubridge_result* result) {
    return guarded([&]() -> Verdict {
        if (auto v = check(context); !v) return v;
        cubridge_result out{};
        if (auto v = write(out, "result", kResult, result); !v) return v;
        cubridge::runtime::Query query;
        if (auto v = query_of(request, query); !v) return v;
        cubridge::runtime::Answer answer;
        if (auto v = context->engine->get(query, static_cast<Want>(request->mode), answer); !v) return v;
        out.outcome = static_cast<int32_t>(answer.kind);
        out.reasons = answer.reasons;
        out.kernel = reinterpret_cast<const cubridge_kernel*>(answer.kernel);
        out.job = answer.job;
        if (answer.kind != cubridge::runtime::Answer::Kind::Ready) set_message(answer.message);
        return write(out, "result", kResult, result);
    });
}

cubridge_status cubridge_workspace(cubridge_context* context, const cubridge_request* request,
                                   const cubridge_args* args, size_t* bytes) {
    return guarded([&]() -> Verdict {
        if (auto v = check(context); !v) return v;
        if (bytes == nullptr) return misuse("bytes is NULL");
        cubridge::runtime::Query query;
        if (auto v = query_of(request, query); !v) return v;
        cubridge::runtime::LaunchArgs arguments;
        if (auto v = arguments_of(args, arguments); !v) return v;
        return context->engine->workspace(query, arguments, *bytes);
    });
}

cubridge_status cubridge_launch(const cubridge_kernel* kernel, const cubridge_args* args, cubridge_stream stream) {
    return guarded([&]() -> Verdict {
        if (kernel == nullptr) return misuse("kernel is NULL");
        cubridge::runtime::LaunchArgs arguments;
        if (auto v = arguments_of(args, arguments); !v) return v;
        return kernel_of(kernel)->launch(arguments, stream);
    });
}

cubridge_status cubridge_describe(const cubridge_kernel* kernel, cubridge_info* info) {
    return guarded([&]() -> Verdict {
        if (kernel == nullptr) return misuse("kernel is NULL");
        const auto& k = *kernel_of(kernel);
        cubridge_info out{};
        out.id = k.id().c_str();
        out.variant = k.variant().c_str();
        out.report = k.report().c_str();
        out.made = k.made();
        out.from = k.from();
        out.verified = k.verified();
        out.error_ratio = k.error_ratio();
        return write(out, "info", kInfo, info);
    });
}
