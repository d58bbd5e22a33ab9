// An expert of the Hopper program whose regions are what rules print: its openings alone are written by hand.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/lower/rules.h"
#include "tests/unit/ir/lower/expert.h"
#include <map>

namespace cubridge::ir::lower::test {

inline std::string hopper_program() {
    return cuir::print(*cuir::read(read_file("tests/corpus/cuir/prefill_sm90.py")));
}

class HopperStub {
public:
    explicit HopperStub(const std::string& text) : program_(*cuir::read(text)), analysis_(analyse(program_)) {}

    std::string cuda() {
        out_ = "// No CUDA: what stands in regions is printed.\n";
        const auto& k = program_.kernels[0];
        for (const auto& s : k.head) head(s, k);
        block(k.body, 1);
        end(1, {"}"});
        return out_;
    }

private:
    void line(const cuir::Statement& s, int depth) {
        out_ += "//| " + std::string(static_cast<std::size_t>(depth) * 4, ' ') + cuir::line_of(s) + "\n";
    }
    void lines(const Lines& all, int depth) {
        for (const auto& l : all) out_ += std::string(static_cast<std::size_t>(depth) * 4, ' ') + l + "\n";
    }
    void end(int depth, const Lines& all) {
        out_ += "//| " + std::string(static_cast<std::size_t>(depth) * 4, ' ') + "# end\n";
        lines(all, depth - 1);
    }

    void head(const cuir::Statement& s, const cuir::Kernel& k) {
        using K = cuir::Statement::Kind;
        static const std::map<std::string, std::string> tensors{
            {"Q", "const Mapped Q(args.q, args.map[0], args.max_q, args.head_begin);"},
            {"K", "const Mapped K(args.k, args.map[1], args.max_kv, args.head_begin / (Hq / Hk));"},
            {"V", "const Mapped V(args.v, args.map[2], args.max_kv, args.head_begin / (Hq / Hk));"},
            {"Out", "const Mapped Out(args.o, args.map[3], args.max_q, args.head_begin);"},
            {"Lse", "const Tensor Lse(args.lse, args.head_begin);"}};
        const bool inner = s.kind == K::Param || s.kind == K::Constants;
        line(s, inner ? 1 : 0);
        if (s.kind == K::Kernel)
            lines({"extern \"C\" __global__ void __launch_bounds__(384, 1) attention(const __grid_constant__ cb_args "
                   "args) {",
                   "    int b = 0, h = 0, m = 0, Sq = args.max_q, Sk = args.max_kv;"},
                  0);
        if (s.kind == K::Constants) lines(constants_block(k, program_), 1);
        if (s.kind != K::Param) return;
        const auto it = tensors.find(s.name);
        lines(it != tensors.end() ? Lines{it->second} : print_region(s, analysis_).lines, 1);
    }

    void block(const std::vector<cuir::Statement>& body, int depth) {
        for (const auto& s : body) {
            line(s, depth);
            if (s.kind == cuir::Statement::Kind::With) {
                lines(opening(s), depth);
                block(s.body, depth + 1);
                end(depth + 1, {"}"});
                continue;
            }
            const Region r = print_region(s, analysis_);
            lines(r.lines, depth);
            if (!s.opens_block()) continue;
            block(s.body, depth + 1);
            end(depth + 1, r.end);
        }
    }

    static Lines opening(const cuir::Statement& s) {
        const std::string name = cuir::line_of(s).substr(11, 4);
        if (name == "load")
            return {"fence_barriers();", "__syncthreads();", "if (threadIdx.x < 128) setmaxnreg_dec<40>();",
                    "if (threadIdx.x < 32) {"};
        if (name == "stor") return {"if (threadIdx.x / 32 == 1) { // 40 registers, as all of its warpgroup"};
        return {"if (threadIdx.x >= 128) {", "    setmaxnreg_inc<232>();",
                "    const int g = uniform(threadIdx.x / 128 - 1);"};
    }

    cuir::Program program_;
    Analysis analysis_;
    std::string out_;
};

inline const std::string& hopper_text() {
    static const std::string text = HopperStub(hopper_program()).cuda();
    return text;
}

} // namespace cubridge::ir::lower::test
