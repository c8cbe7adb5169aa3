/* null: takes everything and keeps nothing. For groups that nobody wants to see, and for measuring what
 * measuring costs. */

#include <weir/handler.h>

static char the_only_one;

static void *null_create(const weir_host *host, const void *options)
{
    (void)host;
    (void)options;
    return &the_only_one;
}

/* The outcome says already that all is done. */
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
    .summary = "takes everything and keeps nothing",
    .create = null_create,
    .emit = null_emit,
    .destroy = null_destroy,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &null_type : NULL;
}
