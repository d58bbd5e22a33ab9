// What a launch of a program needs. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/expression.h"
#include "ir/lower/facts.h"
#include "ir/lower/lower.h"
#include <limits>

namespace cubridge::ir::lower {

using cuir::Kernel;
using cuir::Statement;
using syntax::Kind;
using syntax::Node;
using K = Statement::Kind;

namespace {

constexpr int kLine = 128; ///< bytes: what `Smem::take` and a row of a cell round up to

std::int64_t rounded_up(std::int64_t n, std::int64_t to) {
    return (n + to - 1) / to * to;
}

const Node* find_loop(const std::vector<Statement>& body, const char* over) {
    for (const auto& s : body) {
        if (s.kind == K::For && callee(*s.node->items[1]) == over) return s.node->items[1].get();
        if (const Node* n = find_loop(s.body, over)) return n;
    }
    return nullptr;
}

/// An expression over sizes with the kernel's constants put in: "cdiv(Sq, 128)".
std::string over_sizes(const Node& node, const std::map<std::string, std::int64_t>& constants) {
    if (const auto v = known_int(node, constants)) return std::to_string(*v);
    if (node.kind == Kind::Name || node.kind == Kind::Subscript) return syntax::print(node);
    if (node.kind == Kind::Binary)
        return "(" + over_sizes(*node.items[0], constants) + " " + node.text + " " +
               over_sizes(*node.items[1], constants) + ")";
    if (node.kind == Kind::Call && node.items[0]->kind == Kind::Name) {
        std::string out = node.items[0]->text + "(";
        for (std::size_t k = 1; k < node.items.size(); ++k)
            out += (k == 1 ? "" : ", ") + over_sizes(*node.items[k], constants);
        return out + ")";
    }
    fail("no_rule", "`" + syntax::print(node) + "` is no size of a launch", node.span);
}

/// Constants and what the prelude computes from them alone: R = BM // W.
std::map<std::string, std::int64_t> known_sizes(const Kernel& kernel) {
    auto out = int_constants(kernel);
    for (const auto& s : kernel.body)
        if (s.kind == K::Simple && s.node->kind == Kind::Assign && s.node->items.size() == 2 &&
            s.node->items[0]->kind == Kind::Name)
            if (const auto v = known_int(*s.node->items[1], out)) out[s.node->items[0]->text] = *v;
    return out;
}

int shared_bytes(const Kernel& kernel) {
    const auto known = known_sizes(kernel);
    std::int64_t total = 0;
    for (const auto& s : kernel.body) {
        if (s.kind != K::Simple || s.node->kind != Kind::Assign) continue;
        const Node& call = *s.node->items.back();
        if (callee(call) != "alloc" || call.items.size() != 4 || call.items[1]->text != "shared") continue;
        located(s, [&] {
            std::string dtype = call.items[3]->text;
            if (const auto c = kernel.constant(dtype)) dtype = c->text;
            const auto type = dtype_from_short(dtype);
            if (!type) fail("no_rule", "`" + dtype + "` is no element type", call.span);
            const auto shape = parts(call.items[2]);
            std::int64_t bytes = size_in_bytes(*type);
            for (std::size_t k = 0; k < shape.size(); ++k) {
                auto n = known_int(*shape[k], known);
                if (!n || *n <= 0 || bytes > (std::int64_t{1} << 30) / *n)
                    fail("no_rule", "an extent of shared storage is a positive constant", shape[k]->span);
                // Rows of cells are whole lines: `Cell::kPitch`.
                if (k + 1 == shape.size() && (shape.size() > 2 || call.items[3]->text == "elem"))
                    n = rounded_up(*n * size_in_bytes(*type), kLine) / size_in_bytes(*type);
                bytes *= *n;
            }
            total += rounded_up(bytes, kLine);
        });
    }
    if (total > std::numeric_limits<int>::max()) fail("no_rule", "more shared memory than there is");
    return static_cast<int>(total);
}

Shape::Grid grid(const Kernel& kernel) {
    Shape::Grid out;
    out.kernel = kernel.name();
    out.threads = resources(kernel).threads;
    const Node* items = find_loop(kernel.body, kernel.is_map() ? "each" : "bind");
    if (items == nullptr)
        located(kernel.head[1], [&] { fail("no_rule", kernel.is_map() ? "no each()" : "no bind()"); });
    for (std::size_t k = 1; k < items->items.size(); ++k)
        out.items.push_back(over_sizes(*items->items[k], int_constants(kernel)));
    if (kernel.is_map()) return out;
    out.per_sm = kernel.attribute("ctas") == "sms";
    out.shared_bytes = shared_bytes(kernel);
    return out;
}

} // namespace

Result<Shape> shape_of(const cuir::Program& program) {
    try {
        Shape out;
        for (const auto& s : program.storage)
            located(s, [&] {
                const Node& call = *s.node->items.back();
                if (callee(call) != "alloc" || call.items.size() != 4)
                    fail("no_rule", "storage of a program is alloc(workspace, ...)", call.span);
                const auto type = dtype_from_short(call.items[3]->text);
                if (!type) fail("no_rule", "`" + call.items[3]->text + "` is no element type", call.span);
                std::vector<std::string> extents;
                const Kernel* main = program.main();
                for (const auto& axis : parts(call.items[2]))
                    extents.push_back(over_sizes(*axis, main != nullptr ? int_constants(*main)
                                                                        : std::map<std::string, std::int64_t>{}));
                out.storage.emplace_back(s.node->items[0]->text, extents);
                out.storage_types.push_back(*type);
            });
        for (const auto& k : program.kernels) out.grids.push_back(grid(k));
        return out;
    } catch (const Failure& f) {
        return f.error;
    }
}

} // namespace cubridge::ir::lower
