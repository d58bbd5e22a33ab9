// Prints the table of accepted functions: `print_routines json` for the generator of random programs,
// `print_routines markdown` for docs/specification.md. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/library.h"
#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
    const bool json = argc > 1 && std::string_view(argv[1]) == "json";
    std::fputs((json ? cubridge::ir::spec::routines_json() : cubridge::ir::spec::routines_markdown()).c_str(), stdout);
}
