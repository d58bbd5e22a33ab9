// What a rule prints for the scores, as text and run on the host for every thread. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/unit/ir/lower/hopper.h"
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

namespace cubridge::ir::lower::test {

/// The region of `x = value` in the def of the scores, and the whole text.
struct Printed {
    std::string region, cuda;
};

inline Printed printed(const std::string& expert, const std::string& program, const std::string& value) {
    const std::string text = edited(program, "        x = S\n", "        x = " + value + "\n");
    const auto r = lowered(text, expert);
    if (!r) return {message(r), ""};
    EXPECT_EQ(read_back(expert, r->cuda, *cuir::read(text)), std::vector<std::string>{});
    const auto margin = r->cuda.find("//|         x = " + value), begin = r->cuda.find('\n', margin) + 1;
    return {r->cuda.substr(begin, r->cuda.find("//|", begin) - begin), r->cuda};
}

/// What a text defines in lines that begin so: to where their braces are closed.
inline std::string taken(const std::string& text, const std::vector<std::string>& beginnings) {
    std::string out;
    std::istringstream in(text);
    for (std::string l; std::getline(in, l);) {
        if (std::none_of(beginnings.begin(), beginnings.end(), [&](const auto& b) { return l.rfind(b, 0) == 0; }))
            continue;
        std::ptrdiff_t open = 0;
        do {
            out += l + "\n";
            open += std::count(l.begin(), l.end(), '{') - std::count(l.begin(), l.end(), '}');
        } while (open > 0 && std::getline(in, l));
    }
    return out;
}

/// Experts with the rows of an agent and the keys of a tile.
inline std::vector<std::pair<std::string, std::string>> both_layouts() {
    return {{expert_text(), "constexpr int R = 32, BN = 64;\n"}, {hopper_text(), "constexpr int R = 64, BN = 128;\n"}};
}

/// Programs made of an expert's helpers, in a folder of their own.
class OnHost {
public:
    explicit OnHost(const std::string& name)
        : folder_(std::filesystem::path(::testing::TempDir()) / (name + std::to_string(getpid()))) {
        std::filesystem::create_directories(folder_);
    }
    ~OnHost() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    OnHost(const OnHost&) = delete;
    OnHost& operator=(const OnHost&) = delete;

    /// Whether `rest`, behind the helpers that begin so, ends as 0 (0) or not (1). -1: it does not compile.
    int run(const std::string& expert, const std::string& constants, std::vector<std::string> helpers,
            const std::string& rest) {
        std::ofstream out(folder_ / "run.cpp");
        helpers.insert(helpers.end(),
                       {"#define EACH(", "#define EACH_ROW(", "#define ROW", "#define COLS", "#define TILE",
                        "#define CID", "static __host__ __device__ __forceinline__ constexpr int cdiv",
                        "static __device__ __forceinline__ int warp_row", "FN int lane_id", "FN int clamp(",
                        "struct Rows", "struct Cols", "struct Slice", "FN Slice every"});
        out << "#include <algorithm>\n#include <cstring>\n#include <vector>\nusing std::max;\nusing std::min;\n"
               "typedef long long i64;\ntypedef unsigned u32;\n#define FN static\n#define MEMBER\n#define UNROLL\n"
               "#define __device__\n#define __host__\n#define __forceinline__\nstruct { int x; } threadIdx;\n"
               "static float __uint_as_float(u32 x) { float y; memcpy(&y, &x, 4); return y; }\n"
            << constants << taken(expert, helpers) << rest;
        out.close();
        const char* compiler = std::getenv("CXX") != nullptr ? std::getenv("CXX") : "c++";
        const std::string program = (folder_ / "run").string(),
                          build = std::string(compiler) + " -std=c++17 -w '" + program + ".cpp' -o '" + program + "'";
        if (std::system(build.c_str()) != 0) return -1;
        return std::system(("'" + program + "' 2> '" + program + ".err'").c_str()) == 0 ? 0 : 1;
    }

private:
    std::filesystem::path folder_;
};

} // namespace cubridge::ir::lower::test
