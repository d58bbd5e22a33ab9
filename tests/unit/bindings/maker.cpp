// A program that asks for kernels through the public header alone, for tests of several processes:
// maker STORE FIRST COUNT [cached] [generic]. Prints "made=N store=N nvrtc=0|1", or what went wrong and ends with 1.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cubridge.h>
#include <fstream>
#include <string>
#include <unistd.h>

namespace {

int fail(const char* what) {
    std::printf("%s: %s\n", what, cubridge_message());
    return 1;
}

// One variant a number: the number is in the text, not an argument of it.
std::string text_of(int number) {
    return "import torch\n"
           "def attention(q, k, v):\n"
           "    i = torch.arange(q.size(2))[:, None]\n"
           "    j = torch.arange(k.size(2))[None, :]\n"
           "    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5\n"
           "    s = s.masked_fill(j - i > " +
           std::to_string(number) +
           ", float('-inf'))\n"
           "    return torch.softmax(s, -1) @ v\n";
}

std::uint64_t figure(const cubridge_context* context, const char* name) {
    cubridge_stat stats[128];
    const std::size_t count = cubridge_stats(context, stats, 128);
    for (std::size_t k = 0; k < count && k < 128; ++k)
        if (std::strcmp(stats[k].name, name) == 0) return stats[k].value;
    return 0;
}

bool mapped(const char* name) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find(name) != line.npos) return true;
    return false;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    const int first = std::atoi(argv[2]), count = std::atoi(argv[3]);
    bool cached = false, generic = false; // generic: in a type that no expert has
    for (int k = 4; k < argc; ++k) {
        cached = cached || std::strcmp(argv[k], "cached") == 0;
        generic = generic || std::strcmp(argv[k], "generic") == 0;
    }
    cubridge_config config = CUBRIDGE_INIT(cubridge_config);
    config.store = argv[1];
    config.verify = CUBRIDGE_VERIFY_EXECUTOR;
    cubridge_context* context = nullptr;
    if (cubridge_open(&config, &context) != CUBRIDGE_OK) return fail("open");
    for (int k = 0; k < count; ++k) {
        const int number = first + (k + static_cast<int>(getpid())) % count; // processes begin at different ones
        const std::string text = text_of(number);
        cubridge_source source = CUBRIDGE_INIT(cubridge_source);
        source.text = text.c_str();
        cubridge_request request = CUBRIDGE_INIT(cubridge_request);
        if (cubridge_parse(context, &source, &request.spec) != CUBRIDGE_OK) return fail("parse");
        request.device = -1;
        request.head_dim = 64;
        request.mode = cached ? CUBRIDGE_CACHED : number % 2 == 0 ? CUBRIDGE_BEST_NOW : CUBRIDGE_EXACT;
        if (generic) request.q_dtype = CUBRIDGE_F32, request.mode = cached ? CUBRIDGE_CACHED : CUBRIDGE_BEST_NOW;
        std::strcpy(request.arch, "sm_90a");
        cubridge_result result = CUBRIDGE_INIT(cubridge_result);
        if (cubridge_get_kernel(context, &request, &result) != CUBRIDGE_OK) return fail("get_kernel");
        while (result.outcome == CUBRIDGE_PENDING) {
            (void)cubridge_wait(context, result.job, -1);
            if (cubridge_get_kernel(context, &request, &result) != CUBRIDGE_OK) return fail("get_kernel");
        }
        if (result.outcome != (generic ? CUBRIDGE_FALLBACK : CUBRIDGE_READY)) return fail("not served");
        cubridge_info info = CUBRIDGE_INIT(cubridge_info);
        if (cubridge_describe(result.kernel, &info) != CUBRIDGE_OK) return fail("describe");
        if (info.made != (generic ? CUBRIDGE_BY_GENERIC : CUBRIDGE_BY_RULES)) return fail("made otherwise");
        if (info.verified != (generic ? -1 : CUBRIDGE_VERIFY_EXECUTOR)) return fail("verified otherwise");
    }
    std::printf("made=%llu store=%llu nvrtc=%d\n", static_cast<unsigned long long>(figure(context, "adaptations_ok")),
                static_cast<unsigned long long>(figure(context, "hits_store")), mapped("libnvrtc") ? 1 : 0);
    cubridge_close(context);
    return 0;
}
