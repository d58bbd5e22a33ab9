// Declarations at namespace and class scope.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/gate/outline.h"
#include "runtime/gate/fault.h"
#include "runtime/gate/words.h"
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>

namespace cubridge::runtime::gates {
namespace {

using Kind = Token::Kind;

bool any_of(std::string_view word, std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

class Parser {
public:
    Parser(const Text& text, const Declared& declared) : t_(text), declared_(declared) {
        out_.judged.resize(text.tokens.size());
    }

    Outline run() {
        names_of_types();
        items(0, t_.tokens.size(), false);
        for (const auto& [name, at] : bodiless_)
            if (defined_.count(name) == 0)
                refuse(at, "declaration", fmt::format("`{}` has no body in this text", name),
                       "what is declared must be defined here");
        for (const auto& kernel : declared_.kernels)
            if (kernels_.count(kernel.name) == 0)
                refuse(t_.tokens.size(), "kernel",
                       fmt::format("the kernel `{}` is declared but not defined", kernel.name));
        if (out_.abi_end == 0)
            refuse(0, "abi", "the definition of the argument block is missing", "it comes first, as it is printed");
        return std::move(out_);
    }

private:
    [[noreturn]] void refuse(std::size_t at, std::string_view rule, const std::string& message,
                             std::string hint = {}) const {
        gates::refuse(t_.line(at), rule, message, std::move(hint));
    }

    void judged(std::size_t begin, std::size_t end) {
        for (auto i = begin; i < end; ++i) out_.judged[i] = true;
    }

    /// Of the whole text, whatever their scope.
    void names_of_types() {
        for (std::size_t i = 0; i < t_.tokens.size(); ++i) {
            const auto w = t_.word(i);
            if (!any_of(w, {"class", "typename", "struct", "enum", "using"})) continue;
            auto k = i + 1;
            while (t_.is(k, ".")) ++k; // a pack
            if (any_of(t_.word(k), {"alignas", "__align__"}) && t_.is(k + 1, "(")) k = t_.match[k + 1] + 1;
            if (t_.at(k).kind == Kind::Identifier) out_.types.emplace(t_.word(k));
        }
    }

    /// The end of an item that has no body: its ; at depth 0.
    std::size_t semicolon(std::size_t i, std::size_t end) const {
        while (i < end && !t_.is(i, ";")) i = t_.opens(i) ? t_.match[i] + 1 : i + 1;
        if (i >= end) refuse(i, "declaration", "a declaration does not end");
        return i;
    }

    void items(std::size_t i, std::size_t end, bool members) {
        if (++depth_ > 32) refuse(i, "declaration", "types are nested too deep");
        while (i < end) i = item(i, end, members);
        --depth_;
    }

    /// Answers what follows it.
    std::size_t item(std::size_t begin, std::size_t end, bool members) {
        auto i = begin;
        if (t_.is(i, ";")) return i + 1;
        if (members && any_of(t_.word(i), {"public", "private", "protected"}) && t_.is(i + 1, ":")) return i + 2;
        bool is_template = false;
        while (t_.word(i) == "template") {
            is_template = true;
            i = past_parameters(i + 1);
        }
        const auto first = t_.word(i);
        if (first == "extern" && t_.at(i + 1).kind == Kind::String && t_.is(i + 2, "{"))
            refuse(i, "declaration", "a block of extern \"C\" is not allowed", "it stands before each kernel");
        if (first == "typedef" || first == "using") return alias(i, end);
        if (first == "asm") refuse(i, "asm", "assembly outside of a function is not allowed");
        if (first == "static_assert") return semicolon(i, end) + 1;

        auto k = i;
        std::size_t parameters = 0;
        for (; k < end; ++k) {
            if (t_.is(k, "{") || t_.is(k, ";") || t_.is(k, "=")) break;
            if (t_.is(k, "[")) {
                k = t_.match[k];
            } else if (t_.word(k) == "operator") {
                parameters = operator_parameters(k);
                break;
            } else if (t_.is(k, "(")) {
                if (!any_of(t_.word(k - 1), {"__launch_bounds__", "__align__", "alignas", "decltype"})) {
                    parameters = k;
                    break;
                }
                k = t_.match[k];
            }
        }
        if (k >= end) refuse(begin, "declaration", "a declaration does not end");
        if (parameters != 0) return function(begin, i, parameters, end, members, is_template);
        if (any_of(t_.word(i), {"struct", "class", "enum"})) return type(i, k, end, members);
        return variable(i, k, end, members);
    }

    std::size_t past_parameters(std::size_t i) {
        if (!t_.is(i, "<")) refuse(i, "declaration", "an explicit instantiation is not allowed");
        for (auto k = i + 1;; ++k) {
            if (t_.is(k, ">")) return k + 1;
            if (t_.is(k, "(")) k = t_.match[k];
            if (t_.is(k, "<") || t_.is(k, "{") || t_.is(k, ";") || k >= t_.tokens.size())
                refuse(i, "declaration", "a template's parameters may hold no < of their own", "put it in brackets");
        }
    }

    std::size_t alias(std::size_t i, std::size_t end) {
        const auto stop = semicolon(i, end);
        const bool is_using = t_.word(i) == "using";
        const auto name = is_using ? i + 1 : stop - 1;
        if (t_.at(name).kind != Kind::Identifier || (is_using && !t_.is(i + 2, "=")))
            refuse(i, "declaration", "this is no alias", "using X = Y; or typedef Y X;");
        own_name(name);
        out_.types.emplace(t_.word(name));
        return stop + 1;
    }

    // ---- Types ----------------------------------------------------------------------------------------------------
    void abi(std::size_t i) {
        const auto& wanted = abi_tokens();
        for (std::size_t k = 0; k < wanted.size(); ++k)
            if (t_.at(i + k).kind != wanted[k].kind || t_.at(i + k).text != wanted[k].text)
                refuse(i + k, "abi", "the definition of the argument block is another one",
                       "it comes as it is printed");
        out_.abi_end = i + wanted.size();
        for (const auto& name : abi_structs()) out_.types.insert(name);
        judged(i, out_.abi_end);
    }

    /// Up to `open`, which is its {, or the ; of one that is only named.
    std::size_t type(std::size_t i, std::size_t open, std::size_t end, bool members) {
        if (t_.word(i) == "enum" && any_of(t_.word(i + 1), {"class", "struct"})) ++i;
        auto name = i + 1;
        if (any_of(t_.word(name), {"alignas", "__align__"})) name = t_.match[name + 1] + 1;
        if (abi_structs().count(t_.word(name)) != 0) {
            if (out_.abi_end != 0 || members)
                refuse(name, "abi", fmt::format("`{}` is the argument block's", t_.word(name)), "take another name");
            out_.abi_begin = i;
            abi(i);
            return out_.abi_end;
        }
        if (t_.at(name).kind == Kind::Identifier) own_name(name);
        if (t_.is(open, "=") || (t_.is(open, ";") && open != name + 1) || (t_.is(open, "{") && declares(name, open)))
            return variable(i, open, end, members);
        if (t_.is(open, ";")) return open + 1;
        const auto close = t_.match[open];
        if (t_.word(i) == "struct" || (t_.word(i) == "class" && t_.word(i - 1) != "enum")) items(open + 1, close, true);
        if (members && !t_.is(close + 1, ";")) return semicolon(close + 1, end) + 1; // a member of that type
        if (!t_.is(close + 1, ";"))
            refuse(close + 1, "global", "a type's definition may not declare a variable as well", "end it with a ;");
        return close + 2;
    }

    /// Whether another name than the type's stands before its {.
    bool declares(std::size_t name, std::size_t open) const {
        auto k = t_.at(name).kind == Kind::Identifier ? name + 1 : name;
        if (t_.is(k, "<"))
            for (int depth = 0; k < open; k = t_.opens(k) ? t_.match[k] + 1 : k + 1) {
                depth += t_.is(k, "<") ? 1 : t_.is(k, ">") ? -1 : 0;
                if (depth == 0) break;
            }
        if (t_.is(k, ">")) ++k;
        return k != open && !t_.is(k, ":") && !(t_.word(k) == "final" && (k + 1 == open || t_.is(k + 1, ":")));
    }

    /// A name that a declaration gives to something.
    void own_name(std::size_t i) const {
        const auto w = t_.word(i);
        if (abi_structs().count(w) != 0)
            refuse(i, "abi", fmt::format("`{}` is the argument block's", w), "take another name");
        if (word(w) != Word::Own)
            refuse(i, "name", fmt::format("`{}` has a meaning, and may not get another", w), "take another name");
    }

    // ---- Variables ------------------------------------------------------------------------------------------------
    std::size_t variable(std::size_t i, std::size_t stop, std::size_t end, bool members) {
        bool constant = false, fixed = false, of_device = false, is_static = false;
        for (auto k = i; k < stop; ++k) {
            const auto w = t_.word(k);
            constant |= w == "constexpr", fixed |= w == "const", is_static |= w == "static";
            of_device |= any_of(w, {"__device__", "__shared__", "extern", "__constant__", "__managed__"});
            if (w == "extern") refuse(k, "global", "an extern variable is not allowed");
        }
        const auto last = semicolon(i, end);
        const auto name = name_of(i, stop);
        if (members && !is_static && !constant && !of_device) { // of each object
            for (auto k = i; k < last; k = t_.opens(k) ? t_.match[k] + 1 : k + 1)
                if (t_.at(k).kind == Kind::Identifier &&
                    (t_.is(k + 1, ",") || t_.is(k + 1, ";") || t_.is(k + 1, "[") || t_.is(k + 1, "=")))
                    out_.callables.emplace(t_.word(k)); // as its constructor initialises it
            return last + 1;
        }
        const bool array = t_.is(name + 1, "[");
        if (is_table(i, stop) && array) {
            judged(i, stop);
            return last + 1;
        }
        if (!constant || of_device || array)
            refuse(i, "global", fmt::format("`{}` is memory that outlives a launch", t_.word(name)),
                   fixed ? "a constant is a constexpr number"
                         : "only constexpr numbers may stand outside of functions");
        own_name(name);
        for (auto k = name; k < last; k = t_.opens(k) ? t_.match[k] + 1 : k + 1)
            if (t_.at(k).kind == Kind::Identifier && (t_.is(k + 1, "=") || t_.is(k + 1, "{"))) {
                if (!members) out_.constants.emplace(t_.word(k));
                if (!members && t_.at(k + 2).kind == Kind::Number && (t_.is(k + 3, ";") || t_.is(k + 3, ",")))
                    if (const auto n = number(k + 2)) numbers_.emplace(t_.word(k), *n);
            }
        judged(i, stop);
        return last + 1;
    }

    /// The last name before what ends the declarator.
    std::size_t name_of(std::size_t i, std::size_t stop) const {
        auto name = i;
        for (auto k = i; k < stop; k = t_.opens(k) ? t_.match[k] + 1 : k + 1)
            if (t_.at(k).kind == Kind::Identifier) name = k;
        return name;
    }

    /// static __device__ const T cb_table0[] = {...}
    bool is_table(std::size_t i, std::size_t stop) const {
        return declared_.tables && t_.word(i) == "static" && t_.word(i + 1) == "__device__" &&
               t_.word(i + 2) == "const" && t_.word(name_of(i, stop)).substr(0, 8) == "cb_table";
    }

    std::optional<int> number(std::size_t i) const {
        const auto& text = t_.at(i).text;
        if (text.size() > 1 && text[0] == '0') return std::nullopt;
        int n = 0;
        const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), n);
        if (code != std::errc() || stop != text.data() + text.size()) return std::nullopt;
        return n;
    }

    // ---- Functions ------------------------------------------------------------------------------------------------
    std::size_t operator_parameters(std::size_t k) const {
        auto i = k + 1;
        if (t_.is(i, "(")) return t_.match[i] + 1;
        while (i < t_.tokens.size() && !t_.is(i, "(") && !t_.is(i, ";") && !t_.is(i, "{")) {
            if (t_.at(i).kind == Kind::String) refuse(i, "declaration", "a literal of one's own is not allowed");
            ++i;
        }
        if (!t_.is(i, "(")) refuse(k, "declaration", "an operator needs its parameters");
        return i;
    }

    std::size_t function(std::size_t begin, std::size_t i, std::size_t parameters, std::size_t end, bool members,
                         bool is_template) {
        const auto name = t_.is(parameters - 1, ">") ? t_.template_name(parameters - 1) : parameters - 1;
        bool is_kernel = false, is_extern = false, on_host = false, on_device = false, is_operator = false;
        for (auto k = i; k < parameters; ++k) {
            const auto w = t_.word(k);
            is_kernel |= w == "__global__", is_extern |= w == "extern", on_host |= w == "__host__";
            on_device |= w == "__device__", is_operator |= w == "operator";
            if (w == "__shared__") refuse(k, "global", "shared memory is declared inside a kernel");
        }
        const bool of_type = any_of(t_.word(name - 1), {"struct", "class", "enum", "typename"}) || name == i;
        if (!is_operator && (t_.at(name).kind != Kind::Identifier || (of_type && !members)))
            refuse(parameters, "declaration", "this is neither a function nor a constant", "no pointers to functions");
        if (!is_operator && t_.is(name - 1, ":")) refuse(name, "declaration", "a member is defined in its class");
        if (on_host && !on_device)
            refuse(i, "host", fmt::format("`{}` is a function of the host", t_.word(name)), "functions are __device__");
        if (is_kernel) {
            if (is_template || members) refuse(begin, "kernel", "a kernel may be no template and no member");
            return kernel(i, parameters, end);
        }
        if (!is_operator && !members && out_.types.count(t_.word(name)) != 0) // or a type, and the variable in brackets
            refuse(name, "declaration", fmt::format("a function may not be called as the type `{}`", t_.word(name)));
        if (is_extern) refuse(i, "declaration", fmt::format("`{}` is extern", t_.word(name)), "only kernels are");
        if (!is_operator) own_name(name);
        judged(i, parameters);
        if (!is_operator) out_.callables.emplace(t_.word(name));
        if (!is_operator && !members) out_.functions.emplace(t_.word(name));
        auto k = t_.match[parameters] + 1;
        if (t_.is(k, "(")) refuse(k, "declaration", "this is neither a function nor a constant");
        bool initialises = false;
        for (; k < end; ++k) {
            if (t_.is(k, ":") && !t_.is(k + 1, ":") && !t_.is(k - 1, ":")) initialises = true;
            if (t_.word(k) == "asm" || t_.at(k).kind == Kind::String)
                refuse(k, "declaration", "a function may not name a symbol");
            if (t_.is(k, ";")) {
                alone(i, parameters, k);
                if (!members) bodiless_.emplace_back(t_.word(name), name);
                return k + 1;
            }
            if (t_.is(k, "{")) {
                const bool member = initialises && (t_.at(k - 1).kind == Kind::Identifier || t_.is(k - 1, ">"));
                k = t_.match[k];
                if (member) continue;
                alone(i, parameters, initialises ? 0 : t_.match[k]);
                if (!members && !is_operator) defined_.emplace(t_.word(name));
                return k + 1;
            }
            if (t_.opens(k)) k = t_.match[k];
        }
        refuse(begin, "declaration", "a function does not end");
    }

    /// Neither before its parameters nor behind them is another name declared.
    void alone(std::size_t i, std::size_t parameters, std::size_t stop) const {
        if (t_.is_list(i, parameters) || t_.is_list(t_.match[parameters] + 1, stop))
            refuse(i, "declaration", "a function is declared by itself");
    }

    std::size_t kernel(std::size_t i, std::size_t parameters, std::size_t end) {
        const auto name = parameters - 1;
        const std::string text(t_.word(name));
        const auto it = std::find_if(declared_.kernels.begin(), declared_.kernels.end(),
                                     [&](const auto& k) { return k.name == text; });
        if (it == declared_.kernels.end())
            refuse(name, "kernel", fmt::format("the kernel `{}` is not declared", text), "declared are: " + list());
        if (!kernels_.insert(text).second)
            refuse(name, "kernel", fmt::format("the kernel `{}` is defined twice", text));
        int bounds = 0, nothing = 0, global = 0;
        bool c = false;
        for (auto k = i; k < name; ++k) {
            if (t_.word(k) == "extern" && t_.at(k + 1).kind == Kind::String && t_.at(k + 1).text == "C" && k == i) {
                c = true;
                ++k;
            } else if (t_.word(k) == "__launch_bounds__" && t_.is(k + 1, "(") && bounds == 0) {
                bounds = launch_bounds(k + 2, t_.match[k + 1]);
                k = t_.match[k + 1];
            } else if (t_.word(k) == "__global__") {
                ++global;
            } else if (t_.word(k) == "void") {
                ++nothing;
            } else {
                refuse(k, "kernel", fmt::format("`{}` may not stand before a kernel's name", t_.at(k).text), form());
            }
        }
        if (!c || global != 1 || nothing != 1)
            refuse(name, "kernel", fmt::format("the kernel `{}` is not in its form", text), form());
        if (bounds < it->threads || bounds > 1024)
            refuse(name, "launch_bounds",
                   bounds == 0 ? fmt::format("the kernel `{}` has no launch bounds", text)
                               : fmt::format("the kernel `{}` is bound to {} threads and launched with {}", text,
                                             bounds, it->threads),
                   "__launch_bounds__ of a number or a constant, no less than the threads of a launch");
        const auto p = parameters + 1, close = t_.match[parameters];
        if (close != p + 4 || t_.word(p) != "const" || t_.word(p + 1) != "__grid_constant__" ||
            t_.word(p + 2) != "cb_args" || t_.at(p + 3).kind != Kind::Identifier)
            refuse(parameters, "abi",
                   fmt::format("the kernel `{}` takes other parameters than the argument block", text), form());
        if (close >= end || !t_.is(close + 1, "{"))
            refuse(name, "kernel", fmt::format("the kernel `{}` has no body", text));
        judged(i, close);
        return t_.match[close + 1] + 1;
    }

    static std::string form() {
        return "extern \"C\" __global__ void __launch_bounds__(N) NAME(const __grid_constant__ cb_args ARGS)";
    }
    std::string list() const {
        std::string text;
        for (const auto& k : declared_.kernels) text += (text.empty() ? "" : ", ") + k.name;
        return text.empty() ? "none" : text;
    }

    /// Of (threads) or (threads, blocks); 0: it can't be told.
    int launch_bounds(std::size_t i, std::size_t close) const {
        if (close != i + 1 && !(close == i + 3 && t_.is(i + 1, ",") && t_.at(i + 2).kind == Kind::Number)) return 0;
        if (const auto n = t_.at(i).kind == Kind::Number ? number(i) : std::nullopt) return *n;
        const auto it = numbers_.find(t_.word(i));
        return it == numbers_.end() ? 0 : it->second;
    }

    const Text& t_;
    const Declared& declared_;
    Outline out_;
    int depth_ = 0;
    Names defined_, kernels_;
    std::vector<std::pair<std::string, std::size_t>> bodiless_;
    std::map<std::string, int, std::less<>> numbers_;
};

} // namespace

Outline outline_of(const Text& text, const Declared& declared) {
    return Parser(text, declared).run();
}

} // namespace cubridge::runtime::gates
