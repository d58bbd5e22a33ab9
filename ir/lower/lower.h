// Lowering: an expert's CUDA with its CuIR in the margin, and a target program, give the target's CUDA. Nothing else is
// known here: no Variant, no mask analysis, no Request. See docs/cuir.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/dtype.h"
#include "cubridge/ir/launch.h"
#include "ir/cuir/program.h"
#include <string>
#include <vector>

namespace cubridge::ir::lower {

/// A .cu in margin form, taken apart. Joining everything again is byte-identical.
struct Margin {
    struct Segment {
        std::string margin;            ///< the text after `//| `, indentation kept; "# end" closes a block
        std::vector<std::string> cuda; ///< the region: lines up to the next margin line
        int line = 0;                  ///< of the margin line in the file
        bool edited = false;           ///< marked `//|!`
    };
    std::string preamble; ///< what stands before the first margin line: helpers
    std::vector<Segment> segments;
};

Result<Margin> take_apart(std::string_view cuda);
std::string join(const Margin& margin);
/// The program in the margin. Lines of its statements are lines of the file.
Result<cuir::Program> lift(std::string_view cuda);

/// How a printed region came to be.
struct Printed {
    int line = 0; ///< of the statement in the target program
    std::string statement;
    std::string rule; ///< "copied elsewhere", "constants", "parameter", "elementwise", ...
};

struct Lowered {
    std::string cuda;
    int copied = 0; ///< regions taken byte for byte
    std::vector<Printed> printed;
    std::string difference; ///< the two programs, line by line, as a unified diff
};

/// Errors of kind "no_rule" name the line and the statement; the span is a place in print(target).
Result<Lowered> lower(std::string_view expert, const cuir::Program& target);

/// Read back: the margin of `cuda` is `target`; every region is copied from the expert or printed as a rule prints it;
/// the synchronising and moving calls in each region are those of its statement. Empty: all of it holds.
std::vector<std::string> read_back(std::string_view expert, std::string_view cuda, const cuir::Program& target);

/// The census alone, of any file in margin form: what its regions call against what its statements say.
std::vector<std::string> census(std::string_view cuda);

/// What a launch of the program needs. Shared bytes and threads from its storage and roles; the grid from `bind` or
/// `draw` and the decorator's `ctas`; workspace from its storage.
struct Shape {
    struct Grid {
        std::string kernel;
        std::vector<std::string>
            items;           ///< sizes whose product is the number of CTAs, as expressions over B, Hq, Sq, ...
        bool per_sm = false; ///< ctas="sms"
        int threads = 0;
        int shared_bytes = 0;
        std::vector<launch::Map> maps; ///< of tensors that asynchronous copies name, where roles are of warpgroups
        bool ticket = false;           ///< items are drawn
    };
    std::vector<Grid> grids;
    std::vector<std::pair<std::string, std::vector<std::string>>> storage; ///< workspace tensors: name, extents
    std::vector<DType> storage_types;
};
Result<Shape> shape_of(const cuir::Program& program);

} // namespace cubridge::ir::lower
