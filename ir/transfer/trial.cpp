// The runs on which a program is compared with its specification at load. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/order.h"
#include "ir/spec/state.h"
#include "ir/spec/variant.h"
#include "ir/transfer/draw.h"
#include "ir/transfer/places.h"
#include "ir/transfer/reference.h"
#include <algorithm>
#include <cmath>
#include <set>

namespace cubridge::ir::transfer {
namespace {

using cuir::Run;
using Wanted = std::array<std::int64_t, 7>; // B, Hk, group, Sq, Sk, D, Dv
using Draw = Question::Draw;

/// Tiles have 2 rows an agent and 3 keys.
constexpr Wanted kShapes[] = {{2, 1, 2, 5, 7, 3, 3},   {1, 2, 1, 10, 4, 3, 3}, {2, 2, 3, 1, 9, 2, 3},
                              {1, 1, 1, 9, 9, 3, 3},   {1, 2, 2, 17, 3, 3, 2}, {1, 1, 3, 3, 16, 3, 3},
                              {2, 1, 1, 11, 13, 3, 3}, {1, 1, 2, 4, 0, 3, 3}};
/// For texts that demand a large head dim: transforms of q and k go element by element.
constexpr Wanted kFewRows[] = {{1, 1, 1, 2, 4, 3, 3}, {1, 1, 1, 3, 2, 3, 3}};

/// What decides about keys, at every edge: first rows, last rows and lengths leave every remainder in some tile.
struct Edge {
    std::int64_t rows, keys; ///< of one agent; of a tile
    std::int64_t Sq, Sk;
};
constexpr Edge kEdges[] = {{2, 3, 26, 26},  {1, 5, 29, 29}, {4, 8, 9, 15},  {1, 5, 22, 11},
                           {3, 6, 32, 11},  {1, 2, 13, 30}, {2, 9, 26, 38}, {4, 3, 18, 19},
                           {1, 10, 33, 33}, {1, 4, 13, 13}, {2, 4, 37, 20}, {3, 4, 25, 37}};
constexpr std::size_t kMostConstants = 3, kMostSteps = 2;
constexpr int kManyCtas = 32;
constexpr std::int64_t kLeastConstant = 4, kMostConstant = 300; // lesser ones are those of any length
constexpr std::int64_t kSomeDistance = 12, kMostDistance = 1100;

/// Rows of one agent, such that first rows leave many remainders in tiles of so many keys.
std::int64_t rows_for(std::int64_t keys, std::int64_t agents) {
    std::int64_t rows = std::max<std::int64_t>(1, keys / agents);
    for (std::int64_t r = rows; r < rows + keys && r < 2 * rows + 2; ++r)
        if (const auto rest = r * agents % keys; rest == 1 || rest == keys - 1) return r;
    return rows;
}

/// Steps of slices: rows T, 2 T, ... are a class, and its tiles end T times as far away. Of tiles of two kinds the step
/// is where(dense, 1, T).
void steps_of(const syntax::NodePtr& x, const cuir::Kernel& kernel, std::set<std::int64_t>& out) {
    if (!x) return;
    const auto add = [&](const syntax::NodePtr& step) {
        const auto constant = kernel.constant(step->text);
        const auto& value = constant ? constant : step;
        if (value->kind == syntax::Kind::Int && value->integer > 1) out.insert(value->integer);
    };
    if (x->kind == syntax::Kind::Slice && x->items[2]) add(x->items[2]);
    if (x->kind == syntax::Kind::Call && x->items[0]->text == "where" && x->items.size() == 4 &&
        x->items[2]->kind == syntax::Kind::Int && x->items[2]->integer == 1)
        add(x->items[3]);
    for (const auto& i : x->items) steps_of(i, kernel, out);
}

void steps_of(const std::vector<cuir::Statement>& block, const cuir::Kernel& kernel, std::set<std::int64_t>& out) {
    for (const auto& s : block) {
        if (s.kind == cuir::Statement::Kind::Simple) steps_of(s.node, kernel, out);
        steps_of(s.body, kernel, out);
    }
}

bool has_call(const std::vector<cuir::Statement>& block, const char* function) {
    return std::any_of(block.begin(), block.end(),
                       [&](const auto& s) { return calls(s, function) || has_call(s.body, function); });
}

/// Tiles of two kinds, told apart by scalars: `if not ..:` with an else.
bool has_kinds(const std::vector<cuir::Statement>& block) {
    for (std::size_t k = 0; k < block.size(); ++k) {
        const auto& s = block[k];
        const bool either = k + 1 < block.size() && block[k + 1].kind == cuir::Statement::Kind::Else;
        if (s.kind == cuir::Statement::Kind::If && either && s.node->items[0]->kind == syntax::Kind::Unary) return true;
        if (has_kinds(s.body)) return true;
    }
    return false;
}

/// Times which queries bring scores to either side of a cap, whatever it is, some tiles of an item to both.
constexpr double kHeat[] = {1.0 / 16, 4, 16, 64, 256};

class Trials {
public:
    Trials(const cuir::Program& program, const Specification& specification, std::uint64_t seed)
        : program_(program), specification_(specification), seed_(seed),
          kinds_(program.main() && has_kinds(program.main()->body)) {}

    cuir::Trial run() {
        for (const Wanted& wanted : kShapes) {
            const auto r = shaped(small(wanted));
            if (r && r->sizes.at("D") > kLargeHead) return few();
            if (!r) continue;
            for (const auto policy : {Run::Policy::Late, Run::Policy::Early, Run::Policy::Random}) {
                out_.runs.push_back(*r);
                out_.runs.back().policy = policy;
            }
        }
        caps();
        edges();
        for (const std::int64_t c : constants(kMostConstant)) around(c);
        if (kinds_) {
            beyond(kSomeDistance); // of what operands decide
            for (const std::int64_t c : constants(kMostDistance)) beyond(c);
        }
        for (const std::int64_t step : steps()) classes(step);
        rising();
        return std::move(out_);
    }

private:
    bool has_mask() const {
        const Variant* v = specification_.variant();
        return !v || std::any_of(v->parts.begin(), v->parts.end(), [](const Part& p) { return !is_true(p.keep); });
    }

    void caps() {
        const auto* main = program_.main();
        if (!main || !has_call(main->body, "tanh_small")) return;
        for (const double heat : kHeat) {
            auto r = run_of(program_, specification_, small({1, 1, 2, 9, 13, 3, 3}));
            if (!r || r->inputs.count("Q") == 0) return;
            for (double& v : r->inputs["Q"].values) v *= heat;
            out_.runs.push_back(std::move(*r));
        }
    }

    /// Scores that rise from tile to tile, in either order, by more than weights of the program's type can say, at its
    /// own limits: when a tile is tried again decides whether they overflow. Other runs have limits of 1, or nothing
    /// would be tried again.
    void rising() {
        const auto* main = program_.main();
        if (main == nullptr) return;
        const auto& constants = main->head.back().node->params;
        if (std::none_of(constants.begin(), constants.end(), is_limit)) return;
        const auto elem = main->constant("elem");
        const auto type = elem ? dtype_from_short(elem->text) : std::nullopt;
        const double rise = std::log2(cuir::largest_of(type.value_or(DType::F32))) + 4;
        Question q{{1, 1, 2, 9, 13, 3, 3}, 2, 3, 1, 2 * seed_, Draw::Usual}; // an even seed: its own limits
        auto r = run_of(program_, specification_, q);
        if (!r || r->inputs.count("Q") == 0 || r->inputs.count("K") == 0) return;
        const auto D = r->sizes.at("D"), Sk = std::max<std::int64_t>(r->sizes.at("Sk"), 1);
        const double score = rise * std::log(2.0) * std::sqrt(static_cast<double>(D));
        const auto first_column = [&](cuir::Memory& m, const auto& value) {
            for (std::size_t k = 0; k < m.values.size(); ++k) {
                const auto at = static_cast<std::int64_t>(k);
                if (!std::isnan(m.values[k])) m.values[k] = at % D == 0 ? value(at / D) : 0;
            }
        };
        first_column(r->inputs["Q"], [](std::int64_t) { return 1.0; });
        first_column(r->inputs["K"], [&](std::int64_t row) { return row % Sk / q.keys % 2 == 0 ? 0 : score; });
        out_.runs.push_back(std::move(*r));
    }

    void edges() {
        int draws = 1; // integers take more: their values are edges as well
        for (const Input& x : specification_.inputs())
            if (!is_float(x.dtype) && x.fate != Input::Fate::Static && x.fate != Input::Fate::Absent) draws = 4;
        if (!has_mask() && !kinds_) { // but tiles beyond the last key
            for (std::size_t n = 0; n < 3; ++n) ask(kEdges[n]);
            return;
        }
        for (const Edge& e : kEdges)
            for (int n = 0; n < draws; ++n) ask(e, 1 + n % 2);
    }

    void ask(const Edge& e, std::int64_t requests = 1, std::int64_t heads = 1, int ctas = Run{}.ctas) {
        Question q{{requests, heads, heads, e.Sq, e.Sk, 1, 1}, e.rows, e.keys, 1, seed_ * 131 + number_++, Draw::Edges};
        if (auto r = run_of(program_, specification_, q)) {
            r->steps *= 10;
            r->ctas = ctas;
            out_.runs.push_back(std::move(*r));
        }
    }

    std::vector<std::int64_t> constants(std::int64_t most) const {
        std::vector<std::int64_t> all;
        for (const std::int64_t c : spec::numbers_of(specification_.scalar()))
            if (c >= kLeastConstant && c <= most) all.push_back(c);
        while (all.size() > kMostConstants) all.erase(all.begin() + static_cast<std::ptrdiff_t>(all.size()) / 2);
        return all;
    }

    /// Lengths and tiles that a number of the text stands at the edge of.
    void around(std::int64_t c) {
        const std::int64_t agents = agents_of(program_);
        for (const std::int64_t at : {c - 1, c, c + 1}) { // is a multiple of a tile
            const std::int64_t keys = at % 3 == 0 ? at / 3 : at % 2 == 0 ? at / 2 : at;
            const std::int64_t length = at < c ? 2 * c + 1 : at;
            ask({rows_for(keys, agents), keys, length, length});
        }
    }

    /// Tiles whose pairs are all farther apart than that, behind the keys and before them, also of a CTA's first item;
    /// and distances about it at the ends of tiles.
    void beyond(std::int64_t c) {
        const std::int64_t keys = 3 + c / 64, rows = 2 + c / 64, few = 3 * (keys + rows * agents_of(program_));
        for (const int ctas : {2, kManyCtas}) {
            ask({rows, keys, c + few, few}, 1, 1, ctas);
            ask({rows, keys, few, c + few}, 1, 1, ctas);
            if (c <= kSomeDistance) ask({rows, keys, c + few, c + few}, 1, 2, ctas);
        }
    }

    std::set<std::int64_t> steps() const {
        std::set<std::int64_t> out;
        for (const auto& k : program_.kernels) steps_of(k.body, k, out);
        while (out.size() > kMostSteps) out.erase(out.begin());
        return out;
    }

    /// Several blocks and tiles of each class; blocks that only some classes have.
    void classes(std::int64_t step) {
        const std::int64_t block = agents_of(program_);
        ask({1, 3, step * (2 * block + 1) + step / 2 + 1, step * (2 * block + 1) + step / 2 + 1});
        ask({1, 2, step * block + 1, step * 5 - 1}, 1, 2); // heads, groups
        ask({2, 4, step * 3 + 1, step * 9 + 1});
        ask({1, 3, step - 1, 2});
        ask({2, 3, step * 9, step * 5}); // keys that lack one of whole tiles, and rows beyond them
    }

    cuir::Trial few() {
        out_.runs.clear();
        done_.clear();
        number_ = 0;
        for (const Wanted& wanted : kFewRows)
            if (auto r = shaped(small(wanted))) out_.runs.push_back(std::move(*r));
        return std::move(out_);
    }

    Question small(const Wanted& wanted) {
        Question q{wanted, 2, 3, 1, seed_ * 131 + number_, Draw::Usual};
        q.stages = 1 + static_cast<std::int64_t>(number_++ % 2);
        return q;
    }

    /// Nothing where those sizes were asked about before.
    std::optional<Run> shaped(const Question& q) {
        auto out = run_of(program_, specification_, q);
        if (out && std::find(done_.begin(), done_.end(), out->sizes) != done_.end()) return std::nullopt;
        if (out) done_.push_back(out->sizes);
        return out;
    }

    const cuir::Program& program_;
    const Specification& specification_;
    std::uint64_t seed_, number_ = 0;
    const bool kinds_; ///< of tiles, by scalars
    cuir::Trial out_;
    std::vector<std::map<std::string, std::int64_t>> done_;
};

} // namespace

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
