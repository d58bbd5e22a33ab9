// try_gallery [--write] [--all] [NAME...]: what each layer says of the candidates, without a GPU. --write puts the
// first that found something into the candidate's file, to be looked at before it is kept. SPDX-License-Identifier:
// Apache-2.0
#include "cubridge/runtime/json.h"
#include "tests/gallery/gallery.h"
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>

using namespace cubridge;

namespace {

constexpr char kFolder[] = "tests/gallery";

/// What does not change with the lines of an expert.
std::string stable(const std::string& layer, std::string finding) {
    if (layer == "program") return finding.substr(0, finding.find(':'));
    if (const auto at = finding.find("its region"); layer == "census" && at != finding.npos) return finding.substr(at);
    if (const auto at = finding.find(": "); finding.rfind("line ", 0) == 0 && at != finding.npos)
        return finding.substr(at + 2);
    return finding;
}

/// Adds both to a file that has neither.
void write(const gallery::Candidate& c, const std::string& layer, const std::string& finding) {
    if (!c.caught_by.empty()) return;
    const std::string file = std::string(kFolder) + "/" + c.name + "/candidate.json";
    std::ifstream in(file);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    while (!text.empty() && (text.back() == '\n' || text.back() == '}')) {
        const bool brace = text.back() == '}';
        text.pop_back();
        if (brace) break;
    }
    while (!text.empty() && text.back() == '\n') text.pop_back();
    const auto quoted = [](const std::string& s) { return runtime::Json(s).text(); };
    std::ofstream(file) << text << ",\n  \"caught_by\": " << quoted(layer)
                        << ",\n  \"finding\": " << quoted(stable(layer, finding)) << "\n}\n";
}

} // namespace

int main(int argc, char** argv) {
    bool keep = false, all = false;
    std::set<std::string> names;
    for (int k = 1; k < argc; ++k) {
        const std::string word = argv[k];
        if (word == "--write")
            keep = true;
        else if (word == "--all")
            all = true;
        else
            names.insert(word);
    }
    const auto compiler = runtime::open_nvrtc();
    gallery::Gallery tries("../shared/specs", compiler ? *compiler : runtime::no_compiler(compiler.fault()));
    for (const auto& c : gallery::read_all(kFolder)) {
        if (!names.empty() && !names.contains(c.name)) continue;
        const auto seen = tries.examine(c, all);
        std::printf("%-28s %s\n", c.name.c_str(), seen.broken.c_str());
        for (const auto& l : seen.layers)
            std::printf("    %-8s %7.1f ms  %s\n", l.name.c_str(), l.ms, l.finding.c_str());
        std::fflush(stdout);
        const auto* first = seen.first();
        if (keep && seen.broken.empty())
            write(c, first != nullptr ? first->name : "gpu", first != nullptr ? first->finding : "");
    }
    return 0;
}
