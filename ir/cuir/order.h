// Happens-before: vector clocks, and what each cell remembers of its accesses.
// A component of a clock is a line of events that are known in order: an agent's own program; one of its queues, which
// retires in order; the phases of one barrier, with the operations that land in them. Knowing an event is having seen
// that component at least as far. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/code.h"

namespace cubridge::ir::cuir {

struct Epoch {
    int component = -1; ///< -1: nothing happened
    std::uint32_t time = 0;
};

class Clock {
public:
    explicit Clock(std::size_t components = 0) : times_(components, 0) {}
    bool knows(Epoch e) const { return e.component < 0 || times_[static_cast<std::size_t>(e.component)] >= e.time; }
    void join(const Clock& o) {
        for (std::size_t k = 0; k < times_.size(); ++k) times_[k] = std::max(times_[k], o.times_[k]);
    }
    void see(Epoch e) {
        auto& t = times_[static_cast<std::size_t>(e.component)];
        t = std::max(t, e.time);
    }
    std::uint32_t& operator[](int component) { return times_[static_cast<std::size_t>(component)]; }
    std::uint32_t operator[](int component) const { return times_[static_cast<std::size_t>(component)]; }
    void reset() { std::fill(times_.begin(), times_.end(), 0); }

private:
    std::vector<std::uint32_t> times_;
};

/// One use of a cell: when, by which statement of which agent, and whether by the asynchronous proxy.
struct Access {
    Epoch epoch;
    const Step* step = nullptr;
    int agent = -1;
    bool queued = false;  ///< by an operation that a wait of its agent covers
    bool landing = false; ///< by an operation that a phase of a barrier covers
    bool generic = true;  ///< proxy
};

/// What a part of a cell remembers. A cell has one part, or one for each agent that fills it together with others.
struct Part {
    Access write;
    std::vector<Access> reads; ///< since that write, the last of each component
    Epoch fence;               ///< by the writer, after the write
};

struct Cell {
    Ref<Array> value;
    std::vector<Part> parts = std::vector<Part>(1);
    std::uint32_t version = 0; ///< counts writes
};

/// Storage that one `alloc` gave: cells by all extents but the last two.
struct Buffer {
    std::string name;
    std::vector<int> leading;
    int rows = 1, cols = 1;
    DType type = DType::F32;
    int owner = -1; ///< the agent whose registers these are; -1: shared
    std::vector<Cell> cells;

    int cells_below(int depth) const; ///< in a group with `depth` leading indices given
    std::string name_of(int cell) const;
    std::string name_of(int first, int depth) const;
};

/// The largest finite value of a type; infinity where the executor knows no bound.
double largest_of(DType type);

} // namespace cubridge::ir::cuir
