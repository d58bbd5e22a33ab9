// Reads NVRTC logs.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler/log.h"
#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <string_view>

namespace cubridge::runtime {
namespace {

using Text = std::string_view;

bool starts(Text line, Text start) {
    return line.substr(0, start.size()) == start;
}
bool holds(Text line, Text part) {
    return line.find(part) != Text::npos;
}

Text trimmed(Text line) {
    const auto first = line.find_first_not_of(" \t\r");
    return first == Text::npos ? Text{} : line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

template <class Use> void each_line(Text text, Use use) {
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        use(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

/// The file of "file(12): error: ...", if `line` is one.
Text file_of(Text line) {
    for (auto open = line.find('('); open != Text::npos; open = line.find('(', open + 1)) {
        auto end = open + 1;
        while (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end])) != 0) ++end;
        if (end > open + 1 && starts(line.substr(end), "): ")) return line.substr(0, open);
    }
    return {};
}

/// Lines that the tools print about no file at all.
bool of_the_tools(Text line) {
    return starts(line, "nvrtc: ") || starts(line, "Command-line error") || starts(line, "Compilation terminated") ||
           (starts(line, "ptxas ") && !starts(line, "ptxas info") && !starts(line, "ptxas  ")) ||
           holds(line, " detected in th");
}

/// The number that stands before `unit` in `line`.
int number_before(Text line, Text unit) {
    const auto at = line.find(unit);
    if (at == Text::npos) return 0;
    auto begin = at;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1])) != 0) --begin;
    int value = 0;
    std::from_chars(line.data() + begin, line.data() + at, value);
    return value;
}

Text between(Text line, Text before, Text after) {
    const auto begin = line.find(before);
    if (begin == Text::npos) return {};
    line.remove_prefix(begin + before.size());
    return line.substr(0, line.find(after));
}

} // namespace

std::string cut_log(const std::string& log, const CompileJob& job) {
    std::set<Text> names = {job.name};
    std::set<Text> lines;
    const auto know = [&](Text line) { lines.insert(trimmed(line)); };
    each_line(job.source, know);
    for (const auto& header : job.headers) {
        names.insert(header.name);
        each_line(header.text, know);
    }

    std::string kept;
    bool ours = false; // the message that the current line belongs to
    each_line(log, [&](Text line) {
        const auto text = trimmed(line);
        if (text.empty()) {
            ours = false;
            return;
        }
        bool keep = false;
        if (!starts(line, " ") && !starts(line, "\t")) {
            const auto file = file_of(line);
            ours = !file.empty() && names.count(file) != 0;
            keep = ours || (file.empty() && of_the_tools(line));
        } else if (ours) {
            const bool caret = text.find_first_not_of("^~ ") == Text::npos;
            const bool where = starts(text, "detected during") || starts(text, "instantiation of");
            keep = caret || where || lines.count(text) != 0;
        }
        if (keep) (kept += line) += '\n';
    });
    return kept;
}

std::vector<CompiledEntry> entries_of(const std::string& log) {
    std::vector<CompiledEntry> entries;
    bool properties = false; // of the last entry, and not of a function that it calls
    each_line(log, [&](Text line) {
        if (const auto name = between(line, "Compiling entry function '", "'"); !name.empty()) {
            entries.push_back({});
            entries.back().name = name;
            properties = false;
        }
        if (entries.empty()) return;
        auto& entry = entries.back();
        if (const auto name = between(line, "Function properties for ", "\n"); !name.empty())
            properties = name == entry.name;
        if (properties && holds(line, " bytes stack frame")) {
            entry.stack = number_before(line, " bytes stack frame");
            entry.spill_stores = number_before(line, " bytes spill stores");
            entry.spill_loads = number_before(line, " bytes spill loads");
        }
        if (holds(line, ": Used ")) {
            entry.registers = number_before(line, " registers");
            entry.barriers = number_before(line, " barriers");
            entry.shared = number_before(line, " bytes smem");
            entry.stack = std::max(entry.stack, number_before(line, " bytes cumulative stack size"));
        }
    });
    return entries;
}

std::vector<std::string> remarks_of(const std::string& log) {
    std::vector<std::string> out;
    each_line(log, [&](Text line) {
        if (!starts(line, "ptxas ")) return;
        const auto code = line.find("(C75");
        const bool numbered = code != Text::npos && line.substr(code + 4, 3).find(')') == 2;
        const bool products = holds(line, "wgmma") && (holds(line, "serialized") || holds(line, "injected"));
        if (!numbered && !products && !(holds(line, "setmaxnreg") && holds(line, "ignored"))) return;
        const auto colon = line.find(": ");
        const std::string text(trimmed(colon == Text::npos ? line : line.substr(colon + 2)));
        if (std::find(out.begin(), out.end(), text) == out.end()) out.push_back(text);
    });
    return out;
}

} // namespace cubridge::runtime
