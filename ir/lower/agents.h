// Who arrives where: what barriers, channels and collective statements need to know of the roles of a kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/lower/facts.h"
#include <map>
#include <string>
#include <vector>

namespace cubridge::ir::lower {

/// Whether a kernel has a role of warpgroups: its shared memory is laid out for asynchronous products then.
bool has_warpgroups(const cuir::Kernel& kernel);

/// "(WG + 1)", "WG": a factor of a product.
std::string as_factor(const std::string& text);

class Agents {
public:
    /// Fails where roles of warps, which share a warpgroup, would have different registers.
    explicit Agents(const cuir::Kernel& kernel);
    static bool of_warpgroups(const cuir::Statement& role);

    /// What else the CUDA of this storage, barrier or channel depends on: text that its rule prints or asks for.
    std::string note(const std::string& name, const syntax::Node& call, int& named) const;
    /// Threads that agree at a named barrier, given how many agents arrive. `here`: those of the role that asks.
    std::string threads(const std::string& name, const std::string& arrivals, const std::string& here) const;

private:
    struct Role {
        const syntax::Node* count = nullptr;
        bool groups = false;
    };
    struct Users {
        bool warps = false, groups = false, copies = false;
        std::vector<Role> takers; ///< in order of text, each once
    };
    void look(const std::vector<cuir::Statement>& body, const Role& role);
    const Users& users(const std::string& name) const;
    std::string takers(const std::string& name, const syntax::Node& count) const;

    std::map<std::string, std::int64_t> constants_;
    std::map<std::string, Users> users_;
    bool groups_ = false;
};

} // namespace cubridge::ir::lower
