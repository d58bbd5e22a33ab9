// The visible specifications with their options, and the Requests that tests ask for.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/experts/experts.h"
#include "ir/lower/lower.h"
#include "ir/spec/scalar.h"
#include "ir/transfer/transfer.h"
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace cubridge::ir::transfer::test {

namespace fs = std::filesystem;

inline std::string read_file(const fs::path& p) {
    std::ifstream f(p, std::ios::binary);
    std::stringstream s;
    s << f.rdbuf();
    return s.str();
}

inline fs::path specifications() {
    if (const char* e = std::getenv("CUBRIDGE_SPECIFICATIONS")) return e;
    return "../shared/specs";
}

/// One specification with one set of options, as tests/corpus/golden lists them.
struct Case {
    std::string name; ///< "paper_prefix_lm__0"
    Source source;
    ParseOptions options;
    Request request;
};

inline std::vector<std::string> words(const std::string& line) {
    std::istringstream in(line);
    std::vector<std::string> out;
    for (std::string w; in >> w;) out.push_back(w);
    return out;
}

inline Case read_case(const fs::path& golden) {
    Case c;
    c.name = golden.stem().string();
    std::istringstream in(read_file(golden));
    std::string path, options;
    std::getline(in, path);
    std::getline(in, options);
    path = path.substr(2);
    if (const auto colon = path.find(".py:"); colon != std::string::npos) {
        c.source.function = path.substr(colon + 4);
        path.resize(colon + 3);
    }
    c.source.text = read_file(specifications() / path);
    c.request.head_dim = c.request.head_dim_v = 128;
    c.request.arch = "sm_90a";
    const auto args = words(options.substr(1));
    for (std::size_t k = 0; k + 1 < args.size(); k += 2) {
        const std::string &what = args[k], &v = args[k + 1];
        const auto eq = v.find('=');
        Setting x;
        if (what == "--set") {
            x.kind = Setting::Kind::Constant;
            x.value = std::stod(v.substr(eq + 1));
        } else if (what == "--absent") {
            x.kind = Setting::Kind::Absent;
        } else if (what == "--arg") {
            x.kind = Setting::Kind::Operand;
            const auto open = v.find('['), close = v.find(']');
            x.dtype = dtype_from_short(v.substr(eq + 1, open - eq - 1));
            const std::string axes = v.substr(open + 1, close - open - 1);
            x.rank = axes.empty() ? 0 : 1 + static_cast<int>(std::count(axes.begin(), axes.end(), ','));
        } else {
            if (what == "--heads") c.options.heads = std::stoi(v);
            if (what == "--head-dim") {
                c.request.head_dim = std::stoi(v);
                c.request.head_dim_v = std::stoi(v.substr(v.find(':') + 1));
            }
            continue;
        }
        c.source.settings[v.substr(0, eq)] = x;
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
    return *cuir::read(read_file(file));
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
