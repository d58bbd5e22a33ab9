// One case of a plan: which kernel, which sizes, what the inputs hold and how they lie in memory. Values.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/spec/scalar.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cubridge::runtime {

/// One kernel of the plan.
struct Unit {
    ir::Request request;
    bool real = false; ///< at the head dims that were asked for; else at small ones
};

/// How q, k, v and o lie in memory.
enum class Lay { Heads, Rows, Padded, SharedBatch, SharedHeads, Count };
/// What q, k and v hold. OneHot: v reads out the set of keys. Needles: keys at and beside every boundary stand out.
/// Sloped: keys grow towards one end, so that what a kernel takes to be the largest score is not for long.
enum class Contents { Normal, Loud, OneHot, Needles, Sloped, Count };
/// What integer operands hold. Edges: 0, 1, Sk - 1, Sk, Sk + 1. Descent: each less than its position.
enum class Integers { Edges, Sorted, Unsorted, Descent, Count };

struct Case {
    int number = 0, unit = 0;
    std::int64_t B = 1, Hq = 1, Hk = 1, Sq = 1, Sk = 1; ///< Sk: rows of k in memory
    std::vector<std::int64_t> kv_len;                   ///< of each request; empty: all Sk, and no such array is given
    Lay q = Lay::Heads, kv = Lay::Heads;
    Contents contents = Contents::Normal;
    Integers integers = Integers::Edges;
    bool operands_apart = false; ///< operands with padded strides, scalars in device memory
    bool held = true;            ///< bound scalars keep the value that the specification holds
    int processors = 0;          ///< CTAs of a kernel that draws its work, so that each has several items; 0: the GPU's
    int tame = 0;                ///< grows while the text refuses what was drawn (an index out of range)

    std::int64_t length(std::int64_t request) const {
        return kv_len.empty() ? Sk : kv_len[static_cast<std::size_t>(request)];
    }
    /// Small enough for the CPU to evaluate the text.
    bool small() const { return Sq <= 128 && Sk <= 128; }
    std::string text(const Unit& unit) const; ///< "case 7: B2 Hq4 Hk1 Sq17 Sk33 D8 rows tail ..."
};

using Dims = std::map<int, std::int64_t>;

/// What the text's sizes are for one evaluation, or nothing where its facts forbid them. `free` is the size of axes
/// that nothing else says; axes that the caller named ("S", "Hq", "257") have that size.
std::optional<Dims> dims_of(const ir::Specification& specification, const Case& c, const ir::Request& request,
                            std::int64_t sq, std::int64_t sk, std::int64_t free);
/// The same for request r: its own length, and a square one where rows are the tail.
std::optional<Dims> dims_of_request(const ir::Specification& specification, const Case& c, const ir::Request& request,
                                    std::int64_t length);
std::int64_t free_size(const Case& c);

/// Sets the heads of a group, or the text's own number where it computes with one; false: the group does not divide it.
bool set_heads(const ir::Specification& specification, int group, int kv_heads, Case& c);
/// Do the text's facts allow these sizes, of every request, and do they give the request's output?
bool fits(const ir::Specification& specification, const Case& c, const ir::Request& request);

std::int64_t size_of(const ir::Scalar& scalar, ir::Expr e, const Dims& dims);
std::vector<std::int64_t> sizes_of(const ir::Scalar& scalar, const std::vector<ir::Expr>& shape, const Dims& dims);

} // namespace cubridge::runtime
