// The Hopper expert, and its program. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/unit/ir/lower/expert.h"

namespace cubridge::ir::lower::test {

inline const std::string& hopper_text() {
    static const std::string text = [] {
        for (const auto& e : experts::all())
            if (e.name == "prefill_sm90") return std::string(e.text);
        throw std::runtime_error("no expert prefill_sm90");
    }();
    return text;
}

inline std::string hopper_program() {
    return program_text(hopper_text());
}

/// What lowering a program's text on the Hopper expert gives.
inline Result<Lowered> on_hopper(const std::string& program) {
    return lowered(program, hopper_text());
}

} // namespace cubridge::ir::lower::test
