#include "api/private.h"

#include "os/cancel.h"
#include "text/common.h"
#include "engine/engine.h"
#include "text/error.h"
#include "producer/producer.h"
#include "runtime/runtime.h"

static int fail(struct wr_runtime *runtime, int code, const char *text)
{
    struct wr_error *last = runtime ? wr_producers_error(&runtime->producers) : NULL;
    if (last)
        wr_error_set(last, code, "%s", text);
    return code;
}

int weir_private_fail(int code, const char *text)
{
    WR_CANCEL_DISABLED;
    return fail(wr_runtime_get(), code, text);
}

/* Returns NULL or what is wrong with the step. */
static const char *add_step(int64_t *still_ns, int64_t ns)
{
    if (*still_ns == WR_DRAIN_REAL_TIME)
        return "weir_testing_advance: no time is set; call weir_testing_set_time first";
    int64_t sum;
    if (__builtin_add_overflow(*still_ns, ns, &sum) || sum < 0)
        return "weir_testing_advance: the time would overflow";
    *still_ns = sum;
    return NULL;
}

int weir_private_change_time(int64_t ns, bool is_step)
{
    WR_CANCEL_DISABLED;
    const char *wrong = NULL;
    int64_t next_ns;
    struct wr_visit visit;
    struct wr_runtime *runtime = wr_runtime_get();
    if (!runtime)
        return WEIR_ERR_MEMORY;
    struct wr_engine *engine = wr_runtime_engine(runtime);
    wr_engine_enter(engine, &visit);
    /* gives the values that were added before the time that was valid then */
    wr_dispatcher_round(&engine->dispatcher, &next_ns);
    int64_t *still_ns = &engine->dispatcher.drain.still_ns;
    if (is_step)
        wrong = add_step(still_ns, ns);
    else
        *still_ns = ns < 0 ? WR_DRAIN_REAL_TIME : ns;
    wr_engine_leave(&visit);
    return wrong ? fail(runtime, WEIR_ERR_ARGUMENT, wrong) : 0;
}
