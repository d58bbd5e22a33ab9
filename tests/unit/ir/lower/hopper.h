// The Hopper expert, and its program. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/unit/ir/lower/expert.h"
#include <map>

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

// --- orchestrations that no variant could express

inline std::string without(std::string text, const std::vector<std::string>& lines) {
    for (const auto& line : lines) {
        const auto at = text.find(line), begin = text.rfind('\n', at) + 1;
        if (at == text.npos) throw std::runtime_error("no such line: " + line);
        text.erase(begin, text.find('\n', at) + 1 - begin);
    }
    return text;
}

/// V has landed before the scores are asked for: nothing is between the two products.
inline std::string values_first_on_hopper() {
    const std::string line = "            wait(v_full[t], v)\n";
    const std::string sync = "            sync(turn[g])\n";
    return edited(edited(hopper_program(), line, ""), sync, line + sync);
}

/// Every tile has its maximum searched, so that none is needed again: K is given back as soon as it was read.
inline std::string keys_released_early() {
    std::string p = hopper_program();
    const auto redo = p.find("            if not exact and any(part > LIMIT):"),
               after = p.find("            arrive(k_free[s])");
    p.erase(redo, p.find('\n', after) + 1 - redo);
    p = edited(
        p, "            x = scores(S, b, h, i0, n, masked)\n            exact = fresh or not ready\n",
        "            arrive(k_free[s])\n            x = scores(S, b, h, i0, n, masked)\n            exact = True\n");
    return p;
}

inline std::string no_lse_on_hopper() {
    return without(hopper_program(), {"Lse: f32", "lse = where", "Lse[b, h"});
}

inline std::string no_turns() {
    return without(hopper_program(), {"turn = named_barrier", "if g == WG - 1:", "arrive(turn[0])", "sync(turn[g])",
                                      "arrive(turn[(g + 1)"});
}

/// Nobody but the math role stores: no staging, no barrier for it, one role less.
inline std::string output_straight_on_hopper() {
    std::string p = hopper_program();
    const auto store = p.find("    with role(\"store\"");
    p.erase(store, p.find("    with role(\"math\"") - store);
    p = without(p, {"o_full = barrier"});
    p = edited(p, "q_free = barrier(1, n=QB), barrier(1, n=QB)", "q_free = barrier(1, n=QB), barrier(WG, n=QB)");
    p = edited(p, "takers=WG + 2", "takers=WG + 1");
    p = edited(p, "            old = q\n", "            old, ob, oh, oi = q, b, h, i0\n");
    p = edited(p,
               "                Qs[old][g][:] = acc\n                fence(Qs[old][g])\n                "
               "arrive(o_full[old * WG + g])\n",
               "                Out[ob, oh, oi:oi + R] = acc\n                arrive(q_free[old])\n");
    return edited(
        p, "            Qs[q][g][:] = acc\n            fence(Qs[q][g])\n            arrive(o_full[q * WG + g])\n",
        "            Out[ob, oh, oi:oi + R] = acc\n            arrive(q_free[q])\n");
}

inline std::map<std::string, std::string> hopper_orchestrations() {
    const std::string base = hopper_program();
    const auto registers = [&](const std::string& few, const std::string& many) {
        std::string p = base;
        for (int k = 0; k < 3; ++k) p = edited(p, "registers=40", few);
        return edited(p, "registers=232", many);
    };
    const std::string three =
        edited(edited(registers("registers=32", "registers=160"), ", D=128", ", D=64"), "Dv=128", "Dv=64");
    return {{"three stages", edited(edited(base, "ST=2", "ST=3"), "BN=128", "BN=64")},
            {"tile width", edited(base, "BN=128", "BN=96")},
            {"three warpgroups", edited(edited(three, "BM=128", "BM=192"), "WG=2", "WG=3")},
            {"order of items", edited(base, "\"by_head\"", "\"heaviest_first\"")},
            {"registers", registers("registers=24", "registers=240")},
            {"depth of the channel", edited(base, "channel(4", "channel(2")},
            {"values waited for first", values_first_on_hopper()},
            {"keys released early", keys_released_early()},
            {"no turns", no_turns()},
            {"no LSE", no_lse_on_hopper()},
            {"output straight", output_straight_on_hopper()}};
}

} // namespace cubridge::ir::lower::test
