// The visible specifications and the options that the golden files give them: how tests read both.
// CUBRIDGE_SPECIFICATIONS names their folder, else it is ../shared/specs. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/specification.h"
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace cubridge::ir::test {

namespace fs = std::filesystem;

inline std::string read(const fs::path& p) {
    std::ifstream f(p, std::ios::binary);
    std::stringstream s;
    s << f.rdbuf();
    return s.str();
}

inline fs::path specifications() {
    if (const char* e = std::getenv("CUBRIDGE_SPECIFICATIONS")) return e;
    return "../shared/specs";
}

/// The options of the command line that say something about the text.
inline ParseOptions apply_options(const std::vector<std::string>& args, Source& s) {
    ParseOptions o;
    for (std::size_t k = 0; k + 1 < args.size(); k += 2) {
        const std::string &what = args[k], &v = args[k + 1];
        const auto eq = v.find('=');
        const std::string name = v.substr(0, eq);
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
            if (what == "--heads") o.heads = std::stoi(v);
            continue;
        }
        s.settings[name] = x;
    }
    return o;
}

/// "path.py" or "path.py:function", below `folder`.
inline Source source_of(const fs::path& folder, std::string path) {
    Source s;
    const auto colon = path.find(".py:");
    if (colon != std::string::npos) {
        s.function = path.substr(colon + 4);
        path.resize(colon + 3);
    }
    s.text = read(folder / path);
    return s;
}

inline std::vector<std::string> words(const std::string& line) {
    std::istringstream in(line);
    std::vector<std::string> out;
    for (std::string w; in >> w;) out.push_back(w);
    return out;
}

} // namespace cubridge::ir::test
