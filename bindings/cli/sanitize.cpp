// cubridge check --sanitize: the same command, small, under each tool of compute-sanitizer. SPDX-License-Identifier:
// Apache-2.0
#include "bindings/cli/commands.h"
#include "bindings/cli/machine.h"
#include "bindings/cli/status.h"
#include "cubridge/runtime/capture.h"
#include "cubridge/runtime/json.h"
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <sstream>
#include <unistd.h>

namespace cubridge::cli {

namespace {

constexpr int kErrors = 99; // exit status that the tool is asked for
constexpr std::size_t kMostLines = 12;

// Full path, or nothing. $CUBRIDGE_COMPUTE_SANITIZER: this or none.
std::string compute_sanitizer() {
    const auto runs = [](const std::string& file) { return access(file.c_str(), X_OK) == 0; };
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value == nullptr ? "" : value);
    };
    if (const std::string named = variable("CUBRIDGE_COMPUTE_SANITIZER"); !named.empty())
        return runs(named) ? named : "";
    std::vector<std::string> folders;
    std::istringstream path(variable("PATH"));
    for (std::string folder; std::getline(path, folder, ':');) folders.push_back(folder);
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
        if (const std::string home = variable(name); !home.empty()) folders.push_back(home + "/bin");
    folders.emplace_back("/usr/local/cuda/bin");
    for (const std::string& folder : folders)
        if (std::string file = folder + "/compute-sanitizer"; runs(file)) return file;
    return "";
}

struct Judged {
    std::string tool, verdict = "not run"; ///< as of check
    int errors = 0, status = kEnvironment;
    std::vector<std::string> lines; ///< the first of what it complains about
};

bool holds(const std::string& text, const char* part) {
    return text.find(part) != text.npos;
}

// What the tool says begins with `=========`. A tool that refuses the device, or a program that never came to it, says
// nothing of kernels.
Judged judge(const std::string& tool, const runtime::Captured& ran) {
    constexpr const char *mark = "=========", *summary = "ERROR SUMMARY: ";
    Judged out;
    out.tool = tool;
    std::vector<std::string> said, others;
    bool summed = false, refused = false;
    std::istringstream text(ran.output);
    for (std::string line; std::getline(text, line);) {
        if (line.rfind(mark, 0) != 0) {
            if (!line.empty()) others.push_back(line);
            continue;
        }
        if (const auto at = line.find(summary); at != line.npos) {
            summed = true;
            out.errors = std::atoi(line.c_str() + at + std::string(summary).size());
        } else if (const auto from = line.find_first_not_of("= ");
                   from != line.npos && !holds(line, "COMPUTE-SANITIZER")) {
            said.push_back(line.substr(from));
            refused = refused || holds(line, "not supported") || holds(line, "nable to") ||
                      holds(line, "nitialization failed") || holds(line, "before first instrumented");
        }
    }
    const bool by_check = ran.status >= kUsage && ran.status <= kEnvironment;
    if (out.errors > 0 || ran.status == kErrors) {
        out.verdict = "failed", out.status = kUnverified, out.lines = said;
    } else if (refused || !summed) {
        out.status = !refused && by_check ? ran.status : static_cast<int>(kEnvironment);
        out.lines = said.empty() ? others : said;
    } else if (ran.status != 0) { // the command's own verdict; its complaints come last
        out.verdict = "failed", out.status = by_check ? ran.status : static_cast<int>(kUnverified);
        if (others.size() > kMostLines) others.erase(others.begin(), others.end() - kMostLines);
        out.lines = others;
    } else {
        out.verdict = "passed", out.status = kDone;
    }
    out.lines.resize(std::min(out.lines.size(), kMostLines));
    return out;
}

std::vector<std::string> command(const std::string& sanitizer, const std::string& tool, const Options& options) {
    std::error_code ignored; // the link names this executable here only, not where the tool starts it
    std::vector<std::string> out{sanitizer,
                                 "--tool",
                                 tool,
                                 "--error-exitcode",
                                 std::to_string(kErrors),
                                 std::filesystem::read_symlink("/proc/self/exe", ignored).string(),
                                 "--small"};
    std::copy_if(options.arguments.begin(), options.arguments.end(), std::back_inserter(out),
                 [](const std::string& a) { return a != "--sanitize" && a != "--json"; });
    return out;
}

} // namespace

int sanitize(const Options& options) {
    const Terminal out(stdout), progress(stderr, options.quiet), complaints(stderr);
    const std::string sanitizer = compute_sanitizer();
    int worst = kDone;
    for (const char* tool : {"memcheck", "initcheck", "synccheck"}) {
        Judged j;
        j.tool = tool;
        if (sanitizer.empty()) {
            j.lines = {"compute-sanitizer is missing: it comes with the CUDA toolkit (package cuda-sanitizer), or "
                       "CUBRIDGE_COMPUTE_SANITIZER names it"};
        } else {
            progress.line(std::string(tool) + ": running");
            const auto ran = runtime::capture(command(sanitizer, tool, options));
            if (ran)
                j = judge(tool, *ran);
            else
                j.lines = {ran.fault().text()};
        }
        worst = std::max(worst, j.status);
        if (options.json) {
            auto lines = runtime::Json::array();
            for (const auto& l : j.lines) lines.push(l);
            out.line(runtime::Json::object()
                         .add("tool", j.tool)
                         .add("verdict", j.verdict)
                         .add("errors", j.errors)
                         .add("status", j.status)
                         .add("lines", std::move(lines))
                         .text());
        } else {
            const bool fine = j.status == kDone;
            out.line(j.tool + ": " + out.paint(fine ? Colour::Good : Colour::Bad, j.verdict) +
                     fmt::format(", {} errors", j.errors));
            for (const auto& l : j.lines) complaints.line("  " + l);
        }
        if (sanitizer.empty()) break;
    }
    return worst;
}

} // namespace cubridge::cli
