// Expressions: their types, and their CUDA, element by element. Functions are those of the operator table.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/lower/scope.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cubridge::ir::lower {

/// The element at which an expression is printed: of a row by the loop variable r, of a tile by e, ...
struct Where {
    Form form = Form::Scalar; ///< Scalar, Row, Column, Tile
    std::string loop;
};

class Expressions {
public:
    explicit Expressions(const Scope& scope) : scope_(scope) {}

    /// Unknown where a name in it is not known yet. Fails with "no_rule" for what has no type at all.
    Type type(const syntax::Node& node) const;

    /// C++ text of the expression at one element, as a value of the element type asked for, in parentheses if it binds
    /// less tightly than a function's argument.
    std::string print(const syntax::Node& node, Elem as, const Where& where = {}) const;
    /// With the type that it has by itself.
    std::string print(const syntax::Node& node, const Where& where = {}) const;
    /// A shared cell or a group of them, a barrier or an array of them: `Ks[s]`, `Qs`, `turn[g]`.
    std::string cell(const syntax::Node& node) const;
    /// An element of global memory: `x0(b, j)`, `T(b, j)`; of a tensor its address: `Q.element<elem>(b, h, i, d)`.
    std::string element(const syntax::Node& node, const Where& where = {}) const;
    /// `K.rows(b, h / G, n * BN, (n + 1) * BN)`: a slice of global memory by a method of its tensor.
    std::string slice(const syntax::Node& node, const std::string& method) const;

    /// Calls that go over a row and are no elementwise operation: amax, sum, complete. Inner ones are not listed.
    std::vector<const syntax::Node*> reductions(const syntax::Node& node) const;
    /// Calls of any(): a vote of a warp, which no loop over elements may hold.
    static std::vector<const syntax::Node*> votes(const syntax::Node& node);
    /// The name of the row that holds the value of such a call from now on; of a vote, of the scalar.
    void hold(const syntax::Node* reduction, std::string row) { held_[reduction] = std::move(row); }
    bool held(const syntax::Node& node) const { return held_.count(&node) != 0; }
    /// What is printed for that node at the element asked for, from now on. `always`: it may be read where nothing asks
    /// for it.
    void stand(const syntax::Node* node, std::string text, bool always = false) {
        standing_[node] = {std::move(text), always};
    }

private:
    struct Text {
        std::string text;
        int tight; ///< C++ precedence, larger binds tighter
        Elem elem;
    };
    Type call_type(const syntax::Node& node) const;
    Type index_type(const syntax::Node& node) const;
    Type binary_type(const syntax::Node& node) const;
    Text text(const syntax::Node& node, const Where& where) const;
    Text name(const syntax::Node& node, const Where& where) const;
    Text binary(const syntax::Node& node, const Where& where) const;
    const Variable* columns(const syntax::Node& node, const Where& where) const;
    static std::string column_of(const Variable& columns, const Where& where);
    bool beside_columns(const syntax::Node& node) const;
    Text comparison(const syntax::Node& a, const std::string& op, const syntax::Node& b, const Where& where) const;
    Text compare(const syntax::Node& node, const Where& where) const;
    Text logic(const syntax::Node& node, const Where& where) const;
    Text call(const syntax::Node& node, const Where& where) const;
    Text function(const std::string& name, const syntax::Node& node, const Where& where) const;
    Text as_written(const std::string& name, const syntax::Node& node, const Where& where) const;
    Text index(const syntax::Node& node, const Where& where) const;
    Text converted(const syntax::Node& node, Elem as, const Where& where) const;
    std::string tight(const syntax::Node& node, Elem as, const Where& where, int least) const;
    bool is_data(const syntax::Node& node) const;
    bool loads(const syntax::Node& node) const;
    std::string term(const syntax::Node& node, Elem as, const Where& where, int least) const;
    Text infix(const syntax::Node& a, const std::string& op, const syntax::Node& b, Elem as, const Where& where) const;
    std::string arguments(const syntax::Node& node, Elem as, const Where& where) const;

    const Scope& scope_;
    std::map<const syntax::Node*, std::string> held_;
    std::map<const syntax::Node*, std::pair<std::string, bool>> standing_;
};

/// Names in an expression that are variables, callees of functions left out. Each once.
std::vector<std::string> names_in(const syntax::Node& node);
/// The values of a Tuple, or the node alone.
std::vector<syntax::NodePtr> parts(const syntax::NodePtr& node);
/// The name a Call calls, "" for a method and for what is no call.
std::string callee(const syntax::Node& node);
/// A value known when the program is lowered: integers over the kernel's constants. Nothing: not known.
std::optional<std::int64_t> known_int(const syntax::Node& node, const std::map<std::string, std::int64_t>& values);

} // namespace cubridge::ir::lower
