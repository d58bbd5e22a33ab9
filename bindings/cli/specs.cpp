// cubridge specs: what comes with the library. SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/commands.h"
#include "bindings/cli/status.h"
#include "bindings/cli/terminal.h"
#include "cubridge/runtime/builtin.h"
#include "cubridge/runtime/json.h"

namespace cubridge::cli {

int specs(const Options& options) {
    const Terminal out(stdout);
    if (options.words.size() > 1) throw Usage("specs: one NAME at most");
    const std::string wanted = options.words.empty() ? "" : options.words[0];
    if (!wanted.empty() && runtime::find_built_in(wanted) == nullptr)
        throw Usage("specs: there is no specification `" + wanted + "`");
    Table table;
    for (const runtime::BuiltIn& b : runtime::built_in_specifications()) {
        if (!wanted.empty() && b.name != wanted) continue;
        if (options.json)
            out.line(runtime::Json::object().add("name", b.name).add("title", b.title).add("text", b.text).text());
        else if (!wanted.empty())
            std::fwrite(b.text.data(), 1, b.text.size(), stdout);
        else
            table.row({std::string(b.name), std::string(b.title)});
    }
    if (!table.empty()) out.line(table.text());
    return kDone;
}

} // namespace cubridge::cli
