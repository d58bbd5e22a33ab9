// CuIR programs as texts, for people and tools: lifting, lowering and executing without a Variant. docs/cuir.md has the
// language, docs/lowering.md the margin form. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/specification.h"
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cubridge::ir {

/// An expert kernel that comes with the library: one .cu with its program in the margin.
struct ExpertText {
    std::string_view name, text;
};
std::span<const ExpertText> built_in_experts();

/// The program in the margin of a .cu, as its own text. Spans of errors are places in the file.
Result<std::string> lift_program(std::string_view cuda);

struct LoweredProgram {
    std::string expert;
    std::string cuda; ///< in margin form; the argument block's definition goes before it
    int copied = 0;   ///< regions taken byte for byte from the expert
    struct Printed {
        int line = 0; ///< in the program's canonical print
        std::string statement, rule;
    };
    std::vector<Printed> printed;
    std::string difference;            ///< of the expert's program and this one
    int threads = 0, shared_bytes = 0; ///< of the main kernel
};
/// `expert` empty: the one that the program's decorator names. Errors: "no_rule" names line and statement.
Result<LoweredProgram> lower_program(std::string_view program, const std::string& expert = "");

/// One thing that is wrong with a program, as the executor says it.
struct ProgramFinding {
    std::string kind, role, message;
    int line = 0, other = 0;
    std::string text; ///< "math 1, line 73, `attend(...)`: ..."
    int runs = 0;     ///< that showed it; 0: no run was needed
    std::string run;  ///< the first of them: sizes, constants, scalar operands, CTAs, policy, seed
};
struct ProgramExecution {
    std::vector<ProgramFinding> findings; ///< empty: none; each once, however many runs show it
    int runs = 0;
};
/// Static checks, then runs against a specification under every policy and `seeds` seeds.
Result<ProgramExecution> execute_program(std::string_view program, const Specification& specification, int seeds = 4);

} // namespace cubridge::ir
