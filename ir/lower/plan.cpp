// Grids and workspace as integer expressions over launch sizes. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/plan.h"
#include <algorithm>

namespace cubridge::ir::lower {
namespace {

using launch::Code;
using launch::Size;
using syntax::Kind;
using syntax::Node;

constexpr int kMapThreads = 64, kCopyBytes = 16;
constexpr std::int64_t kMostBlocks = 1 << 20; // of a map: its threads step from element to element

Code join(Code::Do what, Code a, Code b) {
    return Code::binary(what, std::move(a), std::move(b));
}

int operand(const std::string& name) {
    if (name.size() < 2 || name.size() > 3 || name[0] != 'x' ||
        !std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; }))
        fail("no_rule", "`" + name + "` is no operand of the launch");
    return std::stoi(name.substr(1));
}

/// Expressions over sizes. In workspace extents heads count from the model's first, as they index it.
class Sizes {
public:
    Sizes(const cuir::Program& program, bool workspace) : program_(program), workspace_(workspace) {}

    Code code(const std::string& text) const {
        auto module = syntax::parse(text + "\n");
        if (!module || (*module)->body.size() != 1 || (*module)->body[0]->kind != Kind::ExprStmt)
            fail("no_rule", "`" + text + "` is no size");
        return of(*(*module)->body[0]->items[0]);
    }

private:
    Code of(const Node& e) const {
        switch (e.kind) {
        case Kind::Int: return Code::constant(e.integer);
        case Kind::Name: return named(e);
        case Kind::Binary: {
            const auto what = e.text == "+"    ? Code::Do::Add
                              : e.text == "-"  ? Code::Do::Sub
                              : e.text == "*"  ? Code::Do::Mul
                              : e.text == "//" ? Code::Do::FloorDiv
                                               : Code::Do::Push;
            if (what != Code::Do::Push) return join(what, of(*e.items[0]), of(*e.items[1]));
            break;
        }
        case Kind::Call: {
            const auto& f = e.items[0]->text;
            const auto what = f == "cdiv"      ? Code::Do::CeilDiv
                              : f == "minimum" ? Code::Do::Min
                              : f == "maximum" ? Code::Do::Max
                                               : Code::Do::Push;
            if (what != Code::Do::Push && e.items.size() == 3) return join(what, of(*e.items[1]), of(*e.items[2]));
            break;
        }
        case Kind::Subscript: // x0.shape[1]
            if (e.items[0]->kind == Kind::Attribute && e.items[0]->text == "shape" && e.items[1]->kind == Kind::Int)
                return Code::operand(operand(e.items[0]->items[0]->text), static_cast<int>(e.items[1]->integer));
            break;
        default: break;
        }
        fail("no_rule", "`" + syntax::print(e) + "` is no expression over launch sizes");
    }

    Code named(const Node& e) const {
        const auto size = [](Size s) { return Code::size(s); };
        if (e.text == "B") return size(Size::Requests);
        if (e.text == "Sq") return size(Size::MaxQ);
        if (e.text == "Sk") return size(Size::MaxKv);
        if (e.text == "Hq")
            return workspace_ ? join(Code::Do::Add, size(Size::HeadBegin), size(Size::HeadsQ)) : size(Size::HeadsQ);
        if (e.text == "Hk") {
            if (!workspace_) return size(Size::HeadsKv);
            auto group = join(Code::Do::FloorDiv, size(Size::HeadsQ), size(Size::HeadsKv));
            return join(Code::Do::Add, join(Code::Do::FloorDiv, size(Size::HeadBegin), std::move(group)),
                        size(Size::HeadsKv));
        }
        for (const auto& kernel : program_.kernels)
            if (const auto value = kernel.constant(e.text); value && value->kind == Kind::Int)
                return Code::constant(value->integer);
        fail("no_rule", "size `" + e.text + "` is not known at launch");
    }

    const cuir::Program& program_;
    const bool workspace_;
};

/// Operands that take the place of k or v.
std::vector<int> copied(const cuir::Program& program) {
    std::vector<int> out;
    for (const auto& k : program.kernels)
        for (const auto& s : k.head)
            if (s.kind == cuir::Statement::Kind::Param && s.name[0] == 'x' && s.node->kind == Kind::Subscript &&
                s.node->items[0]->text == "elem")
                out.push_back(operand(s.name));
    return out;
}

bool names_heads(const std::string& extent) {
    return extent.find("Hq") != std::string::npos || extent.find("Hk") != std::string::npos;
}

bool plain_heads(const std::string& extent) {
    return extent == "Hq" || extent == "Hk";
}

/// Work items over the classes of each head: kernels count those from the model's first too.
bool class_heads(const std::string& extent) {
    return extent.rfind("(Hq * ", 0) == 0 && extent.find_first_not_of("0123456789", 6) + 1 == extent.size();
}

/// Heads of another number than those of q or k: the kernels know no first one of a shard then.
bool needs_all_heads(const Shape& shape, const cuir::Program& program) {
    const auto others = [&](const std::vector<std::string>& extents) {
        return std::any_of(extents.begin(), extents.end(),
                           [](const auto& e) { return names_heads(e) && !plain_heads(e); });
    };
    const auto is_tensor_of_others = [](const cuir::Statement& s) { // B, heads, rows, columns
        return s.kind == cuir::Statement::Kind::Param && s.name[0] != 'x' && s.node->kind == Kind::Subscript &&
               s.node->items[1]->kind == Kind::Tuple && s.node->items[1]->items.size() > 2 &&
               !plain_heads(syntax::print(*s.node->items[1]->items[1]));
    };
    const auto others_of = [&](const Shape::Grid& g) {
        auto items = g.items;
        const bool role = std::any_of(program.kernels.begin(), program.kernels.end(),
                                      [&](const auto& k) { return k.name() == g.kernel && !k.is_map(); });
        if (role && items.size() > 1 && class_heads(items[1])) items[1] = "Hq";
        return others(items);
    };
    return std::any_of(shape.grids.begin(), shape.grids.end(), others_of) ||
           std::any_of(shape.storage.begin(), shape.storage.end(), [&](const auto& s) { return others(s.second); }) ||
           std::any_of(program.kernels.begin(), program.kernels.end(),
                       [&](const auto& k) { return std::any_of(k.head.begin(), k.head.end(), is_tensor_of_others); });
}

Code product(const Sizes& sizes, const std::vector<std::string>& extents, Code out) {
    for (const auto& e : extents) out = join(Code::Do::Mul, std::move(out), sizes.code(e));
    return out;
}

/// All kernels of a launch read the same maps of a tensor.
void add(std::vector<launch::Map>& maps, const launch::Map& map) {
    if (std::find(maps.begin(), maps.end(), map) != maps.end()) return;
    if (!std::all_of(maps.begin(), maps.end(), [&](const auto& m) { return beside(m, map); }))
        fail("no_rule", std::string("two kernels of the launch copy ") + launch::name(map.tensor) +
                            " by other numbers or steps of rows");
    maps.push_back(map);
}

} // namespace

std::optional<Error> fill_plan(launch::Plan& plan, const Shape& shape, const cuir::Program& program) {
    try {
        if (shape.grids.size() > launch::kMaxEntries)
            return Error{"limit", "the program has more kernels than one launch may enqueue", {}, ""};
        const Sizes local(program, false), whole(program, true);
        plan.entries.clear();
        plan.maps.clear();
        plan.ticket = false;
        for (const auto& g : shape.grids) {
            launch::Entry entry;
            entry.name = g.kernel;
            Code items = product(local, g.items, Code::constant(1));
            const auto kernel = std::find_if(program.kernels.begin(), program.kernels.end(),
                                             [&](const auto& k) { return k.name() == g.kernel; });
            const bool map = kernel != program.kernels.end() && kernel->is_map();
            if (map)
                items = join(Code::Do::Min, join(Code::Do::CeilDiv, std::move(items), Code::constant(kMapThreads)),
                             Code::constant(kMostBlocks));
            else if (g.per_sm)
                items = join(Code::Do::Min, std::move(items), Code::size(Size::SmCount));
            entry.grid = {std::move(items), Code::constant(1), Code::constant(1)};
            entry.block = {map ? kMapThreads : g.threads, 1, 1};
            entry.shared_bytes = g.shared_bytes;
            plan.entries.push_back(std::move(entry));
            plan.ticket = plan.ticket || g.ticket;
            for (const auto& m : g.maps) add(plan.maps, m);
        }
        Code bytes = Code::constant(0);
        for (std::size_t k = 0; k < shape.storage.size(); ++k) {
            Code one = product(whole, shape.storage[k].second, Code::constant(size_in_bytes(shape.storage_types[k])));
            bytes = join(Code::Do::Add, std::move(bytes), join(Code::Do::RoundUp, std::move(one), Code::constant(256)));
        }
        if (plan.ticket) bytes = join(Code::Do::Add, std::move(bytes), Code::constant(launch::kTicketBytes));
        plan.workspace = std::move(bytes);
        for (const int n : copied(program)) {
            if (n >= static_cast<int>(plan.operands.size()))
                fail("no_rule", "the launch has no operand x" + std::to_string(n));
            plan.operands[static_cast<std::size_t>(n)].alignment = kCopyBytes;
        }
        if (needs_all_heads(shape, program))
            plan.conditions.push_back(
                {launch::Condition::Kind::Equal, Code::size(Size::HeadBegin), Code::constant(0), "head_begin == 0"});
        return std::nullopt;
    } catch (const Failure& f) {
        return f.error;
    }
}

} // namespace cubridge::ir::lower
