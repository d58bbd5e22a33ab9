/* cubridge.h - attention kernels, made on demand, for inference engines.         SPDX-License-Identifier: Apache-2.0
 *
 * In goes a specification (attention written as plain PyTorch) and a request (types, sizes, layout, device); out comes
 * a CUDA kernel that was verified against it. Everything slow happens at load time and on other threads: a step of a
 * server calls cubridge_launch() and reads one number, cubridge_generation().
 *
 * Six rules that hold for the whole header
 *  1. The context owns everything. Specifications and kernels are borrowed, never change, and live until
 *     cubridge_close(). Jobs are numbers, never reused. There is nothing else to free.
 *  2. Structs that begin with struct_size start as CUBRIDGE_INIT(type) and may grow at the end; the others never do.
 *     Zero is every field's default. A set field that this library does not know is CUBRIDGE_MISUSE, never ignored.
 *  3. Calls return a cubridge_status; when it is not CUBRIDGE_OK, cubridge_message() says what, where and what to do.
 *     Published numbers never change meaning. New ones may come: treat an unknown status as CUBRIDGE_INTERNAL.
 *  4. Any function may be called from any thread at any time, also while a stream is being captured, unless it says
 *     otherwise: only cubridge_launch() and cubridge_close() call CUDA on the calling thread.
 *  5. A context does not survive fork(): in the child it answers CUBRIDGE_FORKED; close it there and open another.
 *  6. Nothing is printed, exits or aborts, no signal handler, variable, locale or limit is touched, and nothing is sent
 *     unless config names a remote or a model. What rules and the generic printer make is compiled in this process, on
 *     threads of CuBridge; what a model wrote is compiled in a process of its own, the worker. Either runs there first.
 */
/* Laid out by hand, to be read as a page. */
/* clang-format off */
#ifndef CUBRIDGE_H
#define CUBRIDGE_H
#include <stddef.h>
#include <stdint.h>
#define CUBRIDGE_VERSION 100 /* 0.1.0, the header's; cubridge_version() is the library's */
#ifndef CUBRIDGE_API
#define CUBRIDGE_API __attribute__((visibility("default")))
#endif
#ifdef __cplusplus
template <class T> inline T cubridge_sized() { T t{}; t.struct_size = sizeof(T); return t; }
#define CUBRIDGE_INIT(type) cubridge_sized<type>()
extern "C" {
#else
#define CUBRIDGE_INIT(type) ((type){ .struct_size = sizeof(type) })
#endif

typedef struct cubridge_context cubridge_context;
typedef struct cubridge_spec cubridge_spec;
typedef struct cubridge_kernel cubridge_kernel;
typedef uint64_t cubridge_job;               /* 0: none */
typedef struct CUstream_st *cubridge_stream; /* the very type of CUstream and cudaStream_t */

typedef int32_t cubridge_status; /* told apart by what the caller should do */
enum {
    CUBRIDGE_OK = 0,
    CUBRIDGE_MISUSE = 1,      /* the call is wrong: NULL, struct_size, closed or foreign handle. Fix the caller */
    CUBRIDGE_BAD_SPEC = 2,    /* the text is not a specification that is understood: line, column, hint in the message */
    CUBRIDGE_UNSUPPORTED = 3, /* well formed, but outside what the request or the kernel promises */
    CUBRIDGE_TIMEOUT = 4,     /* not done yet, and nothing was stopped. Call again */
    CUBRIDGE_CANCELLED = 5,   /* by cubridge_cancel(), cubridge_seal() or cubridge_close() */
    CUBRIDGE_UNTRUSTED = 6,   /* signature, owner or permissions of a file are not acceptable */
    CUBRIDGE_ENVIRONMENT = 7, /* something on this machine is missing, full or refuses: named in the message */
    CUBRIDGE_CUDA = 8,        /* the driver refused; after a sticky error the process has lost the GPU */
    CUBRIDGE_FORKED = 9,
    CUBRIDGE_INTERNAL = 10    /* a bug of ours; the context stays usable. Please report the message */
};
/* This thread's last call that failed or was not answered READY: one reason a line. Valid until the next such call. */
CUBRIDGE_API const char *cubridge_message(void);
CUBRIDGE_API int32_t cubridge_version(void);

/* ---- Context: one per process. Opening calls no CUDA, and does not fail for want of a disk, a GPU or a worker ---- */
enum { CUBRIDGE_LOG_ERROR = 1, CUBRIDGE_LOG_WARN = 2, CUBRIDGE_LOG_INFO = 3, CUBRIDGE_LOG_TRACE = 4 };
enum { CUBRIDGE_VERIFY_GPU = 0, CUBRIDGE_VERIFY_EXECUTOR = 1 }; /* the least that a kernel has passed to be served */
typedef struct cubridge_progress {
    size_t struct_size;
    cubridge_job job;
    int32_t running, status;   /* 1; then 0, and the job's cubridge_status */
    uint32_t ready, total;     /* kernels */
    char stage[48];            /* for people: "sliding_window: verify on GPU" */
} cubridge_progress;
typedef struct cubridge_llm {  /* a language model, for what rules cannot do */
    size_t struct_size;
    const char *provider;      /* "openai", "openai-responses", "anthropic", "replay", "exchange" */
    const char *endpoint;      /* base URL; for replay and exchange a folder */
    const char *model;
    const char *key_variable;  /* NAME of the environment variable that holds the key */
    int32_t max_attempts, max_seconds; /* budget of one adaptation; zeros: 5 attempts, 900 s, 300000 tokens, any cost */
    int64_t max_tokens, max_cost_micros;
} cubridge_llm;
typedef struct cubridge_config {
    size_t struct_size;
    const char *store;         /* folder on a local disk; NULL: default; "": memory only */
    const char *remote;        /* URL of a shared tier, read only; NULL: none */
    const char *trusted_keys;  /* file of public keys: without it nothing remote is read */
    const char *worker;        /* the `cubridge` executable; NULL: beside the library, then PATH */
    int32_t workers;           /* adaptations at a time; 0: 2; -1: none, only what is stored is served */
    int32_t verify;            /* CUBRIDGE_VERIFY_... */
    const cubridge_llm *llm;   /* NULL: no model is asked, whatever the environment says */
    void *user;                /* given to both callbacks. They run on threads of CuBridge, one at a time, and may call */
    void (*log)(void *user, int32_t level, const char *line);           /* all but wait and close. line: key=value ... */
    void (*notify)(void *user, const cubridge_progress *progress);
} cubridge_config;
/* config may be NULL. What it leaves zero comes from the environment (CUBRIDGE_*, read here, once), then from defaults */
CUBRIDGE_API cubridge_status cubridge_open(const cubridge_config *config, cubridge_context **context);
/* Cancels jobs, frees all. No launch in flight, no graph that holds one, no stream in capture. NULL does nothing. */
CUBRIDGE_API void cubridge_close(cubridge_context *context);

/* ---- Specification: what to compute --------------------------------------------------------------------------- */
typedef int32_t cubridge_dtype;
enum {
    CUBRIDGE_SAME = 0, CUBRIDGE_F16 = 1, CUBRIDGE_BF16 = 2, CUBRIDGE_F32 = 3, CUBRIDGE_E4M3 = 4, CUBRIDGE_E5M2 = 5,
    CUBRIDGE_I8 = 6, CUBRIDGE_I32 = 7, CUBRIDGE_I64 = 8, CUBRIDGE_BOOL = 9
};
enum { CUBRIDGE_CONSTANT = 0, CUBRIDGE_ABSENT = 1, CUBRIDGE_OPERAND = 2 };
typedef struct cubridge_param { /* one parameter beyond q, k, v, or a captured global. Those not named here: a default */
    const char *name;           /* is kept as a value, everything else an operand of the type that the text shows */
    int32_t kind;               /* CONSTANT: value, fixed for this spec. ABSENT: None. OPERAND: given at launch, as dtype */
    cubridge_dtype dtype;
    double value;
} cubridge_param;
typedef struct cubridge_source {
    size_t struct_size;
    const char *text;     /* UTF-8 Python, or the JSON of an exported graph; copied, never run by an interpreter. NULL: */
    size_t length;        /* the built-in text called `function` (`cubridge specs` lists them). length 0: up to the NUL */
    const char *function; /* NULL: "attention"; or the name of a score_mod or mask_mod */
    const char *mask;     /* a mask_mod that goes with the score_mod; NULL: none */
    const cubridge_param *params; size_t param_count;
} cubridge_source;
/* Equal sources give the same pointer. Milliseconds, no GPU; text may be hostile: time and memory are bounded. */
CUBRIDGE_API cubridge_status cubridge_parse(cubridge_context *, const cubridge_source *, const cubridge_spec **);
CUBRIDGE_API const char *cubridge_operand_name(const cubridge_spec *, size_t index); /* NULL past the last */

/* ---- Request: for which types, sizes, device. Plain data ------------------------------------------------------ */
enum { CUBRIDGE_DENSE = 0, CUBRIDGE_RAGGED = 1, CUBRIDGE_PAGED = 2 };   /* of K and V; q is ragged in the last two */
enum { CUBRIDGE_MIXED = 0, CUBRIDGE_PREFILL = 1, CUBRIDGE_DECODE = 2 }; /* any q_len; any, tuned for long; at most 16 */
enum { CUBRIDGE_ROWS_AS_WRITTEN = 0, /* the function is applied to q_len rows and kv_len keys, literally */
       CUBRIDGE_ROWS_TAIL = 1 };     /* ... to kv_len of both; the q_len rows are its last (FlexAttention's sense) */
enum { CUBRIDGE_EMPTY_AS_WRITTEN = 0, CUBRIDGE_EMPTY_ZERO = 1 };        /* rows with no kept key and no sink; ZERO: o = 0, lse = -inf */
enum { CUBRIDGE_LSE_NONE = 0, CUBRIDGE_LSE_NATURAL = 1, CUBRIDGE_LSE_LOG2 = 2 };
enum { CUBRIDGE_BEST_NOW = 0, CUBRIDGE_EXACT = 1, CUBRIDGE_CACHED = 2 }; /* fallbacks too; no fallback; start no work */
enum { CUBRIDGE_BATCH_INVARIANT = 1u }; /* a row's bits don't depend on the rest of the batch; implies EXACT */
typedef struct cubridge_request {
    size_t struct_size;
    const cubridge_spec *spec;
    int32_t device;       /* CUDA ordinal, primary context. -1: make for arch, load nowhere */
    char arch[12];        /* "sm_90a"; empty: the device's */
    cubridge_dtype q_dtype, kv_dtype, o_dtype; /* q 0: BF16; kv, o SAME: as q. These round; casts in the text don't */
    int32_t head_dim, head_dim_v; /* must be set; v 0: the same */
    int32_t group;        /* query heads per KV head, any; 0: 1 */
    int32_t heads;        /* query heads of the whole model, for texts that compute with their number; 0: any */
    int32_t layout, page_size, phase, rows, empty_rows, lse;
    int32_t alignment;    /* bytes, divides every pointer and stride; 0: 16. Less is slower */
    int32_t mode;
    uint32_t flags;
} cubridge_request;

enum { /* outcome */
    CUBRIDGE_READY = 0,    /* kernel is exact, verified, loaded: launch it, capture it */
    CUBRIDGE_FALLBACK = 1, /* kernel is as correct, but slower than what job is making (job 0: than could be) */
    CUBRIDGE_PENDING = 2,  /* nothing to launch yet; job is making it. A device's first request always is */
    CUBRIDGE_REJECTED = 3  /* nothing will come: see reasons and cubridge_message(). An answer, not an error */
};
enum { /* reasons, a set of bits: why not READY */
    CUBRIDGE_WHY_ARCH = 1, CUBRIDGE_WHY_DTYPE = 2, CUBRIDGE_WHY_HEAD_DIM = 4, CUBRIDGE_WHY_LAYOUT = 8,
    CUBRIDGE_WHY_PHASE = 16, CUBRIDGE_WHY_ALIGNMENT = 32, CUBRIDGE_WHY_LSE = 64, CUBRIDGE_WHY_VARIANT = 128,
    CUBRIDGE_WHY_HEADS = 256, CUBRIDGE_WHY_NOT_STORED = 512, CUBRIDGE_WHY_NO_COMPILER = 1024, CUBRIDGE_WHY_SEALED = 2048,
    CUBRIDGE_WHY_UNVERIFIED = 4096, CUBRIDGE_WHY_FAILED = 8192, CUBRIDGE_WHY_BUDGET = 16384, CUBRIDGE_WHY_MEMORY = 32768
};
typedef struct cubridge_result {
    size_t struct_size;
    int32_t outcome;
    uint32_t reasons;
    const cubridge_kernel *kernel;
    cubridge_job job;     /* equal requests share one */
} cubridge_result;
/* The heart. Never blocks, compiles, loads or takes a lock; a hit costs well under a microsecond. */
CUBRIDGE_API cubridge_status cubridge_get_kernel(cubridge_context *, const cubridge_request *, cubridge_result *);
/* Grows when an earlier request would now get a better answer: ask again, capture again. One atomic read. */
CUBRIDGE_API uint64_t cubridge_generation(const cubridge_context *);

/* ---- Jobs: work on other threads ------------------------------------------------------------------------------ */
CUBRIDGE_API cubridge_status cubridge_poll(cubridge_context *, cubridge_job, cubridge_progress *);
CUBRIDGE_API cubridge_status cubridge_wait(cubridge_context *, cubridge_job, int64_t timeout_ms); /* < 0: no limit */
CUBRIDGE_API cubridge_status cubridge_cancel(cubridge_context *, cubridge_job); /* for all in this process who share it */

/* ---- Launch --------------------------------------------------------------------------------------------------- */
typedef struct cubridge_tensor { /* device address; strides in elements, any value, 0 too; the head dim is contiguous */
    void *data;
    int64_t outer;        /* DENSE: batch. PAGED k, v: page (NHD or HND is a matter of strides). Else unused */
    int64_t row;          /* token; in paged k, v the slot within a page */
    int64_t head;
} cubridge_tensor;
typedef struct cubridge_scale { const float *data; int64_t request, head; } cubridge_scale; /* strides; NULL data: 1 */
typedef struct cubridge_operand {
    const void *data;     /* device, read at each launch or replay; NULL: value, which a graph keeps as captured */
    double value;
    int64_t size[4], stride[4]; /* as in the text. What it indexes by row or key has room for max_q or max_kv */
    int64_t per_request;  /* elements from one request's copy to the next; 0: one for all, or ... */
    const int32_t *begin; /* ... device [requests]: the element where each request's copy begins */
} cubridge_operand;
enum { CUBRIDGE_ZERO_PADDING = 1u,   /* writes 0 to rows of o from cu_seqlens_q[requests] up to total_q */
       CUBRIDGE_PROGRAMMATIC = 2u }; /* may start before the stream's last kernel has ended */
typedef struct cubridge_args {
    size_t struct_size;
    cubridge_tensor q, k, v, o, lse;  /* o overlaps no input; v may be a view of k; lse is float */
    cubridge_scale k_scale, v_scale;  /* true k = stored k * scale */
    const cubridge_operand *operands; /* in the order of cubridge_operand_name() */
    size_t operand_count;
    int32_t requests;                 /* DENSE: batch. The text's b */
    int32_t heads_kv;                 /* on this rank; its query heads are heads_kv * group */
    int32_t head_begin;               /* this rank's first query head in the whole model: the text's h starts there */
    int32_t total_q, max_q, max_kv;   /* upper bounds; the real lengths are read on the device and may be 0 */
    const int32_t *cu_seqlens_q;      /* device [requests + 1]; RAGGED, PAGED */
    const int32_t *cu_seqlens_k;      /* device [requests + 1]; RAGGED */
    const int32_t *seq_lens_k;        /* device [requests], new keys included; PAGED, and DENSE where rows are padded */
    const int32_t *first_k;           /* device [requests]: number of the first key that the table still holds; NULL: 0 */
    const int32_t *page_table;        /* device [requests, page_stride], or flat, by page_begin [requests + 1] */
    const int32_t *page_begin; int64_t page_stride;
    void *workspace;                  /* contents don't matter before or after; not for two launches that may overlap */
    size_t workspace_size;
    uint32_t flags;
} cubridge_args;
/* Bytes that no kernel for the request, now or later, exceeds within the bounds of args (pointers are not looked at). */
CUBRIDGE_API cubridge_status cubridge_workspace(cubridge_context *, const cubridge_request *, const cubridge_args *,
    size_t *bytes);
/* Enqueues one to eight grids; never allocates, synchronises or reads back. The thread's CUDA context is the stream's.
 * What can be checked on the host is; unless it returns CUBRIDGE_OK, nothing was enqueued. */
CUBRIDGE_API cubridge_status cubridge_launch(const cubridge_kernel *, const cubridge_args *, cubridge_stream);

/* ---- Fleets ---------------------------------------------------------------------------------------------------- */
/* 1: cancels jobs, and until 0 nothing is made, loaded or replaced: answers, bits and memory stay what they are. */
CUBRIDGE_API cubridge_status cubridge_seal(cubridge_context *, int32_t sealed);

/* ---- Looking inside ------------------------------------------------------------------------------------------- */
enum { CUBRIDGE_BY_RULES = 0, CUBRIDGE_BY_MODEL = 1, CUBRIDGE_BY_GENERIC = 2 };
enum { CUBRIDGE_FROM_WORKER = 0, CUBRIDGE_FROM_STORE = 1, CUBRIDGE_FROM_BUNDLE = 2, CUBRIDGE_FROM_REMOTE = 3 };
typedef struct cubridge_info {
    size_t struct_size;
    const char *id;       /* 64 hex digits, digest of the artifact: what logs, CLI and revocation lists name */
    const char *variant;  /* canonical text */
    const char *report;   /* JSON: stages, cases verified, registers, spills, compiler, expert, signer */
    int32_t made, from, verified; /* CUBRIDGE_BY_..., CUBRIDGE_FROM_..., CUBRIDGE_VERIFY_... or -1: compiled, not run */
    float error_ratio;    /* worst error in verification over that of a plain low-precision computation; <= 2 */
} cubridge_info;
CUBRIDGE_API cubridge_status cubridge_describe(const cubridge_kernel *, cubridge_info *);
typedef struct cubridge_stat { const char *name; uint64_t value; int32_t is_gauge; } cubridge_stat;
/* Copies up to room figures, returns how many there are. Names: docs/operations.md; some may come, none goes. */
CUBRIDGE_API size_t cubridge_stats(const cubridge_context *, cubridge_stat *out, size_t room);

#ifdef __cplusplus
}
#endif
#endif
