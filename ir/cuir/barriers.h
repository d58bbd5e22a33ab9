// What agents wait for: barriers with integer phases, named barriers, channels. State only; the machine moves it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/order.h"

namespace cubridge::ir::cuir {

struct Arrival {
    int agent = -1;
    const Step* step = nullptr;
    std::uint32_t time = 0; ///< of the agent
};

/// A barrier of arrivals and landed operations: phase k completes, then phase k + 1 is open.
struct Barrier {
    struct Passed {
        std::int64_t phase = -2; ///< the last one that an agent waited for; -2: none
        std::uint32_t time = 0;  ///< of that agent, once it had passed
        const Step* step = nullptr;
    };
    std::string name;
    std::int64_t count = 1;
    int component = 0;
    std::int64_t completed = 0; ///< phases
    std::int64_t arrived = 0, landing = 0;
    Clock open, last;                ///< of the open phase so far; of the last completed one
    std::vector<Passed> passed;      ///< by agent
    std::vector<Arrival> arrivals;   ///< of the open phase
    std::vector<Arrival> latest;     ///< by agent: its last one, whatever the phase
    const Step* landed_by = nullptr; ///< the last operation that was to land here, and in which phase
    std::int64_t landed_in = -1;
    int landed_agent = -1;
};

/// `sync` arrives and waits, `arrive` only arrives; a phase completes with `count` arrivals.
struct NamedBarrier {
    std::string name;
    std::int64_t count = 1;
    int component = 0;
    std::int64_t completed = 0;
    Clock open;
    std::vector<Arrival> arrivals;        ///< of the open phase
    std::vector<std::int64_t> arrived_in; ///< by agent: the last phase that it arrived in, -1: none
    std::vector<int> waiting;             ///< agents
};

/// A queue that every taker reads from its start.
struct Channel {
    struct Entry {
        Value value;
        Clock clock;
        const Step* step = nullptr;
    };
    std::string name;
    std::int64_t entries = 1, takers = 1;
    int publisher = -1;
    std::vector<Entry> queue;           ///< all that was ever published
    std::vector<std::int64_t> position; ///< by agent: entries taken, -1: takes none
    std::int64_t taking = 0;            ///< agents that took

    std::int64_t room() const; ///< entries that could be published now
};

} // namespace cubridge::ir::cuir
