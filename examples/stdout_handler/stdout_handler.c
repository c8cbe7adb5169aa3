/* stdout_handler: prints each value on standard output. A minimal but complete handler type.
 *
 * It corresponds to torchelastic's example of a metric handler: no connection, no options, no state. */

#include <inttypes.h>
#include <stdio.h>

#include <weir/handler.h>

/* The handler has no state, but create must not return NULL, which means failure. */
static char instance;

static void *create(const weir_host *host, const void *options)
{
    (void)host;
    (void)options;
    return &instance;
}

static void print(const weir_series *series, const weir_sample *sample)
{
    printf("[%" PRId64 "][%s]: %s=", sample->time_ns / 1000000000, series->group, series->name);
    if (sample->kind == WEIR_KIND_INT)
        printf("%" PRId64 "\n", sample->value.i64);
    else
        printf("%g\n", sample->value.f64);
}

/* The core has initialized the outcome to success; only failures are set here. */
static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    for (uint32_t i = 0; i < batch->count; i++)
        print(weir_batch_series(batch, &batch->samples[i]), &batch->samples[i]);
    if (fflush(stdout) == 0)
        return;
    /* DROP instead of RETRY: how much was written is unknown, so a retry could write values twice */
    clearerr(stdout);
    outcome->code = WEIR_OUTCOME_DROP;
    outcome->done = 0;
    snprintf(outcome->reason, sizeof outcome->reason, "standard output: write failed");
}

static void destroy(void *self)
{
    (void)self;
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "stdout_handler",
    .summary = "prints values on standard output",
    .create = create,
    .emit = emit,
    .destroy = destroy,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
