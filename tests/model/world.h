/* world: the model's data, in memory shared by all processes of one life: what each actor tried to add, and
 * what each handler of each process received.
 *
 * An actor is a thread that adds values: of the first process, of a forked child, or of the last process.
 * Its samples are numbered from 0; the value of each sample encodes actor and number. A sample is recorded
 * before the call that adds it, so that a handler can check it at once.
 *
 * Values of instruments go to groups and handlers of their own, where they are summed up by some
 * configurations. They encode nothing: of these the numbers and the sums of each series are compared. */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

enum {
    WORLD_ACTORS = 10,
    WORLD_PROCESSES = 6, /* the first process, its children, the last process */
    WORLD_LAST = WORLD_PROCESSES - 1,
    WORLD_PLAIN_HANDLERS = 3, /* the first ones: of samples */
    WORLD_HANDLERS = 6,
    WORLD_PLAIN_GROUPS = 4, /* the first ones: of samples */
    WORLD_GROUPS = 7,
    WORLD_SUMMED_GROUPS = WORLD_GROUPS - WORLD_PLAIN_GROUPS,
    WORLD_PARTED = WORLD_HANDLERS - 1, /* the handler that takes summaries in parts */
    WORLD_SAMPLES = 1 << 14,           /* per actor */
    WORLD_ENTRIES = 1 << 16,           /* per handler and process */
    WORLD_VALUES = 1 << 14,            /* per actor */
};

extern const char *const world_groups[WORLD_GROUPS];
extern const char *const world_handlers[WORLD_HANDLERS];

/* ---- Samples --------------------------------------------------------------------------------- */

/* The result of the call that added a sample. */
enum world_fate { WORLD_TRIED, WORLD_TAKEN, WORLD_REFUSED };

/* One sample that an actor tried to add. */
struct world_sample {
    uint32_t lo, hi; /* the configuration that routes it is one of these */
    uint8_t group, process;
    uint8_t place, length; /* position in its event, and the event's length */
    bool integer, cumulative, noted;
    uint8_t fate;    /* enum world_fate */
    int64_t time_ns; /* 0: set by the core */
};

/* The outcome of a sample that a handler received. */
enum world_outcome { WORLD_DELIVERED = 1, WORLD_REJECTED };

struct world_entry {
    uint32_t number;
    uint8_t actor, outcome;
};

/* What one handler of one process received and settled, in this order. */
struct world_log {
    _Atomic uint64_t values;                    /* settled, whatever the outcome */
    _Atomic uint64_t values_before;             /* of these: before the last batch */
    _Atomic uint64_t settled[3];                /* by enum world_outcome */
    _Atomic uint64_t settled_last[3];           /* of these: of the last batch */
    _Atomic uint32_t count;                     /* of the entries: only samples have some */
    _Atomic uint32_t last_batch;                /* first entry of the last batch */
    _Atomic uint32_t next_number[WORLD_ACTORS]; /* one past the last number of each actor */
    struct world_entry entries[WORLD_ENTRIES];
};

/* ---- Instruments ----------------------------------------------------------------------------- */

/* The names in each group of instruments. */
enum world_name {
    WORLD_HITS, /* a counter */
    WORLD_SIZE, /* a histogram with buckets of its own */
    WORLD_WAIT, /* a histogram with the default buckets */
    WORLD_OPEN, /* a gauge that all threads move */
    WORLD_RATE, /* no instrument */
    WORLD_NAMES
};

enum {
    WORLD_LABELS = 2,                                                /* without a label, and with one */
    WORLD_LEVELS = WORLD_SUMMED_GROUPS * WORLD_NAMES * WORLD_LABELS, /* the first gauge that one actor sets */
    WORLD_SERIES = WORLD_LEVELS + WORLD_ACTORS,
    WORLD_BUCKETS = 24,
    WORLD_MOST = 99 /* the largest value that is added */
};

extern const char *const world_names[WORLD_NAMES];
extern const double world_bounds[3]; /* the buckets of WORLD_SIZE */

/* Any number of values of a series. */
struct world_sum {
    uint64_t count;
    double sum;
    uint64_t buckets[WORLD_BUCKETS];
};

/* One value that an actor tried to add. */
struct world_value {
    uint32_t lo, hi; /* as of a sample */
    uint8_t series, process;
    uint8_t fate;  /* enum world_fate */
    int16_t value; /* of a gauge that is moved: the difference */
};

/* What one handler of one process received of a series. */
struct world_tally {
    struct world_sum settled; /* in all. Of parts of summaries only the number of values is known */
    struct world_sum recent;  /* of these: in the last interval or batch */
    struct world_sum total;   /* the last running total that it was offered */
    int64_t since_ns;         /* of that */
    uint32_t origin;          /* of that: a check of its text; 0: of parts */
    bool has_total;
    _Atomic bool has_level;
    _Atomic double level; /* the last one that it was offered */
};

struct world_actor {
    _Atomic uint32_t count; /* samples that it tried to add */
    struct world_sample samples[WORLD_SAMPLES];
    _Atomic uint32_t value_count;
    struct world_value values[WORLD_VALUES];
    double level; /* of the gauge that only it changes, after the last call that returned 0 */
    bool has_level;
};

/* ---- Processes ------------------------------------------------------------------------------- */

/* How a process ended. */
struct world_end {
    _Atomic bool leaves;     /* it shuts weir down: another process may adopt what it leaves */
    _Atomic bool done;       /* it ended, and its ledger was correct */
    _Atomic bool in_a_hurry; /* it did not wait for its handlers, or was killed */
    uint32_t parent;         /* of a child: the actor that forked it */
    double inherited;        /* the level of that one's gauge, which the child has moved by 1 */
    bool has_inherited;
    weir_handler_stats handlers[WORLD_HANDLERS];
};

struct world {
    _Atomic uint32_t processes; /* the first process and its children */
    struct world_actor actors[WORLD_ACTORS];
    struct world_log logs[WORLD_PROCESSES][WORLD_HANDLERS];
    struct world_tally tallies[WORLD_PROCESSES][WORLD_HANDLERS][WORLD_SERIES];
    _Atomic int64_t recent_ns[WORLD_PROCESSES][WORLD_HANDLERS]; /* when the recent interval ended */
    struct world_end ends[WORLD_PROCESSES];
};

extern struct world *world; /* of the current life */
extern uint32_t world_self; /* the number of this process */

/* Creates an empty world in place of the last one. */
void world_make(void);

/* The number of a series. group: among all groups. */
static inline uint32_t world_series(uint32_t group, enum world_name name, bool labeled)
{
    return ((group - WORLD_PLAIN_GROUPS) * WORLD_NAMES + name) * WORLD_LABELS + labeled;
}

/* The group of a series. */
static inline uint32_t world_group_of(uint32_t series)
{
    return WORLD_PLAIN_GROUPS + (series < WORLD_LEVELS ? series / (WORLD_NAMES * WORLD_LABELS) : 0);
}

/* Its name. Those of gauges that one actor changes are not among the names. */
static inline enum world_name world_name_of(uint32_t series)
{
    return series < WORLD_LEVELS ? (enum world_name)(series / WORLD_LABELS % WORLD_NAMES) : WORLD_NAMES;
}

static inline bool world_is_gauge(uint32_t series)
{
    return world_name_of(series) == WORLD_OPEN || series >= WORLD_LEVELS;
}

static inline bool world_is_histogram(uint32_t series)
{
    return world_name_of(series) == WORLD_SIZE || world_name_of(series) == WORLD_WAIT;
}

/* Adds one value. Of gauges only the number counts. */
void world_sum_add(struct world_sum *sum, uint32_t series, double value);

/* Adds all of another one. */
void world_sum_add_all(struct world_sum *sum, const struct world_sum *other);

/* The bucket of a histogram that a value is in. */
uint32_t world_bucket(uint32_t series, double value);

/* The number of its buckets. */
uint32_t world_bucket_count(uint32_t series);

static inline uint64_t world_number(uint32_t actor, uint32_t number)
{
    return (uint64_t)actor << 32 | number;
}

/* Writes the metadata of a sample. */
void world_note(char *text, size_t size, uint32_t actor, uint32_t number);

/* Prints the message and exits with status 1. */
_Noreturn void world_fail(const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;

#endif
