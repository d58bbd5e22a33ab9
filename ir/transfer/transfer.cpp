// SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/transfer.h"
#include "ir/transfer/rules.h"
#include <algorithm>

namespace cubridge::ir::transfer {
namespace {

bool is_read(const std::vector<cuir::Statement>& block, const std::string& name) {
    return std::any_of(block.begin(), block.end(), [&](const auto& s) {
        return (s.node && s.kind != cuir::Statement::Kind::Def && reads(s.node, name)) || is_read(s.body, name);
    });
}

/// Constants that only what was erased read.
void drop_unread_constants(cuir::Kernel& kernel, const cuir::Kernel& expert) {
    auto def = std::make_shared<syntax::Node>(*kernel.head.back().node);
    auto& params = def->params;
    const auto unread = [&](const syntax::Param& p) {
        return !p.name.empty() && is_read(expert.body, p.name) && !is_read(kernel.body, p.name) &&
               std::none_of(kernel.head.begin(), kernel.head.end(), [&](const auto& s) {
                   return s.kind == cuir::Statement::Kind::Param && reads(s.node, p.name);
               });
    };
    params.erase(std::remove_if(params.begin(), params.end(), unread), params.end());
    kernel.head.back().node = def;
}

/// A scale that the expert takes as an argument and the program no longer reads.
void drop_unread_scalars(cuir::Kernel& kernel) {
    auto& head = kernel.head;
    head.erase(std::remove_if(head.begin(), head.end(),
                              [&](const auto& s) {
                                  return s.kind == cuir::Statement::Kind::Param && s.node->kind == syntax::Kind::Name &&
                                         !is_read(kernel.body, s.name);
                              }),
               head.end());
}

Transferred run(const cuir::Program& expert, const Target& target) {
    const cuir::Kernel* main = expert.main();
    if (!main) refuse("the expert's program has no kernel with roles");
    Launch l(target);
    check_request(l);
    const bool several = l.v.parts.size() > 1;
    const auto reads = [&](int number) {
        const auto is = [&](Expr e) { return e->kind == Kind::Load && e->number == number; };
        return contains(l.v.out, is) || (l.stores_lse && l.v.lse && contains(l.v.lse, is));
    };
    std::vector<cuir::Kernel> kernels;
    std::vector<std::string> outputs, lses;
    for (std::size_t n = 0; n < l.v.parts.size(); ++n) {
        Work w(l, n, *main);
        if (several) {
            Uses none;
            const NodePtr heads = Writer(l.pool, l.v, none).write(l.v.heads);
            const auto table = [&](const char* stem, const Nodes& extents) {
                return l.workspace[static_cast<std::size_t>(l.allocate(stem + std::to_string(n), extents, DType::F32))];
            };
            outputs.push_back(w.out = table("O", {name("B"), heads, name("Sq"), name("Dv")}));
            w.lse = reads(kLse + static_cast<int>(n)) ? table("L", {name("B"), heads, name("Sq")}) : "";
            lses.push_back(w.lse);
            w.elem_out = false;
            w.kernel.head[1].name += "_" + std::to_string(n);
        }
        residue(w);
        shape(w);
        inputs(w);
        strided_keys(w);
        mask_statement(w);
        key_ranges(w);
        order(w);
        score(w);
        weights(w);
        output(w);
        complete_head(l, w.kernel, w.uses);
        drop_unread_scalars(w.kernel);
        drop_unread_constants(w.kernel, *main);
        kernels.push_back(std::move(w.kernel));
    }
    for (auto& k : kernels) l.program.kernels.push_back(std::move(k));
    if (several) combine(l, outputs, lses);
    return {std::move(l.program), std::move(l.rules)};
}

} // namespace

Result<Transferred> transfer(const cuir::Program& expert, const Target& target) {
    try {
        return run(expert, target);
    } catch (const Failure& f) {
        Error e = f.error;
        if (e.kind == "limit") e.kind = "no_rule", e.message = "too long for rules: " + e.message;
        return e;
    }
}

} // namespace cubridge::ir::transfer
