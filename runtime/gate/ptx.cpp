// Reads the text of an asm statement by statement.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/gate/ptx.h"
#include "runtime/gate/fault.h"
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <map>

namespace cubridge::runtime::gates {
namespace {

constexpr std::string_view known_registers[] = {"laneid",      "lanemask_eq", "lanemask_le", "lanemask_lt",
                                                "lanemask_ge", "lanemask_gt", "tid.x",       "ntid.x",
                                                "ctaid.x",     "nctaid.x"};

bool letter(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

class Reader {
public:
    explicit Reader(const Asm& a) : asm_(a), text_(a.text) {}

    void run() {
        for (std::size_t i = 0; i < text_.size(); ++i)
            if (text_[i] != '\n' && text_[i] != '\t' && (text_[i] < ' ' || text_[i] > '~'))
                refuse(i, "asm", "a character that PTX has not");
        for (const std::string_view mark : {"//", "/*"})
            if (const auto i = text_.find(mark); i != std::string::npos)
                refuse(i, "asm", "a comment inside of an asm is not allowed");
        int depth = 0;
        for (blanks(); at_ < text_.size(); blanks()) {
            if (take('{')) {
                ++depth;
            } else if (take('}')) {
                if (depth-- == 0) refuse(at_ - 1, "asm", "a } without its {");
            } else if (!take(';')) {
                statement();
            }
        }
        if (depth != 0) refuse(at_, "asm", "a { does not end");
    }

private:
    [[noreturn]] void refuse(std::size_t at, std::string_view rule, const std::string& message,
                             std::string hint = {}) const {
        std::size_t line = 1;
        for (const auto& [begin, l] : asm_.lines)
            if (begin <= at) line = l;
        gates::refuse(line, rule, message, std::move(hint));
    }

    void blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    }
    char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    bool take(char c) {
        blanks();
        if (next() != c) return false;
        ++at_;
        return true;
    }
    /// Letters, digits and _, and what else is said.
    std::string word(std::string_view more = {}) {
        const auto begin = at_;
        while (at_ < text_.size() && (letter(text_[at_]) || digit(text_[at_]) || more.find(text_[at_]) != more.npos))
            ++at_;
        return text_.substr(begin, at_ - begin);
    }

    void statement() {
        blanks();
        const auto begin = at_;
        if (next() == '.') return declaration();
        if (take('@')) {
            (void)take('!');
            blanks();
            if (next() == '%') {
                (void)reg();
            } else {
                const auto name = word();
                if (registers_.count(name) == 0)
                    refuse(begin, "asm", fmt::format("the predicate `{}` is not declared in its asm", name));
            }
            blanks();
        }
        const auto from = at_;
        if (!letter(next())) refuse(from, "asm", fmt::format("`{}` begins no instruction", text_.substr(from, 8)));
        const auto opcode = word(".:");
        blanks();
        if (next() == ':' || opcode.back() == ':')
            refuse(from, "asm", fmt::format("the label `{}` is not allowed", opcode), "loop in C++");
        if (const auto instead = instead_of(opcode, asm_.atomics); !instead.empty())
            refuse(from, "instruction", fmt::format("`{}` is not one that a kernel may use", opcode), instead);
        opcode_ = opcode;
        while (!take(';')) {
            if (at_ >= text_.size()) refuse(from, "asm", fmt::format("`{}` does not end with a ;", opcode));
            operand();
        }
    }

    /// .reg alone, of plain names.
    void declaration() {
        const auto begin = at_;
        ++at_;
        const auto what = word();
        blanks();
        const bool typed = take('.');
        const auto type = word();
        if (what != "reg" || !typed)
            refuse(begin, "asm", fmt::format("the directive `.{}` is not allowed", what), "only .reg is");
        do {
            blanks();
            const auto name = word();
            if (name.empty() || digit(name[0]) || name == "_") refuse(at_, "asm", "a .reg declares plain names");
            registers_[name] = type;
            blanks();
        } while (take(','));
        if (!take(';')) refuse(begin, "asm", "a .reg declares plain names");
    }

    void operand() {
        const char c = next();
        if (c == '[') return address();
        if (c == '%') {
            (void)reg();
        } else if (letter(c)) {
            const auto begin = at_;
            const auto name = word();
            if (name != "_" && registers_.count(name) == 0)
                refuse(begin, "asm", fmt::format("`{}` is not declared in its asm", name),
                       "names of the program are operands");
        } else if (digit(c)) {
            (void)word(".");
        } else if (std::string_view(",{}|-!").find(c) != std::string_view::npos) {
            ++at_;
        } else {
            refuse(at_, "asm", fmt::format("`{}` may not stand in an instruction", c));
        }
        blanks();
    }

    /// %0, or a special register: %%laneid. Answers the constraint's letter.
    char reg() {
        const auto begin = at_;
        ++at_;
        if (next() == '%') ++at_;
        if (at_ == begin + 1 && digit(next())) {
            std::size_t number = 0;
            const auto first = at_;
            while (digit(next()) && number < 1000) number = number * 10 + static_cast<std::size_t>(text_[at_++] - '0');
            const bool padded = text_[first] == '0' && at_ > first + 1; // another reader might take one digit of it
            if (padded || letter(next()) || digit(next()) || number >= asm_.operands.size())
                refuse(begin, "asm", fmt::format("%{} is no operand", number));
            blanks();
            return asm_.operands[number];
        }
        const auto name = word(".");
        if (std::find(std::begin(known_registers), std::end(known_registers), name) == std::end(known_registers)) {
            std::string list;
            for (const auto known : known_registers) list += fmt::format("{}%{}", list.empty() ? "" : ", ", known);
            refuse(begin, "register", fmt::format("`%{}` is not one that a kernel may read", name),
                   "these are: " + list);
        }
        blanks();
        return ' ';
    }

    /// [%1], [%1 + 16], and of a tensor map [%1, {...}].
    void address() {
        const auto begin = at_;
        ++at_;
        blanks();
        if (next() == '%') {
            if (reg() == ' ') refuse(begin, "address", "a special register is no address");
        } else if (letter(next())) {
            const auto name = word();
            if (registers_.count(name) == 0)
                refuse(begin, "address", fmt::format("`{}` is no address that came in as an operand", name));
            if (opcode_.find("global") != opcode_.npos || registers_[name] != "b32")
                refuse(begin, "address", "an address of global memory is an operand, not computed in the asm",
                       "compute it in C++ from the tensors");
        } else {
            refuse(begin, "address", "an address is an operand, never a number");
        }
        blanks();
        if (take('+')) {
            (void)take('-');
            blanks();
            if (!digit(next())) refuse(begin, "address", "an address is an operand, plus a number at most");
            (void)word();
            blanks();
        }
        if (opcode_.find("tensor") != opcode_.npos && take(',')) {
            if (!take('{')) refuse(begin, "address", "the coordinates of a box stand in {}");
            while (!take('}')) {
                if (next() == '[' || at_ >= text_.size())
                    refuse(begin, "address", "the coordinates of a box don't end");
                operand();
            }
        }
        if (!take(']')) refuse(begin, "address", "an address is an operand, plus a number at most");
        blanks();
    }

    const Asm& asm_;
    const std::string& text_;
    std::size_t at_ = 0;
    std::string opcode_;
    std::map<std::string, std::string> registers_; ///< with their types
};

} // namespace

void check_ptx(const Asm& assembly) {
    Reader(assembly).run();
}

} // namespace cubridge::runtime::gates
