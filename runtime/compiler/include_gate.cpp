// The include gate: the rules. What the text's tokens are is decided in token.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler/include_gate.h"
#include "runtime/compiler/token.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace cubridge::runtime {
namespace {

using Kind = Token::Kind;

constexpr std::string_view pragmas[] = {
    "unroll",        "nounroll",        "once",         "nv_diag_suppress", "nv_diag_default",
    "nv_diag_error", "nv_diag_warning", "nv_diag_once", "nv_diagnostic",    "nv_exec_check_disable"};

bool is_pragma(std::string_view text) {
    const auto begin = std::min(text.find_first_not_of(' '), text.size());
    const auto word = text.substr(begin, text.find_first_of(" \t(", begin) - begin);
    return std::find(std::begin(pragmas), std::end(pragmas), word) != std::end(pragmas);
}

/// Throws a Fault at the first thing that may not pass.
class Gate {
public:
    Gate(const SourceText& source, const std::vector<std::string>& allowed) : tokens_(source), allowed_(allowed) {}

    void run() {
        for (step(); token_.kind != Kind::End;) {
            if (token_.kind == Kind::Hash && token_.first) {
                in_directive_ = true;
                directive();
                in_directive_ = false;
            } else {
                code();
            }
        }
    }

private:
    void step() { token_ = tokens_.next(); }
    void skip_lines() {
        while (!in_directive_ && token_.kind == Kind::LineEnd) step();
    }
    bool at_end() const { return token_.kind == Kind::LineEnd || token_.kind == Kind::End; }
    [[noreturn]] void refuse(std::string message, std::string hint = {}) const {
        throw gate_fault(token_.line, std::move(message), std::move(hint));
    }

    void check_name(const std::string& name, std::string_view what) const {
        if (name.empty())
            refuse(fmt::format("{} needs a name between <> or quotes, written out", what),
                   "a macro can't name a header");
        if (std::find(allowed_.begin(), allowed_.end(), name) == allowed_.end())
            refuse(fmt::format("the header \"{}\" is not one that a kernel may include", name),
                   allowed_.empty() ? "none is" : fmt::format("these are: {}", list()));
    }

    std::string list() const {
        std::string text;
        for (const auto& name : allowed_) text += (text.empty() ? "" : ", ") + name;
        return text;
    }

    /// On the # that begins it. Afterwards on what follows its line.
    void directive() {
        tokens_.skip_blanks(true);
        step();
        if (at_end()) return;
        const auto name = token_.text;
        if (token_.kind != Kind::Identifier) refuse("a line marker is not allowed");
        if (name == "include") {
            check_name(tokens_.header_name(), "#include");
            tokens_.skip_blanks(true);
            step();
            if (!at_end()) refuse("nothing may follow the name of a header");
        } else if (name == "define") {
            define();
        } else if (name == "if" || name == "elif") {
            step();
            condition();
        } else if (name == "pragma") {
            step();
            if (!is_pragma(token_.text)) refuse(fmt::format("the pragma \"{}\" is not allowed", token_.text));
            rest();
        } else if (name == "undef" || name == "ifdef" || name == "ifndef" || name == "else" || name == "endif" ||
                   name == "error" || name == "warning") {
            step();
            rest();
        } else {
            refuse(fmt::format("the directive #{} is not allowed", name));
        }
    }

    /// The rest of a directive's line.
    void rest() {
        while (!at_end()) code();
    }

    void define() {
        step();
        const auto name = token_.text;
        bool simple = true;
        for (step(); !at_end();) {
            simple = simple && (token_.kind == Kind::Number || token_.kind == Kind::Mark);
            code();
        }
        if (!simple) composed_.insert(name);
    }

    /// The expression of an #if.
    void condition() {
        while (!at_end()) {
            if (token_.kind != Kind::Identifier) {
                code();
                continue;
            }
            const auto word = token_.text;
            if (word == "__has_include") {
                step();
                if (!token_.is("(")) refuse("__has_include needs its bracket");
                check_name(tokens_.header_name(), "__has_include");
                step();
                if (!token_.is(")")) refuse("__has_include needs its bracket");
                step();
            } else if (word == "defined") {
                step();
                if (token_.is("(")) step();
                if (token_.kind != Kind::Identifier || hidden(token_.text)) refuse("defined needs a name");
                step();
            } else {
                if (composed_.count(word) != 0)
                    refuse(fmt::format("#if may not use the macro {}, which stands for more than numbers", word));
                code();
                if (token_.is("(")) refuse(fmt::format("#if may not call {}", word));
            }
        }
    }

    static bool hidden(std::string_view word) { return word.substr(0, 6) == "__has_"; }

    /// One token outside of a directive, or a few that belong together.
    void code() {
        if (token_.kind == Kind::Identifier) {
            const auto word = token_.text;
            if (hidden(word)) refuse(fmt::format("{} is not allowed here", word));
            if (word == "_Pragma" || word == "__pragma") return pragma_operator();
            if (word == "asm" || word == "__asm" || word == "__asm__") return inline_asm();
            step();
        } else if (token_.kind == Kind::Hash && token_.first) {
            refuse("a comment over several lines may not stand between a directive and a #");
        } else if (token_.kind == Kind::String) {
            literals();
        } else if (token_.is(".")) {
            step();
            if (token_.kind == Kind::Identifier && (token_.text == "include" || token_.text == "incbin"))
                refuse(fmt::format(".{} is not allowed", token_.text));
        } else {
            step();
        }
    }

    /// String literals that the compiler joins into one, line ends between them included.
    void literals() {
        std::string joined;
        while (token_.kind == Kind::String) {
            const auto seam = joined.size() - std::min(joined.size(), std::size_t{8}); // no word below is longer
            joined += token_.text;
            for (const std::string_view word : {".include", ".incbin"})
                if (joined.find(word, seam) != std::string::npos)
                    refuse(fmt::format("{} is not allowed in a literal", word));
            step();
            skip_lines();
        }
        if (!in_directive_ && token_.kind == Kind::Hash) refuse("a directive may not follow a string literal directly");
    }

    void pragma_operator() {
        step();
        if (!token_.is("(")) refuse("_Pragma needs its bracket");
        step();
        if (token_.kind != Kind::String || !is_pragma(token_.text)) refuse("this _Pragma is not allowed");
        step();
        if (!token_.is(")")) refuse("_Pragma needs its bracket");
        step();
    }

    void inline_asm() {
        const std::string hint = "write the instructions out as string literals, without macros";
        step();
        for (skip_lines(); token_.kind == Kind::Identifier; skip_lines()) step(); // volatile
        if (!token_.is("(")) refuse("asm needs its bracket", hint);
        step();
        skip_lines();
        if (token_.kind != Kind::String) refuse("the text of an asm must be a string literal", hint);
        literals();
        if (!token_.is(":") && !token_.is(")")) refuse("the text of an asm may hold nothing but string literals", hint);
    }

    Tokens tokens_;
    const std::vector<std::string>& allowed_;
    Token token_;
    std::set<std::string> composed_; ///< macros that the source defines with names or literals in them
    bool in_directive_ = false;
};

} // namespace

Outcome<void> include_gate(std::string_view source, const std::vector<std::string>& allowed) {
    auto spliced = splice(source);
    if (!spliced) return spliced.fault();
    try {
        Gate(*spliced, allowed).run();
    } catch (Fault& fault) {
        return std::move(fault);
    }
    return {};
}

} // namespace cubridge::runtime
