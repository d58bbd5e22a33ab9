// Who reads storage, and at which barriers readers say that they have. For messages: where a wait is missing, it is the
// one for these. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/machine.h"
#include <algorithm>

namespace cubridge::ir::cuir {
namespace {

using Do = Step::Do;

bool names(const Expr* e, int slot) {
    if (!e) return false;
    if (e->form == Expr::Form::Common && e->slot == slot) return true;
    return std::any_of(e->args.begin(), e->args.end(), [&](const Expr* a) { return names(a, slot); });
}

/// Whether a statement reads the storage that a name of the CTA's frame stands for.
bool reads(const Step& s, int slot) {
    if (s.what == Do::Store) return names(s.args[1], slot);
    if (s.what != Do::Effect) return std::any_of(s.args.begin(), s.args.end(), [&](auto* a) { return names(a, slot); });
    if (s.builtin == Builtin::Copy || s.builtin == Builtin::CopyAsync) return names(s.args[0], slot);
    if (s.builtin == Builtin::Gemm || s.builtin == Builtin::GemmAsync)
        return names(s.args[0], slot) || names(s.args[1], slot);
    return false;
}

/// Common slots of the barriers that a block arrives at once it has read the storage: the first one after each read.
void arrivals(const Block& block, int slot, bool& has_read, std::vector<int>& out) {
    for (const auto& s : block) {
        has_read = has_read || reads(s, slot);
        if (s.what == Do::Effect && s.builtin == Builtin::Arrive && has_read) {
            const Expr* b = s.args[0];
            while (b && b->form == Expr::Form::Index) b = b->args[0];
            if (b && b->form == Expr::Form::Common) {
                if (std::find(out.begin(), out.end(), b->slot) == out.end()) out.push_back(b->slot);
                has_read = false;
            }
        }
        arrivals(s.body, slot, has_read, out);
        arrivals(s.other, slot, has_read, out);
    }
}

} // namespace

std::vector<std::string> Cta::readers_barriers(const Buffer& buffer) const {
    const auto number = &buffer - buffers_.data();
    std::vector<int> at;
    for (std::size_t slot = 0; slot < common_.size(); ++slot)
        if (common_[slot].tag == Value::Tag::Place && common_[slot].index == number)
            for (const auto& role : kernel_.roles) {
                bool has_read = false;
                if (&role != self().code) arrivals(role.body, static_cast<int>(slot), has_read, at);
            }
    std::vector<std::string> out;
    for (const int slot : at)
        if (common_[static_cast<std::size_t>(slot)].tag == Value::Tag::Barrier)
            out.push_back(kernel_.names[static_cast<std::size_t>(slot)]);
    return out;
}

} // namespace cubridge::ir::cuir
