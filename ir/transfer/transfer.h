// Transfer: rules that edit a copy of an expert's program until it computes a Variant. Places are found by dataflow,
// not by name. What rules can't do is refused with the reason. See docs/transfer.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/specification.h"
#include "ir/cuir/program.h"
#include "ir/spec/variant.h"

namespace cubridge::ir::transfer {

/// An operand of the program: parameter `x<number>`, in canonical order (Variant::order).
struct OperandType {
    DType dtype = DType::F32;
    int rank = 0;
};

struct Target {
    const Variant& variant;
    std::vector<OperandType> operands; ///< of x0, x1, ...
    Request request;                   ///< head dims, dtypes, lse, empty_rows, arch
    bool returns_lse = false;          ///< the text returns one: it is stored if Request::lse asks for it
    int keys = 0;                      ///< of a tile at most, for want of registers; 0: as many as fit plain scores
    std::string order = {};            ///< of work items: "by_head", "heaviest_first"; empty: by a rule
};

struct Transferred {
    cuir::Program program;
    std::vector<std::string> rules; ///< what was applied, in order: "mask: closed form", "sink", ...
};

/// Errors: kind "no_rule"; the message names what of the Variant no rule handles, the hint what would.
Result<Transferred> transfer(const cuir::Program& expert, const Target& target);

} // namespace cubridge::ir::transfer
