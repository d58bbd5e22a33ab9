// PTX that a kernel may not use, and the ways to hide it.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/runtime/gate/refused.h"

namespace cubridge::runtime {
namespace {

using namespace refused;

class AsmRefused : public testing::TestWithParam<Case> {};
TEST_P(AsmRefused, NamesRuleAndLine) {
    is_refused(GetParam());
}

Case ptx(const char* what, const std::string& text, const char* rule) {
    return {what, In::Body,
            "int x = 0; asm volatile(\"" + text + "\" : \"+r\"(x) : \"l\"(args.o.data), \"r\"(x) : \"memory\");", rule,
            1};
}

const Case assembly[] = {
    ptx("trap", "trap;", "instruction"),
    ptx("trap in capitals", "TRAP;", "instruction"),
    ptx("trap under a predicate", "{ .reg .pred p; setp.eq.s32 p, %0, 0; @p trap; }", "instruction"),
    ptx("trap under its opposite", "{ .reg .pred p; @!p trap; }", "instruction"),
    ptx("trap in a second statement", "mov.b32 %0, 1; trap;", "instruction"),
    ptx("trap on another line", "mov.b32 %0, 1;\\n\\ttrap;", "instruction"),
    ptx("trap behind blocks", "{{{}}} {; trap; }", "instruction"),
    ptx("trap, escaped", "\\x74rap;", "instruction"),
    ptx("trap in parts", "tr\" \"ap;", "instruction"),
    ptx("brkpt", "brkpt;", "instruction"),
    ptx("exit", "exit;", "instruction"),
    ptx("ret", "ret;", "instruction"),
    ptx("call", "call.uni malloc, (%0);", "instruction"),
    ptx("call of a register", "call (%0), %1, ();", "instruction"),
    ptx("branch", "bra out;", "instruction"),
    ptx("branch by index", "brx.idx %0, ts;", "instruction"),
    ptx("label", "again: mov.b32 %0, 1;", "asm"),
    ptx("label of dollars", "$L_again: mov.b32 %0, 1;", "asm"),
    ptx("comment", "mov.b32 %0, 1; // trap;", "asm"),
    ptx("comment in the middle", "mov.b32 /* x */ %0, 1;", "asm"),
    ptx("comment that hides an opcode", "/*;*/ tr/**/ap;", "asm"),
    ptx("a zero byte", "mov.b32 %0, 1;\\0 trap;", "asm"),
    ptx("a carriage return", "mov.b32 %0, 1;\\r trap;", "asm"),
    ptx("a letter outside", "mov.b32 %0, \\u00e9;", "asm"),
    ptx("without an end", "mov.b32 %0, 1", "asm"),
    ptx("a block without an end", "{ mov.b32 %0, 1;", "asm"),
    ptx("out of its block", "} trap; {", "asm"),
    ptx("section", ".section .debug_x {}", "asm"),
    ptx("extern", ".extern .func malloc;", "asm"),
    ptx("func", ".func f() { ret; }", "asm"),
    ptx("visible", ".visible .global .u32 seen;", "asm"),
    ptx("global", ".global .u32 seen;", "asm"),
    ptx("shared", ".shared .u32 seen;", "asm"),
    ptx("local", ".local .b8 seen[16];", "asm"),
    ptx("pragma", ".pragma \\\"nounroll\\\";", "asm"),
    ptx("loc", ".loc 1 1 1", "asm"),
    ptx("registers by the dozen", ".reg .b32 r<4>;", "asm"),
    ptx("a symbol", "mov.u64 %1, k;", "asm"),
    ptx("an operand that is not there", "mov.b32 %0, %7;", "asm"),
    ptx("an operand by name", "mov.b32 %[x], 1;", "register"),
    ptx("a register of the compiler", "mov.b32 %0, %%r1;", "register"),
    ptx("a register of the compiler, one sign", "mov.b32 %0, %r1;", "register"),
    ptx("a predicate of no one", "@p mov.b32 %0, 1;", "asm"),
    ptx("an immediate address", "ld.global.u32 %0, [4096];", "address"),
    ptx("an immediate address of shared memory", "ld.shared.u32 %0, [0];", "address"),
    ptx("a computed address", "{ .reg .b64 a; mov.b64 a, 4096; ld.global.u32 %0, [a]; }", "address"),
    ptx("the address of a symbol", "ld.global.u32 %0, [seen];", "address"),
    ptx("an address with a register", "ld.global.u32 %0, [%1 + %2];", "address"),
    ptx("a generic load", "ld.u32 %0, [%1];", "instruction"),
    ptx("a load of parameters", "ld.param.u32 %0, [%1];", "instruction"),
    ptx("a load of constants", "ld.const.u32 %0, [%1];", "instruction"),
    ptx("a load of local memory", "ld.local.u32 %0, [%1];", "instruction"),
    ptx("a volatile load", "ld.volatile.global.u32 %0, [%1];", "instruction"),
    ptx("a load of the system", "ld.acquire.sys.global.u32 %0, [%1];", "instruction"),
    ptx("another CTA's memory", "st.shared::cluster.u32 [%2], %0;", "instruction"),
    ptx("its address", "mapa.shared::cluster.u32 %0, %2, 1;", "instruction"),
    ptx("a copy to it", "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%2], [%2], 16, [%2];",
        "instruction"),
    ptx("a copy to several",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%2], [%1, "
        "{%0, %0}], [%2], %0;",
        "instruction"),
    ptx("an arrival there", "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%2];", "instruction"),
    ptx("a barrier of the cluster", "barrier.cluster.arrive;", "instruction"),
    ptx("an atomic", "atom.global.add.u32 %0, [%1], 1;", "instruction"),
    ptx("a reduction", "red.global.add.u32 [%1], %0;", "instruction"),
    ptx("a bulk reduction", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%1], [%2], 16;",
        "instruction"),
    ptx("multimem", "multimem.red.global.add.f32 [%1], %0;", "instruction"),
    ptx("generic addresses", "cvta.to.global.u64 %1, %1;", "instruction"),
    ptx("the next kernel", "griddepcontrol.launch_dependents;", "instruction"),
    ptx("the kernel before", "griddepcontrol.wait;", "instruction"),
    ptx("discard", "discard.global.L2 [%1], 128;", "instruction"),
    ptx("prefetch", "prefetch.global.L2 [%1];", "instruction"),
    ptx("policy", "createpolicy.fractional.L2::evict_last.b64 %1, 1.0;", "instruction"),
    ptx("applypriority", "applypriority.global.L2::evict_normal [%1], 128;", "instruction"),
    ptx("nanosleep", "nanosleep.u32 100;", "instruction"),
    ptx("pmevent", "pmevent 1;", "instruction"),
    ptx("membar of the system", "membar.sys;", "instruction"),
    ptx("the stack", "alloca.u64 %1, 64;", "instruction"),
    ptx("a map's words", "tensormap.replace.tile.global_address.global.b1024.b64 [%1], %1;", "instruction"),
    ptx("a texture", "tex.1d.v4.f32.s32 {%0, %0, %0, %0}, [%1, {%0}];", "instruction"),
    ptx("vote of whoever is there", "activemask.b32 %0;", "instruction"),
    ptx("a modifier that is not known", "add.future.s32 %0, %0, 1;", "instruction"),
    ptx("a type that is not known", "add.s33 %0, %0, 1;", "instruction"),
    ptx("half an opcode", "add. %0, %0, 1;", "instruction"),
    ptx("a map's coordinates without an end", "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%1, {%0], [%2];",
        "asm"),
    {"another spelling", In::Body, "__asm__ volatile(\"trap;\");", "keyword", 1},
    {"yet another spelling", In::Body, "__asm(\"trap;\");", "keyword", 1},
    {"asm goto", In::Body, "asm goto(\"bra %l0;\" :::: out); out:;", "keyword", 1},
    {"asm inline", In::Body, "asm inline(\"trap;\");", "asm", 1},
    {"another clobber", In::Body, "asm(\"\" ::: \"cc\");", "asm", 1},
    {"another constraint", In::Body, "asm(\"\" :: \"m\"(args.requests));", "asm", 1},
    {"a matching constraint", In::Body, "int x; asm(\"\" : \"=r\"(x) : \"0\"(1));", "asm", 1},
    {"operands by name", In::Body, "int x; asm(\"mov.b32 %0, 1;\" : [x] \"=r\"(x));", "asm", 1},
    {"a fourth part", In::Body, "asm(\"\" : : : \"memory\" : x);", "asm", 1},
    {"text out of a macro", In::Body, "#define T \"trap;\"\nasm(T);", "", 2},
    {"an expression as text", In::Body, "asm((\"trap;\"));", "", 1},
    {"a call in an operand", In::Body, "asm(\"\" :: \"r\"((int)malloc(1)));", "call", 1},
};
INSTANTIATE_TEST_SUITE_P(Assembly, AsmRefused, testing::ValuesIn(assembly), number);

} // namespace
} // namespace cubridge::runtime
