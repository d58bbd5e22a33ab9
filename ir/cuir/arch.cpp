// What sm_80 has not: warpgroups, asynchronous products, signalled copies, barriers with phases.
// SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/arch.h"
#include <fmt/format.h>

namespace cubridge::ir::cuir {
namespace {

class ArchCheck {
public:
    explicit ArchCheck(std::vector<Finding>& out) : out_(out) {}

    void steps(const Block& block, const std::string& role) {
        for (const auto& s : block) {
            step(s, role);
            steps(s.body, role);
            steps(s.other, role);
        }
    }

    void say(const Statement& s, const std::string& role, const char* has_no, const char* instead) {
        out_.push_back({"static", role, s.line, 0,
                        fmt::format("`{}`: sm_80 has no {}; {}, or arch=\"sm_90a\"", line_of(s), has_no, instead)});
    }

private:
    void step(const Step& s, const std::string& role) {
        if (s.what == Step::Do::Effect && s.builtin == Builtin::GemmAsync)
            say(*s.source, role, "gemm_async", "gemm multiplies at once");
        if (s.what == Step::Do::Effect && s.builtin == Builtin::CopyAsync && s.args[2])
            say(*s.source, role, "signalled copies", "without signal= its agent waits for it");
        if (s.what == Step::Do::Assign && makes_phases(*s.args[0]))
            say(*s.source, role, "barriers with phases", "named_barrier and sync order agents");
    }

    static bool makes_phases(const Expr& e) {
        if (e.form == Expr::Form::Call) return e.builtin == Builtin::Barrier;
        if (e.form == Expr::Form::Tuple)
            for (const auto* a : e.args)
                if (makes_phases(*a)) return true;
        return false;
    }

    std::vector<Finding>& out_;
};

} // namespace

std::vector<Finding> arch_check(const KernelCode& kernel) {
    std::vector<Finding> out;
    if (kernel.map) return out;
    const auto arch = kernel.source->attribute("arch");
    const auto& decorator = kernel.source->head[0];
    if (arch != "sm_80" && arch != "sm_90a") {
        out.push_back({"static", "", decorator.line, 0,
                       fmt::format("`{}`: arch= is \"sm_80\" or \"sm_90a\"{}", line_of(decorator),
                                   arch.empty() ? "" : ", not \"" + arch + "\"")});
    } else if (arch == "sm_80") {
        ArchCheck check(out);
        check.steps(kernel.prelude, "");
        for (const auto& role : kernel.roles) {
            if (role.warpgroups) check.say(*role.source, role.name, "warpgroups", "a role there has warps=");
            check.steps(role.body, role.name);
        }
    }
    return out;
}

} // namespace cubridge::ir::cuir
