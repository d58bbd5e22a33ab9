// What the library prints itself passes the gates: experts as they are, what rules made of them for the visible
// specifications, generic kernels. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/candidate.h"
#include "cubridge/ir/generic.h"
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/runtime/gate.h"
#include "tests/unit/ir/lower/hopper.h"
#include "tests/unit/ir/lower/orchestration.h"
#include "tests/unit/ir/transfer/corpus.h"
#include "tests/unit/runtime/gate/refused.h"
#include "tests/unit/sample.h"
#include <chrono>
#include <random>

namespace cubridge::runtime {
namespace {

namespace corpus = ir::transfer::test;
namespace lower = ir::lower;
using refused::In;

void passes(const std::string& cuda, const Declared& declared) {
    const auto outcome = text_gate(cuda, declared);
    if (outcome) return;
    const auto& message = outcome.fault().message;
    std::istringstream in(cuda);
    std::string line;
    for (int n = std::atoi(message.c_str() + 5); n > 0; --n) std::getline(in, line);
    ADD_FAILURE() << outcome.fault().text() << "\n" << line.substr(0, 400);
}

TEST(TextGate, PassesExpertsAsTheyAre) {
    for (const auto& expert : ir::experts::all()) {
        SCOPED_TRACE(expert.name);
        Declared declared;
        declared.kernels = {{"attention", 128, 0, 0}};
        declared.ticket = true;
        passes(ir::abi::kernel_abi_text() + std::string(expert.text), declared);
    }
}

TEST(TextGate, PassesWhatRulesMakeOfThem) {
    int passed = 0;
    test::Sample sample;
    for (const char* arch : {"sm_80", "sm_90a"}) {
        for (auto c : corpus::cases()) {
            if (sample.skips()) continue;
            SCOPED_TRACE(c.name + " for " + arch);
            c.request.arch = arch;
            const auto spec = ir::Specification::parse(c.source, c.options);
            if (!spec) continue;
            c.request.heads = (*spec)->heads();
            const auto experts = ir::Candidate::experts(**spec, c.request);
            if (!experts) continue;
            for (const auto& expert : *experts) {
                if (expert.find('/') != expert.npos) continue;
                const auto candidate = ir::Candidate::transfer(**spec, c.request, expert);
                if (!candidate) continue;
                const auto lowered = candidate->lower(**spec, c.request);
                if (!lowered) continue;
                passes(lowered->kernel.cuda, declared_by(lowered->kernel.plan));
                ++passed;
            }
        }
    }
    EXPECT_GT(passed, test::at_least(60));
    std::cout << passed << " texts of rules\n";
}

/// What lowering prints of a program's text. False: the file says why there is no program.
bool lowered_passes(const std::string& program, const std::string& expert) {
    const auto read = ir::cuir::read(program);
    if (!read) return false;
    const auto lowered = lower::test::lowered(program, expert);
    EXPECT_TRUE(lowered) << lower::test::message(lowered);
    if (!lowered) return false;
    Declared declared;
    for (const auto& kernel : read->kernels) declared.kernels.push_back({kernel.name(), 32, 0, 0});
    declared.ticket = program.find("ticket: counter") != program.npos;
    passes(ir::abi::kernel_abi_text() + lowered->cuda, declared);
    return true;
}

TEST(TextGate, PassesGoldenProgramsAndEditsOfOrchestration) {
    int passed = 0;
    test::Sample sample;
    const auto folder = [&](const char* path, const std::string& expert) {
        for (const auto& e : corpus::fs::directory_iterator(path)) {
            if (sample.skips()) continue;
            SCOPED_TRACE(e.path().string());
            if (e.path().extension() == ".py") passed += lowered_passes(corpus::read(e.path()), expert) ? 1 : 0;
        }
    };
    folder("tests/corpus/transfer", lower::test::expert_text());
    folder("tests/corpus/residue/golden", lower::test::expert_text());
    folder("tests/corpus/transfer_sm90", lower::test::hopper_text());
    folder("tests/corpus/residue/golden_sm90", lower::test::hopper_text());
    for (const auto& [name, program] : lower::test::orchestrations())
        passed += !sample.skips() && lowered_passes(program, lower::test::expert_text()) ? 1 : 0;
    for (const auto& [name, program] : lower::test::hopper_orchestrations())
        passed += !sample.skips() && lowered_passes(program, lower::test::hopper_text()) ? 1 : 0;
    EXPECT_GT(passed, test::at_least(150));
    std::cout << passed << " programs\n";
}

TEST(TextGate, PassesGenericKernels) {
    int passed = 0;
    for (auto c : corpus::cases()) {
        SCOPED_TRACE(c.name);
        const auto spec = ir::Specification::parse(c.source, c.options);
        if (!spec) continue;
        c.request.heads = (*spec)->heads();
        for (const bool f64 : {false, true}) {
            const auto kernel = ir::generic_kernel(**spec, c.request, f64);
            if (!kernel) continue;
            passes(kernel->cuda, declared_by(kernel->plan, true));
            ++passed;
        }
        const auto baseline = ir::baseline_kernel(**spec, c.request);
        if (!baseline) continue;
        passes(baseline->cuda, declared_by(baseline->plan, true));
        ++passed;
    }
    EXPECT_GT(passed, test::at_least(60));
    std::cout << passed << " generic texts\n";
}

/// What else a person or a model may write.
TEST(TextGate, PassesOrdinaryText) {
    const refused::Case good[] = {
        {"vectors", In::Body,
         "const float4 x = make_float4(0.f, 1.f, 2.f, 3.f);\n((float4*)args.o.data)[threadIdx.x] = x;", "", 0},
        {"cached loads", In::Body,
         "const float* p = (const float*)args.q.data + args.q.row * blockIdx.x;\nfloat x = __ldg(p + 16);", "", 0},
        {"shared memory", In::Body,
         "extern __shared__ __align__(128) unsigned char raw[];\nunsigned s = (unsigned)__cvta_generic_to_shared(raw);",
         "", 0},
        {"lambdas", In::Body, "auto add = [](float a, float b) { return a + b; };\nfloat y = add(1.f, 2.f);", "", 0},
        {"loops", In::Body,
         "#pragma unroll 4\nfor (int i = threadIdx.x, n(args.max_kv); i < n; i += blockDim.x) continue;", "", 0},
        {"comparisons", In::Body,
         "int a = 1, b = 2, c = 3;\nif (a < b && c > (b)) return;\nbool d = a < b, e = c >= (a), f = a << 2 >> (1) > "
         "(b);",
         "", 0},
        {"what looks like pointers", In::Body,
         "int x = 3, *p = &x;\nif (*p) (void)x;\nint y = (*p) * (x & sizeof(int)), z = x & (*p);\nstruct S { static "
         "constexpr int n = 1; };\nint "
         "m = x & S::n;",
         "", 0},
        {"a switch", In::Body, "switch (args.max_q) { case 1: break; default: return; }", "", 0},
        {"casts", In::Body,
         "float x = static_cast<float>(threadIdx.x) + (float)16 + float(3);\nunsigned long long a = (unsigned long "
         "long)args.o.data;",
         "", 0},
        {"declarators", In::Body, "int x = 3, y(4), *p = &x, z[2] = {1, 2};\n*p = y + z[0];", "", 0},
        {"aliases", In::Body, "using E = float;\ntypedef decltype(E{}) F;\nF x = (F)1;", "", 0},
        {"static constants", In::Body,
         "static constexpr int n = 4;\nconstexpr float w[n] = {1, 2, 3, 4};\nalignas(16) float t[n];\nt[0] = w[1];", "",
         0},
        {"comments", In::Body, "// __trap(); printf(\"\");\n/* goto x; \n #if */ int x = 1; // \\u0061 \xc3\xa9", "",
         0},
        {"characters", In::Body, "char c = 'x', d = '\\'';\nint n = 1'000;\nbool b = c != d;", "", 0},
        {"conditions of its own", In::Top,
         "#ifndef CB_N\n#define CB_N 4\n#endif\n#ifdef CB_N\n#undef CB_N\n#else\n__trap();\n#endif\n#define CB_N "
         "3\nconstexpr int n = CB_N;",
         "", 0},
        {"a prototype", In::Top, "__device__ float own(float x);\n__device__ float own(float x) { return x; }", "", 0},
        {"structs", In::Top,
         "template <int N> struct __align__(16) V {\n    float x[N];\n    __device__ float& operator[](int i) { return "
         "x[i]; }\n"
         "    __device__ V operator+(const V& o) const { return o; }\n    static constexpr int n = N;\n    enum class "
         "Kind { A, B };\n};\n"
         "__device__ __noinline__ float sum(V<4> v) {\n    float s = 0;\n    for (int i = 0; i < V<4>::n; ++i) s += "
         "v[i];\n    return s;\n}",
         "", 0},
        {"constructors", In::Top,
         "struct A { int x, y; __device__ A(int a) : x(a), y{a} {} };\nstruct B : A { __device__ explicit B(int a) : "
         "A(a) {} };",
         "", 0},
        {"assertions", In::Top, "static_assert(sizeof(int) == 4, \"as ever\");", "", 0},
        {"waits", In::Body,
         "unsigned s = 0, done;\ndo {\n    asm volatile(\"{\\n.reg .pred p;\\nmbarrier.try_wait.parity.shared::cta.b64 "
         "p, [%1], %2;\\n\"\n"
         "                 \"selp.u32 %0, 1, 0, p;\\n}\" : \"=r\"(done) : \"r\"(s), \"r\"(0) : \"memory\");\n} while "
         "(!done);",
         "", 0},
        {"copies", In::Body,
         "unsigned s = 0;\nasm volatile(\"cp.async.cg.shared.global [%0], [%1 + 16], 16;\" ::\"r\"(s), "
         "\"l\"(args.k.data) : \"memory\");\n"
         "asm volatile(\"cp.async.commit_group;\");\nasm volatile(\"cp.async.wait_group %0;\" ::\"n\"(1) : "
         "\"memory\");",
         "", 0},
        {"lanes", In::Body,
         "unsigned l;\nasm(\"mov.u32 %0, %%laneid;\" : \"=r\"(l));\nasm(R\"(add.u32 %0, %0, 0x10;)\" : \"+r\"(l));", "",
         0},
        {"a predicate", In::Body,
         "int x = 0;\nasm(\"{ .reg .pred p, q; setp.lt.and.s32 p, %0, 3, q; @!p add.s32 %0, %0, 1; }\" : \"+r\"(x));",
         "", 0},
    };
    for (const auto& c : good) {
        SCOPED_TRACE(c.what);
        passes(refused::whole(c).first, refused::declared());
    }
}

/// As declared: axes, tables, atomics, arrays in shared memory.
TEST(TextGate, PassesWhatIsDeclared) {
    const refused::Case axes = {"", In::Body, "int y = blockIdx.y + gridDim.z + threadIdx.y;", "", 0};
    const refused::Case atomics = {
        "", In::Body,
        "int t = atomicAdd(args.ticket, 1);\nasm volatile(\"red.global.add.u32 [%0], 1;\" :: \"l\"(args.ticket));", "",
        0};
    const refused::Case tables = {"", In::Top, "static __device__ const float cb_table0[] = {1.f, 2.f};", "", 0};
    const refused::Case arrays = {"", In::Body, "__shared__ double shared[128];\nshared[threadIdx.x] = 1;", "", 0};
    auto all = refused::declared();
    all.grid_yz = all.block_yz = all.ticket = all.tables = true;
    all.kernels[0].static_shared = 1024;
    for (const auto& c : {axes, atomics, tables, arrays}) {
        const auto text = refused::whole(c).first;
        EXPECT_FALSE(text_gate(text, refused::declared()));
        passes(text, all);
    }
}

TEST(TextGate, NamesTheConstants) {
    const refused::Case c = {
        "", In::Top,
        "constexpr int one = 1, two = 2;\nstruct S { static constexpr float three = 3; };\nconstexpr long four{4};", "",
        0};
    const auto outcome = text_gate(refused::whole(c).first, refused::declared());
    ASSERT_TRUE(outcome) << outcome.fault().text();
    EXPECT_EQ(*outcome, (Constants{"one", "two", "three", "four"}));
}

TEST(TextGate, SaysWhatIsAllowed) {
    const auto hint = [](const std::string& body) {
        return text_gate(refused::whole({"", In::Body, body, "", 0}).first, refused::declared()).fault().hint;
    };
    EXPECT_NE(hint("asm(\"trap;\");").find("these are: mov selp prmt"), std::string::npos);
    EXPECT_NE(hint("asm(\"ld.u32 x;\");").find("ld.shared|shared::cta.?v2|v4.ANY, ld.global."), std::string::npos);
    EXPECT_NE(hint("int x; asm(\"mov.u32 %0, %%smid;\" : \"=r\"(x));").find("%laneid"), std::string::npos);
}

/// Nothing that a text's length is squared by.
TEST(TextGate, TakesLinearTime) {
    const std::string abi = ir::abi::kernel_abi_text();
    const auto times = [](const char* text, int n) {
        std::string out;
        for (int i = 0; i < n; ++i) out += text;
        return out;
    };
    for (const auto& text :
         {times("(", 25000), times("{", 75000), times("struct S {", 25000), times("typedef int ", 50000),
          times("constexpr x =", 50000), times("int&a+", 50000), times("template <", 50000), times("operator ", 75000),
          times("a<b,", 50000), times("A<a>::", 37500), times("(int*)(((", 25000) + times(")", 75000),
          times("asm(\"mov.b32 %0, %0;\":\"+r\"(x));", 10000), times("x::", 75000), times("if (a > (b)) ", 25000),
          "#define A(x) x\n" + times("A(", 60) + times("1 ", 25000) + times(")", 60)}) {
        const auto begin = std::chrono::steady_clock::now();
        (void)text_gate(abi + text, refused::declared());
        (void)text_gate(abi + refused::kHead + text + "}", refused::declared());
        (void)text_gate(abi + "struct X {" + text + "};", refused::declared());
        const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        EXPECT_LT(seconds, 30) << text.substr(0, 60); // a third of a second each, and a sanitizer on a busy machine
    }
}

TEST(TextGate, TakesAnyBytes) {
    std::string text = ir::abi::kernel_abi_text();
    for (const auto& expert : ir::experts::all())
        if (expert.name == "prefill_sm80") text += expert.text;
    std::mt19937 random(7);
    auto declared = refused::declared();
    declared.kernels[0].name = "attention";
    ASSERT_TRUE(text_gate(text, declared));
    int refusals = 0;
    for (int round = 0; round < 300; ++round) {
        auto changed = text;
        for (int i = 0; i < 3; ++i) {
            const auto from = random() % text.size(), to = random() % changed.size(), bytes = random() % 40;
            random() % 2 == 0 ? changed.insert(to, text, from, bytes) : changed.erase(to, bytes);
        }
        const auto outcome = text_gate(changed, declared);
        if (outcome) continue;
        ++refusals;
        EXPECT_EQ(outcome.fault().message.rfind("line ", 0), 0u);
    }
    EXPECT_GT(refusals, 200);
}

} // namespace
} // namespace cubridge::runtime
