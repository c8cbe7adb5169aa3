/* blocker: a handler type for tests that blocks forever in open, emit, flush or close, as its option "in" says.
 */

#include <stdlib.h>
#include <unistd.h>

#include <weir/handler.h>

enum { IN_OPEN, IN_EMIT, IN_FLUSH, IN_CLOSE };

struct options {
    int64_t in;
};

static const weir_option rows[] = {
    {"in", WEIR_OPTION_ENUM, 0, "emit", "open|emit|flush|close", "where to block",
     offsetof(struct options, in)},
    {0},
};

static void block(const void *self, int64_t where)
{
    const struct options *options = self;
    while (options->in == where)
        pause();
}

static void *create(const weir_host *host, const void *options)
{
    (void)host;
    return (void *)options;
}

static void open_it(void *self, weir_outcome *outcome)
{
    (void)outcome;
    block(self, IN_OPEN);
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)batch;
    (void)outcome;
    block(self, IN_EMIT);
}

static void flush(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    (void)timeout_ms;
    (void)outcome;
    block(self, IN_FLUSH);
}

static void close_it(void *self)
{
    block(self, IN_CLOSE);
}

static void destroy(void *self)
{
    (void)self;
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "blocker",
    .summary = "blocks forever, for tests",
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct options),
    .create = create,
    .open = open_it,
    .emit = emit,
    .flush = flush,
    .close = close_it,
    .destroy = destroy,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
