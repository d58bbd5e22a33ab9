// Syntax nodes and statements as rules make them. Private to ir/transfer. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/program.h"
#include <string>
#include <vector>

namespace cubridge::ir::transfer {

using syntax::NodePtr;
using Nodes = std::vector<NodePtr>;

NodePtr name(std::string text);
NodePtr real(double value);          ///< infinities are `inf` and `-inf`
NodePtr integer(std::int64_t value); ///< of a constant; not negative
NodePtr small(std::int64_t value);   ///< an integer that may stand anywhere: -1, 0, 1, 2
NodePtr negative(NodePtr x);
NodePtr binary(const char* operation, NodePtr a, NodePtr b);
NodePtr inverse(NodePtr x); ///< ~x
NodePtr compare(NodePtr a, const char* operation, NodePtr b);
NodePtr call(std::string function, Nodes arguments);
NodePtr f32_call(std::string function, Nodes arguments); ///< f32.log(x)
NodePtr item(std::string object, Nodes index);           ///< x0[b, j]
NodePtr extent(std::string object, NodePtr axis);        ///< x0.shape[axis]

/// The node as text.
std::string text(const NodePtr& node);
/// A statement from its line; Failure "internal" where the line is none.
cuir::Statement line(const std::string& text);
/// An expression from its text.
NodePtr parse(const std::string& text);

/// Names that a node reads, in order of appearance, with repetitions; attributes and keywords are none.
std::vector<std::string> names_in(const NodePtr& node);
bool reads(const NodePtr& node, const std::string& name);
/// The name that an object's slices start from: "Ks" of Ks[(k + 1) % ST].T; "" where it is no name.
std::string base(const NodePtr& node);
/// The same expression with another in place of a name.
NodePtr replace(const NodePtr& node, const std::string& name, const NodePtr& by);

} // namespace cubridge::ir::transfer
