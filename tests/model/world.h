/* world: what the model knows, in memory that all processes of one life share: what each actor tried to add,
 * and what each handler of each process was given.
 *
 * An actor is a thread that adds values: of the first process, of a forked child, or of the process that comes
 * after them. Its samples are numbered from 0, and the value of each tells actor and number. Whatever concerns
 * a sample is written down before the call that adds it, so that a handler can look at it at once. */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

enum {
    WORLD_ACTORS = 10,
    WORLD_PROCESSES = 6, /* the first one, its children, the last one */
    WORLD_LAST = WORLD_PROCESSES - 1,
    WORLD_HANDLERS = 3,
    WORLD_GROUPS = 4,
    WORLD_SAMPLES = 1 << 14, /* of an actor */
    WORLD_ENTRIES = 1 << 16, /* of a handler in one process */
};

extern const char *const world_groups[WORLD_GROUPS];
extern const char *const world_handlers[WORLD_HANDLERS];

/* What the call that added a sample has said. */
enum world_fate { WORLD_TRIED, WORLD_TAKEN, WORLD_REFUSED };

/* One sample that an actor tried to add. */
struct world_sample {
    uint32_t lo, hi; /* the configuration it goes by is one of these */
    uint8_t group, process;
    uint8_t place, length; /* in its event */
    bool integer, cumulative, noted;
    uint8_t fate;    /* enum world_fate */
    int64_t time_ns; /* 0: the core's */
};

/* What became of a sample that a handler was given. */
enum world_verdict { WORLD_DELIVERED = 1, WORLD_REJECTED };

struct world_entry {
    uint32_t number;
    uint8_t actor, verdict;
};

/* What one handler of one process was given and has settled, in this order. */
struct world_log {
    _Atomic uint32_t count;
    _Atomic uint32_t last_batch;                /* where the entries of the last answer begin */
    _Atomic uint32_t next_number[WORLD_ACTORS]; /* behind the last one of each actor */
    struct world_entry entries[WORLD_ENTRIES];
};

struct world_actor {
    _Atomic uint32_t count; /* numbers that were tried */
    struct world_sample samples[WORLD_SAMPLES];
};

/* How a process ended. */
struct world_end {
    _Atomic bool leaves;     /* it shuts weir down: what it does not deliver is whoever's comes to it first */
    _Atomic bool done;       /* it came to its end, and its own accounts were right */
    _Atomic bool in_a_hurry; /* it did not wait for its handlers, or was killed */
    weir_handler_stats handlers[WORLD_HANDLERS];
};

struct world {
    _Atomic uint32_t processes; /* so many children were forked, and the first process */
    struct world_actor actors[WORLD_ACTORS];
    struct world_log logs[WORLD_PROCESSES][WORLD_HANDLERS];
    struct world_end ends[WORLD_PROCESSES];
};

extern struct world *world; /* one for each life */
extern uint32_t world_self; /* which process this one is */

/* A new one in place of the last. */
void world_make(void);

/* The value of a sample. */
static inline uint64_t world_number(uint32_t actor, uint32_t number)
{
    return (uint64_t)actor << 32 | number;
}

/* The metadata of a sample that has any. */
void world_note(char *text, size_t size, uint32_t actor, uint32_t number);

/* Ends the process with 1 and these words. */
_Noreturn void world_fail(const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;

#endif
