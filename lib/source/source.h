/* source: a source: its type, its options, its thread, and what it has added.
 *
 * new -> start -> (thread: open, run, close) -> stop -> free. All but the thread's part is called by one thread
 * at a time: see sources.h. */
#ifndef WR_SOURCE_H
#define WR_SOURCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/source.h>
#include <weir/weir.h>

#include "config/config.h"
#include "dispatch/room.h"
#include "dispatch/selfmetrics.h"
#include "handler/connecting.h"
#include "handler/plugin.h"
#include "lane/backoff.h"
#include "os/lock.h"
#include "source/source_marks.h"
#include "source/source_names.h"
#include "source/source_senders.h"
#include "source/source_options.h"
#include "source/source_patterns.h"
#include "source/source_sets.h"
#include "text/region.h"

struct wr_runtime;

/* The core's own counters of a source. */
enum wr_source_count {
    WR_SOURCE_COUNT_WAITS,   /* it found no room, and waited */
    WR_SOURCE_COUNT_REPEATS, /* of sampled timers, beyond repeat_limit */
    WR_SOURCE_COUNT_ORIGINS, /* that were forgotten, as there are too many */
    WR_SOURCE_COUNT_MEMBERS, /* of sets */
    WR_SOURCE_COUNT_EXPIRED, /* series that ended by the option expiry */
    WR_SOURCE_CORE_COUNTERS
};

/* A type may make as many as weir_host.count promises, whatever the core counts. */
enum {
    WR_SOURCE_TYPE_COUNTERS = WR_LANE_COUNTERS,
    WR_SOURCE_COUNTERS = WR_SELFMETRICS_SOURCE_COUNTERS,
    WR_SOURCE_COUNTER_ROOM = 48
};
_Static_assert(WR_SOURCE_COUNTERS == WR_SOURCE_TYPE_COUNTERS + WR_SOURCE_CORE_COUNTERS, "room for all");

/* What refusals are logged about, once each. */
enum wr_source_fault {
    WR_SOURCE_FAULT_LINE,
    WR_SOURCE_FAULT_VALUE,
    WR_SOURCE_FAULT_LIMIT,
    WR_SOURCE_FAULT_ROOM, /* a source ended before there was room */
    WR_SOURCE_FAULT_WAIT, /* it waits for too many descriptors; concerns no values */
    WR_SOURCE_FAULTS
};

struct wr_source {
    weir_host host_table; /* what the plugin gets: first, for wr_source_from_host */
    struct wr_runtime *runtime;
    struct wr_type *type;
    struct wr_source_options options;
    void *own_options;
    struct wr_source_patterns patterns;
    struct wr_region keep; /* memory that options point to */
    char *identity;        /* all options as text: sources with equal texts are equal. Holds secrets. */
    void *self;            /* the plugin's instance; NULL: not created */

    /* [source] How a record is added: wr_source_host_add, unless `weir vet` takes what a source adds */
    int (*add)(struct wr_source *source, const weir_record *record);

    /* during create */
    struct wr_error *refusal;
    const struct wr_node *node;
    const char *breach; /* what create changed of its thread, which was reverted; NULL: nothing */

    /* the thread */
    pthread_t thread;
    _Atomic bool is_started;  /* its thread has to be joined; read by those who wait for its end */
    struct wr_wake_pair wake; /* for a stop and for room */
    struct wr_room_waiter room;
    bool is_full; /* [source] something found no room since the last wait */
    struct wr_backoff backoff;
    struct wr_connecting connecting;
    _Atomic bool stopping;
    _Atomic bool reload_wanted;       /* the next wait reports it */
    _Atomic bool hurried;             /* the next attempt is made at once */
    bool has_missed_reload;           /* [source] it was reported to the connection that is being made */
    bool is_backing_off;              /* [source] */
    _Atomic uint32_t state;           /* enum weir_source_state */
    enum weir_source_state end_state; /* [source] what state becomes when it is closed */
    void (*on_end)(void *ctx);
    void *ctx;

    /* [source] */
    const weir_text_options *scope; /* what holds for the text that is being parsed; NULL: none */
    char *fault;                    /* gets the first fault, if it is ""; NULL: nobody asks. WR_ERROR_ROOM */
    struct wr_source_names names;
    int64_t expiry_due_ns; /* monotonic, of the next period; 0: none has begun */
    struct wr_source_marks marks;
    struct wr_source_senders senders;
    struct wr_source_sets sets;
    struct wr_buffer group;       /* of the present record, with its prefix */
    weir_label *labels;           /* the same, merged */
    weir_typed_value *values;     /* the same, scaled */
    struct weir_metric **metrics; /* the series of its values */
    uint32_t label_room, value_room, metric_room;
    uint64_t repeats;  /* marks of blocks that were sent again; each is above all before it */
    bool is_resolving; /* a series is resolved, and no value is added: a refusal counts none */
    bool logged[WR_SOURCE_FAULTS];

    /* [source] failures */
    bool is_failing;
    int64_t failing_since_ns, reminder_ns; /* monotonic; no further message before the second */
    int64_t works_at_ns;                   /* while failing: from when on it works, unless it fails before */
    struct wr_lock error_lock;             /* for the next two */
    char last_error[256];                  /* why it failed last; "": it never has */
    int64_t last_error_ns;                 /* when that was */

    /* counted by [source], read by any thread */
    _Atomic uint64_t lines, bad_lines, bytes, records, added, refused;
    struct wr_lock counters_lock; /* for the names; a count is atomic */
    struct {
        char name[WR_SOURCE_COUNTER_ROOM];
        _Atomic uint64_t value;
    } counters[WR_SOURCE_COUNTERS];
    _Atomic uint32_t counter_count;
    uint32_t type_counters, core_counters; /* how many of them each has made; with counters_lock */

    struct wr_source *next;
    struct wr_source *_Atomic next_started; /* see sources.c */
    bool is_left;                           /* it did not stop in time; with `changing` there */
};

/* The source whose host a plugin passes back. */
static inline struct wr_source *wr_source_from_host(const weir_host *host)
{
    return (struct wr_source *)host; /* host_table is its first member */
}

/* Fills its options and creates the plugin's instance. unknown: gets its unknown keys, if the configuration
 * ignores these; may be NULL. Returns NULL with the error set. */
struct wr_source *wr_source_new(struct wr_runtime *runtime, struct wr_type *type,
                                const struct wr_config *config, const struct wr_config_handler *given,
                                struct wr_unknown_keys *unknown, struct wr_error *error);

/* The same in two steps. The first fills the options; the second, with the node that `given` had, creates the
 * instance: it returns false with the error set, and then the source must be freed. */
struct wr_source *wr_source_prepare(struct wr_runtime *runtime, struct wr_type *type,
                                    const struct wr_config *config, const struct wr_config_handler *given,
                                    struct wr_unknown_keys *unknown, struct wr_error *error);
bool wr_source_create(struct wr_source *source, const struct wr_node *node, struct wr_error *error);

/* Starts its thread. on_end: called by the thread when it ends. Returns false with the error set. */
bool wr_source_start(struct wr_source *source, void (*on_end)(void *ctx), void *ctx, struct wr_error *error);

/* Requests that it stops. */
void wr_source_request_stop(struct wr_source *source);

/* The program reloads: the next wait reports it, and a source that waits for its next attempt makes it now. */
void wr_source_request_reload(struct wr_source *source);

/* A source that runs works again once it adds something, or after this time. Its back-off ends later, with
 * retry_max: one that fails soon after each opening is tried, and logged, less and less often. */
#define WR_SOURCE_WORKS_AFTER_NS WR_NS_PER_S

/* [source] It works: ends its failure, if there is one, which is logged. */
void wr_source_works(struct wr_source *source);

/* Waits until its thread has ended. Returns false after deadline_ns: then the source must not be freed. */
bool wr_source_join(struct wr_source *source, int64_t deadline_ns);

/* [fork] Closes its descriptors. */
void wr_source_abandon(const struct wr_source *source);

/* Of a source without a thread: frees the plugin's instance. What the source has counted stays. */
void wr_source_destroy(struct wr_source *source);

/* The same, and frees the source. May be NULL. */
void wr_source_free(struct wr_source *source);

void wr_source_read_stats(struct wr_source *source, weir_source_stats *stats);

/* The same, and what the plugin has counted. */
void wr_source_read_counts(struct wr_source *source, struct wr_selfmetrics_source *counts);

/* The same for the status of the process. */
void wr_source_read_status(struct wr_source *source, struct wr_status_source *status);

#endif
