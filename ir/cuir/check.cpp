// Checks before any run, at the program's own constants. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/arch.h"
#include "ir/cuir/flow.h"
#include "ir/cuir/launch.h"
#include "ir/cuir/literals.h"
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <map>

namespace cubridge::ir::cuir {
namespace {

using Form = Expr::Form;
using Do = Step::Do;
using Tag = Value::Tag;

constexpr std::int64_t kSharedBytes = 227 * 1024, kRegisters = 65536, kThreadRegisters = 255, kWarp = 32;
constexpr std::int64_t kNamedBarriers = 15; // number 0 is __syncthreads()
constexpr int kHeadDim = 128;               // where neither a constant nor a run says

Finding at(const Statement& s, const std::string& role, std::string message) {
    return {"static", role, s.line, 0, "`" + line_of(s) + "`: " + std::move(message)};
}

/// What an expression names, indices aside.
const Expr* base(const Expr* e) {
    while (e && (e->form == Form::Index || e->form == Form::Transpose)) e = e->args[0];
    return e;
}

template <class F> void each_step(const Block& block, F f) {
    for (const auto& s : block) {
        f(s);
        each_step(s.body, f);
        each_step(s.other, f);
    }
}

template <class F> void each_expr(const Expr* e, F f) {
    if (!e) return;
    f(*e);
    for (const auto* a : e->args) each_expr(a, f);
}

// ---- a kernel at its own constants

/// Inputs of size 1, so that a prelude that reads operands has something to read.
Run at_own_constants(const KernelCode& kernel) {
    Run run;
    for (const auto& [name, slot] : kernel.sizes) run.sizes[name] = name == "D" || name == "Dv" ? kHeadDim : 1;
    for (std::size_t k = 0; k < kernel.constants.size(); ++k)
        if (kernel.constant_values[k].is_integer())
            run.sizes[kernel.constants[k].first] = kernel.constant_values[k].index;
    run.policy = Run::Policy::Early;
    for (const auto& p : kernel.params) {
        Memory m;
        m.shape.assign(p.extents.size(), 1);
        m.values = {1};
        run.inputs[p.name] = std::move(m);
    }
    return run;
}

struct Extents {
    int rows = 0, cols = 0;
};

class KernelCheck {
public:
    KernelCheck(const Code& code, const KernelCode& kernel, std::vector<Finding>& out)
        : kernel_(kernel), out_(out), run_(at_own_constants(kernel)), launch_{code, run_, {}, {}, {}, false, 0},
          cta_(launch_, kernel, 0, 0, 1) {
        for (const auto& [name, memory] : run_.inputs) {
            Tensor t;
            t.name = name;
            t.shape = memory.shape;
            t.input = memory.values.data();
            launch_.tensors.push_back(std::move(t));
        }
        for (const auto& s : code.storage) {
            Tensor t;
            t.name = s.name;
            t.use = Tensor::Use::Workspace;
            t.shape.assign(s.extents.size(), 1);
            t.values = {0};
            t.writer = {nullptr};
            t.written_in = {-1};
            launch_.tensors.push_back(std::move(t));
        }
    }

    void run() {
        outputs();
        if (kernel_.map) return;
        if (auto f = cta_.prelude()) {
            f->kind = "static";
            out_.push_back(std::move(*f));
            return;
        }
        shared();
        roles();
        for (const auto& role : kernel_.roles) products(role);
        for (std::size_t slot = 0; slot < cta_.common().size(); ++slot) synchronisers(static_cast<int>(slot));
    }

private:
    const Statement& head() const { return kernel_.source->head[1]; }

    static bool makes(const Expr& e, Builtin what) {
        if (e.form == Form::Call) return e.builtin == what;
        return e.form == Form::Tuple &&
               std::any_of(e.args.begin(), e.args.end(), [&](const Expr* a) { return makes(*a, what); });
    }

    /// The prelude's last statement that makes such a thing.
    const Statement& last_maker(Builtin what) const {
        const Statement* last = &head();
        for (const auto& s : kernel_.prelude)
            if (s.what == Do::Assign && makes(*s.args[0], what)) last = s.source;
        return *last;
    }

    /// The statement of the prelude that binds a name.
    const Statement& maker_of(int slot) const {
        for (const auto& s : kernel_.prelude) {
            if (s.what != Do::Assign) continue;
            if (s.target.slot == slot && s.target.items.empty()) return *s.source;
            for (const auto& t : s.target.items)
                if (t.slot == slot) return *s.source;
        }
        return head();
    }

    void outputs() {
        std::vector<bool> used(static_cast<std::size_t>(kernel_.slots), false);
        const auto scan = [&](const Block& block) {
            each_step(block, [&](const Step& s) {
                for (const auto* a : s.args)
                    each_expr(a, [&](const Expr& e) {
                        if (e.form == Form::Common) used[static_cast<std::size_t>(e.slot)] = true;
                    });
            });
        };
        scan(kernel_.prelude);
        for (const auto& d : kernel_.defs) scan(d.body);
        for (const auto& r : kernel_.roles) scan(r.body);
        for (const auto& p : kernel_.params) {
            const bool operand =
                p.name.size() > 1 && p.name[0] == 'x' && std::isdigit(static_cast<unsigned char>(p.name[1]));
            if (p.tensor && !operand && !used[static_cast<std::size_t>(p.slot)])
                out_.push_back(at(*p.source, "", "is neither read nor written; every output is assigned"));
        }
    }

    void shared() {
        std::int64_t bytes = 8 * static_cast<std::int64_t>(cta_.barriers().size());
        for (const auto& b : cta_.buffers())
            bytes += std::int64_t{b.cells_below(0)} * b.rows * b.cols * size_in_bytes(b.type);
        if (bytes > kSharedBytes)
            out_.push_back(
                at(last_maker(Builtin::Alloc), "",
                   fmt::format("with this the CTA needs {} bytes of shared memory; it has {}", bytes, kSharedBytes)));
        if (static_cast<std::int64_t>(cta_.named().size()) > kNamedBarriers)
            out_.push_back(at(last_maker(Builtin::NamedBarrier), "",
                              fmt::format("with this the CTA needs {} named barriers; it has {} beside number 0",
                                          cta_.named().size(), kNamedBarriers)));
    }

    std::int64_t value(const Expr* e, std::int64_t otherwise) {
        bool own = false; // a name of the role's has no value before the run
        each_expr(e, [&](const Expr& x) { own = own || x.form == Form::Local; });
        if (!e || own) return otherwise;
        try {
            return cta_.evaluate_integer(*e);
        } catch (const Trouble&) {
            return otherwise;
        }
    }

    std::int64_t agents(const RoleCode& r) { return value(r.warps ? r.warps : r.warpgroups, 1); }

    void roles() {
        const bool groups =
            std::any_of(kernel_.roles.begin(), kernel_.roles.end(), [](const auto& r) { return r.warpgroups; });
        const bool one_size = kernel_.source->attribute("arch") == "sm_80"; // no setmaxnreg
        std::int64_t pool = 0, single = 0, most = 0, largest = -1;
        const RoleCode *hungriest = nullptr, *richest = nullptr, *poorest = nullptr;
        for (const auto& r : kernel_.roles) {
            const auto registers = value(r.registers, 0), k = agents(r);
            if (k < 1) out_.push_back(at(*r.source, r.name, "has no agents"));
            if (registers < 0 || registers > kThreadRegisters)
                out_.push_back(
                    at(*r.source, r.name, fmt::format("a thread has at most {} registers", kThreadRegisters)));
            if (groups && (registers % 8 != 0 || (registers != 0 && registers < 24)))
                out_.push_back(at(*r.source, r.name, "beside warpgroups, registers are a multiple of 8, at least 24"));
            const auto threads = k * kWarp * (r.warpgroups ? 4 : 1);
            if (threads * registers > largest) {
                largest = threads * registers;
                hungriest = &r;
            }
            if (r.registers && (!richest || registers > value(richest->registers, 0))) richest = &r;
            if (r.registers && (!poorest || registers < value(poorest->registers, 0))) poorest = &r;
            if (r.warpgroups) {
                pool += k * 4 * kWarp * registers;
            } else {
                single += k;
                most = std::max(most, registers);
            }
        }
        // Registers are handed out by warpgroup: warps that stand alone share one.
        pool += (groups ? (single + 3) / 4 * 4 : single) * kWarp * most;
        if (pool > kRegisters)
            out_.push_back(at(*hungriest->source, hungriest->name,
                              fmt::format("with this the CTA needs {} registers; an SM has {}", pool, kRegisters)));
        if (one_size && poorest != richest && value(poorest->registers, 0) != value(richest->registers, 0))
            out_.push_back(at(*poorest->source, poorest->name,
                              fmt::format("sm_80 gives all threads of a CTA the same registers; this role has {}, {} "
                                          "has {}. Give all the same, or arch=\"sm_90a\"",
                                          value(poorest->registers, 0), richest->name, value(richest->registers, 0))));
    }

    /// Rows and columns of storage at the program's own constants; nothing where they are not known.
    std::optional<Extents> extents(const Expr* e, const std::vector<std::pair<int, Extents>>& own) {
        e = base(e);
        if (!e) return std::nullopt;
        if (e->form == Form::Local)
            for (const auto& [slot, x] : own)
                if (slot == e->slot) return x;
        if (e->form == Form::Common) {
            const auto& v = cta_.common()[static_cast<std::size_t>(e->slot)];
            if (v.tag == Tag::Place) {
                const auto& b = cta_.buffers()[static_cast<std::size_t>(v.index)];
                return Extents{b.rows, b.cols};
            }
        }
        return std::nullopt;
    }

    void products(const RoleCode& role) {
        std::vector<std::pair<int, Extents>> own;
        each_step(role.body, [&](const Step& s) {
            if (s.what != Do::Assign || s.args[0]->form != Form::Call || s.args[0]->builtin != Builtin::Alloc) return;
            const auto& items = s.args[0]->args[1]->args;
            if (items.size() < 2) return;
            own.push_back(
                {s.target.slot,
                 {static_cast<int>(value(items[items.size() - 2], 0)), static_cast<int>(value(items.back(), 0))}});
        });
        each_step(role.body, [&](const Step& s) {
            if (s.what != Do::Effect || (s.builtin != Builtin::Gemm && s.builtin != Builtin::GemmAsync)) return;
            const auto say = [&](std::string m) { out_.push_back(at(*s.source, role.name, std::move(m))); };
            if (s.builtin == Builtin::GemmAsync && !role.warpgroups)
                say("an asynchronous product needs a warpgroup; this role has warps");
            const auto a = extents(s.args[0], own), b = extents(s.args[1], own),
                       to = extents(s.accumulates ? s.args[3] : s.args[2], own);
            if (!a || !b || !to || to->rows == 0 || to->cols == 0) return;
            const bool transposed = s.args[1]->form == Form::Transpose;
            const int inner = transposed ? b->cols : b->rows, cols = transposed ? b->rows : b->cols;
            if (a->cols != inner || a->rows != to->rows || cols != to->cols)
                say(fmt::format("a product of {} x {} and {} x {} is not {} x {}", a->rows, a->cols, inner, cols,
                                to->rows, to->cols));
            if (role.warpgroups && to->rows != 64) say(fmt::format("a warpgroup has 64 rows, not {}", to->rows));
            if (role.warps && to->rows % 16 != 0)
                say(fmt::format("a warp's rows are a multiple of 16, not {}", to->rows));
            if (to->cols % 8 != 0 || (s.builtin == Builtin::GemmAsync && to->cols > 256))
                say(fmt::format("columns of a product are a multiple of 8{}, not {}",
                                s.builtin == Builtin::GemmAsync ? ", at most 256" : "", to->cols));
            // Columns are padded to 16 in shared memory; rows of keys are not, and a register product pads what it
            // reads.
            const int grain = s.builtin == Builtin::GemmAsync && !transposed ? 16 : 8;
            if (inner % grain != 0)
                say(fmt::format("the inner extent of a product is a multiple of {}, not {}", grain, inner));
        });
    }

    struct Sites {
        const RoleCode* role;
        std::int64_t agents = 1; ///< that come to one barrier of the group
        std::int64_t statements = 0;
        const Statement* first = nullptr;
    };

    /// Names of a role that hang on which of its agents it is.
    static std::vector<bool> own_names(const RoleCode& role) {
        std::vector<bool> mine(static_cast<std::size_t>(role.slots), false);
        if (role.index_slot >= 0) mine[static_cast<std::size_t>(role.index_slot)] = true;
        for (int round = 0; round < 4; ++round)
            each_step(role.body, [&](const Step& s) {
                if (s.what == Do::Assign && s.target.items.empty() && s.target.slot >= 0 && hangs(s.args[0], mine))
                    mine[static_cast<std::size_t>(s.target.slot)] = true;
            });
        return mine;
    }

    static bool hangs(const Expr* e, const std::vector<bool>& mine) {
        bool yes = false;
        each_expr(e, [&](const Expr& x) {
            yes = yes || (x.form == Form::Local && static_cast<std::size_t>(x.slot) < mine.size() &&
                          mine[static_cast<std::size_t>(x.slot)]);
        });
        return yes;
    }

    /// False where some agents of a role arrive and others do not: counting is left to the executor.
    bool arrivals(const Block& block, const RoleCode& role, const std::vector<bool>& mine, int slot, bool some,
                  Sites& to) {
        for (const auto& s : block) {
            if (s.what == Do::Effect) {
                const Expr* b = s.builtin == Builtin::Arrive || s.builtin == Builtin::Sync ? s.args[0]
                                : s.builtin == Builtin::CopyAsync                          ? s.args[2]
                                                                                           : nullptr;
                const Expr* name = base(b);
                if (name && name->form == Form::Common && name->slot == slot) {
                    if (some) return false;
                    ++to.statements;
                    if (!to.first) to.first = s.source;
                    to.agents = hangs(b, mine) ? 1 : agents(role);
                }
            }
            const bool inner = some || (s.what == Do::If && hangs(s.args[0], mine));
            if (!arrivals(s.body, role, mine, slot, inner, to) || !arrivals(s.other, role, mine, slot, inner, to))
                return false;
        }
        return true;
    }

    void synchronisers(int slot) {
        const Value& v = cta_.common()[static_cast<std::size_t>(slot)];
        if (v.tag == Tag::Channel) return takers(slot, cta_.channels()[static_cast<std::size_t>(v.index)]);
        if (v.tag != Tag::Barrier && v.tag != Tag::Named) return;
        std::vector<Sites> sites;
        for (const auto& role : kernel_.roles) {
            Sites s{&role};
            if (!arrivals(role.body, role, own_names(role), slot, false, s)) return;
            if (s.statements > 0) sites.push_back(s);
        }
        const bool named = v.tag == Tag::Named;
        const auto i = static_cast<std::size_t>(v.index);
        const auto count = named ? cta_.named()[i].count : cta_.barriers()[i].count;
        const auto& name = kernel_.names[static_cast<std::size_t>(slot)];
        if (sites.empty()) {
            out_.push_back(at(maker_of(slot), "", fmt::format("nobody arrives at {}", name)));
            return;
        }
        // Which of several statements a phase meets is not known; each role comes at least once.
        std::int64_t least = 0, most = 0;
        for (const auto& s : sites) {
            least += s.agents;
            most += s.agents * (named && s.agents > 1 ? 1 : s.statements);
        }
        if (count < least || count > most)
            out_.push_back(
                at(*sites[0].first, sites[0].role->name,
                   fmt::format("{} counts {} arrivals; {} agents arrive", name, count,
                               least == most ? std::to_string(least) : fmt::format("{} to {}", least, most))));
    }

    void takers(int slot, const Channel& channel) {
        std::int64_t count = 0;
        const Statement* first = nullptr;
        for (const auto& role : kernel_.roles) {
            bool takes = false;
            each_step(role.body, [&](const Step& s) {
                const Expr* c = s.what == Do::Take ? base(s.args[0]) : nullptr;
                if (!c || c->form != Form::Common || c->slot != slot) return;
                takes = true;
                if (!first) first = s.source;
            });
            if (takes) count += agents(role);
        }
        if (count != channel.takers)
            out_.push_back(at(first ? *first : maker_of(slot), "",
                              fmt::format("{} counts {} takers; {} agents take", channel.name, channel.takers, count)));
    }

    const KernelCode& kernel_;
    std::vector<Finding>& out_;
    Run run_;
    Launch launch_;
    Cta cta_;
};

// A run gives a constant one value, in all kernels: what it shows is shown of programs whose kernels agree.
void constants_agree(const Code& code, std::vector<Finding>& out) {
    std::map<std::string, std::pair<double, const KernelCode*>> first;
    for (const auto& kernel : code.kernels)
        for (std::size_t k = 0; k < kernel.constants.size(); ++k) {
            const double number = kernel.constant_values[k].as_real();
            const auto [it, is_new] = first.try_emplace(kernel.constants[k].first, number, &kernel);
            if (!is_new && it->second.first != number)
                out.push_back(
                    at(kernel.source->head.back(), "",
                       fmt::format("`{}` is {} here and {} in `{}`; the kernels of a program share its constants",
                                   it->first, number, it->second.first, it->second.second->name)));
        }
}

} // namespace

std::vector<Finding> check(const Program& program) {
    const auto code = compile(program);
    auto out = code->findings;
    for (const auto& k : code->program->kernels) literals(k.body, out);
    if (!code->findings.empty()) return out;
    constants_agree(*code, out);
    for (const auto& kernel : code->kernels) {
        const auto arch = arch_check(kernel);
        out.insert(out.end(), arch.begin(), arch.end());
        KernelCheck(*code, kernel, out).run();
        auto flow = follow(*code, kernel);
        out.insert(out.end(), flow.begin(), flow.end());
    }
    return out;
}

} // namespace cubridge::ir::cuir
