// Files in margin form: taking apart, joining, lifting. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/lower.h"
#include "ir/lower/regions.h"
#include <algorithm>

namespace cubridge::ir::lower {

using cuir::Statement;
using K = Statement::Kind;

namespace {

std::string_view trimmed(std::string_view s) {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    return s;
}

std::string comment_of(std::string_view margin) {
    const auto at = margin.find('#');
    return at == margin.npos ? "" : std::string(trimmed(margin.substr(at + 1)));
}

/// Lines that the reader of programs can't know where CUDA lies between: `else:`, `def NAME(`, `):`.
class Lines {
public:
    explicit Lines(const Margin& margin) : margin_(margin) {}

    void fix(cuir::Program& program) {
        for (auto& k : program.kernels) {
            auto& name = k.head[1];
            set(name, after(k.head[0].line, "def " + name.name));
            auto& constants = k.head.back();
            if (cuir::line_of(constants) == "):") set(constants, after(k.head[k.head.size() - 2].line, "):"));
            block(k.body);
        }
    }

private:
    void block(std::vector<Statement>& body) {
        for (auto& s : body) {
            if (s.kind == K::Else && !s.body.empty()) set(s, before(s.body[0].line, "else:"));
            block(s.body);
        }
    }

    int after(int line, const std::string& text) const {
        for (const auto& s : margin_.segments)
            if (s.line > line && trimmed(s.margin).substr(0, text.size()) == text) return s.line;
        return 0;
    }

    int before(int line, const std::string& text) const {
        int found = 0;
        for (const auto& s : margin_.segments)
            if (s.line < line && trimmed(s.margin).substr(0, text.size()) == text) found = s.line;
        return found;
    }

    void set(Statement& s, int line) const {
        for (const auto& m : margin_.segments)
            if (m.line == line) {
                s.line = line;
                s.comment = comment_of(m.margin);
            }
    }

    const Margin& margin_;
};

} // namespace

bool closes(const Margin::Segment& s) {
    return trimmed(s.margin) == "# end";
}

Result<Margin> take_apart(std::string_view cuda) {
    Margin out;
    if (!cuda.empty() && cuda.back() != '\n') return Error{"margin", "the file ends without a newline", {}, ""};
    int line = 0;
    while (!cuda.empty()) {
        ++line;
        const auto end = cuda.find('\n');
        std::string text(cuda.substr(0, end));
        cuda.remove_prefix(end + 1);
        const Span here{line, 1, line, static_cast<int>(text.size()) + 1};
        if (text.find('\r') != text.npos) return Error{"margin", "a carriage return", here, "use newlines alone"};
        if (const auto at = text.find("//|"); at != text.npos && at == text.find_first_not_of(" \t") && at != 0)
            return Error{"margin", "a margin line begins in the first column", here, "move `//|` to the left"};
        if (text.rfind("//|", 0) == 0) {
            if (text.size() > 3 && text[3] != ' ' && text[3] != '!')
                return Error{"margin", "a margin line begins with `//| `", here, "add a blank"};
            Margin::Segment s;
            s.edited = text.size() > 3 && text[3] == '!';
            s.margin = text.size() > 3 ? text.substr(4) : "";
            if (text.size() == 3) return Error{"margin", "an empty margin line", here, "remove it"};
            s.line = line;
            out.segments.push_back(std::move(s));
        } else if (out.segments.empty()) {
            out.preamble += text + "\n";
        } else {
            out.segments.back().cuda.push_back(std::move(text));
        }
    }
    if (out.segments.empty()) return Error{"margin", "the file has no margin", {}, "CuIR stands in lines `//| ...`"};
    return out;
}

std::string join(const Margin& margin) {
    std::string out = margin.preamble;
    for (const auto& s : margin.segments) {
        out += (s.edited ? "//|!" : "//| ") + s.margin + "\n";
        for (const auto& l : s.cuda) out += l + "\n";
    }
    return out;
}

Result<cuir::Program> lift(std::string_view cuda) {
    const auto margin = take_apart(cuda);
    if (!margin) return margin.error();
    std::string text;
    int line = 1;
    for (const auto& s : margin->segments) {
        for (; line < s.line; ++line) text += "\n";
        text += closes(s) ? "" : s.margin;
    }
    auto program = cuir::read(text + "\n");
    if (!program) return program.error();
    Lines(*margin).fix(*program);
    return program;
}

} // namespace cubridge::ir::lower
