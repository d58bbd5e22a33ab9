// What is known of each statement of a program before anything is printed: types, declarations, signatures, wait
// counts. Two statements whose lines and facts are equal have the same CUDA.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/program.h"
#include "ir/lower/scope.h"
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace cubridge::ir::lower {

/// A name that a statement assigns or declares.
struct Binding {
    std::string name;
    Type type;
    bool declares = false; ///< its CUDA declaration belongs to this statement
    bool constant = false; ///< nothing assigns it again
    std::string note{};    ///< of storage, barriers, channels: what else its CUDA depends on (agents.h)
};

/// What a wait leaves in flight: how many of each queue of its agent. -1: it does not wait for that queue.
struct Pending {
    int copies = -1;                  ///< into shared memory
    int stores = -1;                  ///< out of it
    int products = -1;                ///< gemm_async
    std::vector<std::string> retired; ///< registers of the products that end here

    std::string text() const;
};

struct Facts {
    Scope* scope = nullptr;
    const cuir::Kernel* kernel = nullptr;
    std::vector<Binding> results;
    std::vector<Binding> before;    ///< an opening line declares these first: assigned in its block, used after it
    std::vector<std::string> reads; ///< "name=type"
    std::string derived;            ///< signatures, barrier ids, threads, workspace: what else its CUDA depends on
    Pending pending;                ///< of a wait
    int vote = -1;                  ///< the number of its first vote that has no name of its own

    const Binding* result(const std::string& name) const;
};

struct Analysis {
    std::map<const cuir::Statement*, Facts> facts;
    std::deque<Scope> scopes;

    const Facts& of(const cuir::Statement& s) const;
    /// What equal statements have in common: kind, line, facts.
    std::string key(const cuir::Statement& s) const;
    /// The same without the line.
    std::string facts_key(const cuir::Statement& s) const;
};

/// Throws Failure ("no_rule") for a program that no CUDA could be printed for as a whole: unknown names, names without
/// a type, a wait that depends on the path. The program must outlive the analysis.
Analysis analyse(const cuir::Program& program);

/// Runs `f`; a Failure out of it names the statement and its line.
template <class F> auto located(const cuir::Statement& s, F&& f) -> decltype(f()) {
    try {
        return f();
    } catch (Failure& failure) {
        Error& e = failure.error;
        if (s.line > 0 && e.message.rfind("line ", 0) != 0)
            e.message = "line " + std::to_string(s.line) + ", `" + cuir::line_of(s) + "`: " + e.message;
        if (e.span.line == 0) e.span = {s.line, 1, s.line, 1};
        throw;
    }
}

/// Integer constants of a kernel, by name.
std::map<std::string, std::int64_t> int_constants(const cuir::Kernel& kernel);
/// Threads of a kernel and registers of each, from its roles; 256 threads for a map.
struct Resources {
    int threads = 0;
    int registers = 255;
};
Resources resources(const cuir::Kernel& kernel);

/// Facts::pending of each `wait(x)` for storage: how many copies and products may stay in flight, from following the
/// queues of an agent over all paths, with 1, 2, ... key tiles an item. Throws Failure where a count depends on the
/// path or nothing is in flight.
void derive_waits(const cuir::Kernel& kernel, Analysis& analysis);

} // namespace cubridge::ir::lower
