// Sizes that nobody gave: the defaults, or the nearest that the specification allows.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/generic.h"
#include "cubridge/runtime/adapter.h"
#include <algorithm>
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

bool holds(const ir::launch::Condition& c, const ir::launch::Sizes& sizes) {
    const auto left = c.left.evaluate(sizes), right = c.right.evaluate(sizes);
    if (!left || !right) return true; // it asks for sizes that only a launch knows
    switch (c.kind) {
    case ir::launch::Condition::Kind::Equal: return *left == *right;
    case ir::launch::Condition::Kind::AtLeast: return *left >= *right;
    case ir::launch::Condition::Kind::Divides: return *right == 0 || *left % *right == 0;
    }
    return true;
}

/// Does the plan allow these heads? Lengths are as any launch may have them: only conditions on heads can fail.
bool allows(const ir::launch::Plan& plan, int heads_q, int heads_kv) {
    using ir::launch::Code;
    using ir::launch::Size;
    ir::launch::Sizes sizes;
    sizes[Size::Requests] = 2;
    sizes[Size::HeadsQ] = heads_q;
    sizes[Size::HeadsKv] = heads_kv;
    const auto about_heads = [](const Code& code) {
        bool heads = false, other = false;
        for (const auto& step : code.steps) {
            const auto size = static_cast<Size>(step.value);
            const bool named = step.what == Code::Do::PushSize && (size == Size::HeadsQ || size == Size::HeadsKv);
            heads = heads || named;
            other = other || step.what == Code::Do::PushOperand || (step.what == Code::Do::PushSize && !named);
        }
        return std::pair(heads, other);
    };
    return std::all_of(plan.conditions.begin(), plan.conditions.end(), [&](const auto& c) {
        const auto [left, left_other] = about_heads(c.left);
        const auto [right, right_other] = about_heads(c.right);
        return !(left || right) || left_other || right_other || holds(c, sizes);
    });
}

} // namespace

ir::Result<ir::Request> complete(const ir::Specification& specification, ir::Request request, int& heads_q,
                                 int& heads_kv, std::vector<std::string>& notes) {
    if (specification.heads() != 0) { // the text was followed with this number
        if (heads_q != 0 && heads_q != specification.heads())
            return ir::Error{"domain",
                             fmt::format("the text computes with the number of heads and was read for {}, not for {}",
                                         specification.heads(), heads_q),
                             {},
                             "parse it for the model's number of heads"};
        heads_q = specification.heads();
    }
    std::vector<std::pair<int, int>> heads;
    if (heads_q != 0 && heads_kv != 0)
        heads = {{heads_q, heads_kv}};
    else if (heads_kv != 0)
        heads = {{heads_kv * 4, heads_kv}, {heads_kv, heads_kv}};
    else if (const int q = heads_q != 0 ? heads_q : 32; true)
        heads = {{q, q % 4 == 0 ? q / 4 : q}, {q, q}, {q, 1}};
    std::vector<std::pair<int, int>> dims = {{request.head_dim, request.head_dim_v}};
    if (request.head_dim == 0 && request.head_dim_v == 0) dims = {{128, 128}, {576, 512}};
    if (dims[0].first == 0) dims = {{dims[0].second, dims[0].second}, {576, dims[0].second}};
    if (dims[0].second == 0) dims = {{dims[0].first, dims[0].first}, {dims[0].first, 512}};

    std::optional<ir::Error> first;
    for (const auto& [dim, dim_v] : dims) {
        for (const auto& [q, kv] : heads) {
            if (kv <= 0 || q <= 0 || q % kv != 0) continue;
            ir::Request tried = request;
            tried.head_dim = dim;
            tried.head_dim_v = dim_v;
            tried.group = q / kv;
            if (specification.heads() != 0) tried.heads = q;
            const auto kernel = ir::generic_kernel(specification, tried);
            if (!kernel) {
                if (!first) first = kernel.error();
                if (kernel.error().kind == "domain") continue;
                return kernel.error();
            }
            if (!allows(kernel->plan, q, kv)) continue;
            if (heads_q == 0 || heads_kv == 0) notes.push_back(fmt::format("heads: {} on {} KV heads", q, kv));
            if (request.head_dim == 0 || request.head_dim_v == 0)
                notes.push_back(dim == dim_v ? fmt::format("head dim: {}", dim)
                                             : fmt::format("head dims: {} of q and k, {} of v", dim, dim_v));
            heads_q = q;
            heads_kv = kv;
            return tried;
        }
    }
    if (first) return *first;
    return ir::Error{"domain",
                     fmt::format("{} query heads on {} KV heads are not what the specification allows",
                                 heads.front().first, heads.front().second),
                     {},
                     "give the numbers of heads that it is written for"};
}

} // namespace cubridge::runtime
