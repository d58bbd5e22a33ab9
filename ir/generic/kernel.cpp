// Kernels from steps: one prologue entry a level, then the main grid, whose blocks stride over rows.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/kernel_abi.h"
#include "ir/generic/emit.h"
#include "ir/generic/literal.h"
#include "ir/generic/prelude.h"

namespace cubridge::ir::generic {
namespace {

using launch::Code;
using launch::Size;
using Do = Code::Do;

Code times(Code a, Code b) {
    return Code::binary(Do::Mul, std::move(a), std::move(b));
}
Code constant(std::int64_t v) {
    return Code::constant(v);
}

const char* stored_type(Type t) {
    return t == Type::Bool ? "unsigned char" : type_name(t);
}

class Printer {
public:
    explicit Printer(Program program) : program_(std::move(program)), p_(program_.prepared) { lay_out(); }

    Kernel run() {
        Kernel k;
        std::string entries;
        k.plan = p_.plan;
        for (int level = 1; level <= program_.levels; ++level) entries += prologue(level, k.plan);
        entries += main(k.plan);
        k.plan.workspace = Code::binary(Do::Add, tables_, times(grid(), scratch_));
        for (const Step& s : program_.steps) (s.per_row ? k.steps_per_row : k.steps_per_launch) += 1;
        k.cuda = head() + entries;
        return k;
    }

private:
    // ---- Workspace: tables of the prologue, then one scratch area a block -----------------------------------------
    Code heads_of(const Step& s) const {
        const Code units = Code::binary(Do::FloorDiv, Code::size(Size::HeadsKv), constant(p_.heads.k));
        return Code::binary(Do::CeilDiv, times(units, constant(p_.heads.out)), constant(s.head_divisor));
    }

    Code elements(const Step& s) const {
        Code n = constant(1);
        if (s.over_request) n = times(n, Code::size(Size::Requests));
        if (s.over_head) n = times(n, heads_of(s));
        for (const Code& size : s.sizes) n = times(n, size);
        return n;
    }

    void lay_out() {
        for (const Step& s : program_.steps) {
            if (s.per_row && s.sizes.empty()) {
                at_.push_back(constant(0));
                continue;
            }
            const int bytes = s.type == Type::Bool                                              ? 1
                              : s.type == Type::Int || (s.type == Type::Real && p_.options.f64) ? 8
                                                                                                : 4;
            Code& end = s.per_row ? scratch_ : tables_;
            at_.push_back(end);
            end = Code::binary(Do::Add, end,
                               Code::binary(Do::RoundUp, times(elements(s), constant(bytes)), constant(256)));
        }
    }

    Code grid() const {
        const Code rows = times(times(Code::size(Size::Requests), Code::size(Size::MaxQ)), heads_of(Step{}));
        return Code::binary(Do::Min, times(Code::size(Size::SmCount), constant(p_.options.blocks_per_sm)), rows);
    }

    // ---- Text -----------------------------------------------------------------------------------------------------
    std::string head() const {
        std::string out =
            "// Attention, printed from its specification by CuBridge's generic printer: argument block " +
            std::to_string(abi::kKernelAbi) + ".\n";
        out += "#ifdef __CUDACC__\n#pragma nv_diag_suppress 177, 550 // what a kernel does not use\n#endif\n";
        out += "#ifndef CB_THREADS\n#define CB_THREADS " + std::to_string(p_.options.threads) + "\n#endif\n";
        out += "#ifndef CB_ENTRY\n#define CB_ENTRY extern \"C\" __global__ __launch_bounds__(CB_THREADS)\n#endif\n";
        out += std::string("typedef ") + (p_.options.f64 ? "double" : "float") + " cb_real;\n\n";
        out += abi::kernel_abi_text();
        out += prelude();
        for (std::size_t k = 0; k < p_.pool->table_count(); ++k) {
            const ConstTable& t = p_.pool->table(static_cast<int>(k));
            out += std::string("static __device__ const ") + stored_type(t.type) + " cb_table" + std::to_string(k) +
                   "[] = {";
            for (std::size_t n = 0; n < t.values.size(); ++n) out += (n == 0 ? "" : ", ") + table_value(t, n);
            out += t.values.empty() ? "0};\n" : "};\n";
        }
        return out;
    }

    static std::string table_value(const ConstTable& t, std::size_t n) {
        const double v = t.values[n];
        if (t.type == Type::Bool || t.type == Type::Int) return integer_literal(static_cast<std::int64_t>(v));
        // Initialisers of device variables are constants: inf and NaN without a function.
        if (v != v) return "(cb_real)__builtin_nanf(\"\")";
        if (v - v != 0) return v > 0 ? "(cb_real)__builtin_inff()" : "-(cb_real)__builtin_inff()";
        return t.type == Type::F32 ? float_literal(static_cast<float>(v)) : real_literal(v);
    }

    void begin(Emitter& e, int level) const {
        const bool row = level == 0;
        e.line("const long long B = a.requests, U = a.heads_kv / " + std::to_string(p_.heads.k) +
               ", U0 = a.head_begin / " + std::to_string(p_.heads.q) + ", H = " + std::to_string(p_.heads.out) +
               " * U;");
        e.line("char* const ws = (char*)a.workspace;");
        e.line("(void)B, (void)U0, (void)H, (void)ws;");
        for (std::size_t k = 0; k < program_.steps.size(); ++k) {
            const Step& s = program_.steps[k];
            if (s.per_row ? !row || s.sizes.empty() : !row && s.level > level) continue;
            const std::string id = std::to_string(k), type = stored_type(s.type);
            std::string from = "ws + " + code_text(at_[k]);
            if (s.per_row)
                from = "ws + " + code_text(tables_) + " + (long long)blockIdx.x * " + code_text(scratch_) + " + " +
                       code_text(at_[k]);
            e.line(type + "* const t" + id + " = (" + type + "*)(" + from + ");");
            if (s.over_head) e.line("const long long t" + id + "_h = " + code_text(heads_of(s)) + ";");
            for (std::size_t n = 0; n < s.sizes.size(); ++n)
                e.line("const long long t" + id + "_" + std::to_string(n) + " = " + code_text(s.sizes[n]) + ";");
        }
    }

    void lengths(Emitter& e) const {
        switch (p_.request.layout) {
        case Request::Layout::Dense:
            e.line("const long long Sq = a.max_q, Sk = a.seq_lens_k ? a.seq_lens_k[b] : a.max_kv;");
            break;
        case Request::Layout::Ragged:
            e.line("const long long Sq = a.cu_seqlens_q[b + 1] - a.cu_seqlens_q[b];");
            e.line("const long long Sk = a.cu_seqlens_k[b + 1] - a.cu_seqlens_k[b];");
            break;
        case Request::Layout::Paged:
            e.line("const long long Sq = a.cu_seqlens_q[b + 1] - a.cu_seqlens_q[b], Sk = a.seq_lens_k[b];");
        }
        e.line("(void)Sq, (void)Sk;");
    }

    launch::Entry entry(const std::string& name, Code blocks) const {
        launch::Entry e;
        e.name = name;
        e.grid = {std::move(blocks), constant(1), constant(1)};
        e.block = {p_.options.threads, 1, 1};
        return e;
    }

    std::string function(const std::string& name, Emitter& e) const {
        return "\nCB_ENTRY void " + name + "(const __grid_constant__ cb_args a) {\n" + e.take() + "}\n";
    }

    // ---- Prologue: a thread an element ------------------------------------------------------------------------------
    std::string prologue(int level, launch::Plan& plan) const {
        Emitter e(program_);
        begin(e, level);
        Code most = constant(0);
        for (std::size_t k = 0; k < program_.steps.size(); ++k) {
            const Step& s = program_.steps[k];
            if (s.per_row || s.level != level) continue;
            most = Code::binary(Do::Max, most, elements(s));
            table(e, s, static_cast<int>(k));
        }
        const std::string name = "cubridge_generic_prologue" + std::to_string(level);
        const Code blocks = Code::binary(Do::Min, times(Code::size(Size::SmCount), constant(16)),
                                         Code::binary(Do::CeilDiv, most, constant(p_.options.threads)));
        plan.entries.push_back(entry(name, blocks));
        return function(name, e);
    }

    void table(Emitter& e, const Step& s, int number) const {
        const std::string id = std::to_string(number);
        std::uint64_t known = index_bit(0) | index_bit(1);
        for (std::size_t n = 0; n < s.sizes.size(); ++n) known |= index_bit(kFirstParameter + static_cast<int>(n));
        const std::string all = e.fresh("all"), at = e.fresh("at");
        e.line("const long long " + all + " = " + code_text(elements(s)) + ";");
        e.open(known, "for (long long " + at + " = blockIdx.x * (long long)CB_THREADS + threadIdx.x; " + at + " < " +
                          all + "; " + at + " += (long long)gridDim.x * CB_THREADS)");
        e.head_divisor(s.head_divisor);
        e.line("long long rest = " + at + ";");
        for (std::size_t n = s.sizes.size(); n-- > 0;) {
            const std::string x = "x" + id + "_" + std::to_string(n), size = "t" + id + "_" + std::to_string(n);
            e.line("const long long " + x + " = rest % " + size + ";");
            e.line("rest /= " + size + ";");
            e.variable(kFirstParameter + static_cast<int>(n), x, s.extents[n]);
        }
        e.line(s.over_head ? "const long long h = rest % t" + id + "_h, b = rest / t" + id + "_h;"
                           : "const long long h = 0, b = rest;");
        e.line("(void)h;");
        e.variable(0, "b", nullptr);
        e.variable(1, "h", nullptr);
        // Without the request's axis nothing depends on its lengths; request 0 may not even exist.
        if (s.over_request) lengths(e);
        for (std::size_t n = 0; n < s.sizes.size(); ++n)
            if (!is_const(s.extents[n]) && s.over_request)
                e.line("if (x" + id + "_" + std::to_string(n) + " >= " + e.value(s.extents[n]) + ") continue;");
        const std::string result = element(e, s);
        e.line("t" + id + "[" + at + "] = " + result + ";");
        e.close();
        e.head_divisor(1);
    }

    /// The value of a step where all its parameters are known.
    static std::string element(Emitter& e, const Step& s) {
        if (!s.reduces) return e.value(s.body);
        const std::string sum = e.fresh("r");
        e.line(std::string(type_name(s.type)) + " " + sum + " = " + initial(s.op, s.type) + ";");
        e.loop(s.variable, s.extent, "0", "1");
        e.line(sum + " = " + combined(s.op, sum, e.value(s.body)) + ";");
        e.close();
        return sum;
    }

    // ---- Main: a block a row ----------------------------------------------------------------------------------------
    std::string main(launch::Plan& plan) const {
        Emitter e(program_);
        e.line("__shared__ double shared[CB_THREADS];");
        e.line("(void)shared;");
        begin(e, 0);
        e.open(index_bit(0) | index_bit(1) | index_bit(2),
               "for (long long at = blockIdx.x, all = B * H * a.max_q; at < all; at += gridDim.x)");
        e.line("const long long t = at % a.max_q, h = at / a.max_q % H, b = at / a.max_q / H;");
        lengths(e);
        e.variable(0, "b", nullptr);
        e.variable(1, "h", nullptr);
        e.variable(2, "t", p_.pool->dim(dims::Sq));
        e.line("if (t >= Sq) continue;");
        const bool dense = p_.request.layout == Request::Layout::Dense;
        const std::string first = dense ? "b * a.o.outer" : "a.cu_seqlens_q[b] * a.o.row";
        e.line("const long long o_at = " + first + " + t * a.o.row + h * a.o.head;");
        if (p_.lse != nullptr)
            e.line(
                "const long long lse_at = " + std::string(dense ? "b * a.lse.outer" : "a.cu_seqlens_q[b] * a.lse.row") +
                " + t * a.lse.row + h * a.lse.head;");
        if (p_.request.rows == Request::Rows::Tail) { // a row that the text does not have
            e.open(0, "if (t + Sk - Sq < 0)");
            columns(e, "0");
            put_lse(e, "-cb_inf()");
            e.line("continue;");
            e.close();
        }
        for (std::size_t k = 0; k < program_.steps.size(); ++k)
            if (program_.steps[k].per_row) row_step(e, program_.steps[k], static_cast<int>(k));
        const std::string none = program_.empty == nullptr ? "" : e.value(program_.empty) + " ? ";
        e.loop(3, p_.pool->integer(p_.request.head_dim_v), "threadIdx.x", "CB_THREADS");
        const std::string o = e.value(program_.out);
        e.line("cb_put_" + generic::element(p_.request.o_dtype) + "(a.o.data, o_at + " + e.value(p_.pool->index(3)) +
               ", " + (none.empty() ? o : none + "cb_real(0) : " + o) + ");");
        e.close();
        if (program_.lse != nullptr) {
            const std::string lse = e.value(program_.lse);
            const std::string scaled =
                p_.request.lse == Request::Lse::Log2 ? lse + " * " + real_literal(1.4426950408889634) : lse;
            put_lse(e, none.empty() ? scaled : none + "-cb_inf() : " + scaled);
        }
        e.line("__syncthreads();");
        e.close();
        if (!dense) padding(e);
        plan.entries.push_back(entry("cubridge_generic", grid()));
        return function("cubridge_generic", e);
    }

    void columns(Emitter& e, const std::string& x) const {
        e.line("for (int d = threadIdx.x; d < " + std::to_string(p_.request.head_dim_v) + "; d += CB_THREADS) cb_put_" +
               generic::element(p_.request.o_dtype) + "(a.o.data, o_at + d, " + x + ");");
    }

    void put_lse(Emitter& e, const std::string& x) const {
        if (p_.lse == nullptr) return;
        const char* type = p_.request.o_dtype == DType::F64 ? "f64" : "f32";
        e.line(std::string("if (threadIdx.x == 0) cb_put_") + type + "(a.lse.data, lse_at, " + x + ");");
    }

    void padding(Emitter& e) const {
        e.open(0, "if (a.flags & 1u)");
        e.open(0, "for (long long at = a.cu_seqlens_q[B] * H + blockIdx.x; at < a.total_q * H; at += gridDim.x)");
        e.line("const long long o_at = at / H * a.o.row + at % H * a.o.head;");
        columns(e, "0");
        e.close();
        e.close();
    }

    void row_step(Emitter& e, const Step& s, int number) const {
        const std::string name = e.element_of(s, number, {});
        if (s.sizes.empty()) { // one value: all threads share the work
            e.line(std::string(type_name(s.type)) + " " + name + " = " + initial(s.op, s.type) + ";");
            e.loop(s.variable, s.extent, "threadIdx.x", "CB_THREADS");
            e.line(name + " = " + combined(s.op, name, e.value(s.body)) + ";");
            e.close();
            e.line(name + " = cb_block<" + combiner(s.op) + ">(" + name + ", shared);");
            return;
        }
        std::vector<std::string> at;
        if (s.sizes.size() == 1) {
            e.loop(kFirstParameter, s.extents[0], "threadIdx.x", "CB_THREADS");
            at = {e.value(p_.pool->index(kFirstParameter))};
        } else {
            many_axes(e, s, number, at);
        }
        const std::string result = element(e, s);
        e.line(e.element_of(s, number, at) + " = " + result + ";");
        e.close();
        e.line("__syncthreads();");
    }

    static void many_axes(Emitter& e, const Step& s, int number, std::vector<std::string>& at) {
        const std::string id = std::to_string(number);
        std::string all;
        std::uint64_t known = 0;
        for (std::size_t n = 0; n < s.sizes.size(); ++n) {
            all += (n == 0 ? "t" : " * t") + id + "_" + std::to_string(n);
            known |= index_bit(kFirstParameter + static_cast<int>(n));
        }
        std::vector<std::string> ends;
        for (const Expr x : s.extents) ends.push_back(e.value(x));
        const std::string from = e.fresh("at");
        e.open(known,
               "for (long long " + from + " = threadIdx.x; " + from + " < " + all + "; " + from + " += CB_THREADS)");
        e.line("long long rest = " + from + ";");
        at.resize(s.sizes.size());
        for (std::size_t n = s.sizes.size(); n-- > 0;) {
            at[n] = e.fresh("x");
            const std::string size = "t" + id + "_" + std::to_string(n);
            e.line("const long long " + at[n] + " = rest % " + size + ";");
            e.line("rest /= " + size + ";");
            e.line("if (" + at[n] + " >= " + ends[n] + ") continue;");
            e.variable(kFirstParameter + static_cast<int>(n), at[n], s.extents[n]);
        }
    }

    Program program_;
    const Prepared& p_;
    std::vector<Code> at_;
    Code tables_ = constant(0), scratch_ = constant(0);
};

void check(const Request& r, const Options& o) {
    if (!is_float(r.o_dtype)) fail("unsupported", "the output's type must be a floating one");
    if (o.threads < 1 || o.threads > 1024 || o.blocks_per_sm < 1 || o.max_entries < 1 || o.max_entries > 4)
        fail("unsupported", "a kernel has 1 to 1024 threads a block and 1 to 4 entries");
}

} // namespace

Result<Kernel> print(const Scalar& scalar, const Request& request, const Options& options) {
    try {
        check(request, options);
        return Printer(plan_steps(prepare(scalar, request, options))).run();
    } catch (const Failure& f) {
        return f.error;
    }
}

} // namespace cubridge::ir::generic
