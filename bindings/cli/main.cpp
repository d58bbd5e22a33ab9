// The command `cubridge`. SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/commands.h"
#include "bindings/cli/status.h"
#include <cstdio>
#include <exception>

namespace {

int run(const std::vector<std::string>& arguments) {
    using namespace cubridge::cli;
    const Options options = parse_options(arguments);
    if (options.command == "--version") {
        std::puts("cubridge " CUBRIDGE_VERSION);
        return kDone;
    }
    if (options.help || options.command == "help") {
        std::fputs(help_of(options.command == "help" && !options.words.empty() ? options.words[0] : options.command),
                   stdout);
        return kDone;
    }
    if (options.command == "adapt") return adapt(options);
    if (options.command == "check") return check(options);
    if (options.command == "specs") return specs(options);
    if (options.command == "cache") return cache_command(options);
    if (options.command == "info") return info(options);
    if (options.command == "explain") return explain(options);
    if (options.command == "exec") return exec(options);
    if (options.command == "lower") return lower(options);
    if (options.command == "lift") return lift(options);
    if (options.command == "worker") return worker(options);
    throw Usage(options.command.empty() ? "a command is needed" : "there is no command `" + options.command + "`");
}

} // namespace

int main(int argc, char** argv) {
    using namespace cubridge::cli;
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    try {
        return run(arguments);
    } catch (const Usage& e) {
        std::fprintf(stderr, "cubridge: %s\n`cubridge --help` says more.\n", e.what());
        return kUsage;
    } catch (const std::bad_alloc&) {
        std::fputs("cubridge: out of memory\n", stderr);
        return kEnvironment;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "cubridge: %s\n", e.what());
        return kEnvironment;
    }
}
