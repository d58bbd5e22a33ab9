/* A program in C11 that links the shared library alone: the header's promises that need no GPU and no compiler.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cubridge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n    %s\n", __FILE__, __LINE__, #condition, cubridge_message());                \
            ++failures;                                                                                                \
        }                                                                                                              \
    } while (0)

int main(void) {
    cubridge_context* context = NULL;
    cubridge_config config = CUBRIDGE_INIT(cubridge_config);
    cubridge_source source = CUBRIDGE_INIT(cubridge_source);
    cubridge_request request = CUBRIDGE_INIT(cubridge_request);
    cubridge_result result = CUBRIDGE_INIT(cubridge_result);
    const cubridge_spec *spec = NULL, *again = NULL;
    cubridge_stat stats[128];
    size_t i, count;

    CHECK(cubridge_version() == CUBRIDGE_VERSION);
    unsetenv("CUBRIDGE_VERIFY");
    config.store = "";
    CHECK(cubridge_open(&config, &context) == CUBRIDGE_OK && context != NULL); /* opens no GPU and no worker */
    cubridge_close(context);
    config.remote = "https://example.com";
    CHECK(cubridge_open(&config, &context) == CUBRIDGE_UNSUPPORTED && context == NULL);
    CHECK(strstr(cubridge_message(), "remote") != NULL);
    config.remote = NULL;
    config.verify = CUBRIDGE_VERIFY_EXECUTOR;
    config.workers = -1;
    CHECK(cubridge_open(&config, &context) == CUBRIDGE_OK);
    if (context == NULL) return 1;

    source.function = "causal";
    CHECK(cubridge_parse(context, &source, &spec) == CUBRIDGE_OK && spec != NULL);
    CHECK(cubridge_parse(context, &source, &again) == CUBRIDGE_OK && again == spec);
    CHECK(cubridge_operand_name(spec, 0) == NULL);
    source.text = "def attention(q, k, v):\n    return q +\n";
    source.function = NULL;
    CHECK(cubridge_parse(context, &source, &again) == CUBRIDGE_BAD_SPEC && again == NULL);
    CHECK(strncmp(cubridge_message(), "2:", 2) == 0);

    request.spec = spec;
    request.device = -1;
    request.head_dim = 128;
    strcpy(request.arch, "sm_90a");
    CHECK(cubridge_get_kernel(context, &request, &result) == CUBRIDGE_OK);
    CHECK(result.outcome == CUBRIDGE_PENDING && result.job != 0 && result.kernel == NULL);
    CHECK(cubridge_wait(context, result.job, -1) == CUBRIDGE_UNSUPPORTED);
    CHECK(cubridge_get_kernel(context, &request, &result) == CUBRIDGE_OK);
    CHECK(result.outcome == CUBRIDGE_REJECTED && result.reasons == CUBRIDGE_WHY_NOT_STORED && result.job == 0);
    request.layout = CUBRIDGE_RAGGED;
    CHECK(cubridge_get_kernel(context, &request, &result) == CUBRIDGE_OK);
    CHECK(result.outcome == CUBRIDGE_REJECTED && result.reasons == CUBRIDGE_WHY_LAYOUT);

    count = cubridge_stats(context, stats, sizeof stats / sizeof stats[0]);
    CHECK(count > 30 && count <= sizeof stats / sizeof stats[0]);
    for (i = 0; i < count && strcmp(stats[i].name, "answers_rejected") != 0; ++i) {
    }
    CHECK(i < count && stats[i].value == 2 && !stats[i].is_gauge);
    cubridge_close(context);
    cubridge_close(NULL);
    return failures == 0 ? 0 : 1;
}
