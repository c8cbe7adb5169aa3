/* world: the model's data, in memory shared by all processes of one life: what each actor tried to add, and
 * what each handler of each process received.
 *
 * An actor is a thread that adds values: of the first process, of a forked child, or of the last process.
 * Its samples are numbered from 0; the value of each sample encodes actor and number. A sample is recorded
 * before the call that adds it, so that a handler can check it at once. */
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
    WORLD_HANDLERS = 3,
    WORLD_GROUPS = 4,
    WORLD_SAMPLES = 1 << 14, /* per actor */
    WORLD_ENTRIES = 1 << 16, /* per handler and process */
};

extern const char *const world_groups[WORLD_GROUPS];
extern const char *const world_handlers[WORLD_HANDLERS];

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
    _Atomic uint32_t count;
    _Atomic uint32_t last_batch;                /* first entry of the last batch */
    _Atomic uint32_t next_number[WORLD_ACTORS]; /* one past the last number of each actor */
    struct world_entry entries[WORLD_ENTRIES];
};

struct world_actor {
    _Atomic uint32_t count; /* samples that it tried to add */
    struct world_sample samples[WORLD_SAMPLES];
};

/* How a process ended. */
struct world_end {
    _Atomic bool leaves;     /* it shuts weir down: another process may adopt what it leaves */
    _Atomic bool done;       /* it ended, and its ledger was correct */
    _Atomic bool in_a_hurry; /* it did not wait for its handlers, or was killed */
    weir_handler_stats handlers[WORLD_HANDLERS];
};

struct world {
    _Atomic uint32_t processes; /* the first process and its children */
    struct world_actor actors[WORLD_ACTORS];
    struct world_log logs[WORLD_PROCESSES][WORLD_HANDLERS];
    struct world_end ends[WORLD_PROCESSES];
};

extern struct world *world; /* of the current life */
extern uint32_t world_self; /* the number of this process */

/* Creates an empty world in place of the last one. */
void world_make(void);

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
