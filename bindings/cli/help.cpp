// What --help prints. SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/commands.h"

namespace cubridge::cli {

namespace {

#define CUBRIDGE_REQUEST_HELP                                                                                          \
    "  --arch ARCH              sm_90a, sm_80, ...: the GPU's by default, else sm_90a\n"                               \
    "  --dtype T                bf16 (default), fp16, fp32: of queries, keys, values and output\n"                     \
    "  --head-dim D[:DV]        128 by default; DV is that of values and output\n"                                     \
    "  --heads HQ[:HK]          query and KV heads: 32:8 by default, or the nearest that the text allows\n"            \
    "  --set NAME=VALUE         a parameter or captured global has this value\n"                                       \
    "  --arg NAME=DTYPE[AXES]   a parameter is an operand: i32[S], f32[B,Hk], f32[] for a scalar\n"                    \
    "  --absent NAME            a parameter is None\n"                                                                 \
    "  --rows WHICH             as-written (default), or tail: queries are the last rows of a square text\n"           \
    "  --empty-rows WHICH       as-written (default), or zero: rows without keys give 0, and -inf as LSE\n"            \
    "  --lse KIND               also write the log-sum-exp: natural or log2\n"                                         \
    "  --expert NAME            only this expert, or the generic kernel; nothing is looked up or kept then\n"          \
    "  --cache DIR              the store; '' keeps nothing; by default that of the user\n"                            \
    "  --json                   one JSON object a specification, on stdout\n"                                          \
    "  --quiet                  results only, no progress\n"

#define CUBRIDGE_SPEC_HELP                                                                                             \
    "A specification is SPEC.py, SPEC.py:FUNCTION, SPEC.py:SCORE_MOD+MASK_MOD, or a name that `cubridge specs` "       \
    "lists.\n"

constexpr const char* kGeneral =
    "usage: cubridge COMMAND ...\n"
    "\n"
    "  adapt SPEC...            make the CUDA kernel of a specification and keep it\n"
    "  check SPEC...            compare numbers with the float64 reference; on the GPU with --gpu\n"
    "  specs                    list the specifications that come with the library\n"
    "  cache list|show|verify   look into the store\n"
    "  info                     what is here, and what is missing\n"
    "  explain SPEC...          how a specification was understood, and what rules make of an expert for it\n"
    "  exec PROGRAM.py          run a CuIR program against a specification: races, deadlocks, wrong values\n"
    "  lower PROGRAM.py         CUDA of a CuIR program, from the expert's\n"
    "  lift FILE.cu             the CuIR in the margin of an expert\n"
    "\n"
    "`cubridge COMMAND --help` has the options. Exit status: 0 done, 2 usage, 3 the specification is not accepted, 4 "
    "no\n"
    "kernel could be made, 5 a verification failed, 6 compiling failed, 7 something is missing on this machine.\n";

constexpr const char* kAdapt =
    "usage: cubridge adapt SPEC... [options]\n"
    "\n"
    "Makes the kernel of each specification: from the store, or by adapting and compiling it. Needs no "
    "GPU.\n" CUBRIDGE_SPEC_HELP "\n" CUBRIDGE_REQUEST_HELP
    "  --tune                   make every configuration, measure them on the GPU, keep the fastest\n"
    "  --shape B:SQ[:SK]        requests, queries and keys to measure at: 4:4096 by default\n"
    "  --verify                 run it on the GPU too, in a process of its own, against the text: else it is no "
    "answer\n"
    "  --worker                 compile in a process of its own, confined; the report says where it was done\n"
    "  --emit DIR               write variant.txt, kernel.cu, kernel.cubin, plan.txt, report.json; with an expert's "
    "kernel also\n"
    "                           expert.py, variant.py and difference.txt\n";

constexpr const char* kCheck =
    "usage: cubridge check SPEC... [options]\n"
    "\n"
    "Runs a plan of at most 40 cases against the float64 reference. Without --gpu: the scalarised text against the "
    "text.\n" CUBRIDGE_SPEC_HELP "\n" CUBRIDGE_REQUEST_HELP
    "  --gpu                    compile the kernels, run them on the GPU and compare\n"
    "  --seed N                 of the plan and its numbers (1); a run with the same seed is the same run\n"
    "  --cases N                at most so many cases (40)\n"
    "  --delays N               also N launches a case with warps that come late here and there, beside a load\n"
    "  --sanitize               small cases under compute-sanitizer: memcheck, initcheck, synccheck\n"
    "  --long                   also 4097 and 16384 keys, on a GPU\n"
    "  --small                  only short lengths and small head dims\n"
    "  --resume FILE            append a JSON line a specification; those that passed there are not run again\n";

constexpr const char* kSpecs = "usage: cubridge specs [NAME] [--json]\n"
                               "\n"
                               "Lists the specifications that come with the library, or prints the text of one.\n";

constexpr const char* kCache =
    "usage: cubridge cache list | show ID | verify [ID] [--gpu [--seed N]]  [--cache DIR] [--json]\n"
    "\n"
    "  list      the kernels in the store, most recently used first\n"
    "  show      one of them: what it is, its entries, its launch plan, what was verified\n"
    "  verify    reads every row, or those of one ID, and checks the digests; with --gpu "
    "it also runs\n"
    "            the kernels for this GPU against their texts, with a fresh seed or N: "
    "records are\n"
    "            renewed, what is wrong is set aside\n"
    "\n"
    "An ID may be shortened as long as it names one kernel.\n";

constexpr const char* kInfo =
    "usage: cubridge info [--cache DIR] [--json]\n"
    "\n"
    "Says what this machine has: GPUs, driver, NVRTC, store. Exit status 7 and a line for each thing that is missing.\n"
    "A machine without a GPU lacks nothing: it adapts and compiles for a named architecture.\n";

constexpr const char* kExplain =
    "usage: cubridge explain SPEC... [options]\n"
    "\n"
    "Prints the canonical variant, the rules that change the expert's program, and the difference of the two programs, "
    "or why\n"
    "the generic kernel serves. Lists the configurations that `adapt --tune` would measure, with what a model "
    "says.\n" CUBRIDGE_SPEC_HELP "\n" CUBRIDGE_REQUEST_HELP
    "  --shape B:SQ[:SK]        requests, queries and keys that the model is asked about: 4:4096 by default\n";

constexpr const char* kExec =
    "usage: cubridge exec PROGRAM.py --spec SPEC.py [--seeds N] [--json]\n"
    "\n"
    "Checks a CuIR program and runs it on small shapes under every policy, N seeds each (4), against the "
    "specification.\n"
    "Exit status 5 where something was found.\n" CUBRIDGE_SPEC_HELP;

constexpr const char* kLower = "usage: cubridge lower PROGRAM.py [--expert NAME] [--json]\n"
                               "\n"
                               "Prints the CUDA of a CuIR program: the expert's, with the statements that differ "
                               "printed anew. What was copied\n"
                               "and what was printed goes to stderr. Exit status 4 where no rule prints a statement.\n";

constexpr const char* kLift = "usage: cubridge lift FILE.cu\n"
                              "\n"
                              "Prints the CuIR in the margin of a file, or of an expert by its name.\n";

#undef CUBRIDGE_REQUEST_HELP
#undef CUBRIDGE_SPEC_HELP

} // namespace

const char* help_of(const std::string& command) {
    if (command == "adapt") return kAdapt;
    if (command == "check") return kCheck;
    if (command == "specs") return kSpecs;
    if (command == "cache") return kCache;
    if (command == "info") return kInfo;
    if (command == "explain") return kExplain;
    if (command == "exec") return kExec;
    if (command == "lower") return kLower;
    if (command == "lift") return kLift;
    return kGeneral;
}

} // namespace cubridge::cli
