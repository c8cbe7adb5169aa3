/* The functions of <weir/testing.h>. They are in the library itself: a library of their own would need rounds
 * and control of time exported from this one, and kept stable. */

#include <weir/testing.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/test_store.h"
#include "os/cancel.h"
#include "os/clock.h"
#include "text/common.h"
#include "engine/engine.h"
#include "text/error.h"
#include "producer/producer.h"
#include "runtime/runtime.h"

/* How long a query waits for values that were added before it. A script may return RETRY for longer. */
enum { FLUSH_TIMEOUT_MS = 10000 };

static int fail(struct wr_runtime *runtime, int code, const char *text)
{
    struct wr_error *last = wr_producers_error(&runtime->producers);
    if (last)
        wr_error_set(last, code, "%s", text);
    return code;
}

static void deliver(void)
{
    if (!wr_test_store_is_blocking())
        weir_flush(FLUSH_TIMEOUT_MS);
}

/* ---- Time ------------------------------------------------------------------------------------ */

/* Takes the round lock, and runs a round: values that were added before get the time that was valid then. */
static void enter_after_round(struct wr_engine *engine, struct wr_visit *visit)
{
    int64_t next_ns;
    wr_engine_enter(engine, visit);
    wr_dispatcher_round(&engine->dispatcher, &next_ns);
}

int weir_testing_set_time(int64_t time_ns)
{
    WR_CANCEL_DISABLED;
    struct wr_visit visit;
    struct wr_runtime *runtime = wr_runtime_get();
    if (!runtime)
        return WEIR_ERR_MEMORY;
    struct wr_engine *engine = wr_runtime_engine(runtime);
    enter_after_round(engine, &visit);
    engine->dispatcher.drain.still_ns = time_ns < 0 ? WR_DRAIN_REAL_TIME : time_ns;
    wr_engine_leave(&visit);
    return 0;
}

int weir_testing_advance(int64_t ns)
{
    WR_CANCEL_DISABLED;
    struct wr_visit visit;
    struct wr_runtime *runtime = wr_runtime_get();
    if (!runtime)
        return WEIR_ERR_MEMORY;
    struct wr_engine *engine = wr_runtime_engine(runtime);
    enter_after_round(engine, &visit);
    int64_t still_ns = engine->dispatcher.drain.still_ns;
    bool is_set = still_ns != WR_DRAIN_REAL_TIME;
    bool fits = is_set && (ns >= 0 ? still_ns <= INT64_MAX - ns : still_ns >= -ns && ns != INT64_MIN);
    if (fits)
        engine->dispatcher.drain.still_ns += ns;
    wr_engine_leave(&visit);
    if (fits)
        return 0;
    return fail(runtime, WEIR_ERR_ARGUMENT,
                is_set ? "weir_testing_advance: the time would overflow"
                       : "weir_testing_advance: no time is set; call weir_testing_set_time first");
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
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    weir_handler_stats stats;
    if (!runtime)
        return WEIR_ERR_MEMORY;
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
        return fail(runtime, WEIR_ERR_CONFIG,
                    "weir_testing_start: the configuration of the environment (WEIR_CONFIG, BENCHMARK_AI) "
                    "takes precedence");
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

bool weir_testing_wait(const char *group, const char *name, size_t count, int64_t timeout_ms)
{
    return wr_test_store_wait(group, name, count, wr_clock_deadline_ns(timeout_ms));
}

/* ---- Failing --------------------------------------------------------------------------------- */

int weir_testing_add_outcome(enum weir_testing_outcome outcome, uint32_t done, uint32_t times)
{
    struct wr_runtime *runtime = wr_runtime_get();
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if ((int)outcome < WEIR_TESTING_OK || (int)outcome > WEIR_TESTING_FAILED)
        return fail(runtime, WEIR_ERR_ARGUMENT,
                    "weir_testing_add_outcome: outcome: must be one of enum weir_testing_outcome");
    return wr_test_store_add_step((int)outcome, done, times)
               ? 0
               : fail(runtime, WEIR_ERR_MEMORY, "weir_testing_add_outcome: out of memory");
}

void weir_testing_block(void)
{
    wr_test_store_block(true);
}

void weir_testing_release(void)
{
    wr_test_store_block(false);
}

bool weir_testing_wait_blocked(int64_t timeout_ms)
{
    return wr_test_store_wait_blocked(wr_clock_deadline_ns(timeout_ms));
}

size_t weir_testing_tries(void)
{
    return wr_test_store_tries();
}
