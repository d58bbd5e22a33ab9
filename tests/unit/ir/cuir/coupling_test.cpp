// Faults put through the margin into program and CUDA alike: the executor names each. What a GPU shows of the same
// ones: tests/gpu/gpu_coupling.cpp. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/execute.h"
#include "ir/experts/experts.h"
#include "ir/lower/delays.h"
#include "ir/transfer/reference.h"
#include "tests/gpu/margin_mutants.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <set>

namespace cubridge::ir {
namespace {

constexpr char kFull[] = R"py(import torch

def attention(q, k, v):
    G = q.size(1) // k.size(1)
    s = q @ k.repeat_interleave(G, 1).mT * q.size(-1) ** -0.5
    m = torch.logsumexp(s, -1)
    p = torch.exp(s - m[..., None])
    return p.nan_to_num() @ v.repeat_interleave(G, 1), m
)py";

std::vector<cuir::Finding> findings_of(const cuir::Program& program, const Specification& specification) {
    auto found = cuir::check(program);
    if (!found.empty()) return found;
    Request request;
    request.lse = Request::Lse::Natural;
    auto trial = transfer::trial_of(program, specification, 1);
    if (!trial) return {{"trial", "", 0, 0, trial.error().message}};
    return cuir::verify(program, *trial, transfer::reference_of(specification, request));
}

void names_all(const std::string& expert, const std::vector<tests::MarginMutant>& mutants,
               const Specification& specification) {
    const auto right = lower::lift(expert);
    ASSERT_TRUE(right);
    for (const auto& f : findings_of(*right, specification)) ADD_FAILURE() << f.text();
    EXPECT_GE(mutants.size(), 10u);
    for (const auto& mutant : mutants) {
        const std::string text = tests::mutated(expert, mutant);
        ASSERT_FALSE(text.empty()) << mutant.name << ": an edit finds no place in the expert";
        const auto program = lower::lift(text);
        ASSERT_TRUE(program) << mutant.name << ": " << program.error().message;
        EXPECT_FALSE(cuir::equal(*program, *right)) << mutant.name;
        EXPECT_TRUE(lower::with_delays(text)) << mutant.name;
        const auto found = findings_of(*program, specification);
        ASSERT_FALSE(found.empty()) << mutant.name << " is accepted";
        // Order is what is wrong with these, and that is what is said.
        if (mutant.race) {
            const std::set<std::string> order = {"race", "unwritten", "proxy", "deadlock"};
            EXPECT_EQ(order.count(found[0].kind), 1u)
                << mutant.name << ": " << found[0].kind << ": " << found[0].text();
        }
        EXPECT_TRUE(found[0].line > 0 || found[0].kind == "value") << mutant.name << ": " << found[0].text();
    }
}

TEST(Coupling, TheExecutorNamesEveryFaultOfTheMargin) {
    Source source;
    source.text = kFull;
    const auto specification = Specification::parse(source);
    ASSERT_TRUE(specification) << specification.error().render(kFull);
    const std::pair<std::string_view, std::vector<tests::MarginMutant>> subjects[] = {
        {"prefill_sm80", tests::margin_mutants()}, {"prefill_sm90", tests::hopper_mutants()}};
    for (const auto& subject : subjects) {
        SCOPED_TRACE(subject.first);
        const auto all = experts::all();
        const auto found = std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.name == subject.first; });
        ASSERT_NE(found, all.end());
        names_all(std::string(found->text), subject.second, **specification);
    }
}

} // namespace
} // namespace cubridge::ir
