/* The functions of <weir/testing.h>. They use those of <weir/weir.h>, and two of "api/private.h". */

#include <weir/testing.h>

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "api/private.h"
#include "testing/test_store.h"

/* How long a query waits for values that were added before it. A script may return RETRY for longer. */
enum { FLUSH_TIMEOUT_MS = 10000 };

static void deliver(void)
{
    if (!wr_test_store_is_blocking())
        weir_flush(FLUSH_TIMEOUT_MS);
}

/* ---- Time ------------------------------------------------------------------------------------ */

int weir_testing_set_time(int64_t time_ns)
{
    return weir_private_change_time(time_ns, false);
}

int weir_testing_advance(int64_t ns)
{
    return weir_private_change_time(ns, true);
}

/* ---- Starting -------------------------------------------------------------------------------- */

static int register_type(void)
{
    static _Atomic bool registered;
    if (atomic_exchange(&registered, true))
        return 0;
    int result = weir_register_handler_type(&wr_test_store_type, NULL);
    if (result)
        atomic_store(&registered, false);
    return result;
}

static int configure(void)
{
    static _Atomic unsigned run;
    char text[160];
    int length =
        snprintf(text, sizeof text,
                 "{\"settings\":{\"shutdown_timeout\":\"1s\"},\"handlers\":{\"testing\":{\"type\":\"testing\","
                 "\"run\":%u,\"retry_min\":\"1ms\"}},\"groups\":{\"*\":\"testing\"}}",
                 ++run);
    return weir_configure_text(text, (size_t)length);
}

int weir_testing_start(void)
{
    weir_handler_stats stats;
    int result = register_type();
    if (!result)
        result = weir_testing_set_time(-1);
    if (result)
        return result;
    wr_test_store_reset(true);
    deliver();
    result = configure();
    if (result)
        return result;
    if (weir_get_handler_stats("testing", &stats, sizeof stats))
        return weir_private_fail(WEIR_ERR_CONFIG, "weir_testing_start: the configuration of the environment "
                                                  "(WEIR_CONFIG, BENCHMARK_AI) takes precedence");
    wr_test_store_reset(true);
    return 0;
}

void weir_testing_clear(void)
{
    deliver();
    wr_test_store_reset(false);
}

/* ---- Reading --------------------------------------------------------------------------------- */

size_t weir_testing_count(const char *group, const char *name)
{
    deliver();
    return wr_test_store_count(group, name);
}

double weir_testing_last(const char *group, const char *name)
{
    weir_testing_sample sample;
    size_t count = weir_testing_count(group, name);
    return count && wr_test_store_get(group, name, count - 1, &sample) ? sample.value : (double)NAN;
}

size_t weir_testing_values(const char *group, const char *name, double *values, size_t room)
{
    weir_testing_sample sample;
    size_t count = weir_testing_count(group, name);
    for (size_t i = 0; i < count && i < room && wr_test_store_get(group, name, i, &sample); i++)
        values[i] = sample.value;
    return count;
}

bool weir_testing_get(const char *group, const char *name, size_t i, weir_testing_sample *sample, size_t size)
{
    weir_testing_sample whole;
    deliver();
    if (!sample || size < sizeof whole.size || !wr_test_store_get(group, name, i, &whole))
        return false;
    memset(sample, 0, size);
    memcpy(sample, &whole, size < sizeof whole ? size : sizeof whole);
    return true;
}

const char *weir_testing_label(const weir_testing_sample *sample, const char *key)
{
    for (size_t i = 0; sample && key && i < sample->label_count; i++)
        if (strcmp(sample->labels[i].key, key) == 0)
            return sample->labels[i].value;
    return NULL;
}

/* ---- Failing --------------------------------------------------------------------------------- */

int weir_testing_add_outcome(enum weir_testing_outcome outcome, uint32_t done, uint32_t times)
{
    if ((int)outcome < WEIR_TESTING_OK || (int)outcome > WEIR_TESTING_FAILED)
        return weir_private_fail(WEIR_ERR_ARGUMENT,
                                 "weir_testing_add_outcome: outcome: must be one of enum weir_testing_outcome");
    return wr_test_store_add_step((int)outcome, done, times)
               ? 0
               : weir_private_fail(WEIR_ERR_MEMORY, "weir_testing_add_outcome: out of memory");
}
