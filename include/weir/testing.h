/* weir - for tests of programs that measure, and of what handlers do to them.
 *
 *     weir_testing_start();
 *     serve_one_request();
 *     assert(weir_testing_count("my_app", "latency") == 1);
 *     assert(weir_testing_last("my_app", "size") == 512);
 *
 * A handler type, "testing", keeps what it is given in memory; questions about that deliver first what was
 * added before, so a test never waits by itself. The handler can be told to fail in every way that a handler
 * can, and time stamps can be chosen. All of this is for the process, not for one test: weir_testing_start
 * begins anew.
 *
 * Groups and names: NULL stands for any. Threads: from any thread but a handler's own. In a forked child it
 * begins anew too.
 */
#ifndef WEIR_TESTING_H
#define WEIR_TESTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/types.h>
#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One captured sample. What it points to is valid until the next weir_testing_clear or weir_testing_start. */
typedef struct weir_testing_sample {
    size_t size;              /* how much of it is filled */
    const char *group;        /* of the stream */
    const char *name;         /* of the value */
    double value;             /* of an integer too, as far as a double can hold it */
    int64_t integer;          /* 0 unless is_integer */
    bool is_integer;          /* it was added as an integer */
    bool cumulative;          /* a running total */
    bool more;                /* the next one is of the same event */
    int64_t time_ns;          /* since 1970-01-01 UTC */
    const weir_label *labels; /* sorted by key */
    size_t label_count;       /* of labels */
    const char *metadata;     /* NULL: none */
    const char *unit;         /* NULL: not said */
    const char *help;         /* NULL: not said */
} weir_testing_sample;

/* ---- Capturing ------------------------------------------------------------------------------- */

/* Puts a configuration in force by which every group goes to a handler "testing" of the type "testing", forgets
 * what was captured and what the handler was told, and lets time go its way. A negative enum weir_error: what
 * stands in the way, like a configuration of the environment's (WEIR_CONFIG), in weir_last_error.
 *
 * Other configurations may use the type "testing" as well, once this was called. */
WEIR_API int weir_testing_start(void);

/* Forgets what was captured, and all that was added before. */
WEIR_API void weir_testing_clear(void);

/* How many samples came. */
WEIR_API size_t weir_testing_count(const char *group, const char *name);

/* The value of the latest; NaN where none came. */
WEIR_API double weir_testing_last(const char *group, const char *name);

/* The values, in the order in which they came: at most `room` of them. Answers how many there are. */
WEIR_API size_t weir_testing_values(const char *group, const char *name, double *values, size_t room);

/* Number i of them, with all that is known of it: fills the first size bytes of *sample. false: there are
 * fewer. */
WEIR_API bool weir_testing_get(const char *group, const char *name, size_t i, weir_testing_sample *sample,
                               size_t size);

/* The text of one of a sample's labels; NULL: it has none of that key. */
WEIR_API const char *weir_testing_label(const weir_testing_sample *sample, const char *key);

/* Waits until that many samples came, at most timeout_ms (-1: for ever), for values that other threads are
 * still to add. Whether they came. */
WEIR_API bool weir_testing_wait(const char *group, const char *name, size_t count, int64_t timeout_ms);

/* ---- Time ------------------------------------------------------------------------------------ */

/* From now on time stands still at time_ns (since 1970-01-01 UTC) for the time stamps of values that are added
 * without one of their own; negative: it goes its way again. Values that were added before keep theirs.
 * Durations, time-outs and pauses go on by the real clock; weir_flush, and every question here, cut pauses
 * between tries short. */
WEIR_API int weir_testing_set_time(int64_t time_ns);

/* Moves the time that stands still. WEIR_ERR_ARGUMENT: it does not. */
WEIR_API int weir_testing_advance(int64_t ns);

/* ---- Failing --------------------------------------------------------------------------------- */

/* What the handler is to answer; the numbers are those of enum weir_outcome_code in <weir/handler.h>. */
enum weir_testing_answer {
    WEIR_TESTING_OK = 0,
    WEIR_TESTING_RETRY = 1,
    WEIR_TESTING_REOPEN = 2,
    WEIR_TESTING_DROP = 3,
    WEIR_TESTING_FAILED = 4, /* for good: until the next weir_testing_start */
};

/* Adds to the script: the handler's next `times` answers that are not spoken for yet. Of each batch the first
 * `done` samples are taken and captured, whole events only; with OK all are. Once the script is over it takes
 * everything again. WEIR_ERR_MEMORY. */
WEIR_API int weir_testing_answer(enum weir_testing_answer answer, uint32_t done, uint32_t times);

/* From now on the handler does not come back from what it is given, as one does whose destination hangs, until
 * weir_testing_release. Questions do not deliver meanwhile. */
WEIR_API void weir_testing_block(void);
WEIR_API void weir_testing_release(void);

/* Waits until the handler hangs, at most timeout_ms (-1: for ever). Whether it does. */
WEIR_API bool weir_testing_wait_blocked(int64_t timeout_ms);

/* How often the handler was given something since weir_testing_start. */
WEIR_API size_t weir_testing_tries(void);

#ifdef __cplusplus
}
#endif

#endif
