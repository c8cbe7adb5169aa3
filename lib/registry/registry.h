/* registry: the tables of groups, streams (a group with labels) and series (a name in a stream), each interned
 * once. Other folders use them through stream.h, series.h and family.h.
 *
 * Objects are never freed or moved, so producers may keep pointers to them. The stream of a label set that has
 * ended may be given to another label set: see reuse.h. Finding takes no lock. Creating
 * takes the registry lock with signals blocked, so that a signal handler that creates something does not find
 * the lock held by the thread that it interrupted. Each object is complete before the one store that publishes
 * it: in a child that was forked in between the object is missing, but the tables are consistent.
 *
 * [registry lock]: the caller is between wr_registry_lock and wr_registry_unlock. */
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
#include "os/slab.h"

/* States of a group's gate, which determine what its producers do. Set by the dispatcher's rounds; producers
 * sleep on it while it is WAIT. */
enum wr_gate {
    WR_GATE_COLD,    /* the route was not resolved yet, or not since a fork */
    WR_GATE_OFF,     /* no handler in the route */
    WR_GATE_OPEN,    /* add */
    WR_GATE_WAIT,    /* wait: a handler's queue is full */
    WR_GATE_SYNC,    /* add, and wait for the result */
    WR_GATE_REFUSE,  /* refuse: the group of streams whose name is not valid */
    WR_GATE_CHECKED, /* only in instrument_gate: check the value, then as OPEN */

    /* the same for groups whose handlers sum only: no value needs a time, so the call does not read the clock
     */
    WR_GATE_UNTIMED = 8,
    WR_GATE_OPEN_UNTIMED = WR_GATE_OPEN | WR_GATE_UNTIMED,
    WR_GATE_CHECKED_UNTIMED = WR_GATE_CHECKED | WR_GATE_UNTIMED,

    /* the same where a handler wants percentiles of histograms, so that their values are for the ring */
    WR_GATE_RANKED = 16,
    WR_GATE_OPEN_RANKED = WR_GATE_OPEN_UNTIMED | WR_GATE_RANKED,       /* only for wr_gate_set */
    WR_GATE_CHECKED_RANKED = WR_GATE_CHECKED_UNTIMED | WR_GATE_RANKED, /* only in histogram_gate */
};

struct wr_meaning;

/* What a gauge is in a process that several others hand its level over to. */
enum wr_merge {
    WR_MERGE_LAST, /* the level that came last */
    WR_MERGE_SUM,
    WR_MERGE_MAX,
};

/* A process' own streams, and foreign ones. */
enum { WR_STREAM_KINDS = 2 };

struct wr_group {
    struct wr_hash_entry entry;
    _Atomic uint32_t gate;            /* enum wr_gate */
    _Atomic uint32_t instrument_gate; /* for series with an instrument: CHECKED in place of OPEN */
    _Atomic uint32_t histogram_gate;  /* as instrument_gate: for histograms */
    _Atomic uint32_t waiters;         /* producers that may sleep on gate */
    _Atomic bool held;                /* what sources add waits, whatever the gate says */
    uint32_t length;
    uint32_t route;              /* of the router; this and the next field are protected by the round lock */
    struct wr_group *route_next; /* the next group of the same route */
    struct wr_group *next;       /* the group created before this one */
    _Atomic uint64_t unrouted; /* values without a handler, except those of runs in progress: see unrouted.h */
    /* used beyond settings.max_series, for new names and for new label sets; NULL: not needed yet */
    _Atomic(struct weir_metric *) overflow[WR_STREAM_KINDS]; /* by stream->is_foreign */
    _Atomic(struct weir_stream *) overflow_stream[WR_STREAM_KINDS];
    struct weir_stream *spare[WR_STREAM_KINDS]; /* [registry lock] those that programs ask for: see reuse.h */
    char name[];
};

struct weir_stream {
    struct wr_hash_entry entry;
    struct wr_group *group;
    int refusal;           /* the error that adding a value returns; 0: a valid stream */
    _Atomic bool overflow; /* replaces label sets beyond a limit; has the label weir_overflow="true" */
    bool is_foreign;       /* values come from elsewhere, through a source. Part of its identity: the labels of
                              the configuration, which these do not get, would make it another stream, too */
    uint32_t label_count;
    const weir_label *labels; /* sorted by key; in a struct wr_label_block */

    /* of one with labels: see reuse.h */
    _Atomic bool is_pinned;   /* a program has asked for it */
    _Atomic bool is_derived;  /* it ends with the stream that it was derived from, and not before; written under
                                 the  registry lock */
    _Atomic bool is_leaving;  /* it is being looked at whether it can be reused: who needs it has to say so */
    _Atomic uint32_t holders; /* sources that add to it, and handlers that keep pointers to its series */
    bool is_for_name;         /* it was made for one name, not for a program that asks for a stream */
    bool is_counted;          /* [registry lock] this and the following ones: in registry.count */
    uint8_t stage;            /* enum wr_stream_stage */
    uint32_t living;          /* series that calls add to and that have not ended */
    struct weir_metric *series; /* all that were ever made, the latest first, linked by wr_view.next */
    struct weir_stream *next;   /* in a list of those of the same stage */
};

enum wr_stream_stage {
    WR_STREAM_IN_USE,
    WR_STREAM_ENDED,    /* it has ended since it was looked at */
    WR_STREAM_UNLINKED, /* it is found no longer */
    WR_STREAM_SPARE,    /* it may be given to another label set */
};

/* The labels of a stream, and behind them their texts. */
struct wr_label_block {
    size_t bytes;
    struct weir_stream *derived;      /* made by wr_stream_derive from this one, linked by the next field */
    struct weir_stream *next_derived; /* if it was derived */
    weir_label labels[];
};

/* A stream that refuses because of its name or labels, and why. */
struct wr_refused_stream {
    struct weir_stream stream;
    char *reason; /* never freed */
};

struct weir_metric {
    struct wr_hash_entry entry;
    /* that of the group's gates which the instrument has; atomic, since a declaration changes it */
    _Atomic(_Atomic uint32_t *) gate;
    struct weir_stream *stream;
    union {
        struct {
            uint32_t series; /* the id; ids are dense, from 0 */
            uint16_t kind;   /* 0 */
            uint16_t flags;  /* WEIR_SAMPLE_CUMULATIVE or 0; and WR_METRIC_PART */
        };
        uint64_t head; /* all of it: the first word of a sample, but for its kind and further flags */
    };
    _Atomic(const weir_series *) view; /* in a struct wr_view; replaced when the meaning changes */
    uint8_t length;                    /* of the name */
    _Atomic uint8_t instrument;        /* by which calls are checked: enum weir_instrument, or
                                          WR_INSTRUMENT_REFUSES */
    bool is_derived;       /* [dispatcher's round] made for what an object in a route makes of another series */
    _Atomic bool is_ended; /* [registry lock] for writing: see wr_series_end */
    _Atomic uint16_t ends; /* the same: how often it has ended */
    _Atomic uint8_t known; /* a set of enum wr_metric_known */
    char name[];
};

/* Where a series is known from. A series of other processes only is not shown without a value: the total that
 * it has in this one is no total of theirs. */
enum wr_metric_known {
    WR_KNOWN_FROM_DISK = 1, /* it was made for what another process has left in a spool or journal */
    WR_KNOWN_HERE = 2,      /* this process has asked for its handle, or has a value of it */
};

/* A bit of weir_metric.flags: made by wr_series_derive. No call finds it, and none adds to it. */
enum { WR_METRIC_PART = 1u << 14 };

/* Another one, beside it: it keeps the meaning that it was derived with, whatever its name means by itself. */
enum { WR_METRIC_KEEPS_MEANING = 1u << 13 };

/* weir_metric.instrument of the series that refuses all values. */
enum { WR_INSTRUMENT_REFUSES = 255 };

/* What handlers get of a series, and what goes with it. */
struct wr_view {
    weir_series series;
    _Atomic uint64_t *level; /* of a gauge: the bits of its level, a double, or WR_LEVEL_UNKNOWN; else NULL */
    struct weir_stream *stream;
    struct weir_metric *next; /* [registry lock] of the same stream; NULL: it was the first */
    enum wr_merge merge;      /* of a gauge */
};

/* A NaN that no computation yields. */
#define WR_LEVEL_UNKNOWN UINT64_C(0x7ff8776569720000)

/* See reuse.h. [registry lock] but for what is atomic. */
struct wr_reuse {
    struct wr_slab blocks;                          /* of labels */
    struct weir_stream *ended, *leaving, *unlinked; /* linked by next */
    _Atomic uint32_t ended_count;                   /* of the first list */
    _Atomic uint64_t removals; /* from the table of streams: begun and ended, so odd while one is in progress */
    _Atomic uint64_t releases; /* how often ids were made free for other series */
    _Atomic uint32_t readers;  /* calls that look for streams, of threads without a producer of their own */
};

enum { WR_REGISTRY_CHUNKS = 16, WR_REGISTRY_FIRST_CHUNK = 1024 };
/* How many streams with bad names are kept apart. */
enum { WR_REGISTRY_REFUSED = 64 };
enum { WR_REGISTRY_DEFAULT_MAX = 100000, WR_REGISTRY_LARGEST_MAX = 30000000 };

struct wr_registry {
    struct wr_lock lock; /* for creating */
    uint64_t seed;
    struct wr_arena arena;
    struct wr_arena views; /* separate: calls do not read them, and series are closer together without them */
    struct wr_hash_table groups, streams, metrics, families, profs;
    const struct wr_metric_rules *rules;   /* [registry lock] of the configuration; NULL: none */
    _Atomic(struct wr_group *) last_group; /* list of all groups, latest first */
    _Atomic uint32_t count;                /* groups, label sets and series */
    _Atomic uint32_t max;                  /* settings.max_series */
    _Atomic uint32_t series;               /* number of ids in use */
    uint64_t serials;                      /* [registry lock] given so far */
    uint64_t inherited;                    /* series with serials up to this are of the parent process, too */
    _Atomic uint64_t redefinitions;        /* how often a series that existed got another meaning */
    _Atomic bool merges;                   /* a series has, or had, another merge than WR_MERGE_LAST */
    _Atomic uint64_t met;                  /* how many series of other processes have become known here too */
    /* id -> metric; chunk n holds WR_REGISTRY_FIRST_CHUNK << n of them */
    _Atomic(struct weir_metric **) chunks[WR_REGISTRY_CHUNKS];
    struct wr_reuse reuse;
    /* [registry lock] called with each series that is created, described or given to another label set, before
     * its id is used; may be NULL */
    void (*on_series)(void *ctx, const struct weir_metric *metric);
    void *on_series_ctx;
    _Atomic(struct wr_group *) first_overflow; /* the group that reached settings.max_series first */
    _Atomic(struct wr_family *) first_full;    /* the name that reached its limit of label sets first */
    _Atomic bool apart_logged; /* that the parts of a name are called otherwise: see wr_family_put_stem */
    /* returned for names that are not valid and the like; their group is refusing_group */
    struct wr_group *refusing_group;
    struct weir_stream bad_name, no_memory, over_limit, conflict;
    /* the first ones with bad names; later ones are bad_name, without a reason: what strangers send as names
     * must not fill memory. [registry lock]; entries before refused_count do not change */
    struct wr_refused_stream refused[WR_REGISTRY_REFUSED];
    _Atomic uint32_t refused_count;
    struct weir_metric *bad_name_metric, *no_memory_metric, *over_limit_metric, *conflict_metric;
};

/* Keys of the tables. Names are validated, labels sorted. */
struct wr_group_key {
    const char *name;
    size_t length;
};

struct wr_stream_key {
    const struct wr_group *group;
    const weir_label *labels;
    size_t count;
    bool is_foreign;  /* of values that come from elsewhere: settings.labels do not apply to them */
    const char *name; /* of a series that it is for, so that it may be reused; NULL: it stays for ever */
};

struct wr_metric_key {
    const struct weir_stream *stream;
    const char *name;
    size_t length;
    uint16_t flags;
};

/* Returns false if out of memory. */
bool wr_registry_init(struct wr_registry *registry);

/* Returns a registry of which only the refusing objects may be used, for when there is no memory for a real
 * one. Static; never NULL. */
struct wr_registry *wr_registry_refusing(void);

/* In a forked child: resets the lock, and sets all gates to COLD. */
void wr_registry_after_fork(struct wr_registry *registry);

/* [any thread] Return NULL if there is none. A stream may be one that is leaving: see reuse.h. */
struct wr_group *wr_registry_find_group(const struct wr_registry *registry, const struct wr_group_key *key);
struct weir_stream *wr_registry_find_stream(struct wr_registry *registry, const struct wr_stream_key *key);
struct weir_metric *wr_registry_find_metric(const struct wr_registry *registry,
                                            const struct wr_metric_key *key);

/* [any thread] Blocks all signals and takes the lock; releases it and restores the signal mask. */
void wr_registry_lock(struct wr_registry *registry, sigset_t *signals);
void wr_registry_unlock(struct wr_registry *registry, const sigset_t *signals);

/* [registry lock] Counts one more group or series. Returns false if settings.max_series is reached. */
bool wr_registry_count_one(struct wr_registry *registry);

/* [registry lock] Whether a series of the stream, and the stream if it does not count yet, have places. NULL:
 * of a new label set. */
bool wr_registry_has_places(const struct wr_registry *registry, const struct weir_stream *stream);

/* Notes that a group has had no room, for the message about it. */
void wr_registry_note_full(struct wr_registry *registry, struct wr_group *group);

/* [any thread] Whether settings.max_series is reached. */
bool wr_registry_is_full(const struct wr_registry *registry);

/* [registry lock] Create what does not exist yet. Return NULL if out of memory. */
struct wr_group *wr_registry_add_group(struct wr_registry *registry, const struct wr_group_key *key);
struct weir_stream *wr_registry_add_stream(struct wr_registry *registry, const struct wr_stream_key *key);
struct weir_metric *wr_registry_add_metric(struct wr_registry *registry, const struct wr_metric_key *key);

/* [registry lock] Finds or creates the stream without labels of a group. Returns NULL if out of memory. */
struct weir_stream *wr_registry_plain_stream(struct wr_registry *registry, const struct wr_group *group,
                                             bool is_foreign);

/* [registry lock] Finds or creates the stream of a group that replaces its label sets beyond a limit. Returns
 * NULL if out of memory. */
struct weir_stream *wr_registry_overflow_stream(struct wr_registry *registry, struct wr_group *group,
                                                bool is_foreign);

/* [registry lock] Returns a copy that is never freed. NULL if out of memory. */
const char *wr_registry_copy_text(struct wr_registry *registry, const char *text);

/* [registry lock] Gives a stream that is not in the table the labels of the key, and enters it. Returns false
 * if out of memory. */
bool wr_registry_enter_stream(struct wr_registry *registry, struct weir_stream *stream,
                              const struct wr_stream_key *key);

/* The block of a stream's labels. NULL: it has none. */
static inline struct wr_label_block *wr_registry_label_block(const struct weir_stream *stream)
{
    return stream->label_count
               ? (struct wr_label_block *)((char *)stream->labels - offsetof(struct wr_label_block, labels))
               : NULL;
}

/* [registry lock] Replaces what handlers get of a series, and how calls treat it: `enforced` is an enum
 * weir_instrument. The meaning is not copied. Returns false if out of memory. */
bool wr_registry_set_view(struct wr_registry *registry, struct weir_metric *metric,
                          const struct wr_meaning *meaning, int enforced);

/* [any thread] The series that replaces further names of a stream beyond settings.max_series; NULL: not needed
 * yet.
 */
static inline struct weir_metric *wr_registry_overflow_of(const struct weir_stream *stream)
{
    /* acquire: pairs with the release in wr_series_overflow */
    return atomic_load_explicit(&stream->group->overflow[stream->is_foreign], memory_order_acquire);
}

/* [any thread] Whether names or label sets beyond a limit share the series. */
static inline bool wr_registry_is_shared(const struct weir_metric *metric)
{
    return metric->stream->overflow || metric == wr_registry_overflow_of(metric->stream);
}

/* [any thread] Returns the series of an id in a record. */
static inline struct weir_metric *wr_registry_series(const struct wr_registry *registry, uint32_t id)
{
    unsigned chunk = 31u - (unsigned)__builtin_clz(id / WR_REGISTRY_FIRST_CHUNK + 1);
    uint32_t first = ((1u << chunk) - 1) * WR_REGISTRY_FIRST_CHUNK;
    /* acquire: pairs with the release in set_id; the record may become visible before the chunk does */
    struct weir_metric **metrics = atomic_load_explicit(&registry->chunks[chunk], memory_order_acquire);
    return metrics[id - first];
}

#endif
