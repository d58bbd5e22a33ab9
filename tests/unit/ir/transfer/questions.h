// What programs are asked in trials, with the answers: for many programs of one specification.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/execute.h"
#include "ir/transfer/reference.h"
#include <map>

namespace cubridge::ir::transfer::test {

/// Runs and answers, each question once.
struct Questions {
    std::vector<cuir::Trial> runs;
    std::map<const cuir::Run*, std::map<std::string, cuir::Memory>> answers;

    Questions(std::vector<cuir::Run> all, const Specification& s, const Request& request) {
        for (auto& r : all) {
            if (r.policy != cuir::Run::Policy::Late) continue; // schedules change no value
            runs.push_back({});
            runs.back().runs.push_back(std::move(r));
        }
        const auto reference = reference_of(s, request);
        for (const auto& t : runs)
            if (auto a = reference(t.runs[0])) answers[&t.runs[0]] = std::move(*a);
    }
    /// The first finding; empty: none.
    std::string find(const cuir::Program& p) const {
        for (const auto& t : runs)
            if (answers.count(&t.runs[0]) != 0)
                if (const auto f = cuir::verify(p, t,
                                                [&](const cuir::Run& r) -> Result<std::map<std::string, cuir::Memory>> {
                                                    return answers.at(&r);
                                                });
                    !f.empty())
                    return f[0].text();
        return "";
    }
};

} // namespace cubridge::ir::transfer::test
