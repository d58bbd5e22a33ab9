// The options of a compile.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler/options.h"
#include <algorithm>
#include <cctype>
#include <charconv>
#include <fmt/format.h>
#include <string_view>

namespace cubridge::runtime {
namespace {

// A name that ends in '=' takes a value, which is free of what a shell or a response file would notice.
constexpr std::string_view allowed[] = {
    "--fmad=",
    "--ftz=",
    "--prec-div=",
    "--prec-sqrt=",
    "--use_fast_math",
    "--extra-device-vectorization",
    "--maxrregcount=",
    "--split-compile=",
    "--Ofast-compile=",
    "--restrict",
    "--generate-line-info",
    "-lineinfo",
    "--device-debug",
    "-G",
    "--device-int128",
    "--diag-suppress=",
    "--diag-error=",
    "--diag-warn=",
    "--disable-warnings",
    "--display-error-number",
    "--no-display-error-number",
    "--fdevice-syntax-only",
    "--define-macro=",
    "--undefine-macro=",
    "--ptxas-options=-O0",
    "--ptxas-options=-O1",
    "--ptxas-options=-O2",
    "--ptxas-options=-O3",
};

bool plain(std::string_view value) {
    return std::all_of(value.begin(), value.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               std::string_view("_-.,=+:()").find(c) != std::string_view::npos;
    });
}

bool may_pass(std::string_view option) {
    return std::any_of(std::begin(allowed), std::end(allowed), [&](std::string_view known) {
        if (known.back() != '=') return option == known;
        return option.size() > known.size() && option.substr(0, known.size()) == known &&
               plain(option.substr(known.size()));
    });
}

/// 90 of "sm_90a"; 0 for what is not a real architecture.
int number_of(std::string_view arch) {
    if (arch.substr(0, 3) != "sm_") return 0;
    arch.remove_prefix(3);
    if (!arch.empty() && (arch.back() == 'a' || arch.back() == 'f')) arch.remove_suffix(1);
    int number = 0;
    const auto [end, code] = std::from_chars(arch.data(), arch.data() + arch.size(), number);
    return code == std::errc() && end == arch.data() + arch.size() && number > 0 ? number : 0;
}

} // namespace

Outcome<void> check_options(const CompileJob& job, const std::vector<int>& archs) {
    const int number = number_of(job.arch);
    const bool known = archs.empty() || std::find(archs.begin(), archs.end(), number) != archs.end();
    if (number == 0 || !known) {
        std::string list;
        for (const int arch : archs) list += fmt::format("{}sm_{}", list.empty() ? "" : ", ", arch);
        return Fault{"arch", fmt::format("this compiler has no architecture \"{}\"", job.arch),
                     fmt::format("it has {}, some also with the suffix a or f (sm_90a)", list)};
    }
    if (job.name.empty() ||
        job.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") !=
            std::string::npos)
        return Fault{"option", "the source's name may hold letters, digits, '_', '-' and '.' only", ""};
    for (const auto& option : job.options)
        if (!may_pass(option))
            return Fault{"option", fmt::format("the compiler option \"{}\" is not allowed", option),
                         "options pass in their long form, with '=', and only if they touch no file"};
    return {};
}

std::vector<std::string> standing_options(const std::string& arch) {
    std::vector<std::string> options = {"--gpu-architecture=" + arch, "--std=c++17", "--ptxas-options=-v"};
    const auto& rest = dispensable_options();
    options.insert(options.end(), rest.begin(), rest.end());
    return options;
}

const std::vector<std::string>& dispensable_options() {
    // The first would change the stack limit of the whole process for as long as the compile takes.
    static const std::vector<std::string> options = {"--modify-stack-limit=false", "--no-cache",
                                                     "--device-as-default-execution-space"};
    return options;
}

} // namespace cubridge::runtime
