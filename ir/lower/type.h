// What a name of a program is on the CUDA side: its form, the type of its elements, its extents. Printing rules hang on
// this and on nothing else. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/error.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cubridge::ir::lower {

enum class Form : std::uint8_t {
    Unknown,
    Scalar,
    Row,         ///< `float x[ROWS]`
    Column,      ///< `float x[COLS(C)]`
    Tile,        ///< `float x[TILE(C)]`
    Rows,        ///< row numbers: `i[r]`
    Cols,        ///< column numbers: `j[c]`
    Cells,       ///< shared tiles, by their leading indices
    CellColumns, ///< shared column vectors, by stage
    Fragments,   ///< a register tile in the element type: `Fragment P[FRAGMENTS(C)]`
    Ranges,      ///< key ranges
    Tensor,      ///< an operand of the attention: Q, K, V, Out, Lse
    Operand,     ///< x0, x1, ...
    Work,        ///< workspace
    Barrier,     ///< a named barrier; columns: how many arrive; an array of them has an extent
    Phases,      ///< a barrier with phases; likewise
    Channel,     ///< a queue of decisions
    Counter,     ///< of work items
    TypeName,    ///< elem
};

enum class Elem : std::uint8_t { Bool, Int, Real };

struct Type {
    Form form = Form::Unknown;
    Elem elem = Elem::Real;
    bool natural = false;             ///< an Int that is never negative: C's division is Python's
    bool storage = false;             ///< registers that `alloc` gave
    std::string columns;              ///< extent across: "BN"
    std::string element;              ///< of shared and global memory: "elem", "f32", ...; of key ranges, their def
    std::vector<std::string> extents; ///< of global memory, by axis; of cells, the leading ones

    bool operator==(const Type&) const = default;
    bool known() const { return form != Form::Unknown; }
    bool elementwise() const { return form >= Form::Scalar && form <= Form::Cols; }
    bool array() const { return form >= Form::Row && form <= Form::Tile; }
    /// One line, the same for equal types: part of what two statements must share to be equal.
    std::string text() const;
};

Type scalar(Elem elem, bool natural = false);

/// The type of an elementwise operation on two values: the larger form, the wider element. Fails where columns differ
/// or one is no value.
Type meet(const Type& a, const Type& b, Span span);

/// The type of a name that is assigned both.
Type merge(const Type& a, const Type& b, std::string_view name, Span span);

const char* c_name(Elem elem); ///< "float"
/// An element type as C++ spells it; f16, bf16 and i64 are the preamble's.
std::string c_element(const std::string& dtype);
/// What reading an element of a dtype gives: of "bf16" Real, of "i64" Int. Unknown names fail.
Elem elem_of(std::string_view dtype, Span span);

/// `float x[TILE(BN)]`, `int n`: a declaration without its semicolon. `reference`: as a parameter, `float (&x)[...]`.
std::string declaration(const Type& type, const std::string& name, bool reference = false);

} // namespace cubridge::ir::lower
