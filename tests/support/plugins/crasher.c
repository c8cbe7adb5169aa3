/* crasher: a handler type for tests whose emit dereferences a null pointer. */

#include <weir/handler.h>

static const volatile uint32_t *volatile null_pointer;

static void *create(const weir_host *host, const void *options)
{
    static int instance;
    (void)host;
    (void)options;
    return &instance;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)batch;
    outcome->done = *null_pointer;
}

static void destroy(void *self)
{
    (void)self;
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "crasher",
    .summary = "crashes, for tests",
    .create = create,
    .emit = emit,
    .destroy = destroy,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
