// Programs of the corpus, runs on small shapes, and a reference that shares nothing with the executor.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/execute.h"
#include <string>
#include <vector>

namespace cubridge::ir::cuir::testing {

using Runs = std::vector<Run>; // inside a TEST, Run is something of gtest's

struct Shape {
    int sq, sk, hq = 2, hk = 1, b = 1;
};

enum class Data : std::uint8_t {
    Plain,
    OneHeadNaN, ///< queries of head 0 are NaN: other heads are not
    Rising,     ///< scores rise by more than 2^128 in the order of traversal
};

std::string load(const std::string& name); ///< of tests/corpus/cuir
Program parse(const std::string& text);

/// BM of two rows an agent, BN = 3, D = 3, Dv = 3.
Run small(const Shape& shape, Data data = Data::Plain, int agents = 4);
/// softmax(Q K^T * scale) V and its natural LSE; scale is the run's, or 1 / sqrt(D).
Result<std::map<std::string, Memory>> reference(const Run& run);

/// Late, Early, Random and each role starved, each with `seeds` seeds.
Runs schedules(const Run& run, const std::vector<std::string>& roles, int seeds);
/// One seed under the friendliest schedule.
Run friendly(Run run);

/// The text with the `nth` line that starts with `line` (indentation aside) replaced; "" deletes it.
std::string replace_line(const std::string& text, const std::string& line, int nth, const std::string& by);
/// The number of the nth line that starts so.
int line_of(const std::string& text, const std::string& line, int nth = 0);

} // namespace cubridge::ir::cuir::testing
