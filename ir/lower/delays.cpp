// Where a delay can stand, region by region. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/delays.h"
#include "ir/lower/calls.h"
#include "ir/lower/place.h"
#include "ir/lower/regions.h"
#include <algorithm>

namespace cubridge::ir::lower {

using cuir::Statement;
using K = Statement::Kind;

namespace {

// Of a place, a warp and a CTA the seed says whether they are always late (1 of 16 to 1 of 128: its two highest bits),
// one time in eight (three times as many) or never, and by how much: where all are late, nobody is. Redux makes that
// uniform, so that a warp stays together. No clobber: what the compiler may move across the calls of the kernel it may
// move across this.
constexpr char kHelper[] = R"(
// ---- Delays
__constant__ unsigned cb_delay_seed = 0;
static __device__ __forceinline__ void cb_delay(unsigned place) {
    unsigned x = cb_delay_seed ^ place * 0x9E3779B9u ^ (blockIdx.x + 1) * 0x85EBCA6Bu ^ (threadIdx.x / 32 + 1) * 0xC2B2AE35u, now;
    x = (x ^ x >> 16) * 0x7FEB352Du;
    x ^= x >> 15;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
    now *= 0x846CA68Bu;
    const unsigned turn = x & ((16u << (cb_delay_seed >> 30)) - 1);
    const bool late = turn == 0 || (turn < 4 && now >> 29 == 0);
    unsigned time = late ? 32u << (x >> 16 & 7) : 0u;
    asm volatile("redux.sync.or.b32 %0, %0, 0xffffffff;" : "+r"(time));
    if (time != 0) asm volatile("nanosleep.u32 %0;" ::"r"(time)); // up to twice as many ns
}
)";

class Delays {
public:
    Delays(Margin& margin, const Places& places) : margin_(margin), places_(places) {}

    int run(const cuir::Program& program) {
        for (const auto& k : program.kernels)
            if (!k.is_map()) block(k.body);
        return count_;
    }

private:
    void block(const std::vector<Statement>& body) {
        for (const auto& s : body) {
            put(s, margin_.segments[places_.at(&s).open].cuda);
            block(s.body);
        }
    }

    /// An opening line of a role gives registers out, one that draws does so with each turn: both at their end, which
    /// is in the block. Any other region before its first line, so that nothing stands between the instructions of a
    /// product; not before `else`.
    void put(const Statement& s, Lines& region) {
        if (region.empty()) return;
        if (s.kind == K::With || (s.kind == K::For && !loop_over(s).empty())) {
            region.push_back(call(region.back(), 4));
        } else if (s.kind != K::Else && s.kind != K::Def) {
            const auto calls = calls_in(region);
            if (std::any_of(calls.begin(), calls.end(), meets_others))
                region.insert(region.begin(), call(region.front(), 0));
        }
    }

    std::string call(const std::string& beside, std::size_t deeper) {
        const std::size_t indent = std::min(beside.find_first_not_of(' '), beside.size());
        const bool opens = !beside.empty() && beside.find('{') != beside.npos;
        return std::string(indent + (opens ? deeper : 0), ' ') + "cb_delay(" + std::to_string(count_++) + ");";
    }

    Margin& margin_;
    const Places& places_;
    int count_ = 0;
};

} // namespace

Result<std::string> with_delays(std::string_view cuda) {
    auto margin = take_apart(cuda);
    if (!margin) return margin.error();
    if (margin->preamble.find(kDelaySeed) != std::string::npos) return Error{"margin", "there are delays", {}, ""};
    const auto program = lift(cuda);
    if (!program) return program.error();
    const auto places = places_of(*margin, *program);
    if (!places) return places.error();
    if (Delays(*margin, *places).run(*program) == 0) return Error{"margin", "no place where agents meet", {}, ""};
    margin->preamble += kHelper;
    return join(*margin);
}

} // namespace cubridge::ir::lower
