// What a launch of a program needs. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/agents.h"
#include "ir/lower/expression.h"
#include "ir/lower/facts.h"
#include "ir/lower/lower.h"
#include <algorithm>
#include <limits>

namespace cubridge::ir::lower {

using cuir::Kernel;
using cuir::Statement;
using syntax::Kind;
using syntax::Node;
using K = Statement::Kind;

namespace {

constexpr int kLine = 128;                ///< bytes: what `Smem::take` and a row of a cell round up to
constexpr int kPanel = 1024;              ///< where swizzled panels begin
constexpr int kBarrier = 8, kEntry = 512; ///< bytes of a barrier, of an entry of a channel
constexpr int kMostRows = 256;            ///< of a tensor map's box
constexpr int kMostStep = 1024;           ///< as plans have them

const Node* keyword(const Node& call, std::string_view name) {
    for (const auto& k : call.keywords)
        if (k.name == name) return k.value.get();
    return nullptr;
}

std::int64_t rounded_up(std::int64_t n, std::int64_t to) {
    return (n + to - 1) / to * to;
}

/// The call that gives the kernel's items: of a loop, `enumerate` around it or not.
const Node* find_items(const std::vector<Statement>& body, bool map) {
    for (const auto& s : body) {
        if (s.kind == K::For) {
            const Node* call = s.node->items[1].get();
            if (callee(*call) == "enumerate" && call->items.size() == 2) call = call->items[1].get();
            const auto name = callee(*call);
            if (map ? name == "each" : name == "bind" || name == "draw") return call;
        }
        if (const Node* n = find_items(s.body, map)) return n;
    }
    return nullptr;
}

/// The values of an assignment, each with its name: `a, b = x, y` has two. No others have any.
std::vector<std::pair<std::string, const Node*>> assigned(const Statement& s) {
    std::vector<std::pair<std::string, const Node*>> out;
    if (s.kind != K::Simple || s.node->kind != Kind::Assign || s.node->items.size() != 2) return out;
    const auto names = parts(s.node->items[0]), values = parts(s.node->items[1]);
    if (names.size() == values.size())
        for (std::size_t k = 0; k < names.size(); ++k) out.emplace_back(names[k]->text, values[k].get());
    return out;
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

bool is_shared(const Node& call) {
    return callee(call) == "alloc" && call.items.size() == 4 && call.items[1]->text == "shared";
}

std::int64_t positive(const Node& node, const std::map<std::string, std::int64_t>& known, const char* what) {
    const auto n = known_int(node, known);
    if (!n || *n <= 0 || *n > (std::int64_t{1} << 30))
        fail("no_rule", std::string(what) + " is a positive constant", node.span);
    return *n;
}

std::int64_t bytes_of(const Node& call, const Kernel& kernel, const std::map<std::string, std::int64_t>& known) {
    std::string dtype = call.items[3]->text;
    if (const auto c = kernel.constant(dtype)) dtype = c->text;
    const auto type = dtype_from_short(dtype);
    if (!type) fail("no_rule", "`" + dtype + "` is no element type", call.span);
    const auto shape = parts(call.items[2]);
    std::int64_t bytes = size_in_bytes(*type);
    for (std::size_t k = 0; k < shape.size(); ++k) {
        auto n = positive(*shape[k], known, "an extent of shared storage");
        if (bytes > (std::int64_t{1} << 30) / n) fail("no_rule", "more shared memory than there is", call.span);
        // Rows of cells are whole lines: `Cell::kPitch`, panels of 64 columns.
        if (k + 1 == shape.size() && (shape.size() > 2 || call.items[3]->text == "elem"))
            n = rounded_up(n * size_in_bytes(*type), kLine) / size_in_bytes(*type);
        bytes *= n;
    }
    return bytes;
}

/// Storage in the order of the text; then, beside warpgroups, barriers, and the entries of channels.
int shared_bytes(const Kernel& kernel) {
    const auto known = known_sizes(kernel);
    const bool panels = has_warpgroups(kernel);
    std::int64_t total = 0, barriers = 0, entries = 0;
    for (const auto& s : kernel.body)
        for (const auto& [name, value] : assigned(s))
            located(s, [&, value = value] {
                if (is_shared(*value)) {
                    total += rounded_up(bytes_of(*value, kernel, known), panels ? kPanel : kLine);
                } else if (callee(*value) == "barrier") {
                    const Node* n = keyword(*value, "n");
                    barriers += n == nullptr ? 1 : positive(*n, known, "a number of barriers");
                } else if (callee(*value) == "channel" && value->items.size() > 1) {
                    entries +=
                        1 + positive(*value->items[1], known, "a channel's number of entries"); // taken, still read
                }
            });
    total += rounded_up(kBarrier * (barriers + 2 * entries), kLine) + kEntry * entries;
    if (total > std::numeric_limits<int>::max()) fail("no_rule", "more shared memory than there is");
    return static_cast<int>(total);
}

std::string root(const Node& node) {
    return node.kind == Kind::Subscript ? root(*node.items[0]) : node.kind == Kind::Name ? node.text : "";
}

/// Tensor maps of the copies that the copy engine makes.
class Maps {
public:
    explicit Maps(const Kernel& kernel) : kernel_(kernel), known_(known_sizes(kernel)) {
        for (const auto& s : kernel.body)
            for (const auto& [name, value] : assigned(s))
                if (is_shared(*value)) cells_[name] = value;
        visit(kernel.body);
    }
    std::vector<launch::Map> maps;

private:
    void visit(const std::vector<Statement>& body) {
        for (const auto& s : body) {
            if (s.kind == K::Simple && s.node->kind == Kind::ExprStmt && callee(*s.node->items[0]) == "copy_async")
                located(s, [&] { copy(*s.node->items[0]); });
            visit(s.body);
        }
    }

    void copy(const Node& call) {
        if (call.items.size() != 3) return;
        const auto from = root(*call.items[1]), to = root(*call.items[2]);
        if (const auto cells = cells_.find(from); cells != cells_.end())
            add(to, *call.items[2], *cells->second, call);
        else if (const auto into = cells_.find(to); into != cells_.end() && keyword(call, "signal") != nullptr)
            add(from, *call.items[1], *into->second, call);
    }

    void add(const std::string& tensor, const Node& slice, const Node& cells, const Node& call) {
        using Tensor = launch::Map::Tensor;
        static const std::map<std::string, Tensor> kTensors = {
            {"Q", Tensor::Q}, {"K", Tensor::K}, {"V", Tensor::V}, {"Out", Tensor::O}};
        const auto it = kTensors.find(tensor);
        if (it == kTensors.end() || kernel_.param(tensor) == nullptr)
            fail("no_rule", "a launch has no tensor map of `" + tensor + "`", call.span);
        const auto extents = parts(cells.items[2]);
        if (extents.size() < 2) fail("no_rule", "tiles are copied by tensor maps", call.span);
        const auto rows = positive(*extents[extents.size() - 2], known_, "an extent of shared storage");
        if (rows > kMostRows) fail("no_rule", "more rows than one copy has", call.span);
        for (const auto step : steps(*parts(slice.items[1]).back())) {
            if (step > kMostStep) fail("no_rule", "rows further apart than a tensor map's", call.span);
            const launch::Map map{it->second, static_cast<int>(rows), static_cast<int>(step)};
            if (std::find(maps.begin(), maps.end(), map) != maps.end()) continue;
            if (!std::all_of(maps.begin(), maps.end(), [&](const auto& m) { return beside(m, map); }))
                fail("no_rule", "`" + tensor + "` is copied into cells of two sizes, or by two steps", call.span);
            maps.push_back(map);
        }
    }

    /// Of a slice: a constant, or a name for one of two, `by = where(dense, 1, T)`.
    std::vector<std::int64_t> steps(const Node& range) const {
        const char* what = "the step of a tensor map's rows";
        if (range.kind != Kind::Slice || !range.items[2]) return {1};
        const Node* value = range.items[2]->kind == Kind::Name ? value_of(kernel_.body, range.items[2]->text) : nullptr;
        if (value == nullptr || callee(*value) != "where" || value->items.size() != 4)
            return {positive(*range.items[2], known_, what)};
        return {positive(*value->items[2], known_, what), positive(*value->items[3], known_, what)};
    }

    static const Node* value_of(const std::vector<Statement>& body, const std::string& name) {
        for (const auto& s : body) {
            for (const auto& [n, value] : assigned(s))
                if (n == name) return value;
            if (const Node* value = value_of(s.body, name)) return value;
        }
        return nullptr;
    }

    const Kernel& kernel_;
    const std::map<std::string, std::int64_t> known_;
    std::map<std::string, const Node*> cells_;
};

Shape::Grid grid(const Kernel& kernel) {
    Shape::Grid out;
    out.kernel = kernel.name();
    const Node* items = find_items(kernel.body, kernel.is_map());
    if (items == nullptr)
        located(kernel.head[1], [&] { fail("no_rule", kernel.is_map() ? "no each()" : "no bind() or draw()"); });
    for (std::size_t k = callee(*items) == "draw" ? 2 : 1; k < items->items.size(); ++k)
        out.items.push_back(over_sizes(*items->items[k], int_constants(kernel)));
    out.threads = resources(kernel).threads;
    if (kernel.is_map()) return out;
    out.per_sm = kernel.attribute("ctas") == "sms";
    out.shared_bytes = shared_bytes(kernel);
    out.ticket = std::any_of(kernel.head.begin(), kernel.head.end(), [](const Statement& s) {
        return s.kind == K::Param && s.node->kind == Kind::Name && s.node->text == "counter";
    });
    if (has_warpgroups(kernel)) out.maps = Maps(kernel).maps;
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
