// The model: work items of key tiles, drawn in their order by the CTAs of one GPU. Constants are measured (an H200).
// SPDX-License-Identifier: Apache-2.0
#include "ir/cost/cost.h"
#include "ir/cost/operations.h"
#include <algorithm>
#include <functional>
#include <queue>

namespace cubridge::ir::cost {
namespace {

// Nanoseconds. Of one SM; fitted to full attention of 16k keys at head dims 64, 128, 192 and 256 (within 2%), of 1k
// keys (an item), and to variants at 4k (an operation).
constexpr double kProduct = 1.412e-4; // a floating-point operation, of wgmma
constexpr double kPortable = 2.6e-4;  // of mma.sync
constexpr double kPlain = 0.0046;     // an operation an element
constexpr double kSpecial = 0.0123;   // of the special-function unit
constexpr double kGather = 0.06;      // a read of a table
constexpr double kTile = 100;         // barriers, turns, votes
constexpr double kItem = 500;         // the stream's bubble
constexpr double kOutput = 0.061;     // an element of the output
constexpr double kByte = 1.0 / 30;    // from memory, of an SM's share
constexpr std::int64_t kProcessors = 132;
constexpr double kCache = 32.0 * (1 << 20); // of L2, for keys and values
constexpr std::int64_t kMostItems = 1 << 20;

/// KV heads, of all requests, whose keys and values are in use at one time.
double heads_in_flight(const Items& items, bool sections, double kv_heads, double bytes_of_head) {
    const double all = static_cast<double>(items.batch) * kv_heads;
    const double group = std::max(1.0, static_cast<double>(items.heads) / kv_heads);
    double heads = 0;
    if (items.order == "by_head") // an item after the last one of its head
        heads = static_cast<double>(kProcessors) / (static_cast<double>(items.rows) * group) + 1;
    else if (sections)
        heads = std::min(static_cast<double>(kProcessors) / group, std::max(1.0, kCache / bytes_of_head));
    else
        heads = static_cast<double>(kProcessors) / group;
    return std::min(all, std::max(1.0, heads));
}

/// Calls f(head, row) for items in the order in which they are drawn.
void each_item(const Items& items, std::int64_t section, const std::function<void(std::int64_t, std::int64_t)>& f) {
    const std::int64_t heads = items.batch * items.heads;
    for (std::int64_t first = 0; first < heads; first += section) {
        const std::int64_t wide = std::min(section, heads - first);
        for (std::int64_t m = items.rows - 1; m >= 0; --m)
            for (std::int64_t h = 0; h < wide; ++h) f((first + h) % items.heads, m);
    }
}

std::optional<Cost> of_kernel(const cuir::Kernel& kernel, const Numbers& given) {
    const auto items = items_of(kernel, given);
    if (!items || items->batch * items->heads > kMostItems / items->rows) return std::nullopt;
    const Numbers n = known_in(kernel, given);
    const auto number = [&](const char* name) {
        const auto it = n.find(name);
        return it == n.end() ? 1.0 : static_cast<double>(it->second);
    };
    const TileWork work = work_of(kernel);
    const auto elements_of = [](const Operations& o) {
        return o.plain * kPlain + o.special * kSpecial + o.gathers * kGather;
    };
    const bool warpgroups = n.contains("WG");
    const double elements = number("BM") * number("BN"), depth = number("D") + number("Dv");
    const double bytes_of_head = number("Sk") * depth * 2;
    const double flight = heads_in_flight(*items, warpgroups, number("Hk"), bytes_of_head);
    const double beyond = std::max(0.0, 1 - kCache / (flight * bytes_of_head));
    const double loads = beyond * number("BN") * depth * 2 * kByte;
    const double tile = std::max(
        2 * elements * depth * (warpgroups ? kProduct : kPortable) + elements * elements_of(work.every) + kTile, loads);
    const double mask = elements * elements_of(work.masked);
    const double item = kItem + kOutput * number("BM") * number("Dv");

    std::int64_t section = 1;
    if (items->order != "by_head") {
        section = items->batch * items->heads;
        const double group = std::max(1.0, static_cast<double>(items->heads) / number("Hk"));
        if (warpgroups)
            section = std::min(section, static_cast<std::int64_t>(std::max(1.0, kCache / bytes_of_head) * group));
    }
    Cost out;
    out.guessed = items->guessed;
    out.order = items->order;
    // Whoever is free draws the next item.
    std::priority_queue<double, std::vector<double>, std::greater<>> free;
    for (std::int64_t p = 0; p < kProcessors; ++p) free.push(0);
    double last = 0;
    each_item(*items, std::max<std::int64_t>(1, section), [&](std::int64_t h, std::int64_t m) {
        const Item& x = items->at(h, m);
        const double end = free.top() + item + x.tiles * tile + x.masked * mask;
        free.pop();
        free.push(end);
        last = std::max(last, end);
        out.tiles += x.tiles;
        out.masked += x.masked;
    });
    out.us = last / 1000;
    return out;
}

} // namespace

std::optional<Cost> cost_of(const cuir::Program& program, const Numbers& numbers) {
    std::optional<Cost> out;
    for (const auto& kernel : program.kernels) {
        if (kernel.is_map()) continue; // the same whatever the configuration
        const auto one = of_kernel(kernel, numbers);
        if (!one) return std::nullopt;
        if (!out) out.emplace();
        out->us += one->us;
        out->tiles += one->tiles;
        out->masked += one->masked;
        out->guessed = out->guessed || one->guessed;
        out->order = one->order;
    }
    return out;
}

} // namespace cubridge::ir::cost
