// The gate of a kernel's text.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/gate.h"
#include "runtime/compiler/include_gate.h"
#include "runtime/gate/outline.h"
#include "runtime/gate/preprocess.h"
#include "runtime/gate/uses.h"
#include "runtime/gate/words.h"

namespace cubridge::runtime {
namespace {

/// What a macro may not be called.
const gates::Names& taken() {
    static const gates::Names all = [] {
        gates::Names out = gates::words();
        const auto& block = gates::abi_words();
        out.insert(block.begin(), block.end());
        return out;
    }();
    return all;
}

} // namespace

Declared declared_by(const ir::launch::Plan& plan, bool generic) {
    Declared out;
    const auto one = ir::launch::Code::constant(1);
    for (const auto& entry : plan.entries) {
        Declared::Kernel kernel;
        kernel.name = entry.name;
        kernel.threads = entry.block[0] * entry.block[1] * entry.block[2];
        kernel.shared = entry.shared_bytes;
        kernel.static_shared = generic ? kernel.threads * static_cast<int>(sizeof(double)) : 0;
        out.kernels.push_back(std::move(kernel));
        out.grid_yz |= entry.grid[1] != one || entry.grid[2] != one;
        out.block_yz |= entry.block[1] != 1 || entry.block[2] != 1;
    }
    out.ticket = plan.ticket;
    out.tables = generic;
    return out;
}

Outcome<Constants> text_gate(std::string_view source, const Declared& declared) {
    if (auto fine = include_gate(source, {}); !fine) return fine.fault();
    const auto spliced = splice(source);
    if (!spliced) return spliced.fault();
    try {
        const gates::Text text(gates::preprocess(*spliced, taken()));
        gates::check_words(text);
        gates::check_uses(text, gates::outline_of(text, declared), declared);
        return gates::constants_of(text);
    } catch (Fault& fault) {
        return std::move(fault);
    }
}

Outcome<void> both_gates(std::string_view source, std::span<const std::byte> cubin, const Declared& declared) {
    const auto constants = text_gate(source, declared);
    if (!constants) return constants.fault();
    return cubin_gate(cubin, declared, *constants);
}

} // namespace cubridge::runtime
