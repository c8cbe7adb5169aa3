/* stdout_handler: prints each value on standard output: the whole of a handler type, to begin with.
 *
 * It is what torchelastic's example of a metric handler is, in C: no connection, no options, nothing to keep.
 */

#include <inttypes.h>
#include <stdio.h>

#include <weir/handler.h>

/* There is nothing to remember, but NULL would mean that it could not be made. */
static char the_only_one;

static void *create(const weir_host *host, const void *options)
{
    (void)host;
    (void)options;
    return &the_only_one;
}

static void print(const weir_series *series, const weir_sample *sample)
{
    printf("[%" PRId64 "][%s]: %s=", sample->time_ns / 1000000000, series->group, series->name);
    if (sample->kind == WEIR_KIND_INT)
        printf("%" PRId64 "\n", sample->value.i64);
    else
        printf("%g\n", sample->value.f64);
}

/* The outcome says already that all is done; what went wrong has to be said. */
static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    for (uint32_t i = 0; i < batch->count; i++)
        print(weir_batch_series(batch, &batch->samples[i]), &batch->samples[i]);
    if (fflush(stdout) == 0)
        return;
    /* how much of it was written nobody knows */
    clearerr(stdout);
    outcome->code = WEIR_OUTCOME_DROP;
    outcome->done = 0;
    snprintf(outcome->reason, sizeof outcome->reason, "standard output takes nothing");
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
