// Kernels that are not in their form, names that are taken.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/runtime/gate/refused.h"

namespace cubridge::runtime {
namespace {

using namespace refused;

class KernelRefused : public testing::TestWithParam<Case> {};
TEST_P(KernelRefused, NamesRuleAndLine) {
    is_refused(GetParam());
}

std::string kernel(const std::string& head) {
    return std::string(ir::abi::kernel_abi_text()) + "\n" + head + " {}\n";
}
int abi_lines() {
    const std::string abi = ir::abi::kernel_abi_text();
    return static_cast<int>(std::count(abi.begin(), abi.end(), '\n'));
}

const Case kernels[] = {
    {"another kernel", In::Top,
     "extern \"C\" __global__ void __launch_bounds__(128) other(const __grid_constant__ cb_args a) {}", "kernel", 1},
    {"not of C", In::Top, "__global__ void other() {}", "kernel", 1},
    {"twice", In::Top, std::string(kHead) + "}", "kernel", 3},
    {"no body", In::Whole, ir::abi::kernel_abi_text() + std::string(kHead).substr(0, sizeof kHead - 4) + ";", "kernel",
     abi_lines() + 1},
    {"a template", In::Top,
     "template <int N> __global__ void __launch_bounds__(128) k2(const __grid_constant__ cb_args a) {}", "kernel", 1},
    {"a member", In::Top, "struct S {\n    __global__ void k(const __grid_constant__ cb_args a) {}\n};", "kernel", 2},
    {"a name out of a macro", In::Top, "#define k other", "macro", 1},
    {"none", In::Whole, std::string(ir::abi::kernel_abi_text()), "kernel", abi_lines()},
    {"the host", In::Top, "__host__ int f() { return 1; }", "host", 1},
    {"main", In::Top, "int main() { return 0; }", "keyword", 1},
    {"asm outside", In::Top, "asm(\".global .u32 x;\");", "asm", 1},
    {"an explicit instantiation", In::Top, "template <class T> struct S { T x; };\ntemplate struct S<int>;",
     "declaration", 2},
    {"a literal", In::Top, "constexpr int operator\"\" x(unsigned long long x) { return (int)x; }", "declaration", 1},
    {"an attribute", In::Top, "[[gnu::alias(\"malloc\")]] __device__ void f() {}", "attribute", 1},
    {"an attribute inside", In::Body, "[[likely]] int x = 1;", "attribute", 1},
    {"an attribute of GCC", In::Top, "__attribute__((section(\".x\"))) __device__ void f() {}", "attribute", 1},
    {"declspec", In::Top, "__declspec(noinline) __device__ void f() {}", "attribute", 1},
    {"device by its spelling", In::Top, "__attribute__((device)) int seen;", "attribute", 1},
    {"a cluster", In::Top, "__cluster_dims__(2) __device__ void f() {}", "intrinsic", 1},
    {"an attribute inside of a kernel", In::Body, "__device__ int seen;", "attribute", 1},
    {"goto", In::Body, "again:\ngoto again;", "keyword", 2},
    {"goto out of a macro", In::Body, "#define AGAIN goto again\nagain: AGAIN;", "keyword", 1},
    {"throw", In::Body, "throw 1;", "keyword", 1},
    {"virtual", In::Top, "struct S { virtual __device__ int f() { return 1; } };", "keyword", 1},
    {"a string", In::Body, "const char* s = \"text\";", "string", 1},
    {"alternative words", In::Body, "if (1 and 1) return;", "keyword", 1},
    {"a dollar", In::Body, "int a$b = 1;", "name", 1},
    {"a universal name", In::Body, "int \\u0061 = 1;", "", 1},
    {"another alphabet", In::Body, "int \xd0\xb0 = 1;", "", 1},
    {"a trigraph", In::Body, "int x?\?(2?\?);", "", 1},
};
INSTANTIATE_TEST_SUITE_P(Kernels, KernelRefused, testing::ValuesIn(kernels), number);

const Case heads[] = {
    {"no bounds", In::Whole, kernel("extern \"C\" __global__ void k(const __grid_constant__ cb_args a)"),
     "launch_bounds", abi_lines() + 2},
    {"too few", In::Whole,
     kernel("extern \"C\" __global__ void __launch_bounds__(64) k(const __grid_constant__ cb_args a)"), "launch_bounds",
     abi_lines() + 2},
    {"too many", In::Whole,
     kernel("extern \"C\" __global__ void __launch_bounds__(2048) k(const __grid_constant__ cb_args a)"),
     "launch_bounds", abi_lines() + 2},
    {"computed", In::Whole,
     kernel("extern \"C\" __global__ void __launch_bounds__(64 + 64) k(const __grid_constant__ cb_args a)"),
     "launch_bounds", abi_lines() + 2},
    {"octal", In::Whole,
     kernel("extern \"C\" __global__ void __launch_bounds__(0377) k(const __grid_constant__ cb_args a)"),
     "launch_bounds", abi_lines() + 2},
    {"of no one", In::Whole,
     kernel("extern \"C\" __global__ void __launch_bounds__(N) k(const __grid_constant__ cb_args a)"), "launch_bounds",
     abi_lines() + 2},
    {"no parameter", In::Whole, kernel("extern \"C\" __global__ void __launch_bounds__(128) k()"), "abi",
     abi_lines() + 2},
    {"by value", In::Whole, kernel("extern \"C\" __global__ void __launch_bounds__(128) k(cb_args a)"), "abi",
     abi_lines() + 2},
    {"another parameter", In::Whole,
     kernel("extern \"C\" __global__ void __launch_bounds__(128) k(const __grid_constant__ cb_map a)"), "abi",
     abi_lines() + 2},
    {"a second parameter", In::Whole,
     kernel("extern \"C\" __global__ void __launch_bounds__(128) k(const __grid_constant__ cb_args a, int n)"), "abi",
     abi_lines() + 2},
    {"a pointer", In::Whole, kernel("extern \"C\" __global__ void __launch_bounds__(128) k(float* x)"), "abi",
     abi_lines() + 2},
    {"not in C", In::Whole, kernel("__global__ void __launch_bounds__(128) k(const __grid_constant__ cb_args a)"),
     "kernel", abi_lines() + 2},
    {"static", In::Whole, kernel("static __global__ void __launch_bounds__(128) k(const __grid_constant__ cb_args a)"),
     "kernel", abi_lines() + 2},
    {"of registers", In::Whole,
     kernel("extern \"C\" __global__ void __launch_bounds__(128) __maxnreg__(32) k(const __grid_constant__ cb_args a)"),
     "intrinsic", abi_lines() + 2},
    {"a block of its own", In::Whole,
     "struct cb_args { int x; };\nextern \"C\" __global__ void __launch_bounds__(128) k(const __grid_constant__ "
     "cb_args a) {}\n",
     "abi", 1},
    {"no block", In::Whole,
     "extern \"C\" __global__ void __launch_bounds__(128) k(const __grid_constant__ cb_args a) {}\n", "abi", 1},
    {"a changed block", In::Abi, "struct cb_tensor { void* data; long long outer, row, head, more; };", "abi", 1},
    {"a block again", In::Top, "struct cb_args { int x; };", "abi", 1},
    {"its name for another type", In::Top, "typedef int cb_args;", "abi", 1},
    {"its name by using", In::Top, "using cb_args = int;", "abi", 1},
    {"its name in a kernel", In::Body, "using cb_tensor = int;", "abi", 1},
    {"its name for a struct in a kernel", In::Body, "struct cb_tensor { int x; };", "abi", 1},
    {"its name for a variable", In::Body, "int cb_args = 1;", "abi", 1},
    {"its name for a type's parameter", In::Top, "template <class cb_args> struct S { cb_args x; };", "abi", 1},
    {"its names as macros", In::Abi, "#define row head", "macro", 1},
    {"its words as macros", In::Abi, "#define int short", "macro", 1},
    {"macros of the grid", In::Top, "#define threadIdx args", "macro", 1},
    {"macros of intrinsics", In::Top, "#define __syncthreads() (void)0", "macro", 1},
    {"macros of functions", In::Top, "#define fmaxf(a, b) a", "macro", 1},
    {"macros of keywords", In::Top, "#define static", "macro", 1},
    {"macros of attributes", In::Top, "#define __device__ __host__", "macro", 1},
    {"a function in the place of one", In::Top, "template <class T> __device__ T fmaxf(T a, T b) { return a; }", "name",
     1},
    {"a template in the place of an intrinsic", In::Top,
     "template <class T> __device__ T __shfl_sync(unsigned m, T x, int l) { return x; }", "name", 1},
    {"a variable in the place of the grid", In::Body, "struct { int x; } threadIdx = {3};", "grid", 1},
    {"a parameter in the place of the grid", In::Top,
     "template <class T> __device__ int f(T blockIdx) { return blockIdx.x; }", "grid", 1},
};
INSTANTIATE_TEST_SUITE_P(Heads, KernelRefused, testing::ValuesIn(heads), number);

} // namespace
} // namespace cubridge::runtime
