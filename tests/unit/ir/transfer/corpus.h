// The visible specifications with their options, and the Requests that tests ask for.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/experts/experts.h"
#include "ir/lower/lower.h"
#include "ir/spec/scalar.h"
#include "ir/transfer/transfer.h"
#include "tests/unit/ir/spec/visible.h"
#include <algorithm>

namespace cubridge::ir::transfer::test {

namespace fs = std::filesystem;
using ir::test::read;
using ir::test::specifications;

/// One specification with one set of options, as tests/corpus/golden lists them.
struct Case {
    std::string name; ///< "paper_prefix_lm__0"
    Source source;
    ParseOptions options;
    Request request;
};

inline Case read_case(const fs::path& golden) {
    Case c;
    c.name = golden.stem().string();
    std::istringstream in(read(golden));
    std::string path, options;
    std::getline(in, path);
    std::getline(in, options);
    c.source = ir::test::source_of(specifications(), path.substr(2));
    c.request.head_dim = c.request.head_dim_v = 128;
    c.request.arch = "sm_90a";
    const auto args = ir::test::words(options.substr(1));
    c.options = ir::test::apply_options(args, c.source);
    for (std::size_t k = 0; k + 1 < args.size(); k += 2)
        if (args[k] == "--head-dim") {
            c.request.head_dim = std::stoi(args[k + 1]);
            c.request.head_dim_v = std::stoi(args[k + 1].substr(args[k + 1].find(':') + 1));
        }
    return c;
}

inline std::vector<Case> cases() {
    std::vector<fs::path> files;
    for (const auto& e : fs::directory_iterator("tests/corpus/golden")) files.push_back(e.path());
    std::sort(files.begin(), files.end());
    std::vector<Case> out;
    for (const auto& f : files) out.push_back(read_case(f));
    return out;
}

/// The expert as the library has it.
inline cuir::Program expert() {
    return *lower::lift(experts::all()[0].text);
}

/// A program of the corpus in its place.
inline cuir::Program expert(const fs::path& file) {
    return *cuir::read(read(file));
}

/// The Hopper expert's program.
inline cuir::Program hopper() {
    return expert("tests/corpus/cuir/prefill_sm90.py");
}

/// Operands as the text's inputs give them.
inline Target target_of(const Specification& s, const Request& request) {
    Target t{*s.variant(), {}, request, s.outputs() > 1};
    for (const int n : s.order()) {
        const Input& x = s.inputs()[static_cast<std::size_t>(n)];
        t.operands.push_back({x.dtype, x.rank});
    }
    return t;
}

} // namespace cubridge::ir::transfer::test
