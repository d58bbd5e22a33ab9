// Programs whose orchestration differs from the expert's in ways that no variant could express.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/unit/ir/lower/expert.h"
#include <map>

namespace cubridge::ir::lower::test {

inline std::string base_program() {
    return program_text(expert_text());
}

inline std::string keys_one_tile_ahead() {
    std::string p = edited(base_program(), "ST=1", "ST=2");
    p = edited(p, "                if k + 1 < length(tiles):\n", "");
    p = edited(p, "                    y, unused = pick(tiles, k + 1)\n", "");
    p = edited(p, "                    copy_async(K[b, h // G, y * BN:(y + 1) * BN], Ks[(k + 1) % ST])\n", "");
    return edited(p, "                wait(Ks[s]) ",
                  "                y, unused = pick(tiles, minimum(k + 1, length(tiles) - 1))\n"
                  "                copy_async(K[b, h // G, y * BN:(y + 1) * BN], Ks[(k + 1) % ST])\n"
                  "                wait(Ks[s]) ");
}

inline std::string values_waited_for_first() {
    const std::string p = edited(base_program(), "                gemm(Qs[g], Ks[s].T, out=S)\n", "");
    const std::string whole = "# V is whole; and all have read this K\n";
    return edited(p, whole, whole + "                gemm(Qs[g], Ks[s].T, out=S)\n");
}

inline std::string queries_in_registers() {
    const std::string p =
        edited(base_program(), "        P = alloc", "        Qf = alloc(register, (R, D), elem)\n        P = alloc");
    return edited(
        p, "                gemm(Qs[g], Ks[s].T, out=S)\n",
        "                if k == 0:\n                    Qf[:] = Qs[g]\n                gemm(Qf, Ks[s].T, out=S)\n");
}

inline std::string column_vector_staged() {
    std::string p = edited(base_program(), "    *, BM", "    x0: f32[Hq, Sk],\n    *, BM");
    p = edited(p, "    everyone =", "    Bs = alloc(shared, (ST, BN), f32)\n    everyone =");
    p = edited(p, "i0, n, masked):", "i0, n, masked, s):");
    p = edited(p, "i0, n, masked)\n", "i0, n, masked, s)\n");
    p = edited(p, "x = S\n", "x = S + Bs[s] * LOG2E\n");
    const std::string k0 = "            copy_async(K[b, h // G, n * BN:(n + 1) * BN], Ks[0])\n";
    const std::string k1 = "                    copy_async(K[b, h // G, y * BN:(y + 1) * BN], Ks[(k + 1) % ST])\n";
    p = edited(p, k0, "            copy_async(x0[h, n * BN:(n + 1) * BN], Bs[0])\n" + k0);
    return edited(p, k1, "                    copy_async(x0[h, y * BN:(y + 1) * BN], Bs[(k + 1) % ST])\n" + k1);
}

inline std::string output_straight() {
    const std::string p = edited(base_program(), "            Qs[g][:] = acc\n", "");
    return edited(p, "copy(Qs[g], Out[b, h, i0:i0 + R])", "Out[b, h, i0:i0 + R] = acc");
}

inline std::string no_lse() {
    std::string p = edited(base_program(), "    Lse: f32[B, Hq, Sq],\n", "");
    p = edited(p, "            Lse[b, h, i0:i0 + R] = lse\n", "");
    return edited(p, "            lse = where(total > 0.0, (row_max * unit + log2(total)) * LN2, -inf)\n", "");
}

inline std::map<std::string, std::string> orchestrations() {
    return {{"stages", edited(base_program(), "ST=1", "ST=2")},
            {"tile width", edited(base_program(), "BN=64", "BN=32")},
            {"warps", edited(edited(base_program(), "W=4", "W=8"), "BN=64", "BN=32")},
            {"keys one tile ahead", keys_one_tile_ahead()},
            {"values waited for first", values_waited_for_first()},
            {"queries in registers", queries_in_registers()},
            {"column vector staged", column_vector_staged()},
            {"order of items", edited(base_program(), "\"by_head\"", "\"heaviest_first\"")},
            {"output straight", output_straight()},
            {"no LSE", no_lse()}};
}

} // namespace cubridge::ir::lower::test
