// Storage under happens-before: every use of a cell is checked against those before it.
// SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/machine.h"
#include <algorithm>
#include <fmt/format.h>

namespace cubridge::ir::cuir {

using Tag = Value::Tag;

namespace {

bool same(Epoch a, Epoch b) {
    return a.component == b.component && a.time == b.time;
}

void remember(std::vector<Access>& reads, const Access& as) {
    for (auto& r : reads)
        if (r.epoch.component == as.epoch.component) {
            r = as;
            return;
        }
    reads.push_back(as);
}

} // namespace

Access Cta::generic_access() const {
    const auto& a = self();
    Access as;
    as.epoch = {a.index, a.clock[a.index]};
    as.step = outer_;
    as.agent = a.index;
    return as;
}

Cell& Cta::at(const CellRef& r) {
    return buffers_[static_cast<std::size_t>(r.buffer)].cells[static_cast<std::size_t>(r.cell)];
}

std::string Cta::place_name(const Value& v) const {
    return buffers_[static_cast<std::size_t>(v.index)].name_of(v.first, v.depth);
}

std::vector<CellRef> Cta::cells_of(const Value& v, int part) const {
    if (v.tag != Tag::Place) trouble("type", "storage is needed here, not " + describe(v));
    std::vector<CellRef> out;
    const int n = buffers_[static_cast<std::size_t>(v.index)].cells_below(v.depth);
    for (int k = 0; k < n; ++k) out.push_back({static_cast<int>(v.index), v.first + k, part});
    return out;
}

CellRef Cta::one_cell(const Value& v, const char* what) const {
    if (v.tag != Tag::Place) trouble("type", "storage is needed here, not " + describe(v));
    const int n = buffers_[static_cast<std::size_t>(v.index)].cells_below(v.depth);
    if (n != 1) trouble("type", fmt::format("{} is a group of {} cells, not {}", place_name(v), n, what));
    return {static_cast<int>(v.index), v.first, -1};
}

void Cta::touch(const CellRef& ref, bool write, const Access& as, const Clock& known) {
    auto& buffer = buffers_[static_cast<std::size_t>(ref.buffer)];
    auto& cell = at(ref);
    if (buffer.owner >= 0 && buffer.owner != current_)
        trouble("race", fmt::format("{} are registers of {}", buffer.name, who(buffer.owner)));
    for (std::size_t k = 0; k < cell.parts.size(); ++k) {
        if (ref.part >= 0 && static_cast<int>(k) != ref.part) continue;
        auto& part = cell.parts[k];
        if (write) // before the write that they read: who orders this behind its readers orders it behind that too
            for (const auto& r : part.reads)
                if (!known.knows(r.epoch) && !same(r.epoch, as.epoch)) race(buffer, ref.cell, true, r, false);
        if (part.write.epoch.component < 0) {
            if (!write) unwritten(buffer, ref.cell);
        } else if (!known.knows(part.write.epoch)) {
            race(buffer, ref.cell, write, part.write, true);
        } else if (!as.generic && part.write.generic && buffer.owner < 0 &&
                   (part.fence.component < 0 || !known.knows(part.fence))) {
            trouble("proxy",
                    fmt::format("{} was written by threads ({}, line {}) and is used by an asynchronous operation; no "
                                "fence({}) by its writer between the two",
                                buffer.name_of(ref.cell), who(part.write.agent), part.write.step->line,
                                buffer.name_of(ref.cell)),
                    part.write.step->line);
        }
        if (write) {
            part.reads.clear();
            part.write = as;
            part.fence = {};
        } else {
            remember(part.reads, as);
        }
    }
    if (write) ++cell.version;
}

std::string Cta::syncs() const {
    std::string out;
    for (const auto& b : named_) out += (out.empty() ? "" : " or ") + std::string("sync(") + b.name + ")";
    return out;
}

void Cta::unwritten(const Buffer& buffer, int number) const {
    const auto& parts = buffer.cells[static_cast<std::size_t>(number)].parts;
    const auto place = buffer.name_of(number);
    const auto written =
        std::count_if(parts.begin(), parts.end(), [](const Part& p) { return p.write.epoch.component >= 0; });
    if (written == 0) trouble("unwritten", place + " is read and was never written");
    const auto& last = std::find_if(parts.begin(), parts.end(), [](const Part& p) { return p.write.step; })->write;
    const auto by = syncs();
    trouble("unwritten",
            fmt::format("{} is read and was written by {} of {} agents' shares only (`{}`, line {}); missing: {}",
                        place, written, parts.size(), last.step->text(), last.step->line,
                        by.empty() ? "a named barrier of theirs and sync" : by),
            last.step->line);
}

void Cta::race(const Buffer& buffer, int cell, bool write, const Access& earlier, bool earlier_writes) {
    const auto place = buffer.name_of(cell);
    const auto other = fmt::format("`{}` ({}line {})", earlier.step->text(),
                                   earlier.agent == current_ ? "" : who(earlier.agent) + ", ", earlier.step->line);
    const auto now =
        fmt::format("{} {} {}", place, earlier_writes ? "may still be written by" : "may still be read by", other);
    std::string missing;
    const Barrier* through = nullptr;
    if (earlier.landing) {
        for (const auto& b : barriers_)
            if (b.component == earlier.epoch.component)
                missing = fmt::format("no wait({}, {}) before this", b.name, earlier.epoch.time - 1);
    } else if (earlier.agent == current_) {
        missing = fmt::format("no wait({}) between them", place);
    } else {
        // The barrier that would order them is the one that this agent passed last and the other arrives at.
        for (const auto& b : barriers_) {
            const auto& mine = b.passed[static_cast<std::size_t>(current_)];
            if (mine.phase < -1 || b.latest[static_cast<std::size_t>(earlier.agent)].agent < 0) continue;
            if (!through || through->passed[static_cast<std::size_t>(current_)].time < mine.time) through = &b;
        }
        const std::string ended = earlier.queued ? fmt::format("wait({})", place) : "that";
        if (through) {
            const auto& signal = through->latest[static_cast<std::size_t>(earlier.agent)];
            missing =
                fmt::format("{} phase {}, which {} waited for, does not follow it ({} arrived there last at line {}; "
                            "an arrival counts after {} only)",
                            through->name, through->passed[static_cast<std::size_t>(current_)].phase, self().name,
                            who(earlier.agent), signal.step->line, ended);
        } else {
            const auto by = syncs();
            missing = fmt::format("nothing that {} arrives at after {} is waited for by {}{}", who(earlier.agent),
                                  ended, self().name, by.empty() ? "" : "; missing: " + by);
        }
    }
    // Who fills a cell again waits for its readers: neither for what filled it before nor for whatever they share.
    if (write && (!earlier_writes || (earlier.landing && earlier.agent == current_))) {
        std::string any;
        bool passed = false;
        for (const auto& name : readers_barriers(buffer)) {
            any += (any.empty() ? "" : " or ") + name;
            passed = passed || (through && through->name.substr(0, through->name.find('[')) == name);
        }
        if (!any.empty() && !passed)
            missing = fmt::format("no wait for {}, where its readers arrive, before this", any);
    }
    trouble("race", fmt::format("{} of {}: {}; {}", write ? "write" : "read", place, now, missing), earlier.step->line);
}

} // namespace cubridge::ir::cuir
