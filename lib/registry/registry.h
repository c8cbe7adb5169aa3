/* registry: what producers name: groups, streams (a group with labels) and series (a name of a stream), each
 * interned once.
 *
 * Everything here lives until the process ends and is never moved, so a producer may keep pointers without any
 * further care. Finding takes no lock. Making is done under one, with signals blocked, so that a signal handler
 * which names something new cannot find it held by the thread it interrupted; and each thing is complete before
 * the one store that shows it to others, so that a fork in the middle leaves the child without the thing, but
 * with nothing broken.
 *
 * Here are the tables; stream.h and series.h are what others ask. */
#ifndef WR_REGISTRY_H
#define WR_REGISTRY_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "os/arena.h"
#include "registry/hash_table.h"
#include "os/lock.h"

/* What a producer of a group has to do, as one word: the group's gate. Set by the dispatcher's rounds; slept on
 * while WAIT. */
enum wr_gate {
    WR_GATE_COLD,   /* not looked at yet, or not since a fork */
    WR_GATE_OFF,    /* nobody listens */
    WR_GATE_OPEN,   /* go */
    WR_GATE_WAIT,   /* a handler's queue is full */
    WR_GATE_SYNC,   /* go, and wait for the answer */
    WR_GATE_REFUSE, /* not a group: where bad names lead */
};

struct wr_group {
    struct wr_hash_entry entry;
    _Atomic uint32_t gate;    /* enum wr_gate */
    _Atomic uint32_t waiters; /* that may sleep on gate */
    uint32_t length;
    uint32_t route;              /* of the router; under the dispatcher's round lock, as the next line */
    struct wr_group *route_next; /* the next group of the same route */
    struct wr_group *next;       /* the group made before this one */
    _Atomic uint64_t unrouted;   /* values that nobody listened to, but for runs that go on: see unrouted.h */
    /* where values go when no more may be made: series of known streams, and label sets; NULL: not needed yet
     */
    _Atomic(struct weir_metric *) overflow;
    _Atomic(struct weir_stream *) overflow_stream;
    char name[];
};

struct weir_stream {
    struct wr_hash_entry entry;
    struct wr_group *group;
    int refusal;   /* enum weir_error: what adding to it answers; 0: a good stream */
    bool overflow; /* stands for label sets beyond the limit: every name is the group's overflow series */
    uint32_t label_count;
    const weir_label *labels; /* sorted by key */
};

struct weir_metric {
    struct wr_hash_entry entry;
    _Atomic uint32_t *gate; /* the group's */
    struct weir_stream *stream;
    uint32_t series;                   /* the id: dense, from 0 */
    uint16_t flags;                    /* WEIR_SAMPLE_CUMULATIVE or 0 */
    uint8_t length;                    /* of the name */
    uint8_t described;                 /* [making] so often the description was changed */
    _Atomic(const weir_series *) view; /* as handlers see it; replaced when its description changes */
    char name[];
};

enum { WR_REGISTRY_CHUNKS = 16, WR_REGISTRY_FIRST_CHUNK = 1024 };
/* Former descriptions stay readable, so they are never freed: their number is bounded. */
enum { WR_REGISTRY_DESCRIPTIONS_MAX = 16 };
enum { WR_REGISTRY_DEFAULT_MAX = 100000, WR_REGISTRY_LARGEST_MAX = 30000000 };

struct wr_registry {
    struct wr_lock lock; /* for making */
    uint64_t seed;
    struct wr_arena arena;
    struct wr_arena views; /* apart: calls never look at them, and series lie closer together without */
    struct wr_hash_table groups, streams, metrics;
    _Atomic(struct wr_group *) last_group; /* the list of all, latest first */
    _Atomic uint32_t count;                /* groups, label sets and series */
    _Atomic uint32_t max;                  /* settings.max_series */
    _Atomic uint32_t series;               /* so many ids are in use */
    /* id -> metric: chunk n holds WR_REGISTRY_FIRST_CHUNK << n of them */
    _Atomic(struct weir_metric **) chunks[WR_REGISTRY_CHUNKS];
    /* [making] called with each series that is made or described, before its id is used; NULL: nobody cares */
    void (*witness)(void *ctx, const weir_series *view);
    void *witness_ctx;
    _Atomic(struct wr_group *) overflown; /* the group that reached the limit first */
    /* where bad names lead, by what adding to it answers */
    struct wr_group *nowhere;
    struct weir_stream bad_name, no_memory, over_limit;
    struct weir_metric *bad_name_metric, *no_memory_metric, *over_limit_metric;
};

/* What is looked for. Names are checked by then, labels sorted. */
struct wr_group_key {
    const char *name;
    size_t length;
};

struct wr_stream_key {
    const struct wr_group *group;
    const weir_label *labels;
    size_t count;
};

struct wr_metric_key {
    const struct weir_stream *stream;
    const char *name;
    size_t length;
    uint16_t flags;
};

/* false without memory. */
bool wr_registry_init(struct wr_registry *registry);

/* A registry with nothing in it but what refuses: for when there is no memory even for the first. Static; never
 * NULL. */
struct wr_registry *wr_registry_nothing(void);

/* In a forked child: frees the lock, and turns all gates to COLD. */
void wr_registry_after_fork(struct wr_registry *registry);

/* [any thread] NULL: not there. */
struct wr_group *wr_registry_find_group(const struct wr_registry *registry, const struct wr_group_key *key);
struct weir_stream *wr_registry_find_stream(const struct wr_registry *registry,
                                            const struct wr_stream_key *key);
struct weir_metric *wr_registry_find_metric(const struct wr_registry *registry,
                                            const struct wr_metric_key *key);

/* [any thread] Enters and leaves the part in which things are made. */
void wr_registry_start_making(struct wr_registry *registry, sigset_t *signals);
void wr_registry_end_making(struct wr_registry *registry, const sigset_t *signals);

/* [making] Counts one more group, label set or series; false: settings.max_series is reached. */
bool wr_registry_count_one(struct wr_registry *registry);

/* [any thread] Whether it is reached. */
bool wr_registry_is_full(const struct wr_registry *registry);

/* [making] Each for something that is not there yet. NULL without memory. */
struct wr_group *wr_registry_add_group(struct wr_registry *registry, const struct wr_group_key *key);
struct weir_stream *wr_registry_add_stream(struct wr_registry *registry, const struct wr_stream_key *key);
struct weir_metric *wr_registry_add_metric(struct wr_registry *registry, const struct wr_metric_key *key);

/* [making] The stream without labels of a group, found or made; NULL without memory. */
struct weir_stream *wr_registry_plain_stream(struct wr_registry *registry, const struct wr_group *group);

/* [making] A copy that lives until the process ends; NULL without memory. */
const char *wr_registry_copy_text(struct wr_registry *registry, const char *text);

/* [making] Makes the series as handlers see it from now on; unit and help are kept, not copied. */
bool wr_registry_set_view(struct wr_registry *registry, struct weir_metric *metric, const char *unit,
                          const char *help);

/* [any thread] The series of an id that was seen in a record. */
static inline struct weir_metric *wr_registry_series(const struct wr_registry *registry, uint32_t id)
{
    unsigned chunk = 31u - (unsigned)__builtin_clz(id / WR_REGISTRY_FIRST_CHUNK + 1);
    uint32_t first = ((1u << chunk) - 1) * WR_REGISTRY_FIRST_CHUNK;
    /* acquire: pairs with the release in set_id, should the record have come faster than the chunk */
    struct weir_metric **metrics = atomic_load_explicit(&registry->chunks[chunk], memory_order_acquire);
    return metrics[id - first];
}

#endif
