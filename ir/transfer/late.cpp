// Values of an item whose output is written when the role has taken the next one. SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/work.h"
#include <algorithm>

namespace cubridge::ir::transfer {

using cuir::Statement;

std::string Local::kept(const std::string& name) {
    if (const auto it = work_.kept.find(name); it != work_.kept.end()) return it->second;
    auto it = kept_.find(name);
    if (it == kept_.end()) it = kept_.emplace(name, work_.launch.fresh("last_" + name)).first;
    return it->second;
}

std::string Local::late_rows() {
    if (rows_.empty()) rows_ = work_.launch.fresh("i");
    return rows_;
}

std::vector<std::string> Local::before_next(std::string& value) {
    std::vector<std::string> before, there;
    std::set<std::string> of_output = columns;
    of_output.insert(work_.at.acc);
    for (const auto& s : made) { // rows that the accumulator decides, and columns, which are many, stand there
        const Statement made_here = line(s);
        const auto names = names_in(made_here.node);
        const bool stays =
            std::any_of(names.begin(), names.end(), [&](const auto& n) { return of_output.count(n) != 0; });
        if (stays)
            for (const auto& n : results_of(made_here)) of_output.insert(n);
        (stays ? there : before).push_back(s);
    }
    // lengths are the next item's by then, and so is what a request has for itself
    const auto with_own_lengths = [&](std::string text) {
        std::vector<std::string> own = {"Sq", "Sk"};
        const auto& operands = work_.launch.target.operands;
        for (std::size_t n = 0; n < operands.size(); ++n) {
            const std::string x = "x" + std::to_string(n);
            if (operands[n].rank == 0)
                own.push_back(x);
            else if (reads(line(text).node, x))
                refuse("an operand is read for each element of the output, when the next item's request is known");
        }
        for (const auto& one : own)
            if (const Statement s = line(text); reads(s.node, one))
                text = transfer::text(transfer::replace(s.node, one, name(kept(one))));
        return text;
    };
    for (auto& s : there) s = with_own_lengths(s);
    value = with_own_lengths(value);
    const auto used = [&](const std::string& n) {
        const auto in = [&](const std::string& text) { return reads(line(text).node, n); };
        return in(value) || std::any_of(before.begin(), before.end(), in) ||
               std::any_of(there.begin(), there.end(), in);
    };
    // positions are not values to keep: they are named where they are used
    const auto reads_rows = [&](const std::string& text) { return !rows_.empty() && reads(line(text).node, rows_); };
    const std::string rows = rows_ + " = rows(" + kept(work_.at.first_row) + ", " + work_.at.row_count + ")";
    if (reads_rows(value) || std::any_of(there.begin(), there.end(), reads_rows)) there.insert(there.begin(), rows);
    if (std::any_of(before.begin(), before.end(), reads_rows)) before.insert(before.begin(), rows);
    std::vector<std::string> all;
    for (const auto& [next, last] : kept_) {
        if (!used(last)) continue;
        all.push_back(last + " = " + next);
        work_.kept.emplace(next, last);
    }
    all.insert(all.end(), before.begin(), before.end());
    const auto takes = [&](const Statement& s) {
        const auto c = call_of(s);
        return c && base(c->items[0]) == "take" && assigns(s, work_.at.b);
    };
    const Spot loop = first(work_.role(), [](const Statement& s) { return s.kind == Statement::Kind::While; });
    if (!loop) fail("no_rule", "the expert's program has no place for rules: a loop that takes items");
    work_.insert_before(loop->body, takes, all);
    return there;
}

} // namespace cubridge::ir::transfer
