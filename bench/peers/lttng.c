/* lttng: a tracepoint with group, name and value, recorded by the session daemon in the session "weir_bench",
 * in binary format. */

#include <lttng/lttng.h>

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_events.h"

#include "../support/measure.h"

static void open_nothing(const struct task *task)
{
    (void)task;
}

static void *begin(const struct task *task)
{
    static char state;
    (void)task;
    return &state;
}

static void add(void *state, const double *values, size_t count)
{
    (void)state;
    for (size_t i = 0; i < count; i++)
        lttng_ust_tracepoint(weir_bench, value, "my_app", "latency", values[i]);
}

/* lttng_stop_tracing returns when the consumer has written everything. */
static void stop(const struct task *task)
{
    (void)task;
    int error = lttng_stop_tracing("weir_bench");
    if (error < 0)
        measure_fail("lttng: %s", lttng_strerror(error));
}

int main(int argc, char **argv)
{
    static const struct subject subject = {.open = open_nothing, .begin = begin, .add = add, .close = stop};
    return measure(argc, argv, &subject);
}
