// One CTA at work: its agents, their storage and barriers, the operations in flight. CTAs of a kernel share global
// memory only, which nobody reads in the kernel that writes it, so they run one after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/barriers.h"
#include "ir/cuir/memory.h"
#include <deque>

namespace cubridge::ir::cuir {

/// Deterministic numbers of one seed.
class Chance {
public:
    explicit Chance(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
    std::uint64_t next();
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
    bool percent(unsigned p) { return next() % 100 < p; }

private:
    std::uint64_t state_;
};

/// What all CTAs of all kernels of one launch share.
struct Launch {
    const Code& code;
    const Run& run;
    std::vector<Tensor> tensors;
    std::vector<std::int64_t> left, later; ///< numbers of the work items that nobody drew yet; that the next CTA sees
    bool drawing = false;                  ///< `left` is filled
    std::int64_t steps = 0;
};

struct Iteration { ///< where a `for` stands
    Builtin over = Builtin::Range;
    bool enumerated = false, heaviest_first = false;
    std::int64_t at = 0, stop = 0, count = 0;
    std::vector<std::int64_t> extents;
    Ref<Ranges> ranges;
};

struct Frame {
    const Block* block = nullptr;
    std::size_t at = 0;
    const Step* loop = nullptr; ///< whose body this is
    Iteration iteration;
};

/// A stack of blocks over one frame of names: an agent, a def, the prelude.
struct Thread {
    Value* names = nullptr;
    std::vector<Frame> stack;
    Value result;
    bool is_agent = false;
};

struct CellRef {
    int buffer = 0, cell = 0;
    int part = -1; ///< -1: all
};

struct Operation {
    Builtin what = Builtin::CopyAsync;
    enum Queue : std::uint8_t { Product, In, Out } queue = Product;
    int agent = 0;
    const Step* step = nullptr;
    int barrier = -1; ///< that it lands in; -1: a wait of its agent covers it
    Epoch epoch;
    bool done = false, transposed = false, accumulates = false;
    int part = -1, parts = 1;
    Value a, b, target; ///< places, and a slice for copies
    std::vector<CellRef> touched;
};

struct Agent {
    enum class Blocked : std::uint8_t { No, Phase, Sync, Room, Entry };
    std::string name, role;
    const RoleCode* code = nullptr;
    int index = 0;                      ///< among the agents of the CTA, and its component of clocks
    int number = 0, agents_of_role = 1; ///< `g` of its role
    Thread thread;
    std::vector<Value> names;
    Clock clock;
    const Step* step = nullptr;
    Blocked blocked = Blocked::No;
    int on = 0;             ///< barrier or channel
    std::int64_t phase = 0; ///< of it
    Value pending;          ///< what is to be published
    std::vector<int> queues[3];
    std::uint32_t issued[3] = {0, 0, 0};
    bool over = false;
};

class Cta {
public:
    Cta(Launch& launch, const KernelCode& kernel, int kernel_number, int cta, int ctas);
    /// Troubles become the finding.
    std::optional<Finding> run();
    /// Runs the prelude alone, for what a static check asks: buffers, counts.
    std::optional<Finding> prelude();
    const std::vector<Buffer>& buffers() const { return buffers_; }
    const std::vector<Barrier>& barriers() const { return barriers_; }
    const std::vector<NamedBarrier>& named() const { return named_; }
    const std::vector<Channel>& channels() const { return channels_; }
    const std::vector<Value>& common() const { return common_; }
    std::int64_t evaluate_integer(const Expr& e); ///< of the prelude's names

private:
    // machine.cpp: agents and their schedule
    Finding finding(const Trouble& t) const;
    void bind_parameters();
    void make_agents();
    void make_clocks();
    void schedule();
    bool ready(const Agent& a) const;
    void advance(Agent& a);
    void resume(Agent& a);
    void end_of(Agent& a);
    void end_of_cta();
    [[noreturn]] void deadlock();
    std::string waiting_for(const Agent& a) const;
    bool arrives_at(const Agent& a, const Value& barrier) const;

    // statements.cpp: control and the effects of single statements
    const Step* next(Thread& t);
    void finish(Thread& t);
    bool perform(const Step& s, Thread& t); ///< true: somebody else's turn
    void store(const Step& s, Thread& t);
    void product(const Step& s, Thread& t);
    void copy(const Step& s, Thread& t);
    bool iterate(Frame& f, Thread& t);
    Iteration begin(const Expr& e, Thread& t);
    Value work_item(std::int64_t number, const Iteration& it) const;
    void bind(const Target& target, const Value& v, Thread& t, bool pin);
    bool effect(const Step& s, Thread& t);

    // evaluate.cpp and index.cpp
    Value eval(const Expr& e, Thread& t);
    Value read(const Expr& e, Thread& t); ///< with storage read
    Value value_of(const Value& v);
    bool truth(const Expr& e, Thread& t);
    std::int64_t integer(const Expr& e, Thread& t);
    Value call(const Expr& e, Thread& t);
    Value call_def(int def, std::vector<Value> args);
    Value index(const Expr& e, Thread& t);
    Value index_place(Value place, const Expr& e, Thread& t);
    Value index_tensor(int tensor, const Expr& e, Thread& t);
    Ref<TensorSlice> slice(int tensor, const Expr& e, Thread& t);
    std::int64_t element(int tensor, const Expr& e, Thread& t);
    Value gather(int tensor, const std::vector<Value>& at);
    Value make(const Expr& e, Thread& t);
    Ref<Ranges> ranges(const Value& v);
    Value pinned(Value v) const;

    // access.cpp and operations.cpp: storage and what is in flight
    void touch(const CellRef& ref, bool write, const Access& as, const Clock& known);
    [[noreturn]] void unwritten(const Buffer& buffer, int cell) const;
    [[noreturn]] void race(const Buffer& buffer, int cell, bool write, const Access& earlier, bool earlier_writes);
    std::string syncs() const;                                             ///< "sync(a) or sync(b)": all there are
    std::vector<std::string> readers_barriers(const Buffer& buffer) const; ///< of other roles, behind their reads
    Access generic_access() const;
    std::vector<CellRef> cells_of(const Value& place, int part = -1) const;
    CellRef one_cell(const Value& place, const char* what) const;
    Cell& at(const CellRef& r);
    void write_cell(const CellRef& r, const Value& v);
    void check_range(const Buffer& buffer, int cell, const Array& a) const;
    bool copy_async(const Step& s, Thread& t);
    bool gemm_async(const Step& s, Thread& t);
    void issue(Operation op, const std::vector<CellRef>& reads, const std::vector<CellRef>& writes);
    void complete(int op);
    void carry_out(const Operation& op);
    Value multiply(const Value& a, const Value& b, bool transposed, const CellRef& target, bool accumulate);
    void load(const TensorSlice& from, const CellRef& to, int cell_number, int part, int parts);
    void store_slice(const TensorSlice& to, const Array& from);
    void fit(const TensorSlice& s, const Value& place, bool loads) const;
    void wait_cells(const Value& place);
    void fence(const Value& place);
    std::string place_name(const Value& place) const;

    // synchronise.cpp
    void arrive(int barrier, bool lands);
    void landed(int barrier);
    void close(int barrier);
    bool wait_phase(int barrier, std::int64_t phase);
    void pass(Agent& a, int barrier, std::int64_t phase);
    void arrive_named(int barrier);
    bool sync(int barrier);
    bool publish(int channel, Value v);
    void put(Agent& a);
    Value take(Agent& a);
    int barrier_of(const Value& v, Value::Tag tag, const char* what) const;

    Agent& self() { return agents_[static_cast<std::size_t>(current_)]; }
    const Agent& self() const { return agents_[static_cast<std::size_t>(current_)]; }
    int queue_component(int agent, int queue) const { return static_cast<int>(agents_.size()) + 3 * agent + queue; }
    std::string who(int agent) const { return agents_[static_cast<std::size_t>(agent)].name; }

    Launch& launch_;
    const KernelCode& kernel_;
    int kernel_number_, cta_, ctas_;
    Chance chance_;
    std::vector<Value> common_;
    std::deque<Agent> agents_;
    std::vector<Buffer> buffers_;
    std::vector<Barrier> barriers_;
    std::vector<NamedBarrier> named_;
    std::vector<Channel> channels_;
    std::deque<Operation> operations_;
    std::vector<int> flight_; ///< operations that land in a barrier and have not
    int current_ = -1;        ///< agent; -1: the prelude
    int depth_ = 0;           ///< of calls of defs
    int drawer_ = -1;         ///< the agent that draws work items
    const Step* outer_ = nullptr;
    const Step* inner_ = nullptr; ///< in a def
};

} // namespace cubridge::ir::cuir
