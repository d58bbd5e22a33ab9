// One launch: memory, kernels in order, CTAs one after the other. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/launch.h"
#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace cubridge::ir::cuir {
namespace {

constexpr std::int64_t kTensor = std::int64_t{1} << 26; // elements

std::int64_t product_of(const std::vector<std::int64_t>& shape) {
    std::int64_t n = 1;
    for (const auto e : shape) {
        if (e < 0 || (e != 0 && n > kTensor / e)) trouble("limit", "a tensor has more than 2^26 elements");
        n *= e;
    }
    return n;
}

Tensor blank(std::string name, Tensor::Use use, DType type, std::vector<std::int64_t> shape) {
    Tensor t;
    t.name = std::move(name);
    t.use = use;
    t.type = type;
    t.shape = std::move(shape);
    t.is_int = !is_float(type);
    const auto n = static_cast<std::size_t>(product_of(t.shape));
    t.values.assign(n, std::numeric_limits<double>::quiet_NaN());
    t.writer.assign(n, nullptr);
    t.written_in.assign(n, -1);
    return t;
}

/// A size in a shape, from the run's sizes and constants alone.
std::int64_t extent(Launch& launch, const KernelCode& kernel, const Expr& e) {
    if (e.form == Expr::Form::Constant && e.constant.is_integer()) return e.constant.index;
    if (e.form == Expr::Form::Elementwise) {
        Value x[3];
        for (std::size_t k = 0; k < e.args.size(); ++k) x[k] = Value::integer(extent(launch, kernel, *e.args[k]));
        return apply(e.op, x, static_cast<int>(e.args.size())).index;
    }
    if (e.form == Expr::Form::Call && e.builtin == Builtin::Cdiv) {
        const auto a = extent(launch, kernel, *e.args[0]), b = extent(launch, kernel, *e.args[1]);
        if (b > 0) return (a + b - 1) / b;
    }
    if (e.form != Expr::Form::Common) trouble("static", "an extent is of sizes and constants");
    const auto& run = launch.run;
    if (const auto it = run.constants.find(e.name); it != run.constants.end()) return it->second;
    if (const auto it = run.sizes.find(e.name); it != run.sizes.end()) return it->second;
    for (std::size_t k = 0; k < kernel.constants.size(); ++k)
        if (kernel.constants[k].first == e.name && kernel.constant_values[k].is_integer())
            return kernel.constant_values[k].index;
    trouble("static", "the run does not say what `" + e.name + "` is");
}

void take_input(Launch& launch, const ParamCode& p, const Memory& memory) {
    Tensor t;
    t.name = p.name;
    t.type = p.type;
    t.shape = memory.shape;
    t.is_int = memory.is_int;
    t.input = memory.values.data();
    if (p.tensor ? memory.shape.size() != p.extents.size() : !memory.shape.empty())
        trouble("static",
                fmt::format("`{}` has {} dimensions, the run gives {}", p.name, p.extents.size(), memory.shape.size()));
    if (static_cast<std::int64_t>(memory.values.size()) != product_of(memory.shape))
        trouble("static", fmt::format("the run gives `{}` {} values for its shape", p.name, memory.values.size()));
    launch.tensors.push_back(std::move(t));
}

void make_tensors(Launch& launch) {
    for (const auto& s : launch.code.storage) {
        std::vector<std::int64_t> shape;
        const KernelCode nobody;
        for (const auto* e : s.extents) shape.push_back(extent(launch, nobody, *e));
        launch.tensors.push_back(blank(s.name, Tensor::Use::Workspace, s.type, std::move(shape)));
    }
    for (const auto& kernel : launch.code.kernels)
        for (const auto& p : kernel.params) {
            const bool known = std::any_of(launch.tensors.begin(), launch.tensors.end(),
                                           [&](const auto& t) { return t.name == p.name; });
            if (known || p.counter) continue;
            if (const auto it = launch.run.inputs.find(p.name); it != launch.run.inputs.end()) {
                take_input(launch, p, it->second);
                continue;
            }
            if (!p.tensor) trouble("static", "the run does not give `" + p.name + "`");
            std::vector<std::int64_t> shape;
            for (const auto* e : p.extents) {
                if (!e) trouble("static", "the run does not give `" + p.name + "`");
                shape.push_back(extent(launch, kernel, *e));
            }
            launch.tensors.push_back(blank(p.name, Tensor::Use::Output, p.type, std::move(shape)));
        }
}

Finding of_no_line(const Trouble& t) {
    return {t.kind, "", 0, t.other, t.message};
}

/// Every element of every output is written. The finding names the first that is not.
std::optional<Finding> unwritten(const Launch& launch) {
    for (const auto& t : launch.tensors) {
        if (t.use != Tensor::Use::Output) continue;
        const auto it = std::find(t.written_in.begin(), t.written_in.end(), -1);
        if (it == t.written_in.end()) continue;
        Finding f{"output", "", 0, 0, t.element(it - t.written_in.begin()) + " is never written"};
        for (const auto& k : launch.code.kernels)
            if (const auto* p = k.source->param(t.name)) f.line = p->line;
        return f;
    }
    return std::nullopt;
}

} // namespace

std::string Finding::text() const {
    std::string out = role;
    if (line > 0) out += (out.empty() ? "line " : ", line ") + std::to_string(line);
    return out.empty() ? message : out + ", " + message;
}

std::string Finding::whole() const {
    return run.empty() ? text() : text() + " (" + run + ")";
}

Outcome execute(const Code& code, const Run& run) {
    Outcome out;
    if (!code.findings.empty()) {
        out.findings = {code.findings.front()};
        return out;
    }
    Launch launch{code, run, {}, {}, {}, false, 0};
    try {
        make_tensors(launch);
    } catch (const Trouble& t) {
        out.findings.push_back(of_no_line(t));
        return out;
    }
    const int ctas = std::clamp(run.ctas, 1, 64);
    for (std::size_t k = 0; k < code.kernels.size() && out.findings.empty(); ++k) {
        launch.drawing = false;
        launch.left.clear();
        launch.later.clear();
        const int count = code.kernels[k].map ? 1 : ctas;
        for (int cta = 0; cta < count && out.findings.empty(); ++cta) {
            Cta machine(launch, code.kernels[k], static_cast<int>(k), cta, count);
            if (auto f = machine.run()) out.findings.push_back(std::move(*f));
            launch.left.insert(launch.left.begin(), launch.later.begin(), launch.later.end());
            launch.later.clear();
        }
    }
    out.steps = launch.steps;
    if (out.findings.empty())
        if (auto f = unwritten(launch)) out.findings.push_back(std::move(*f));
    for (auto& t : launch.tensors)
        if (t.use == Tensor::Use::Output) out.outputs[t.name] = {t.shape, std::move(t.values), t.is_int};
    return out;
}

Outcome execute(const Program& program, const Run& run) {
    return execute(*compile(program), run);
}

} // namespace cubridge::ir::cuir
