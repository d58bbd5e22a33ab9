// Runs of a trial, drawn. SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/draw.h"
#include "ir/transfer/writer.h"
#include <algorithm>
#include <cmath>
#include <random>

namespace cubridge::ir::transfer {
namespace {

using cuir::Run;

std::int64_t constant(const cuir::Program& p, const char* name, std::int64_t otherwise) {
    const auto node = p.main() ? p.main()->constant(name) : nullptr;
    return node ? node->integer : otherwise;
}

/// Integers at which a program may go wrong: about lengths and multiples of its tiles, below 0, far beyond.
class Edges {
public:
    Edges(const std::map<int, std::int64_t>& sizes, std::int64_t rows, std::int64_t keys, std::uint64_t seed)
        : rows_(sizes.at(dims::Sq)), keys_(sizes.at(dims::Sk)), reach_(std::max(rows_, keys_)), tile_rows_(rows),
          tile_keys_(keys), even_(seed % 2 == 0), random_(seed) {}

    double scalar() { return static_cast<double>(number()); }
    /// What positions are compared with.
    void meets(double v) { met_.push_back(static_cast<std::int64_t>(v)); }

    /// Positions: in groups of about a tile, in order or not; or each a number of its own.
    void tensor(std::vector<double>& values) {
        if (values.size() <= 4) { // a number a request: beyond the keys for every other one
            auto far = below(2);
            for (double& v : values) v = far++ % 2 != 0 ? static_cast<double>(keys_ + 1 + below(2)) : scalar();
            return;
        }
        const auto kind = even_ ? 2 + 2 * below(2) : below(5); // 4 and 2 make whole tiles of one group
        const bool at_front = below(2) == 0;
        std::int64_t left = 0, group = 0;
        for (double& v : values) {
            if (kind == 4) { // one group, and what may differ at an end
                v = static_cast<double>(&v == (at_front ? &values.front() : &values.back()) ? below(3) - 1 : 1);
                continue;
            }
            if (kind == 0) {
                v = scalar();
                continue;
            }
            if (left-- <= 0) {
                left = below(below(4) == 0 ? reach_ + 1 : 2 * tile_keys_ + 2);
                group = kind == 1 ? group + 1 : kind == 2 ? one_met() : below(reach_ + 2);
            }
            v = static_cast<double>(group);
        }
        if (kind > 1 && below(2) == 0) std::reverse(values.begin(), values.end());
    }

private:
    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
    std::int64_t one_met() {
        return met_.empty() || below(4) == 0
                   ? below(3) - 1
                   : met_[static_cast<std::size_t>(below(static_cast<std::int64_t>(met_.size())))] + below(3) - 1;
    }
    std::int64_t number() {
        const std::int64_t near = below(3) - 1;
        switch (below(10)) {
        case 0: return rows_ + near;
        case 1: return keys_ + near;
        case 2: return near * (reach_ + 2);
        case 3: return below(3);
        case 4: return below(reach_ / 3 + 1);
        case 5:
        case 6: return below(reach_ / tile_rows_ + 1) * tile_rows_ + near;
        default: return below(reach_ / tile_keys_ + 1) * tile_keys_ + near;
        }
    }
    std::int64_t rows_, keys_, reach_, tile_rows_, tile_keys_;
    std::vector<std::int64_t> met_;
    bool even_;
    std::mt19937_64 random_;
};

void at_edges(const Scalar& scalar, std::vector<Argument>& inputs, const std::map<int, std::int64_t>& sizes,
              std::int64_t tile_rows, const Question& q) {
    Edges edges(sizes, tile_rows, q.keys, q.seed);
    for (std::size_t k = 3; k < inputs.size(); ++k) {
        const Input& x = scalar.inputs[k];
        if (!inputs[k] || x.dtype == DType::Bool || inputs[k]->values.empty()) continue;
        if (is_float(x.dtype)) { // no number that the text could not be divided by
            if (x.fate == Input::Fate::Bound) inputs[k]->values[0] = x.value;
            continue;
        }
        if (!inputs[k]->shape.empty()) continue;
        auto& v = inputs[k]->values[0];
        v = edges.scalar();
        for (const Fact& f : scalar.facts) // what a launch may not give
            if (f.kind == Fact::Kind::AtLeast && f.left->kind == Kind::Arg && f.left->number == static_cast<int>(k) &&
                is_const(f.right) && f.right->type == Type::Int)
                v = std::max(v, static_cast<double>(f.right->integer));
        edges.meets(v);
    }
    for (std::size_t k = 3; k < inputs.size(); ++k)
        if (inputs[k] && !inputs[k]->shape.empty() && !is_float(inputs[k]->dtype) && inputs[k]->dtype != DType::Bool)
            edges.tensor(inputs[k]->values);
}

/// A draw that the text refuses (an index out of range) is drawn again with tamer values, and with more room for what
/// values index.
std::optional<Run> drawn(const cuir::Program& program, const Specification& s, const Question& q, bool tame) {
    for (const std::int64_t room : {6, 40, 300, 2400}) {
        const auto sizes = spec::sizes_near(s.scalar(), q.wanted, room, q.seed);
        if (!sizes) continue;
        for (int attempt = tame ? 1 : 0; attempt < 3; ++attempt) {
            auto inputs = spec::random_inputs(s.scalar(), *sizes, q.seed);
            if (attempt == 0 && q.draw == Question::Draw::Edges)
                at_edges(s.scalar(), inputs, *sizes, q.rows * agents_of(program), q);
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

std::optional<Run> fitted(const cuir::Program& program, const Specification& s, Question q, bool tame) {
    const bool square = constant(program, "D", 0) == constant(program, "Dv", 0);
    auto out = drawn(program, s, q, tame);
    if (out && square && out->sizes["D"] != out->sizes["Dv"]) {
        q.wanted[5] = q.wanted[6] = out->sizes["D"];
        out = drawn(program, s, q, tame);
    }
    if (!out || (square && out->sizes["D"] != out->sizes["Dv"])) return std::nullopt;
    out->constants = {{"BM", q.rows * agents_of(program)},
                      {"BN", q.keys},
                      {"D", out->sizes["D"]},
                      {"Dv", out->sizes["Dv"]},
                      {"ST", q.stages}};
    // what decides when a reference moves and a tile is tried again: small numbers, or it never happens
    if (const auto* main = program.main(); main && q.seed % 2 == 1)
        for (const auto& p : main->head.back().node->params)
            if (is_limit(p)) out->constants[p.name] = 1;
    out->seed = q.seed;
    if (out->sizes["D"] > kLargeHead) out->steps *= 50;
    return out;
}

bool rounds(const Scalar& scalar) {
    return std::any_of(scalar.out.begin(), scalar.out.end(), [](const ScalarOutput& o) {
        return contains(o.body, [](Expr e) {
            return e->kind == Kind::Cast && e->type == Type::Int && e->args[0]->type >= Type::F32;
        });
    });
}

} // namespace

std::int64_t agents_of(const cuir::Program& p) {
    return constant(p, "W", constant(p, "WG", 4));
}

std::optional<Run> run_of(const cuir::Program& program, const Specification& s, const Question& question) {
    auto out = fitted(program, s, question, false);
    const bool bound =
        std::any_of(s.inputs().begin(), s.inputs().end(), [](const Input& x) { return x.fate == Input::Fate::Bound; });
    // numbers that the text divides by, drawn so that no integer holds the quotient
    if (out && bound && (question.draw == Question::Draw::Usual || rounds(s.scalar())) &&
        out->sizes.at("D") <= kLargeHead) {
        const auto outcome = cuir::execute(program, *out);
        if (!outcome.findings.empty() && outcome.findings[0].kind == "range") out = fitted(program, s, question, true);
    }
    return out;
}

} // namespace cubridge::ir::transfer
