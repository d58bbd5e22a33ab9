// The expert whose margin the tests of lowering edit. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/experts/experts.h"
#include "ir/lower/lower.h"
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace cubridge::ir::lower::test {

inline std::string read_file(const std::string& path) {
    std::ifstream in(path);
    if (!in) throw std::runtime_error(path + " can't be read");
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

inline const std::string& expert_text() {
    static const std::string text(experts::all()[0].text);
    return text;
}

/// The program's text with one replacement, which has to be possible.
inline std::string edited(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    if (at == text.npos) throw std::runtime_error("the text to replace is not there: " + from);
    return text.replace(at, from.size(), to);
}

inline std::string program_text(const std::string& cuda) {
    const auto p = lift(cuda);
    if (!p) throw std::runtime_error(p.error().message);
    return cuir::print(*p);
}

/// What lowering a program's text gives.
inline Result<Lowered> lowered(const std::string& program, const std::string& cuda = expert_text()) {
    const auto p = cuir::read(program);
    if (!p) return p.error();
    return lower(cuda, *p);
}

inline std::string message(const Result<Lowered>& r) {
    return r ? "" : r.error().kind + ": " + r.error().message;
}

} // namespace cubridge::ir::lower::test
