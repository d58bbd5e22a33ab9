// Reading back: a file is what its expert and a target say it is. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/lower.h"
#include "ir/lower/lowering.h"

namespace cubridge::ir::lower {

std::vector<std::string> read_back(std::string_view expert, std::string_view cuda, const cuir::Program& target) {
    try {
        const auto program = lift(cuda);
        if (!program) return {program.error().message};
        if (!cuir::equal(*program, target)) return {"the margin is not the target program"};
        const auto from = Expert::read(expert);
        if (!from) return {"the expert: " + from.error().message};
        const auto margin = take_apart(cuda);
        if (!margin) return {margin.error().message};
        Lowered ignored;
        const auto again = cuir::read(cuir::print(target));
        if (!again) return {again.error().message};
        const Margin made = lower_margin(*from, *again, true, ignored);
        std::vector<std::string> out;
        if (made.preamble != margin->preamble) out.push_back("the preamble is not the expert's");
        if (made.segments.size() != margin->segments.size()) return {"the margin has other lines than the target"};
        for (std::size_t k = 0; k < made.segments.size(); ++k) {
            const auto &want = made.segments[k], &have = margin->segments[k];
            if (!have.edited && (want.edited || want.cuda != have.cuda))
                out.push_back("line " + std::to_string(have.line) + ", `" +
                              have.margin.substr(have.margin.find_first_not_of(' ')) +
                              "`: its region is neither the expert's nor what a rule prints, and not marked");
        }
        for (auto& c : census(cuda)) out.push_back(std::move(c));
        return out;
    } catch (const Failure& f) {
        return {f.error.message};
    }
}

} // namespace cubridge::ir::lower
