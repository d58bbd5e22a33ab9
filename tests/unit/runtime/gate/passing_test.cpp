// What the library prints itself passes the gates: experts as they are, what rules made of them for the visible
// specifications, generic kernels. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/candidate.h"
#include "cubridge/ir/generic.h"
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/runtime/gate.h"
#include "tests/unit/ir/transfer/corpus.h"
#include <gtest/gtest.h>

namespace cubridge::runtime {
namespace {

namespace corpus = ir::transfer::test;

void passes(const std::string& cuda, const Declared& declared) {
    const auto outcome = text_gate(cuda, declared);
    if (outcome) return;
    const auto& message = outcome.fault().message;
    std::istringstream in(cuda);
    std::string line;
    for (int n = std::atoi(message.c_str() + 5); n > 0; --n) std::getline(in, line);
    ADD_FAILURE() << outcome.fault().text() << "\n" << line.substr(0, 400);
}

TEST(TextGate, PassesExpertsAsTheyAre) {
    for (const auto& expert : ir::experts::all()) {
        SCOPED_TRACE(expert.name);
        Declared declared;
        declared.kernels = {{"attention", 128, 0, 0}};
        declared.ticket = true;
        passes(ir::abi::kernel_abi_text() + std::string(expert.text), declared);
    }
}

TEST(TextGate, PassesWhatRulesMakeOfThem) {
    int passed = 0;
    for (const char* arch : {"sm_80", "sm_90a"}) {
        for (auto c : corpus::cases()) {
            SCOPED_TRACE(c.name + " for " + arch);
            c.request.arch = arch;
            const auto spec = ir::Specification::parse(c.source, c.options);
            if (!spec) continue;
            c.request.heads = (*spec)->heads();
            const auto experts = ir::Candidate::experts(**spec, c.request);
            if (!experts) continue;
            for (const auto& expert : *experts) {
                if (expert.find('/') != expert.npos) continue;
                const auto candidate = ir::Candidate::transfer(**spec, c.request, expert);
                if (!candidate) continue;
                const auto lowered = candidate->lower(**spec, c.request);
                if (!lowered) continue;
                passes(lowered->kernel.cuda, declared_by(lowered->kernel.plan));
                ++passed;
            }
        }
    }
    EXPECT_GT(passed, 60);
    std::cout << passed << " texts of rules\n";
}

TEST(TextGate, PassesGenericKernels) {
    int passed = 0;
    for (auto c : corpus::cases()) {
        SCOPED_TRACE(c.name);
        const auto spec = ir::Specification::parse(c.source, c.options);
        if (!spec) continue;
        c.request.heads = (*spec)->heads();
        for (const bool f64 : {false, true}) {
            const auto kernel = ir::generic_kernel(**spec, c.request, f64);
            if (!kernel) continue;
            passes(kernel->cuda, declared_by(kernel->plan, true));
            ++passed;
        }
        const auto baseline = ir::baseline_kernel(**spec, c.request);
        if (!baseline) continue;
        passes(baseline->cuda, declared_by(baseline->plan, true));
        ++passed;
    }
    EXPECT_GT(passed, 60);
    std::cout << passed << " generic texts\n";
}

} // namespace
} // namespace cubridge::runtime
