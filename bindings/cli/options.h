// What the command line says. A value; made by parse_options(). SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/candidate.h"
#include "cubridge/ir/specification.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cubridge::cli {

struct Options {
    std::string command;            ///< "adapt"; empty: none was given
    std::vector<std::string> words; ///< after the command, in order
    bool help = false;

    ir::Request request;           ///< dtypes, head dims, arch, rows, empty rows, LSE; group is set by complete()
    int heads_q = 0, heads_kv = 0; ///< 0: not given
    std::map<std::string, ir::Setting> settings; ///< --set, --arg, --absent
    std::vector<std::string> said; ///< the options that shape the request or a parameter, as they were written

    std::optional<std::string> cache; ///< unset: the user's own; empty: memory only
    std::string emit;                 ///< folder; empty: nothing is written
    std::string resume;               ///< check: file of JSON lines
    std::string expert;               ///< its name; empty: every one that fits, of lower the one that the program names
    std::string spec;                 ///< exec: what the program is to compute
    int seeds = 4;                    ///< exec: of each policy
    std::uint64_t seed = 1;
    bool seeded = false; ///< --seed was given
    int cases = 40;
    bool tune = false;
    bool worker = false;                ///< compile in a process of its own
    bool verify = false;                ///< run what was made on a GPU before it counts
    std::optional<ir::Shape> shape;     ///< of tune and explain, without its KV heads; unset: the default
    int delays = 0;                     ///< check: launches a case with delays
    bool sanitize = false;              ///< check: under compute-sanitizer
    std::vector<std::string> arguments; ///< all that was written
    bool gpu = false, small = false, longer = false, json = false, quiet = false;
};

/// Throws Usage. `arguments` without the program's name.
Options parse_options(const std::vector<std::string>& arguments);

} // namespace cubridge::cli
