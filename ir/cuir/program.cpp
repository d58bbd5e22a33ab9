// Statements of a program: reading, printing, comparing. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/program.h"
#include <algorithm>
#include <map>

namespace cubridge::ir::cuir {
namespace {

using syntax::Kind;
using syntax::Node;
using syntax::NodePtr;
using K = Statement::Kind;

/// Trailing comments by line. CuIR has strings of one line only, without escapes of quotes that would matter here.
std::map<int, std::string> comments_of(std::string_view text) {
    std::map<int, std::string> out;
    int line = 1;
    char quote = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '\n') {
            ++line;
            quote = 0;
        } else if (quote != 0) {
            if (c == quote) quote = 0;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '#') {
            std::size_t end = std::min(text.find('\n', at), text.size()), begin = at + 1;
            while (begin < end && text[begin] == ' ') ++begin;
            std::size_t last = end;
            while (last > begin && (text[last - 1] == ' ' || text[last - 1] == '\r')) --last;
            out[line] = std::string(text.substr(begin, last - begin));
            at = end - 1;
        }
    }
    return out;
}

class Reader {
public:
    explicit Reader(std::string_view text) : comments_(comments_of(text)) {}

    Program program(const Node& module) {
        Program out;
        for (const auto& node : module.body) {
            if (node->kind == Kind::FunctionDef && !node->decorators.empty())
                out.kernels.push_back(kernel(node));
            else if (node->kind == Kind::Assign && out.kernels.empty())
                out.storage.push_back(make(K::Simple, node));
            else
                fail("cuir", "a program is storage followed by decorated kernels", node->span,
                     "write `@kernel(...)` or `@map` before the def");
        }
        if (out.kernels.empty())
            fail("cuir", "the program has no kernel", module.span, "write `@kernel(...)` before a def");
        return out;
    }

    std::vector<Statement> block(const std::vector<NodePtr>& nodes) {
        std::vector<Statement> out;
        for (const auto& node : nodes) append(out, node);
        return out;
    }

private:
    Statement make(K kind, NodePtr node, std::string name = "") {
        Statement s;
        s.kind = kind;
        s.line = node->span.line;
        s.name = std::move(name);
        if (const auto it = comments_.find(s.line); it != comments_.end()) s.comment = it->second;
        s.node = std::move(node);
        return s;
    }

    Kernel kernel(const NodePtr& node) {
        Kernel out;
        if (node->decorators.size() != 1) fail("cuir", "a kernel has one decorator", node->span);
        out.head.push_back(make(K::Decorator, node->decorators[0]));
        out.head.push_back(make(K::Kernel, node, node->text));
        out.head.back().line = node->decorators[0]->span.line + 1;
        bool constants = false;
        Span at{};
        for (const auto& p : node->params) {
            if (p.form == syntax::Param::Form::Bar) {
                constants = true;
                at = p.span;
            } else if (p.form != syntax::Param::Form::Normal) {
                fail("cuir", "a kernel's parameters are plain", p.span);
            } else if (constants) {
                if (!p.fallback)
                    fail("cuir", "constant `" + p.name + "` has no value", p.span, "write " + p.name + "=1");
            } else {
                if (!p.annotation)
                    fail("cuir", "parameter `" + p.name + "` has no type", p.span, "write " + p.name + ": f32[B, Hq]");
                auto s = make(K::Param, p.annotation, p.name);
                s.line = p.span.line;
                if (const auto it = comments_.find(s.line); it != comments_.end()) s.comment = it->second;
                out.head.push_back(std::move(s));
            }
        }
        out.head.push_back(make(K::Constants, node));
        if (constants) out.head.back().line = at.line;
        if (const auto it = comments_.find(out.head.back().line); it != comments_.end())
            out.head.back().comment = it->second;
        out.body = block(node->body);
        return out;
    }

    void append(std::vector<Statement>& out, const NodePtr& node) {
        switch (node->kind) {
        case Kind::FunctionDef: open(out, K::Def, node, node->text); break;
        case Kind::With: open(out, K::With, node); break;
        case Kind::For: open(out, K::For, node); break;
        case Kind::While: open(out, K::While, node); break;
        case Kind::If:
            open(out, K::If, node);
            if (!node->orelse.empty()) {
                Statement other;
                other.kind = K::Else;
                other.line = std::max(node->orelse[0]->span.line - 1, 1);
                if (const auto it = comments_.find(other.line); it != comments_.end()) other.comment = it->second;
                other.body = block(node->orelse);
                out.push_back(std::move(other));
            }
            break;
        case Kind::Assign:
        case Kind::AugAssign:
        case Kind::ExprStmt:
        case Kind::Return:
        case Kind::Break:
        case Kind::Pass:
        case Kind::Assert: out.push_back(make(K::Simple, node)); break;
        default:
            fail("cuir", "this statement does not exist in CuIR", node->span,
                 "a program has assignments, calls, def, with, for, while, if, return, break and assert");
        }
        if (!node->orelse.empty() && node->kind != Kind::If)
            fail("cuir", "a loop has no else in CuIR", node->orelse[0]->span);
    }

    void open(std::vector<Statement>& out, K kind, const NodePtr& node, std::string name = "") {
        auto s = make(kind, node, std::move(name));
        s.body = block(node->body);
        out.push_back(std::move(s));
    }

    std::map<int, std::string> comments_;
};

std::string first_line(std::string text) {
    text.resize(std::min(text.find('\n'), text.size()));
    return text;
}

/// The line of a node that opens a block: printed with nothing in it.
std::string opening(const Node& node) {
    Node bare = node;
    auto pass = std::make_shared<Node>();
    pass->kind = Kind::Pass;
    bare.body = {pass};
    bare.orelse.clear();
    bare.decorators.clear();
    return first_line(syntax::print(bare));
}

std::string text_of(const NodePtr& node) {
    auto text = syntax::print(*node);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

std::string constants_of(const Node& def) {
    std::string out;
    bool constants = false;
    for (const auto& p : def.params) {
        if (p.form == syntax::Param::Form::Bar)
            constants = true;
        else if (constants)
            out += (out.empty() ? "*, " : ", ") + p.name + "=" + text_of(p.fallback);
    }
    return out + "):";
}

class Printer {
public:
    void line(const Statement& s, int depth) {
        std::string text(static_cast<std::size_t>(depth) * 4, ' ');
        text += line_of(s);
        if (!s.comment.empty()) {
            text.resize(std::max(text.size() + 2, std::size_t{60}), ' ');
            text += "# " + s.comment;
        }
        out += text + "\n";
    }
    void block(const std::vector<Statement>& body, int depth) {
        for (const auto& s : body) {
            if (depth == 1 && (s.kind == K::Def || s.kind == K::With) && &s != &body.front()) out += "\n";
            line(s, depth);
            if (!s.opens_block()) continue;
            if (s.body.empty()) out += std::string(static_cast<std::size_t>(depth + 1) * 4, ' ') + "pass\n";
            block(s.body, depth + 1);
        }
    }
    std::string out;
};

bool equal(const std::vector<Statement>& a, const std::vector<Statement>& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
               return same_line(x, y) && equal(x.body, y.body);
           });
}

} // namespace

const std::string& Kernel::name() const {
    return head[1].name;
}

bool Kernel::is_map() const {
    const auto& d = *head[0].node;
    return (d.kind == Kind::Call ? d.items[0]->text : d.text) == "map";
}

std::string Kernel::attribute(std::string_view keyword) const {
    for (const auto& k : head[0].node->keywords)
        if (k.name == keyword && k.value->kind == Kind::String) return k.value->text;
    return "";
}

syntax::NodePtr Kernel::constant(std::string_view name) const {
    bool constants = false;
    for (const auto& p : head.back().node->params) {
        if (p.form == syntax::Param::Form::Bar) constants = true;
        if (constants && p.name == name) return p.fallback;
    }
    return nullptr;
}

const Statement* Kernel::param(std::string_view name) const {
    for (const auto& s : head)
        if (s.kind == K::Param && s.name == name) return &s;
    return nullptr;
}

const Kernel* Program::main() const {
    for (const auto& k : kernels)
        if (!k.is_map()) return &k;
    return nullptr;
}

Result<Program> read(std::string_view text) {
    try {
        auto module = syntax::parse(text);
        if (!module) return module.error();
        return Reader(text).program(**module);
    } catch (const Failure& f) {
        return f.error;
    }
}

Result<Statement> statement(std::string_view line) {
    try {
        if (line == "else:") {
            Statement s;
            s.kind = K::Else;
            return s;
        }
        const bool opens = !line.empty() && line.back() == ':';
        auto module = syntax::parse(std::string(line) + (opens ? "\n    pass\n" : "\n"));
        if (!module) return module.error();
        auto body = Reader("").block((*module)->body);
        if (body.size() != 1) return Error{"cuir", "not one statement: " + std::string(line), {}, ""};
        body[0].line = 0;
        body[0].body.clear();
        return std::move(body[0]);
    } catch (const Failure& f) {
        return f.error;
    }
}

std::string line_of(const Statement& s) {
    switch (s.kind) {
    case K::Decorator: return "@" + text_of(s.node);
    case K::Kernel: return "def " + s.name + "(";
    case K::Param: return s.name + ": " + text_of(s.node) + ",";
    case K::Constants: return constants_of(*s.node);
    case K::Else: return "else:";
    case K::Simple: return text_of(s.node);
    default: return opening(*s.node);
    }
}

bool same_line(const Statement& a, const Statement& b) {
    return a.kind == b.kind && line_of(a) == line_of(b);
}

bool equal(const Program& a, const Program& b) {
    return equal(a.storage, b.storage) && a.kernels.size() == b.kernels.size() &&
           std::equal(a.kernels.begin(), a.kernels.end(), b.kernels.begin(),
                      [](const auto& x, const auto& y) { return equal(x.head, y.head) && equal(x.body, y.body); });
}

std::string print(const Program& program) {
    Printer printer;
    printer.block(program.storage, 0);
    for (const auto& k : program.kernels) {
        if (!printer.out.empty()) printer.out += "\n";
        for (const auto& s : k.head) printer.line(s, s.kind == K::Param || s.kind == K::Constants ? 1 : 0);
        printer.block(k.body, 1);
    }
    return std::move(printer.out);
}

} // namespace cubridge::ir::cuir
