// A program made ready to run: names are slots, functions are numbers, statements know their kind. Made once, run many
// times. Immutable; any thread may read it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/dtype.h"
#include "ir/cuir/execute.h"
#include "ir/cuir/value.h"
#include <deque>

namespace cubridge::ir::cuir {

enum class Builtin : std::uint8_t {
    // pure
    Cdiv,
    Divmod,
    Clamp,
    Rows,
    Cols,
    Full,
    Complete,
    Real,
    Integer,
    Vote,
    TanhSmall,     ///< tanh where |x| <= 0.5; elsewhere nothing that may be relied on
    LogisticSmall, ///< 1 / (exp2(x) + 1) where |x| <= 31; likewise
    Length,
    Pick,
    Classify,
    // iterations of `for`
    Range,
    Enumerate,
    Bind,
    Draw,
    Walk,
    Each,
    // what the prelude and the roles own
    Alloc,
    Barrier,
    NamedBarrier,
    Channel,
    Role,
    // statements
    Wait,
    Arrive,
    Sync,
    Publish,
    Take,
    CopyAsync,
    GemmAsync,
    Copy,
    Gemm,
    Fence,
};

struct Expr {
    enum class Form : std::uint8_t {
        Constant,
        Local,  ///< slot of the agent's frame, or of the def's
        Common, ///< slot of the CTA's frame
        Elementwise,
        ElementwiseF32,
        And,
        Or,
        Not,
        Conditional, ///< condition, value, other
        Tuple,
        List,
        Index, ///< object, then an index a dimension
        Slice, ///< lower, upper, step; null where not written. Only as an index
        Transpose,
        Amax,
        Sum,
        Shape, ///< tensor, dimension
        Call,  ///< builtin
        Def,   ///< number in `slot`
    };
    Form form = Form::Constant;
    Op op = Op::Add;
    Builtin builtin = Builtin::Cdiv;
    int slot = 0;
    Value constant;
    std::vector<const Expr*> args; ///< of a builtin: by position, null where left out
    std::string name;              ///< what the statement around calls the storage or barrier that is made; of a Local
    const syntax::Node* node = nullptr;
};

struct Target { ///< what an assignment, a loop or a take binds: one slot, or a pattern
    int slot = -1;
    std::vector<Target> items;
};

struct Step;
using Block = std::vector<Step>;

struct Step {
    enum class Do : std::uint8_t {
        Assign, ///< target = args[0]
        Store,  ///< args[0] is storage or a slice, args[1] the value
        Effect, ///< builtin with args
        Take,   ///< target = take(args[0])
        If,
        For,
        While,
        Break,
        Return, ///< args[0], or none
        Pass,
        Assert,
    };
    Do what = Do::Pass;
    Builtin builtin = Builtin::Wait;
    const Statement* source = nullptr;
    int line = 0;
    Target target;
    std::vector<const Expr*> args;
    Block body, other;
    bool accumulates = false; ///< `add=` without `out=`

    std::string text() const { return line_of(*source); }
};

struct Def {
    std::string name;
    std::vector<std::string> params;
    int slots = 0;
    Block body;
    const Statement* source = nullptr;
};

struct RoleCode {
    std::string name;
    const Expr* warps = nullptr; ///< or
    const Expr* warpgroups = nullptr;
    const Expr* registers = nullptr;
    int index_slot = -1; ///< of `g`
    int slots = 0;
    Block body;
    const Statement* source = nullptr;
};

struct ParamCode {
    std::string name;
    int slot = 0;
    bool tensor = false, counter = false, element = false; ///< element: of the kernel's type `elem`
    DType type = DType::F32;
    std::vector<const Expr*> extents;
    const Statement* source = nullptr;
};

struct KernelCode {
    std::string name;
    bool map = false;
    std::vector<std::pair<std::string, int>> sizes;     ///< B, Hq, ... by slot of the CTA's frame
    std::vector<std::pair<std::string, int>> constants; ///< likewise; integers may be overridden by a run
    std::vector<Value> constant_values;                 ///< beside `constants`
    std::vector<ParamCode> params;
    std::vector<std::pair<int, int>> workspace; ///< number of the storage, slot
    int slots = 0;                              ///< of the CTA's frame
    std::vector<std::string> names;             ///< of those slots
    DType element = DType::BF16;
    Block prelude;
    std::vector<Def> defs;
    std::vector<RoleCode> roles;
    const Kernel* source = nullptr;
};

struct StorageCode {
    std::string name;
    DType type = DType::F32;
    std::vector<std::string> sizes; ///< names that `extents` need, by slot of a frame of their own
    std::vector<const Expr*> extents;
    const Statement* source = nullptr;
};

struct Code {
    std::shared_ptr<const Program> program; ///< what `source` pointers point into
    std::deque<Expr> exprs;
    std::vector<std::shared_ptr<const syntax::Node>> made; ///< nodes that no text has: of `x += 1`
    std::vector<StorageCode> storage;
    std::vector<KernelCode> kernels;
    std::vector<Finding> findings; ///< why it can't run; empty: it can
};

/// A program without lines (made by a rule) is numbered as print() lays it out.
std::unique_ptr<const Code> compile(const Program& program);

const char* name_of(Builtin builtin);
/// Waits, arrivals, fences and asynchronous operations: not in a def, not under a vote.
bool synchronises(Builtin builtin);

} // namespace cubridge::ir::cuir
