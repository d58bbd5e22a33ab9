// Inside the room: from statements to code. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/builtins.h"
#include <map>

namespace cubridge::ir::cuir {

/// Names of one frame. A name that is assigned anywhere in a def or a role is that frame's own, as in Python.
struct Names {
    std::map<std::string, int, std::less<>> slots;
    std::vector<std::string> storage; ///< names that `alloc` gave: they are not assigned again

    int slot(const std::string& name);
};

/// Compiles expressions of one frame. Errors are Failures of kind "static".
class ExprCompiler {
public:
    ExprCompiler(Code& code, KernelCode& kernel, Names& common, Names* local)
        : code_(code), kernel_(kernel), common_(common), local_(local) {}

    const Expr* compile(const syntax::Node& node);
    /// A call of a builtin, its arguments by position (null where left out).
    const Expr* builtin(const syntax::Node& call, const Signature& signature);
    /// Where a name stands: a Local or a Common.
    const Expr* name(const syntax::Node& node);

private:
    Expr& make(Expr::Form form, const syntax::Node& node);
    const Expr* constant(const syntax::Node& node, Value value);
    const Expr* elementwise(const syntax::Node& node, Op op, std::initializer_list<const syntax::Node*> args);
    const Expr* binary(const syntax::Node& node);
    const Expr* unary(const syntax::Node& node);
    const Expr* comparison(const syntax::Node& node);
    const Expr* several(const syntax::Node& node, Expr::Form form, std::size_t from = 0);
    const Expr* call(const syntax::Node& node);
    const Expr* method(const syntax::Node& node, const syntax::Node& callee);
    const Expr* function(const syntax::Node& node, const OpInfo& op, bool f32);
    const Expr* index(const syntax::Node& node);
    const Expr* slice(const syntax::Node& node);

    Code& code_;
    KernelCode& kernel_;
    Names& common_;
    Names* local_;
};

enum class Where : std::uint8_t { Prelude, Role, Def, Map };

/// The statements of one frame; `local` is null in a prelude. What is wrong with a statement becomes a finding of
/// `code`.
Block compile_block(Code& code, KernelCode& kernel, Names& common, Names* local, Where where,
                    const std::vector<Statement>& statements);
bool is_call_of(const syntax::Node& node, std::string_view name);

/// The DType of a type's name; nothing for a name that is none. `elem` is the kernel's.
std::optional<DType> type_named(std::string_view name, const KernelCode& kernel);
std::string source_of(const syntax::Node& node); ///< one line, for messages

} // namespace cubridge::ir::cuir
