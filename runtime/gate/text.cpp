// Brackets, template arguments, the argument block.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/gate/text.h"
#include "cubridge/ir/kernel_abi.h"
#include "runtime/gate/fault.h"
#include <fmt/format.h>

namespace cubridge::runtime::gates {
namespace {

using Kind = Token::Kind;

std::vector<Token> tokens_of(std::string_view source) {
    const auto spliced = splice(source);
    std::vector<Token> out;
    if (!spliced) return out;
    Tokens all(*spliced);
    for (auto t = all.next(); t.kind != Kind::End; t = all.next())
        if (t.kind != Kind::LineEnd) out.push_back(std::move(t));
    return out;
}

} // namespace

const std::vector<Token>& abi_tokens() {
    static const std::vector<Token> all = tokens_of(ir::abi::kernel_abi_text());
    return all;
}

Text::Text(std::vector<Token> all) : tokens(std::move(all)), match(tokens.size()) {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const auto& token = tokens[i];
        if (token.kind == Kind::Hash) refuse(token.line, "directive", "a # in the middle of a line");
        if (token.kind != Kind::Mark) continue;
        const auto pair =
            i > 0 && token.glued && tokens[i - 1].kind == Kind::Mark ? tokens[i - 1].text + token.text : "";
        if (pair == "<%" || pair == "%>" || pair == "<:" || pair == ":>")
            refuse(token.line, "bracket", fmt::format("{} stands for a bracket", pair), "write the bracket");
        if (token.is("(") || token.is("[") || token.is("{")) open.push_back(i);
        if (!token.is(")") && !token.is("]") && !token.is("}")) continue;
        const std::string_view wanted = token.is(")") ? "(" : token.is("]") ? "[" : "{";
        if (open.empty() || !tokens[open.back()].is(wanted))
            refuse(token.line, "bracket", fmt::format("a {} without its {}", token.text, wanted));
        match[i] = open.back();
        match[open.back()] = i;
        open.pop_back();
    }
    if (!open.empty())
        refuse(tokens[open.back()].line, "bracket", fmt::format("a {} does not end", tokens[open.back()].text));
}

std::size_t Text::template_name(std::size_t i) const {
    int depth = 0;
    for (auto k = i; k > 0 && i - k < 256; --k) {
        if (is(k, ")") || is(k, "]") || is(k, "}"))
            k = match[k];
        else if (is(k, ">") && !(is(k - 1, "-") && at(k).glued))
            ++depth;
        else if (is(k, "<") && --depth == 0)
            return at(k - 1).kind == Token::Kind::Identifier ? k - 1 : i;
        else if (is(k, ";") || is(k, "(") || is(k, "[") || is(k, "{") || is(k, "|") || is(k, "?") ||
                 (is(k, "&") && is(k - 1, "&")))
            return i;
    }
    return i;
}

bool Text::is_list(std::size_t i, std::size_t end) const {
    for (int depth = 0; i < end; i = opens(i) ? match[i] + 1 : i + 1) {
        depth += is(i, "<") ? 1 : is(i, ">") && !is(i - 1, "-") ? -1 : 0;
        if (is(i, ",") && depth <= 0) return true;
    }
    return false;
}

const Names& abi_structs() {
    static const Names all = [] {
        Names out;
        const auto& tokens = abi_tokens();
        for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
            if (tokens[i].text.rfind("cb_", 0) == 0 && (tokens[i - 1].text == "struct" || tokens[i - 1].is(")")))
                out.insert(tokens[i].text);
        return out;
    }();
    return all;
}

const Names& abi_words() {
    static const Names all = [] {
        Names out;
        for (const auto& token : abi_tokens())
            if (token.kind == Kind::Identifier) out.insert(token.text);
        return out;
    }();
    return all;
}

} // namespace cubridge::runtime::gates
