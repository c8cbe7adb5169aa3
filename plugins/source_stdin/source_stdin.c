/* source_stdin: reads standard input, until it ends. */

#include <fcntl.h>
#include <stdlib.h>

#include "../system.h"
#include "../pump.h"

struct source {
    const weir_host *host;
    struct pump pump;
};

static void *create(const weir_host *host, const void *options)
{
    struct source *source = calloc(1, sizeof *source);
    (void)options;
    if (source)
        source->host = host;
    else
        host->refuse(host, "", "out of memory");
    return source;
}

static void open_source(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    if (fcntl(STDIN_FILENO, F_GETFD) < 0)
        wr_pump_fail(outcome, WEIR_OUTCOME_FAILED, "standard input");
    else if (!wr_pump_init(&source->pump, source->host, ""))
        wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "out of memory");
}

static void close_source(void *self)
{
    wr_pump_fini(&((struct source *)self)->pump);
}

/* Others may share the descriptor, so it stays as it is: it is read only when something is there. Regular files
 * are always ready. */
static void run(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    struct pump *pump = &source->pump;
    bool at_end = false;
    for (;;) {
        bool is_full = !wr_pump_resume(pump);
        if (at_end && !is_full)
            return;
        struct pollfd fd = {STDIN_FILENO, POLLIN, 0};
        unsigned woke = pump->intake->wait(source->host, &fd, is_full ? 0 : 1, -1);
        if (woke & WEIR_WAIT_STOP) {
            if (wr_pump_drain(pump))
                wr_pump_read_record_end(pump, STDIN_FILENO);
            return;
        }
        if (is_full || !(woke & WEIR_WAIT_READY))
            continue;
        switch (wr_pump_read(pump, STDIN_FILENO)) {
        case PUMP_END:
            wr_pump_finish(pump, true);
            at_end = true;
            break;
        case PUMP_FAILED: wr_pump_fail(outcome, WEIR_OUTCOME_FAILED, "standard input"); return;
        default: break;
        }
    }
}

static void destroy(void *self)
{
    free(self);
}

static const weir_source_type type = {
    .size = sizeof(weir_source_type),
    .abi = WEIR_SOURCE_ABI,
    .flags = WEIR_SOURCE_TYPE_PARSES | WEIR_SOURCE_TYPE_UNGROUPED,
    .name = "stdin",
    .summary = "reads lines from standard input, until it ends",
    .create = create,
    .open = open_source,
    .run = run,
    .close = close_source,
    .destroy = destroy,
};

const weir_source_type *weir_source_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
