/* From a specification to a kernel, and one launch of it where there is a GPU. C11.
 *   cc -std=c11 minimal.c -lcubridge -ldl && ./a.out [SPEC.py]       SPDX-License-Identifier: Apache-2.0 */
#include <cubridge.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1, HEADS_Q = 8, HEADS_KV = 2, LENGTH = 100, DIM = 64 };
#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        const cubridge_status status = (call);                                                                         \
        if (status != CUBRIDGE_OK) return fprintf(stderr, "%s: %d: %s\n", #call, (int)status, cubridge_message()), 1;  \
    } while (0)

/* The few driver calls that an engine has anyway; opened by hand, so that this program runs without a GPU too. */
typedef unsigned long long address;
static int (*cuInit)(unsigned), (*cuDeviceGet)(int*, int), (*cuDevicePrimaryCtxRetain)(void**, int),
    (*cuCtxSetCurrent)(void*);
static int (*cuMemAlloc)(address*, size_t), (*cuMemcpyHtoD)(address, const void*, size_t),
    (*cuMemcpyDtoH)(void*, address, size_t);

static int open_gpu(void) {
    static const struct {
        const char* name;
        void* to;
    } symbols[] = {{"cuInit", &cuInit},
                   {"cuDeviceGet", &cuDeviceGet},
                   {"cuDevicePrimaryCtxRetain", &cuDevicePrimaryCtxRetain},
                   {"cuCtxSetCurrent", &cuCtxSetCurrent},
                   {"cuMemAlloc_v2", &cuMemAlloc},
                   {"cuMemcpyHtoD_v2", &cuMemcpyHtoD},
                   {"cuMemcpyDtoH_v2", &cuMemcpyDtoH}};
    void* const cuda = dlopen("libcuda.so.1", RTLD_NOW);
    void* context = NULL;
    int device = 0;
    if (cuda == NULL) return 0;
    for (size_t k = 0; k < sizeof symbols / sizeof *symbols; ++k) {
        void* const symbol = dlsym(cuda, symbols[k].name);
        if (symbol == NULL) return 0;
        memcpy(symbols[k].to, &symbol, sizeof symbol);
    }
    return cuInit(0) == 0 && cuDeviceGet(&device, 0) == 0 && cuDevicePrimaryCtxRetain(&context, device) == 0 &&
           cuCtxSetCurrent(context) == 0;
}

static const char* read_text(const char* path) {
    FILE* const file = fopen(path, "rb");
    static char text[1 << 16];
    if (file == NULL) return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

/* [batch, heads, row, dim], contiguous, float. */
static cubridge_tensor tensor(address at, int heads) {
    cubridge_tensor t = {0};
    t.data = (void*)(size_t)at;
    t.outer = (int64_t)heads * LENGTH * DIM;
    t.row = DIM;
    t.head = LENGTH * DIM;
    return t;
}

/* All queries are zero, so that each row is the mean of the values it sees: row i of a causal kernel, of 0 to i. */
static int launch(cubridge_context* context, const cubridge_request* request, const cubridge_kernel* kernel) {
    const size_t n_q = (size_t)BATCH * HEADS_Q * LENGTH * DIM, n_k = (size_t)BATCH * HEADS_KV * LENGTH * DIM;
    float* const host = calloc(n_q, sizeof(float));
    address q, k, v, o, work;
    size_t bytes = 0;
    double worst = 0;
    if (host == NULL || cuMemAlloc(&q, n_q * 4) || cuMemAlloc(&k, n_k * 4) || cuMemAlloc(&v, n_k * 4) ||
        cuMemAlloc(&o, n_q * 4))
        return 1;
    if (cuMemcpyHtoD(q, host, n_q * 4)) return 1;
    for (size_t n = 0; n < n_k; ++n) host[n] = (float)(n / DIM % LENGTH);
    if (cuMemcpyHtoD(k, host, n_k * 4) || cuMemcpyHtoD(v, host, n_k * 4)) return 1;

    cubridge_args args = CUBRIDGE_INIT(cubridge_args);
    args.q = tensor(q, HEADS_Q);
    args.k = tensor(k, HEADS_KV);
    args.v = tensor(v, HEADS_KV);
    args.o = tensor(o, HEADS_Q);
    args.requests = BATCH;
    args.heads_kv = HEADS_KV;
    args.max_q = args.max_kv = LENGTH;
    args.total_q = BATCH * LENGTH;
    CHECK(cubridge_workspace(context, request, &args, &bytes));
    if (bytes != 0 && cuMemAlloc(&work, bytes)) return 1;
    args.workspace = bytes != 0 ? (void*)(size_t)work : NULL;
    args.workspace_size = bytes;
    CHECK(cubridge_launch(kernel, &args, NULL));
    if (cuMemcpyDtoH(host, o, n_q * 4)) return 1;
    for (size_t n = 0; n < n_q; ++n) worst = fmax(worst, fabs(host[n] - (double)(n / DIM % LENGTH) / 2));
    printf("launched: largest error %.2g\n", worst);
    free(host);
    return worst < 1e-4 ? 0 : 1;
}

int main(int argc, char** argv) {
    const int gpu = open_gpu();
    const char* const text = argc > 1 ? read_text(argv[1]) : NULL;
    if (argc > 1 && text == NULL) return fprintf(stderr, "%s can't be read\n", argv[1]), 2;

    cubridge_config config = CUBRIDGE_INIT(cubridge_config);
    config.verify = CUBRIDGE_VERIFY_EXECUTOR; /* a kernel that has not run on this GPU before may be served */
    cubridge_context* context = NULL;
    CHECK(cubridge_open(&config, &context));

    cubridge_source source = CUBRIDGE_INIT(cubridge_source);
    source.text = text; /* NULL: the built-in text of that name */
    source.function = text != NULL ? NULL : "causal";
    const cubridge_spec* spec = NULL;
    CHECK(cubridge_parse(context, &source, &spec));
    for (size_t n = 0; cubridge_operand_name(spec, n) != NULL; ++n)
        printf("operand: %s\n", cubridge_operand_name(spec, n));

    cubridge_request request = CUBRIDGE_INIT(cubridge_request);
    request.spec = spec;
    request.device = gpu ? 0 : -1; /* -1: make the kernel, load it nowhere */
    if (!gpu) memcpy(request.arch, "sm_90a", sizeof "sm_90a");
    request.q_dtype = CUBRIDGE_F32;
    request.head_dim = DIM;
    request.group = HEADS_Q / HEADS_KV;
    cubridge_result result = CUBRIDGE_INIT(cubridge_result);
    CHECK(cubridge_get_kernel(context, &request, &result));
    if (result.outcome == CUBRIDGE_PENDING) { /* an engine would go on with what it has, and ask again */
        CHECK(cubridge_wait(context, result.job, 60000));
        CHECK(cubridge_get_kernel(context, &request, &result));
    }
    if (result.kernel == NULL) return fprintf(stderr, "no kernel: %s\n", cubridge_message()), 1;
    cubridge_info info = CUBRIDGE_INIT(cubridge_info);
    CHECK(cubridge_describe(result.kernel, &info));
    printf("kernel %.12s\n%s\n", info.id, info.variant);

    int failed = 0;
    if (!gpu)
        puts("not launched: there is no GPU here");
    else if (cubridge_operand_name(spec, 0) != NULL || text != NULL)
        puts("not launched: this program knows the values of no text but its own");
    else
        failed = launch(context, &request, result.kernel);
    cubridge_close(context);
    return failed;
}
