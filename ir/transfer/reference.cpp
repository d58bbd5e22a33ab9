// What a specification says about a run, by its own evaluator. SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/reference.h"
#include "ir/expr/evaluate.h"
#include "ir/spec/variant.h"
#include "ir/transfer/draw.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace cubridge::ir::transfer {

std::string parameter(const Specification& s, int input) {
    if (input < 3) return std::string(1, "QKV"[input]);
    const auto order = s.order();
    const auto it = std::find(order.begin(), order.end(), input);
    return it == order.end() ? "" : "x" + std::to_string(it - order.begin());
}

std::vector<Argument> arguments_of(const Specification& s, const cuir::Run& run) {
    std::vector<Argument> out;
    for (int n = 0; n < static_cast<int>(s.inputs().size()); ++n) {
        const auto it = run.inputs.find(parameter(s, n));
        const Input& x = s.inputs()[static_cast<std::size_t>(n)];
        if (it == run.inputs.end() || x.fate == Input::Fate::Static || x.fate == Input::Fate::Absent)
            out.emplace_back();
        else
            out.emplace_back(Array{x.dtype, it->second.shape, it->second.values});
    }
    return out;
}

namespace {

using cuir::Memory;
using cuir::Run;

/// A value of the Variant over b, h, i of a run.
std::vector<double> values(const Specification& s, const Run& run, Expr e, const std::vector<std::int64_t>& shape) {
    Environment env;
    for (const auto& [name, number] : kSizes) env.dims[number] = run.sizes.at(name);
    for (int n = 0; n < static_cast<int>(s.inputs().size()); ++n) {
        const auto it = run.inputs.find(parameter(s, n));
        if (it == run.inputs.end()) continue;
        env.inputs[n] = {it->second.shape, std::make_shared<const std::vector<double>>(it->second.values)};
        for (std::size_t k = 0; k < it->second.shape.size(); ++k)
            env.dims[dims::of(n, static_cast<int>(k))] = it->second.shape[k];
    }
    const auto size = [&](const char* tensor, std::size_t k) { return run.inputs.at(tensor).shape[k]; };
    env.dims[dims::Hv] = size("V", 1), env.dims[dims::kB] = size("K", 0), env.dims[dims::kD] = size("K", 3);
    env.dims[dims::vB] = size("V", 0), env.dims[dims::vS] = size("V", 2);
    return Evaluator(*s.variant()->pool, env).over(e, shape);
}

Result<std::map<std::string, Memory>> answer(const Specification& s, const Request& request, const Run& run);

/// Rows of a tensor [B, H, rows, ...]: the last `count`, with `before` in front of those that there are.
Memory last_rows(const Memory& m, std::int64_t count, double before) {
    Memory out = m;
    const std::int64_t have = m.shape[2], heads = m.shape[0] * m.shape[1];
    out.shape[2] = count;
    std::int64_t width = 1;
    for (std::size_t k = 3; k < m.shape.size(); ++k) width *= m.shape[k];
    out.values.assign(static_cast<std::size_t>(heads * count * width), before);
    for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t n = 0; n < std::min(have, count) * width; ++n)
            out.values[static_cast<std::size_t>((h + 1) * count * width - 1 - n)] =
                m.values[static_cast<std::size_t>((h + 1) * have * width - 1 - n)];
    return out;
}

/// The queries are the last rows of a square text: it is asked about all rows, and the last ones of its answer count.
Result<std::map<std::string, Memory>> answer_tail(const Specification& s, Request request, const Run& run) {
    request.rows = Request::Rows::AsWritten;
    Run square = run;
    const std::int64_t rows = run.sizes.at("Sq"), keys = run.sizes.at("Sk");
    square.sizes["Sq"] = keys;
    square.inputs["Q"] = last_rows(run.inputs.at("Q"), keys, 0.0);
    auto all = answer(s, request, square);
    if (!all) return all;
    for (auto& [name, m] : *all) m = last_rows(m, rows, name == "Lse" ? -std::numeric_limits<double>::infinity() : 0.0);
    return all;
}

Result<std::map<std::string, Memory>> answer(const Specification& s, const Request& request, const Run& run) {
    if (request.rows == Request::Rows::Tail) return answer_tail(s, request, run);
    auto text = s.evaluate(arguments_of(s, run), kBudget);
    if (!text) return text.error();
    std::map<std::string, Memory> out;
    out["Out"] = {(*text)[0].shape, (*text)[0].values, false};
    std::vector<std::int64_t> rows = out["Out"].shape;
    const auto columns = static_cast<std::size_t>(rows.back());
    rows.pop_back();
    const Variant* v = s.variant();
    const bool wants_lse = request.lse != Request::Lse::None;
    if (wants_lse && text->size() > 1)
        out["Lse"] = {(*text)[1].shape, (*text)[1].values, false};
    else if (wants_lse && v && v->row_lse)
        out["Lse"] = {rows, values(s, run, v->row_lse, rows), false};
    const auto lse = out.find("Lse");
    if (lse != out.end() && request.lse == Request::Lse::Log2)
        for (double& x : lse->second.values) x /= std::log(2.0);
    if (request.empty_rows == Request::EmptyRows::Zero && v && v->row_is_empty) {
        const auto empty = values(s, run, v->row_is_empty, rows);
        for (std::size_t r = 0; r < empty.size(); ++r) {
            if (empty[r] == 0) continue;
            std::fill_n(out["Out"].values.begin() + static_cast<std::ptrdiff_t>(r * columns), columns, 0.0);
            if (lse != out.end()) lse->second.values[r] = -std::numeric_limits<double>::infinity();
        }
    }
    return out;
}

} // namespace

cuir::Reference reference_of(const Specification& specification, const Request& request) {
    return [&specification, request](const Run& run) -> Result<std::map<std::string, Memory>> {
        try {
            return answer(specification, request, run);
        } catch (const Failure& f) {
            return f.error;
        }
    };
}

} // namespace cubridge::ir::transfer
