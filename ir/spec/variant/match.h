// Recognising attention in a Scalar. Private to ir/spec. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/spec/variant.h"
#include <set>

namespace cubridge::ir::variant {

/// The Variant of a Scalar, uncertified and without its text. Throws Failure of kind "unsupported" with the reason
/// where the text is not recognised.
Variant match(const Scalar& scalar);

/// What the Variant means, as expressions over the specification's inputs: for certification. `empty` is what rows
/// without keys give, in every part whose rows can be empty.
std::vector<ScalarOutput> expand(const Scalar& scalar, const Variant& v, Part::Empty empty);

/// Inputs that the variant only adds to the scores of a softmax: a -inf in them hides a key.
std::set<int> additive_biases(const Variant& v);

/// One form for equal variants: truth values as a minimal disjunction, head maps, keep atoms decided by sizes.
void canonicalise(const Scalar& scalar, Variant& v);

/// The text of docs/variant.md, and the canonical numbers of the inputs (`order`).
void write_text(const Scalar& scalar, Variant& v);
/// The Subject of a text without a Variant: "cubridge-program 1".
std::string program_text(const Scalar& scalar);

} // namespace cubridge::ir::variant
