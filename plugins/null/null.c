/* null: accepts all values and discards them. For groups whose values are not needed, and to measure the
 * cost of instrumentation. */

#include <weir/handler.h>

static char instance;

static void *null_create(const weir_host *host, const void *options)
{
    (void)host;
    (void)options;
    return &instance;
}

/* The outcome is initialized to "all delivered". */
static void null_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)batch;
    (void)outcome;
}

static void null_destroy(void *self)
{
    (void)self;
}

static const weir_handler_type null_type = {
    .size = sizeof null_type,
    .abi = WEIR_ABI,
    .name = "null",
    .summary = "accepts all values and discards them",
    .create = null_create,
    .emit = null_emit,
    .destroy = null_destroy,
    .flags = WEIR_TYPE_SHARES_NOTHING,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &null_type : NULL;
}
