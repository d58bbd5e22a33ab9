// The functions of the language by name. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/builtins.h"
#include <array>

namespace cubridge::ir::cuir {
namespace {

using B = Builtin;

const std::vector<Signature>& signatures() {
    static const std::vector<Signature> table{
        {B::Cdiv, "cdiv", {"a", "b"}, 2},
        {B::Divmod, "divmod", {"a", "b"}, 2},
        {B::Clamp, "clamp", {"x", "low", "high"}, 3},
        {B::Rows, "rows", {"first", "count"}, 2},
        {B::Cols, "cols", {"first", "count"}, 2},
        {B::Full, "full", {"count", "value"}, 2},
        {B::Complete, "complete", {"x"}, 1},
        {B::Real, "f32", {"x"}, 1},
        {B::Integer, "i32", {"x"}, 1},
        {B::Vote, "any", {"condition"}, 1},
        {B::TanhSmall, "tanh_small", {"x"}, 1},
        {B::LogisticSmall, "logistic_small", {"x"}, 1},
        {B::Length, "length", {"ranges"}, 1},
        {B::Pick, "pick", {"ranges", "k"}, 2},
        {B::Classify, "classify", {}, 0, true},
        {B::Range, "range", {"a", "b"}, 1},
        {B::Enumerate, "enumerate", {"items"}, 1},
        {B::Bind, "bind", {"order"}, 0, true},
        {B::Draw, "draw", {"order"}, 0, true},
        {B::Walk, "walk", {"ranges"}, 1},
        {B::Each, "each", {}, 0, true},
        {B::Alloc, "alloc", {"space", "extents", "type"}, 3},
        {B::Barrier, "barrier", {"arrivals", "n"}, 1},
        {B::NamedBarrier, "named_barrier", {"arrivals", "n"}, 1},
        {B::Channel, "channel", {"entries", "takers"}, 2},
        {B::Role, "role", {"name", "warps", "warpgroups", "registers"}, 1},
        {B::Wait, "wait", {"x", "phase"}, 1},
        {B::Arrive, "arrive", {"barrier"}, 1},
        {B::Sync, "sync", {"barrier"}, 1},
        {B::Publish, "publish", {"channel", "value"}, 2},
        {B::Take, "take", {"channel"}, 1},
        {B::CopyAsync, "copy_async", {"source", "target", "signal"}, 2},
        {B::GemmAsync, "gemm_async", {"a", "b", "out", "add"}, 2},
        {B::Copy, "copy", {"a", "b"}, 2},
        {B::Gemm, "gemm", {"a", "b", "out", "add"}, 2},
        {B::Fence, "fence", {"cell"}, 1},
    };
    return table;
}

} // namespace

const Signature* find_builtin(std::string_view name) {
    for (const auto& s : signatures())
        if (name == s.name) return &s;
    return nullptr;
}

const char* name_of(Builtin builtin) {
    for (const auto& s : signatures())
        if (s.builtin == builtin) return s.name;
    return "";
}

bool synchronises(Builtin b) {
    return b == B::Wait || b == B::Arrive || b == B::Sync || b == B::Publish || b == B::Take || b == B::CopyAsync ||
           b == B::GemmAsync || b == B::Fence;
}

const OpInfo* find_operator(std::string_view name) {
    if (name == "maximum") return &info(Op::Max);
    if (name == "minimum") return &info(Op::Min);
    if (name == "tanh_approx") return &info(Op::Tanh);
    for (const auto& op : all_ops()) // the rest of the table has Python spellings: + & < not
        if (name == op.name && *op.torch != 0 &&
            (op.arity == 1 || op.op == Op::Where || op.op == Op::Atan2 || op.op == Op::Pow) && op.op != Op::Neg &&
            op.op != Op::Not)
            return &op;
    return nullptr;
}

} // namespace cubridge::ir::cuir
