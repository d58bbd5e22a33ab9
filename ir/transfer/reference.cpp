// SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/reference.h"
#include "ir/expr/evaluate.h"
#include "ir/spec/state.h"
#include "ir/spec/variant.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace cubridge::ir::transfer {
namespace {

using cuir::Memory;
using cuir::Run;

constexpr std::int64_t kBudget = std::int64_t{1} << 22; // elements of all temporaries of an evaluation
constexpr std::int64_t kLargeHead = 32;

constexpr std::pair<const char*, int> kSizes[] = {{"B", dims::B},   {"Hq", dims::Hq}, {"Hk", dims::Hk},
                                                  {"Sq", dims::Sq}, {"Sk", dims::Sk}, {"D", dims::D},
                                                  {"Dv", dims::Dv}};

/// The parameter that an input of the specification is.
std::string parameter(const Specification& s, int input) {
    if (input < 3) return std::string(1, "QKV"[input]);
    const auto order = s.order();
    const auto it = std::find(order.begin(), order.end(), input);
    return it == order.end() ? "" : "x" + std::to_string(it - order.begin());
}

std::vector<Argument> arguments_of(const Specification& s, const Run& run) {
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

std::int64_t constant(const cuir::Program& p, const char* name, std::int64_t otherwise) {
    const auto node = p.main() ? p.main()->constant(name) : nullptr;
    return node ? node->integer : otherwise;
}

/// Inputs of about those sizes that the text itself accepts. A draw that it refuses (an index out of range) is drawn
/// again with tamer values, and with more room for what values index.
std::optional<Run> draw(const Specification& s, const std::array<std::int64_t, 7>& wanted, std::uint64_t seed,
                        bool tame, const std::vector<std::map<int, std::int64_t>>& done) {
    for (const std::int64_t room : {6, 40, 300}) {
        const auto sizes = spec::sizes_near(s.scalar(), wanted, room, seed);
        if (!sizes) continue;
        const bool again = std::any_of(done.begin(), done.end(), [&](const auto& d) {
            return std::all_of(d.begin(), d.end(), [&](const auto& x) { return sizes->at(x.first) == x.second; });
        });
        if (again) return std::nullopt;
        for (int attempt = tame ? 1 : 0; attempt < 3; ++attempt) {
            auto inputs = spec::random_inputs(s.scalar(), *sizes, seed);
            for (std::size_t k = 3; k < inputs.size() && attempt > 0; ++k) {
                const Input& x = s.inputs()[k];
                if (!inputs[k]) continue;
                if (x.fate == Input::Fate::Bound) inputs[k]->values[0] = x.value;
                if (attempt > 1 && !is_float(x.dtype))
                    for (double& v : inputs[k]->values) v = std::fmod(v, 2);
            }
            Run run;
            for (const auto& [name, number] : kSizes) run.sizes[name] = sizes->at(number);
            for (int k = 0; k < static_cast<int>(inputs.size()); ++k) {
                const auto name = parameter(s, k);
                const auto& x = inputs[static_cast<std::size_t>(k)];
                if (x && !name.empty()) run.inputs[name] = {x->shape, x->values, !is_float(x->dtype)};
            }
            if (!s.evaluate(arguments_of(s, run), kBudget)) continue;
            return run;
        }
    }
    return std::nullopt;
}

using Wanted = std::array<std::int64_t, 7>; // B, Hk, group, Sq, Sk, D, Dv

/// Tiles have 2 rows an agent and 3 keys.
constexpr Wanted kShapes[] = {{2, 1, 2, 5, 7, 3, 3},   {1, 2, 1, 10, 4, 3, 3}, {2, 2, 3, 1, 9, 2, 3},
                              {1, 1, 1, 9, 9, 3, 3},   {1, 2, 2, 17, 3, 3, 2}, {1, 1, 3, 3, 16, 3, 3},
                              {2, 1, 1, 11, 13, 3, 3}, {1, 1, 2, 4, 0, 3, 3}};
/// For texts that demand a large head dim: transforms of q and k go element by element.
constexpr Wanted kFewRows[] = {{1, 1, 1, 2, 4, 3, 3}, {1, 1, 1, 3, 2, 3, 3}};

class Trials {
public:
    Trials(const cuir::Program& program, const Specification& specification, std::uint64_t seed)
        : program_(program), specification_(specification), seed_(seed),
          agents_(constant(program, "W", constant(program, "WG", 4))),
          square_(constant(program, "D", 0) == constant(program, "Dv", 0)) {
        for (const Input& x : specification.inputs()) bound_ = bound_ || x.fate == Input::Fate::Bound;
    }

    cuir::Trial run() {
        cuir::Trial out;
        std::uint64_t n = 0;
        for (const Wanted& wanted : kShapes) {
            const auto r = shaped(wanted, n++);
            if (r && r->sizes.at("D") > kLargeHead) return few();
            if (!r) continue;
            for (const auto policy : {Run::Policy::Late, Run::Policy::Early, Run::Policy::Random}) {
                out.runs.push_back(*r);
                out.runs.back().policy = policy;
            }
        }
        return out;
    }

private:
    cuir::Trial few() {
        cuir::Trial out;
        done_.clear();
        std::uint64_t n = 0;
        for (const Wanted& wanted : kFewRows)
            if (auto r = shaped(wanted, n++)) out.runs.push_back(std::move(*r));
        return out;
    }

    std::optional<Run> shaped(const Wanted& wanted, std::uint64_t n) {
        std::optional<Run> out = drawn(wanted, n, false);
        // numbers that the text divides by, drawn so that no integer holds the quotient
        if (out && bound_ && out->sizes.at("D") <= kLargeHead) {
            const auto outcome = cuir::execute(program_, *out);
            if (!outcome.findings.empty() && outcome.findings[0].kind == "range") out = drawn(wanted, n, true);
        }
        if (!out) return out;
        done_.push_back({});
        for (const auto& [name, number] : kSizes) done_.back()[number] = out->sizes[name];
        return out;
    }

    std::optional<Run> drawn(Wanted wanted, std::uint64_t n, bool tame) const {
        auto out = draw(specification_, wanted, seed_ * 131 + n, tame, done_);
        if (out && square_ && out->sizes["D"] != out->sizes["Dv"]) {
            wanted[5] = wanted[6] = out->sizes["D"];
            out = draw(specification_, wanted, seed_ * 131 + n, tame, done_);
        }
        if (!out || (square_ && out->sizes["D"] != out->sizes["Dv"])) return std::nullopt;
        out->constants = {{"BM", 2 * agents_},
                          {"BN", 3},
                          {"D", out->sizes["D"]},
                          {"Dv", out->sizes["Dv"]},
                          {"ST", 1 + static_cast<std::int64_t>(n % 2)}};
        out->seed = seed_ + n;
        if (out->sizes["D"] > kLargeHead) out->steps *= 50;
        return out;
    }

    const cuir::Program& program_;
    const Specification& specification_;
    std::uint64_t seed_;
    std::int64_t agents_;
    bool square_, bound_ = false;
    std::vector<std::map<int, std::int64_t>> done_;
};

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

Result<cuir::Trial> trial_of(const cuir::Program& program, const Specification& specification, std::uint64_t seed) {
    try {
        auto out = Trials(program, specification, seed).run();
        if (out.runs.empty()) return Error{"domain", "no small sizes satisfy what the text demands", {}, ""};
        return out;
    } catch (const Failure& f) {
        return f.error;
    }
}

} // namespace cubridge::ir::transfer
