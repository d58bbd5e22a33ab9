// Words, calls, casts.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/gate/uses.h"
#include "runtime/gate/fault.h"
#include "runtime/gate/ptx.h"
#include "runtime/gate/words.h"
#include <algorithm>
#include <fmt/format.h>

namespace cubridge::runtime::gates {
namespace {

using Kind = Token::Kind;

bool any_of(std::string_view word, std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

/// After . or ->
bool is_member(const Text& t, std::size_t i) {
    if (i == 0) return false;
    if (t.is(i - 1, ".")) return !(i > 1 && t.is(i - 2, ".")); // no pack
    return i > 1 && t.is(i - 1, ">") && t.is(i - 2, "-") && t.at(i - 1).glued;
}

class Uses {
public:
    Uses(const Text& text, const Outline& outline, const Declared& declared)
        : t_(text), o_(outline), declared_(declared), consumed_(text.tokens.size()) {
        std::vector<std::size_t> open;
        for (std::size_t i = 0; i < t_.tokens.size(); ++i) {
            if (t_.opens(i)) open.push_back(i);
            if (t_.is(i, ")") || t_.is(i, "]") || t_.is(i, "}")) open.pop_back();
            if (o_.judged[i] || t_.at(i).kind != Kind::Identifier || word(t_.word(i)) != Word::Own) continue;
            if (!is_introduced(i)) continue;
            introduced_.emplace(t_.word(i));
            if (open.empty() || t_.is(open.back(), "{") || t_.word(open.back() - 1) == "for") introduce_more(i);
        }
    }

    void run() {
        for (std::size_t i = 0; i < t_.tokens.size(); ++i) {
            const auto& token = t_.at(i);
            if (token.kind == Kind::Identifier)
                name(i);
            else if (token.kind == Kind::String && !consumed_[i] && !o_.judged[i])
                refuse(i, "string", "a string has no use in a kernel");
            else if (token.kind == Kind::Mark)
                mark(i);
        }
    }

private:
    [[noreturn]] void refuse(std::size_t at, std::string_view rule, const std::string& message,
                             std::string hint = {}) const {
        gates::refuse(t_.line(at), rule, message, std::move(hint));
    }

    bool is_type(std::size_t i) const {
        const auto w = t_.word(i);
        return !w.empty() && (word(w) == Word::Type || o_.types.count(w) != 0);
    }
    bool is_callable(std::string_view w) const {
        return o_.callables.count(w) != 0 || o_.types.count(w) != 0 || introduced_.count(w) != 0;
    }

    /// Whether a type stands before it, so that it is declared here.
    bool is_introduced(std::size_t i) const {
        auto k = i;
        while (k > 0 && (t_.is(k - 1, "*") || t_.is(k - 1, "&") || t_.is(k - 1, ".") ||
                         any_of(t_.word(k - 1), {"const", "__restrict__"})))
            --k;
        if (k == 0) return false;
        --k;
        if (is_type(k) || t_.word(k) == "auto") return true;
        if (t_.is(k, ">")) {
            const auto of = t_.template_name(k);
            return of != k && is_type(of);
        }
        return t_.is(k, ")") && t_.match[k] > 0 && t_.word(t_.match[k] - 1) == "decltype";
    }

    /// What the declaration of the name at i declares beside it.
    void introduce_more(std::size_t i) {
        for (auto k = i + 1; k < t_.tokens.size() && !t_.is(k, ";") && !t_.is(k, ")") && !t_.is(k, "}"); ++k) {
            const bool another =
                is_type(k) && (t_.at(k + 1).kind == Kind::Identifier || t_.is(k + 1, "*") || t_.is(k + 1, "&"));
            if (another) return;
            if (t_.opens(k)) k = t_.match[k];
            if (!t_.is(k, ",")) continue;
            while (t_.is(k + 1, "*") || t_.is(k + 1, "&")) ++k;
            if (t_.at(k + 1).kind == Kind::Identifier) introduced_.emplace(t_.word(k + 1));
        }
    }

    // ---- Names ----------------------------------------------------------------------------------------------------
    void name(std::size_t i) {
        const auto w = t_.word(i);
        if (is_member(t_, i)) {
            if (w == "ticket" && !declared_.ticket)
                refuse(i, "atomic", "the ticket of a plan that has none", "declare the ticket");
            return;
        }
        switch (word(w)) {
        case Word::Keyword: return keyword(i, w);
        case Word::Attribute: return attribute(i, w);
        case Word::Builtin: return builtin(i, w);
        case Word::Atomic:
            if (!declared_.ticket)
                refuse(i, "atomic", fmt::format("`{}` in a kernel whose plan has no ticket", w), "declare the ticket");
            return;
        case Word::Function:
            if (w[0] == '_' && !t_.is(i + 1, "("))
                refuse(i, "intrinsic", fmt::format("`{}` is called or not named at all", w));
            if (t_.is(i + 1, "(") && t_.is(i + 2, ")") == false && t_.at(i + 2).kind == Kind::String &&
                t_.at(i + 2).text.empty() && w.substr(0, 13) == "__builtin_nan")
                consumed_[i + 2] = true;
            return;
        case Word::Own: return own(i, w);
        default: return;
        }
    }

    void keyword(std::size_t i, std::string_view w) {
        if (w == "asm") return assembly(i);
        if (w == "volatile" && !(i > 0 && t_.word(i - 1) == "asm"))
            refuse(i, "keyword", "`volatile` belongs to an asm");
        if (w == "static_assert" && t_.is(i + 1, "("))
            for (auto k = i + 2; k < t_.match[i + 1]; ++k)
                if (t_.at(k).kind == Kind::String && t_.is(k - 1, ",")) consumed_[k] = true;
        if (o_.judged[i]) return;
        if (w == "static" && t_.word(i + 1) != "constexpr")
            refuse(i, "global", "a static variable outlives a launch", "static constexpr does not");
        if (w == "inline") refuse(i, "declaration", "`inline` stands at functions alone");
        if (w == "extern") dynamic_shared(i);
    }

    /// extern __shared__ __align__(1024) char NAME[];
    void dynamic_shared(std::size_t i) {
        auto k = i + 1;
        const bool shared = t_.word(k) == "__shared__";
        ++k;
        if (any_of(t_.word(k), {"__align__", "alignas"}) && t_.is(k + 1, "(")) k = t_.match[k + 1] + 1;
        if (t_.word(k) == "unsigned") ++k;
        if (!shared || t_.word(k) != "char" || t_.at(k + 1).kind != Kind::Identifier || !t_.is(k + 2, "[") ||
            !t_.is(k + 3, "]") || !t_.is(k + 4, ";"))
            refuse(i, "global", "an extern variable other than a launch's shared memory",
                   "extern __shared__ __align__(1024) char NAME[]; is");
        consumed_[i + 1] = true;
    }

    void attribute(std::size_t i, std::string_view w) {
        if (o_.judged[i] || consumed_[i] || any_of(w, {"__align__", "__restrict__"})) return;
        if (w != "__shared__")
            refuse(i, "attribute", fmt::format("`{}` may not stand here", w), "it stands at the functions of the text");
        if (std::none_of(declared_.kernels.begin(), declared_.kernels.end(),
                         [](const auto& k) { return k.static_shared > 0; }))
            refuse(i, "global", "shared memory of a fixed size is not declared",
                   "take it from the launch's: extern __shared__ char NAME[]");
    }

    void builtin(std::size_t i, std::string_view w) {
        if (w == "warpSize") return;
        const auto axis = t_.word(i + 2);
        if (!t_.is(i + 1, ".") || !any_of(axis, {"x", "y", "z"}))
            refuse(i, "grid", fmt::format("`{}` is read with .x, and is nothing else", w));
        const bool block = w == "threadIdx" || w == "blockDim";
        if (axis != "x" && !(block ? declared_.block_yz : declared_.grid_yz))
            refuse(i, "grid", fmt::format("`{}.{}` of a {} that has one axis", w, axis, block ? "block" : "grid"));
    }

    void own(std::size_t i, std::string_view w) {
        if (abi_structs().count(w) != 0 && (i < o_.abi_begin || i >= o_.abi_end)) {
            if ((i > 0 && any_of(t_.word(i - 1), {"struct", "class", "enum", "typename", "using"})) ||
                !(t_.at(i + 1).kind == Kind::Identifier || t_.is(i + 1, "&") || t_.is(i + 1, "*")))
                refuse(i, "abi", fmt::format("`{}` is the argument block's, and no other name", w));
        }
        if (o_.constants.count(w) != 0) writable(i, w);
        if (o_.judged[i]) return;
        if (o_.functions.count(w) != 0 && introduced_.count(w) == 0 && o_.types.count(w) == 0 && !t_.is(i + 1, "(") &&
            !t_.is(i + 1, "<"))
            refuse(i, "pointer", fmt::format("the function `{}` is not called", w),
                   "functions are no values; lambdas are");
        if (!t_.is(i + 1, "(") || is_callable(w)) return;
        if (i > 1 && t_.is(i - 1, ":") && t_.is(i - 2, ":")) return; // of a type of the text: mark() has seen to it
        refuse(i, "call", fmt::format("`{}` is no function of this text, nor one that a kernel may call", w),
               "docs/gates.md has the list");
    }

    /// A constant lies in memory that could be written.
    void writable(std::size_t i, std::string_view w) const {
        if (i == 0) return;
        const bool unary = i < 2 || !is_operand(i - 2) || (t_.is(i - 2, ")") && is_cast(i - 2));
        if (t_.is(i - 1, "&") && unary) refuse(i, "constant", fmt::format("the address of the constant `{}`", w));
        if (t_.is(i - 1, ")") && (t_.is(i - 2, "&") || t_.is(i - 2, "*")))
            refuse(i, "constant", fmt::format("the constant `{}` by another type", w));
    }

    // ---- Marks ----------------------------------------------------------------------------------------------------
    void mark(std::size_t i) {
        if (t_.is(i, ")")) return cast(i);
        if (t_.is(i, "(") && i > 0 && t_.is(i - 1, ">")) return template_call(i);
        if (t_.is(i, "(") && i > 2 && t_.is(i - 1, ")") && pointer_call(i - 1))
            refuse(i, "pointer", "a pointer to a function, or a call through one", "call a function by its name");
        if (t_.is(i, "*") && i > 0 && is_member(t_, i)) refuse(i, "pointer", "a pointer to a member is not allowed");
        if (t_.is(i, "&") && is_type(i + 1) && t_.is(i + 2, ":") && t_.is(i + 3, ":") && i > 0 && !is_operand(i - 1))
            refuse(i, "pointer", "a pointer to a member is not allowed");
        if (!t_.is(i, ":") || !t_.is(i + 1, ":") || !t_.at(i + 1).glued || consumed_[i]) return;
        consumed_[i + 1] = true;
        const auto of = i > 0 && t_.is(i - 1, ">") ? t_.template_name(i - 1) : i - 1;
        if (i == 0 || !is_type(of))
            refuse(i, "name",
                   i > 0 && t_.at(i - 1).kind == Kind::Identifier
                       ? fmt::format("`{}` is no type of this text", t_.word(i - 1))
                       : std::string("a name outside of this text"));
        if (t_.is(i + 2, "*")) refuse(i, "pointer", "a pointer to a member is not allowed");
    }

    /// Whether a value ends there, so that what follows is a binary operator.
    bool is_operand(std::size_t i) const {
        const auto& token = t_.at(i);
        return token.kind == Kind::Number || (token.kind == Kind::Identifier && token.text != "return") ||
               t_.is(i, ")") || t_.is(i, "]");
    }

    /// (*f), (*f[2]), (*), and with & in the place of the *.
    bool pointer_call(std::size_t close) const {
        const auto open = t_.match[close];
        if (!t_.is(open + 1, "*") && !t_.is(open + 1, "&")) return false;
        return open == 0 || t_.at(open - 1).kind != Kind::Identifier || is_type(open - 1) ||
               t_.word(open - 1) == "void";
    }

    void template_call(std::size_t i) const {
        const auto of = t_.template_name(i - 1);
        if (of == i - 1 || is_member(t_, of)) return;
        const auto w = t_.word(of);
        const auto kind = word(w);
        if (kind == Word::Own ? !is_callable(w) && !(of > 1 && t_.is(of - 1, ":") && t_.is(of - 2, ":"))
                              : kind == Word::Function || kind == Word::Atomic)
            refuse(of, "call", fmt::format("`{}` is no template of this text", w), "put a comparison in brackets");
    }

    bool is_cast(std::size_t close) const {
        const auto open = t_.match[close];
        bool pointer = t_.is(close - 1, "*") || t_.is(close - 1, "&"), type = false;
        for (auto k = open + 1; k < close; ++k) {
            if (t_.word(k) == "decltype" && t_.is(k + 1, "(")) {
                k = t_.match[k + 1];
                pointer = type = true;
                continue;
            }
            type |= is_type(k);
            if (!is_type(k) && t_.at(k).kind != Kind::Number &&
                !any_of(t_.word(k), {"const", "struct", "typename", "void", "auto"}) &&
                !(t_.at(k).kind == Kind::Mark &&
                  std::string_view("*&<>,:").find(t_.at(k).text) != std::string_view::npos))
                return false;
            type |= t_.word(k) == "void";
        }
        return pointer && type;
    }

    /// (T*)16 and its kin.
    void cast(std::size_t close) const {
        if (!is_cast(close) || !is_literal(close + 1)) return;
        refuse(close, "pointer", "a pointer made of a number", "pointers come from the argument block");
    }

    /// Nothing but numbers, signs, brackets and casts to types, up to the first that is.
    bool is_literal(std::size_t k) const {
        for (;;) {
            if (t_.is(k, "(")) {
                const auto close = t_.match[k];
                bool types = close > k + 1;
                for (auto j = k + 1; types && j < close; ++j) types = is_type(j);
                k = types ? close + 1 : k + 1;
            } else if (t_.is(k, "-") || t_.is(k, "+") || t_.is(k, "~") || t_.is(k, "!")) {
                ++k;
            } else {
                break;
            }
        }
        return t_.at(k).kind == Kind::Number || t_.at(k).kind == Kind::Character ||
               any_of(t_.word(k), {"nullptr", "sizeof", "true", "false"});
    }

    // ---- Assembly -------------------------------------------------------------------------------------------------
    void assembly(std::size_t i) {
        auto k = i + 1;
        if (t_.word(k) == "volatile") ++k;
        if (!t_.is(k, "(")) refuse(i, "asm", "an asm is `asm volatile(\"...\" : ... )`");
        const auto close = t_.match[k];
        Asm a;
        a.atomics = declared_.ticket;
        for (++k; t_.at(k).kind == Kind::String; ++k) {
            a.lines.emplace_back(a.text.size(), t_.line(k));
            a.text += t_.at(k).text;
            consumed_[k] = true;
        }
        for (int part = 0; k < close;) {
            if (!t_.is(k, ":")) refuse(k, "asm", "what follows an asm's text is operands");
            consumed_[k++] = true;
            if (++part > 3) refuse(k, "asm", "an asm has outputs, inputs and clobbers");
            while (k < close && !t_.is(k, ":")) {
                k = part == 3 ? clobber(k) : operand(k, part == 1, a);
                if (t_.is(k, ",") && !t_.is(k + 1, ":")) ++k;
            }
        }
        check_ptx(a);
    }

    std::size_t clobber(std::size_t k) {
        if (t_.at(k).kind != Kind::String || t_.at(k).text != "memory")
            refuse(k, "asm", "an asm clobbers \"memory\" or nothing");
        consumed_[k] = true;
        return k + 1;
    }

    std::size_t operand(std::size_t k, bool output, Asm& a) {
        const auto& text = t_.at(k).text;
        const bool right = t_.at(k).kind == Kind::String && t_.is(k + 1, "(") && text.size() == (output ? 2u : 1u) &&
                           (!output || text[0] == '=' || text[0] == '+') &&
                           std::string_view(output ? "hrlfd" : "hrlfdn").find(text.back()) != std::string_view::npos;
        if (!right) refuse(k, "asm", "an operand is a constraint of h, r, l, f, d or n with its value in brackets");
        consumed_[k] = true;
        const auto close = t_.match[k + 1];
        if (text.back() == 'l' && !output) {
            bool named = false;
            for (auto j = k + 2; j < close; ++j) named |= t_.at(j).kind == Kind::Identifier && !is_type(j);
            if (!named) refuse(k, "pointer", "an address made of a number", "pointers come from the argument block");
        }
        a.operands.push_back(text.back());
        return close + 1;
    }

    const Text& t_;
    const Outline& o_;
    const Declared& declared_;
    std::vector<bool> consumed_; ///< by place: seen to
    Names introduced_;
};

} // namespace

void check_words(const Text& t) {
    for (std::size_t i = 0; i < t.tokens.size(); ++i) {
        if (t.is(i, "<") && t.is(i + 1, "<") && t.is(i + 2, "<")) refuse(t.line(i), "call", "a launch from the device");
        if (t.is(i, "[") && t.is(i + 1, "[")) refuse(t.line(i), "attribute", "an attribute in [[ ]] is not allowed");
        const auto w = t.word(i);
        if (w.empty()) continue;
        if (w.find('$') != w.npos) refuse(t.line(i), "name", fmt::format("`{}` holds a $", w));
        if ((w == "typedef" || w == "using") && !is_member(t, i)) {
            for (auto k = i + 1; k < t.tokens.size() && !t.is(k, ";") && t.word(k) != "typedef" && t.word(k) != "using";
                 ++k) {
                if (t.word(k) == "decltype" && t.is(k + 1, "("))
                    k = t.match[k + 1];
                else if (t.is(k, "*") || t.is(k, "&") || t.is(k, "("))
                    refuse(t.line(k), "pointer", "a name for a pointer, a reference or a function is not allowed",
                           "write the type where it is used");
            }
        }
        if (word(w) != Word::Refused) continue;
        const auto why = why_not(w);
        refuse(t.line(i), why.rule, fmt::format("`{}` {}", w, why.what), "docs/gates.md has what is allowed");
    }
}

void check_uses(const Text& text, const Outline& outline, const Declared& declared) {
    Uses(text, outline, declared).run();
}

Constants constants_of(const Text& t) {
    Constants out;
    for (std::size_t i = 0; i < t.tokens.size(); ++i) {
        if (t.word(i) != "constexpr") continue;
        for (auto k = i + 1; k < t.tokens.size() && !t.is(k, ";") && t.word(k) != "constexpr"; ++k) {
            const bool named = t.at(k).kind == Kind::Identifier && (t.is(k + 1, "=") || t.is(k + 1, "{"));
            if (named) out.emplace_back(t.word(k));
            if (t.opens(k)) k = t.match[k];
        }
    }
    return out;
}

} // namespace cubridge::runtime::gates
