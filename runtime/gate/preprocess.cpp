// Directives and macros.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/gate/preprocess.h"
#include "runtime/gate/fault.h"
#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <map>

namespace cubridge::runtime::gates {
namespace {

using Kind = Token::Kind;

constexpr std::string_view pragmas[] = {"unroll", "nounroll", "nv_diag_suppress", "nv_diag_default"};

/// The macros that a token came out of.
struct Origin {
    const std::string* macro;
    const Origin* outer;
    int depth;
};
constexpr int kDeepest = 64;

struct Item {
    Token token;
    const Origin* origin = nullptr;
};

struct Macro {
    bool function = false;
    std::vector<std::string> parameters;
    std::vector<Token> body;
};

class Preprocessor {
public:
    Preprocessor(const SourceText& source, const std::set<std::string, std::less<>>& taken)
        : tokens_(source), taken_(taken) {}

    std::vector<Token> run() {
        for (step(); token_.kind != Kind::End;) {
            if (token_.kind == Kind::Hash && token_.first) {
                flush();
                directive();
            } else {
                if (token_.kind != Kind::LineEnd && live()) pending_.push_back({std::move(token_), nullptr});
                step();
            }
        }
        flush();
        if (!groups_.empty()) gates::refuse(token_.line, "directive", "an #ifdef does not end");
        return without_pragmas();
    }

private:
    struct Group {
        bool live, other; ///< `other`: #else was seen
    };

    void step() {
        token_ = tokens_.next();
        count(token_.line);
    }
    void count(std::size_t line) {
        if (++seen_ > kMostTokens)
            gates::refuse(line, "macro",
                          fmt::format("the text has more than {} tokens when its macros are expanded", kMostTokens));
    }
    bool at_end() const { return token_.kind == Kind::LineEnd || token_.kind == Kind::End; }
    bool live() const {
        return std::all_of(groups_.begin(), groups_.end(), [](const Group& g) { return g.live; });
    }
    [[noreturn]] void refuse(std::string_view rule, const std::string& message, std::string hint = {}) const {
        gates::refuse(token_.line, rule, message, std::move(hint));
    }

    // ---- Directives ---------------------------------------------------------------------------------------------
    /// On its #. Afterwards on what follows its line.
    void directive() {
        step();
        const auto name = token_.text;
        if (at_end()) return;
        step();
        if (name == "ifdef" || name == "ifndef") {
            condition(name == "ifdef");
        } else if (name == "else") {
            if (groups_.empty() || groups_.back().other) refuse("directive", "an #else without its #ifdef");
            groups_.back() = {!groups_.back().live, true};
        } else if (name == "endif") {
            if (groups_.empty()) refuse("directive", "an #endif without its #ifdef");
            groups_.pop_back();
        } else if (name == "define" || name == "undef" || name == "pragma") {
            if (live()) name == "define" ? define() : name == "undef" ? undefine() : pragma();
        } else if (name != "error" && name != "warning") {
            refuse(name == "include" ? "include" : "directive", fmt::format("#{} is not allowed", name),
                   name == "include" ? "write what is needed into the text"
                                     : "these are: define, undef, ifdef, ifndef, else, endif, pragma");
        }
        while (!at_end()) step();
    }

    void condition(bool defined) {
        const auto& word = token_.text;
        const bool known = macros_.count(word) != 0 || word == "__CUDACC__" || word.rfind("CB_", 0) == 0;
        if (token_.kind != Kind::Identifier || !known)
            refuse("directive", fmt::format("whether `{}` is defined can't be told from the text", word),
                   "ask only for macros of this text, for names that begin with CB_, and for __CUDACC__");
        const bool is = macros_.count(word) != 0 || word == "__CUDACC__";
        if (groups_.size() >= kDeepest) refuse("directive", "#ifdef is nested too deep");
        groups_.push_back({is == defined, false});
    }

    void define() {
        const auto name = token_.text;
        if (token_.kind != Kind::Identifier) refuse("macro", "a macro needs a name");
        if (name[0] == '_' || taken_.count(name) != 0)
            refuse("macro", fmt::format("`{}` has a meaning, and is not to be a macro", name), "take another name");
        if (macros_.count(name) != 0) refuse("macro", fmt::format("the macro {} is defined twice", name));
        Macro macro;
        step();
        if (token_.is("(") && token_.glued) parameters(macro);
        for (; !at_end(); step()) {
            if (token_.kind == Kind::Hash)
                refuse("macro", "# and ## are not allowed in a macro", "write the words out");
            macro.body.push_back(token_);
        }
        macros_.emplace(name, std::move(macro));
    }

    /// On the bracket.
    void parameters(Macro& macro) {
        macro.function = true;
        step();
        while (!token_.is(")")) {
            if (token_.kind != Kind::Identifier || taken_.count(token_.text) != 0)
                refuse("macro", "a macro's parameters are plain names", "no ..., no word that has a meaning");
            macro.parameters.push_back(token_.text);
            if (macro.parameters.size() > kDeepest) refuse("macro", "a macro has too many parameters");
            step();
            if (token_.is(",")) step();
        }
        step();
    }

    void undefine() {
        if (macros_.erase(token_.text) == 0)
            refuse("macro", fmt::format("#undef of {}, which is no macro here", token_.text));
    }

    void pragma() { check_pragma(token_, token_.text); }
    static void check_pragma(const Token& at, std::string_view text) {
        const auto word = text.substr(0, text.find_first_of(" \t("));
        if (std::find(std::begin(pragmas), std::end(pragmas), word) == std::end(pragmas))
            gates::refuse(at.line, "directive", fmt::format("the pragma \"{}\" is not allowed", text),
                          "these are: unroll, nounroll, nv_diag_suppress, nv_diag_default");
    }

    // ---- Macros -------------------------------------------------------------------------------------------------
    void flush() {
        std::reverse(pending_.begin(), pending_.end());
        expand(pending_, out_);
        pending_.clear();
        origins_.clear();
    }

    /// `input` is a stack: what comes first is its last.
    void expand(std::vector<Item>& input, std::vector<Token>& out) {
        std::vector<Item> done;
        expand(input, done);
        for (auto& item : done) out.push_back(std::move(item.token));
    }

    void expand(std::vector<Item>& input, std::vector<Item>& out) {
        while (!input.empty()) {
            Item item = std::move(input.back());
            input.pop_back();
            const auto macro = item.token.kind == Kind::Identifier ? macros_.find(item.token.text) : macros_.end();
            if (macro == macros_.end()) {
                out.push_back(std::move(item));
                continue;
            }
            const auto line = item.token.line;
            for (const auto* o = item.origin; o != nullptr; o = o->outer)
                if (*o->macro == macro->first)
                    gates::refuse(line, "macro", fmt::format("the macro {} comes out of itself", macro->first));
            if (item.origin != nullptr && item.origin->depth >= kDeepest)
                gates::refuse(line, "macro", "macros stand for macros too often");
            std::vector<std::vector<Item>> given;
            if (macro->second.function) given = arguments(*macro, line, input);
            substitute(*macro, given, item.origin, line, input);
        }
    }

    /// The arguments of a call, expanded, each first item first.
    std::vector<std::vector<Item>> arguments(const std::pair<const std::string, Macro>& macro, std::size_t line,
                                             std::vector<Item>& input) {
        const auto next = [&] {
            if (input.empty())
                gates::refuse(line, "macro",
                              fmt::format("the macro {} is not called with its brackets here", macro.first),
                              "a directive may not stand inside them");
            Item item = std::move(input.back());
            input.pop_back();
            return item;
        };
        if (!input.empty() && !input.back().token.is("(")) input.clear(); // names no call: refused by next()
        (void)next();
        std::vector<std::vector<Item>> out(1);
        for (int depth = 0;;) {
            Item item = next();
            if (item.token.is("(")) ++depth;
            if (item.token.is(")") && depth-- == 0) break;
            if (item.token.is(",") && depth == 0)
                out.emplace_back();
            else
                out.back().push_back(std::move(item));
        }
        const auto wanted = macro.second.parameters.size();
        if (out.size() != wanted && !(wanted == 0 && out.size() == 1 && out[0].empty()))
            gates::refuse(line, "macro",
                          fmt::format("the macro {} takes {} arguments, not {}", macro.first, wanted, out.size()));
        if (++nested_ > kDeepest) gates::refuse(line, "macro", "calls of macros are nested too deep");
        for (auto& argument : out) {
            std::reverse(argument.begin(), argument.end());
            std::vector<Item> expanded;
            expand(argument, expanded);
            argument = std::move(expanded);
        }
        --nested_;
        return out;
    }

    void substitute(const std::pair<const std::string, Macro>& macro, const std::vector<std::vector<Item>>& given,
                    const Origin* origin, std::size_t line, std::vector<Item>& input) {
        const auto put = [&](const Token& token, const Origin* from) {
            count(line);
            origins_.push_back({&macro.first, from, from == nullptr ? 1 : from->depth + 1});
            input.push_back({token, &origins_.back()});
        };
        const auto& [function, parameters, body] = macro.second;
        for (auto token = body.rbegin(); token != body.rend(); ++token) {
            const auto at = token->kind == Kind::Identifier
                                ? std::find(parameters.begin(), parameters.end(), token->text)
                                : parameters.end();
            if (at == parameters.end()) {
                put(*token, origin);
                continue;
            }
            const auto& argument = given[static_cast<std::size_t>(at - parameters.begin())];
            for (auto item = argument.rbegin(); item != argument.rend(); ++item) put(item->token, item->origin);
        }
    }

    std::vector<Token> without_pragmas() {
        std::vector<Token> out;
        for (std::size_t i = 0; i < out_.size(); ++i) {
            if (out_[i].kind != Kind::Identifier || out_[i].text != "_Pragma") {
                out.push_back(std::move(out_[i]));
                continue;
            }
            if (i + 3 >= out_.size() || !out_[i + 1].is("(") || out_[i + 2].kind != Kind::String ||
                !out_[i + 3].is(")"))
                gates::refuse(out_[i].line, "directive", "_Pragma needs its literal");
            check_pragma(out_[i], out_[i + 2].text);
            i += 3;
        }
        return out;
    }

    Tokens tokens_;
    const std::set<std::string, std::less<>>& taken_;
    Token token_;
    std::size_t seen_ = 0;
    int nested_ = 0;
    std::vector<Group> groups_;
    std::map<std::string, Macro> macros_;
    std::vector<Item> pending_;
    std::vector<Token> out_;
    std::deque<Origin> origins_;
};

} // namespace

std::vector<Token> preprocess(const SourceText& source, const std::set<std::string, std::less<>>& taken) {
    return Preprocessor(source, taken).run();
}

} // namespace cubridge::runtime::gates
