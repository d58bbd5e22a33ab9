// From a specification and a request to kernels and cases. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/plan.h"
#include "ir/spec/variant.h"
#include "runtime/check/pairwise.h"
#include <algorithm>
#include <array>
#include <random>

namespace cubridge::runtime {

namespace {

using ir::Request;

// Lengths by class: one level of the covering each; the members of a class take turns.
const std::vector<std::vector<std::int64_t>> kLengths = {
    {1, 2}, {15, 16, 17, 31, 32, 33}, {63, 64, 65}, {127, 128, 129}, {255, 256, 257, 511, 512, 513, 1000}};
constexpr std::array<int, 5> kGroups = {4, 1, 5, 7, 8};
constexpr std::array<std::pair<int, int>, 3> kSmallDims = {{{8, 8}, {16, 8}, {8, 16}}};
constexpr int kRealCases = 4;

class Planner {
public:
    Planner(const ir::Specification& specification, const Request& request, const CheckOptions& options)
        : spec_(specification), scalar_(specification.scalar()), request_(request), options_(options) {}

    ir::Result<CheckPlan> run() {
        units();
        if (plan_.units.empty()) {
            const auto& facts = scalar_.facts;
            return ir::Error{"domain",
                             "no sizes to check satisfy what the text demands",
                             {},
                             facts.empty() ? "" : "it demands " + facts.front().text};
        }
        const int real = static_cast<int>(
            std::count_if(plan_.units.begin(), plan_.units.end(), [](const Unit& u) { return u.real; }));
        const int small = static_cast<int>(plan_.units.size()) - real;
        const int at_real = options_.small && small > 0 ? 0
                            : small == 0                ? options_.cases
                                                        : std::min(kRealCases, options_.cases / 2);
        cases(0, small, options_.cases - at_real);
        cases(small, real, at_real);
        if (options_.longer && options_.driver && !options_.small) longer(small, real);
        return std::move(plan_);
    }

private:
    // Do any heads and lengths fit a kernel?
    bool possible(const Request& r) const {
        for (const int kv : {1, 2, 3, 4})
            for (const auto& [sq, sk] : {std::pair{16, 16}, std::pair{16, 33}, std::pair{33, 16}}) {
                Case c;
                if (!set_heads(spec_, r.group, kv, c)) continue;
                c.Sq = sq;
                c.Sk = sk;
                if (fits(spec_, c, r)) return true;
            }
        return false;
    }

    // The same request at other head dims; nothing where the text forbids them.
    bool with_dims(Request& r, int d, int dv) const {
        r.head_dim = d;
        r.head_dim_v = dv;
        return possible(r);
    }

    bool lse_known() const {
        const ir::Variant* v = spec_.variant();
        return spec_.outputs() == 2 ||
               (v != nullptr && v->parts.size() == 1 && v->parts[0].weights.kind == ir::Weights::Kind::Softmax);
    }

    // What empty rows give is the text's NaN or zero: ZERO can be judged. Anything else of them can't be told from
    // outside.
    bool zero_known() const {
        if (spec_.variant() == nullptr) return false;
        return std::all_of(spec_.variant()->parts.begin(), spec_.variant()->parts.end(), [](const ir::Part& p) {
            return p.empty == ir::Part::Empty::Never || p.empty == ir::Part::Empty::Zero ||
                   p.empty == ir::Part::Empty::NaN;
        });
    }

    void units() {
        std::vector<int> groups(kGroups.begin(), kGroups.end());
        if (request_.group > 0 && std::find(groups.begin(), groups.end(), request_.group) == groups.end())
            groups.insert(groups.begin(), request_.group);
        const auto vary = [&](Request& r, int turn) { // what a kernel is asked for besides its sizes, in turns
            if (request_.rows == Request::Rows::AsWritten && turn % 2 == 1) r.rows = Request::Rows::Tail;
            if (!possible(r)) r.rows = r.rows == Request::Rows::Tail ? Request::Rows::AsWritten : Request::Rows::Tail;
            if (request_.empty_rows == Request::EmptyRows::AsWritten && zero_known() && turn % 3 == 2)
                r.empty_rows = Request::EmptyRows::Zero;
            if (request_.lse == Request::Lse::None && lse_known() && turn % 3 != 0)
                r.lse = turn % 2 == 0 ? Request::Lse::Natural : Request::Lse::Log2;
        };
        int turn = 0;
        for (const int group : groups)
            for (int again = 0; again < (group == 4 || group == 1 ? 2 : 1); ++again) {
                for (std::size_t k = 0; k < kSmallDims.size(); ++k) {
                    const auto& [d, dv] = kSmallDims[(k + static_cast<std::size_t>(turn)) % kSmallDims.size()];
                    Request r = request_;
                    r.group = group;
                    r.heads = scalar_.heads;
                    if (!with_dims(r, d, dv)) continue;
                    vary(r, turn++);
                    if (possible(r)) plan_.units.push_back({r, false});
                    break;
                }
            }
        for (const int group : groups) { // at the real head dims: up to two kernels
            Request r = request_;
            r.group = group;
            r.heads = scalar_.heads;
            if (!possible(r)) {
                r.rows = Request::Rows::Tail;
                if (!possible(r)) continue;
            }
            vary(r, turn++);
            plan_.units.push_back({r, true});
            if (std::count_if(plan_.units.begin(), plan_.units.end(), [](const Unit& u) { return u.real; }) == 2) break;
        }
        if (!lse_known()) plan_.notes.push_back("the log-sum-exp: the text gives none to compare with");
        if (!zero_known()) plan_.notes.push_back("empty rows as zero: the text is no recognised attention");
    }

    void cases(int first, int count, int most) {
        if (count == 0 || most <= 0) return;
        const bool real = plan_.units[static_cast<std::size_t>(first)].real;
        // The CPU alone evaluates up to 65 keys, and the text at the real head dims not much more.
        const int classes = real || options_.small || !options_.driver ? 3 : static_cast<int>(kLengths.size());
        const auto levels =
            std::vector<int>{count,
                             classes,
                             classes,
                             3,
                             2,
                             static_cast<int>(Lay::Count),
                             static_cast<int>(Lay::Count),
                             static_cast<int>(Contents::Sloped), // sloped ones are those of cases_around()
                             static_cast<int>(Integers::Count),
                             2,
                             2};
        const auto rows = pairwise(levels, most, options_.seed + static_cast<std::uint64_t>(first),
                                   [&](const std::vector<int>& row) { return make(row, first, 0).has_value(); });
        int turn = 0;
        for (const auto& row : rows)
            for (int tries = 0; tries < 8; ++tries, ++turn)
                if (auto c = make(row, first, turn)) {
                    c->number = static_cast<int>(plan_.cases.size()) + 1;
                    plan_.cases.push_back(std::move(*c));
                    ++turn;
                    break;
                }
    }

    // Many key tiles: at the real head dims, few heads, judged by the float64 build.
    void longer(int first, int count) {
        constexpr std::pair<std::int64_t, std::int64_t> kLong[] = {{4097, 4097}, {257, 16384}, {16384, 16384}};
        for (int k = 0; k < count; ++k)
            for (const auto& [rows, keys] : kLong) {
                Case c;
                c.unit = first + k;
                const Request& r = plan_.units[static_cast<std::size_t>(c.unit)].request;
                if (keys > 4097 && (k > 0 || r.group > 4 || scalar_.heads > 8)) continue;
                c.Sq = rows;
                c.Sk = keys;
                c.B = 1;
                c.contents = k == 0 ? Contents::Needles : Contents::Normal;
                c.integers = Integers::Sorted;
                if (!set_heads(spec_, r.group, 1, c) || !fits(spec_, c, r)) continue;
                c.number = static_cast<int>(plan_.cases.size()) + 1;
                plan_.cases.push_back(std::move(c));
            }
    }

    std::optional<Case> make(const std::vector<int>& row, int first, int turn) const {
        const auto at = [&](std::size_t k) { return row[k]; };
        const auto length = [&](int level, int offset) {
            const auto& members = kLengths[static_cast<std::size_t>(level)];
            return members[static_cast<std::size_t>(turn + offset) % members.size()];
        };
        Case c;
        c.unit = first + at(0);
        const Request& r = plan_.units[static_cast<std::size_t>(c.unit)].request;
        const bool tail = r.rows == Request::Rows::Tail;
        c.Sq = length(at(1), 0);
        c.Sk = at(1) == at(2) && at(4) == 0 ? c.Sq : length(at(2), 1);
        c.B = at(3) + 1;
        if (!set_heads(spec_, r.group, 1 + (turn + at(3)) % 2, c)) return std::nullopt;
        if (!c.small() && c.Hq > 8 && scalar_.heads == 0) c.Hk = 1, c.Hq = r.group;
        if (at(4) == 1) // lengths of their own: one short, whole or less than the queries, none or half
            for (std::int64_t b = 0; b < c.B; ++b)
                c.kv_len.push_back(b == 0          ? std::max<std::int64_t>(1, c.Sk - 1)
                                   : b == 1        ? (tail ? std::min<std::int64_t>(c.Sk, c.Sq / 2) : c.Sk)
                                   : turn % 2 == 0 ? 0
                                                   : (c.Sk + 1) / 2);
        c.q = static_cast<Lay>(at(5));
        c.kv = static_cast<Lay>(at(6));
        c.contents = static_cast<Contents>(at(7));
        c.integers = static_cast<Integers>(at(8));
        c.operands_apart = at(9) == 1;
        c.held = at(10) == 1;
        if (!fits(spec_, c, r)) return std::nullopt;
        return c;
    }

    const ir::Specification& spec_;
    const ir::Scalar& scalar_;
    const Request& request_;
    const CheckOptions& options_;
    CheckPlan plan_;
};

} // namespace

ir::Result<CheckPlan> make_check_plan(const ir::Specification& specification, const Request& request,
                                      const CheckOptions& options) {
    return Planner(specification, request, options).run();
}

std::vector<std::string> plan_of_cases(const ir::Specification& specification, const Request& request,
                                       const CheckOptions& options) {
    std::vector<std::string> out;
    if (const auto plan = make_check_plan(specification, request, options))
        for (const Case& c : plan->cases) out.push_back(c.text(plan->units[static_cast<std::size_t>(c.unit)]));
    return out;
}

} // namespace cubridge::runtime
