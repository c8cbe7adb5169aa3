/* weir - for testing programs that add values, and how they react to failing handlers.
 *
 *     weir_testing_start();
 *     serve_one_request();
 *     assert(weir_testing_count("my_app", "latency") == 1);
 *     assert(weir_testing_last("my_app", "size") == 512);
 *
 * The handler type "testing" keeps captured samples in memory. The query functions first deliver what was added
 * before, so a test needs no waiting of its own. The handler can be made to fail in every way that a handler
 * can, and time stamps can be set. The state belongs to the process, not to one test: weir_testing_start resets
 * it.
 *
 * The functions are in libweir-testing.a: link with `pkg-config --libs weir-testing`.
 *
 * Groups and names: NULL matches any. Threads: every function may be called from any thread except a handler's.
 * A forked child starts with an empty state.
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
    size_t size;              /* number of bytes filled in */
    const char *group;        /* of the stream */
    const char *name;         /* of the value */
    double value;             /* also set for integers, rounded to a double */
    int64_t integer;          /* 0 unless is_integer */
    bool is_integer;          /* it was added as an integer */
    bool cumulative;          /* it is a running total */
    bool more;                /* the next sample belongs to the same event */
    int64_t time_ns;          /* nanoseconds since 1970-01-01 UTC */
    const weir_label *labels; /* sorted by key */
    size_t label_count;       /* number of labels */
    const char *metadata;     /* NULL: none */
    const char *unit;         /* NULL: not known */
    const char *help;         /* NULL: not known */
} weir_testing_sample;

/* ---- Capturing ------------------------------------------------------------------------------- */

/* Applies a configuration that routes every group to a handler "testing" of the type "testing". Forgets
 * captured samples and planned outcomes, and lets time run. Returns 0 or a negative enum weir_error, for
 * example if the environment's configuration (WEIR_CONFIG) takes precedence; see weir_last_error. After the
 * first call, other configurations may use the type "testing" too. */
WEIR_API int weir_testing_start(void);

/* Forgets captured samples, including those of values added before and not delivered yet. */
WEIR_API void weir_testing_clear(void);

/* Returns the number of captured samples. */
WEIR_API size_t weir_testing_count(const char *group, const char *name);

/* Returns the value of the last captured sample, or NaN if there is none. */
WEIR_API double weir_testing_last(const char *group, const char *name);

/* Copies the values of captured samples, in order, to the caller's array of `room` elements, as many as fit.
 * Returns how many there are. */
WEIR_API size_t weir_testing_values(const char *group, const char *name, double *values, size_t room);

/* Fills the first size bytes of *sample with captured sample number i, from 0. Returns false if there are not
 * that many. */
WEIR_API bool weir_testing_get(const char *group, const char *name, size_t i, weir_testing_sample *sample,
                               size_t size);

/* Returns the value of one of a sample's labels, valid as long as the sample's strings, or NULL if it has no
 * label with that key. */
WEIR_API const char *weir_testing_label(const weir_testing_sample *sample, const char *key);

/* Waits until at least count samples are captured, for at most timeout_ms milliseconds (-1: no limit): for
 * values that other threads have yet to add. Returns whether they were. */
WEIR_API bool weir_testing_wait(const char *group, const char *name, size_t count, int64_t timeout_ms);

/* ---- Time ------------------------------------------------------------------------------------ */

/* Fixes the time stamp of values that are added from now on without a time of their own: time_ns nanoseconds
 * since 1970-01-01 UTC; negative: the real time again. Values added before keep theirs. Durations, timeouts and
 * back-off follow the real clock; weir_flush and the query functions here end a back-off. */
WEIR_API int weir_testing_set_time(int64_t time_ns);

/* Moves the fixed time by ns nanoseconds. WEIR_ERR_ARGUMENT: time is not fixed, or the sum is out of range. */
WEIR_API int weir_testing_advance(int64_t ns);

/* ---- Failing --------------------------------------------------------------------------------- */

/* The outcome of an attempt to deliver; the numbers are those of enum weir_outcome_code in <weir/handler.h>. */
enum weir_testing_outcome {
    WEIR_TESTING_OK = 0,
    WEIR_TESTING_RETRY = 1,
    WEIR_TESTING_REOPEN = 2,
    WEIR_TESTING_DROP = 3,
    WEIR_TESTING_FAILED = 4, /* the handler stays closed until the next weir_testing_start */
};

/* Plans the outcome of the handler's next `times` attempts, after those planned already. Of each batch the
 * first `done` samples, in whole events, are captured; with OK all are. When no planned outcome is left, every
 * attempt succeeds. Returns 0, WEIR_ERR_ARGUMENT or WEIR_ERR_MEMORY. */
WEIR_API int weir_testing_add_outcome(enum weir_testing_outcome outcome, uint32_t done, uint32_t times);

/* Makes the handler block in its next attempt, as if its destination hung, until weir_testing_release. The
 * query functions do not deliver meanwhile. */
WEIR_API void weir_testing_block(void);
WEIR_API void weir_testing_release(void);

/* Waits until the handler blocks, for at most timeout_ms milliseconds (-1: no limit). Returns whether it does.
 */
WEIR_API bool weir_testing_wait_blocked(int64_t timeout_ms);

/* Returns the number of attempts to deliver since weir_testing_start. */
WEIR_API size_t weir_testing_tries(void);

#ifdef __cplusplus
}
#endif

#endif
