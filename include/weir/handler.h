/* weir - the contract for handler types: everything that a plugin needs. It links to nothing.
 *
 * A plugin is a shared object NAME.so, in weir's plugin folder or wherever a configuration points to, that
 * exports one symbol:
 *
 *     const weir_handler_type *weir_handler_type_at(uint32_t index);
 *
 * It returns the plugin's handler types for the indexes 0, 1, 2 and so on, then NULL. The core owns queue,
 * threads, batching, retries, backpressure and counters. A handler type implements how to create, open, emit,
 * flush, close and destroy.
 *
 * Life of a handler (an instance of a type, with its options):
 *
 *     create --> [open --> (emit | flush | wake)* --> close]* --> destroy
 *
 * Threads: [configuring] is any thread that configures weir. [worker] is the handler's own thread: it alone
 * calls open, emit, flush, wake and close, never two at a time. Write plain sequential code and block if you
 * must: it delays this handler only. The worker has all signals blocked, and at least 1 MiB of stack for the
 * handler. [check] is a thread of `weir check --open`, where the handler has no worker: it calls probe, or open
 * and close. [caller] is the thread of a synchronous call, in place of the worker: see emit_now. [fork] is a
 * child process, before fork() returns in it.
 *
 * Growth: every struct that may grow begins with its size, and fields are only appended. A field that lies
 * beyond the size of the other side's struct is read as zero: see WEIR_HAS in <weir/types.h>. What cannot grow
 * that way is added as a service with a revision. See doc/abi.md.
 */
#ifndef WEIR_HANDLER_H
#define WEIR_HANDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/host.h>
#include <weir/options.h>
#include <weir/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Samples and batches --------------------------------------------------------------------- */

/* Bits of weir_handler_type.kinds. */
enum {
    WEIR_KINDS_DOUBLE = 1u << WEIR_KIND_DOUBLE,   /* the type takes samples of WEIR_KIND_DOUBLE */
    WEIR_KINDS_INT = 1u << WEIR_KIND_INT,         /* the type takes samples of WEIR_KIND_INT */
    WEIR_KINDS_SUMMARY = 1u << WEIR_KIND_SUMMARY, /* the type takes summaries, see WEIR_SERVICE_SUMMARIES */
};

/* Bits of weir_sample.flags. Other bits are reserved for the core: ignore them. */
enum {
    WEIR_SAMPLE_MORE = 1u << 0,       /* the next sample belongs to the same event */
    WEIR_SAMPLE_CUMULATIVE = 1u << 1, /* the value is a running total */
    WEIR_SAMPLE_ENDED = 1u << 2, /* the series was removed: this is its last sample, unless it begins anew */
};

/* One value at one time: 32 bytes. series and note are resolved by the batch that contains the sample. This
 * struct never changes. */
typedef struct weir_sample {
    uint32_t series; /* see weir_batch_series */
    uint16_t kind;   /* WEIR_KIND_*: which member of value is set */
    uint16_t flags;  /* WEIR_SAMPLE_* */
    int64_t time_ns; /* nanoseconds since 1970-01-01 UTC */
    union {
        double f64;
        int64_t i64;
    } value;           /* the member that kind names; a double may be NaN or infinite */
    uint32_t note;     /* 0: no metadata; else batch->notes[note] */
    uint32_t reserved; /* for the core */
} weir_sample;

/* The identity of samples. Owned by the core; constant, and valid as long as the batch that it was obtained
 * from. The id of a series that has ended may later stand for another series, which has another serial. So what
 * is kept by id goes with the serial, or is forgotten when weir_batch.definitions is another than before; for
 * pointers see WEIR_SERVICE_SERIES. */
typedef struct weir_series {
    size_t size;              /* sizeof(weir_series) of the core */
    uint32_t id;              /* the number in weir_sample.series; dense; may be used again */
    uint64_t serial;          /* of no other series of the process, from 1 on */
    const char *group;        /* never NULL */
    const char *name;         /* never NULL */
    const weir_label *labels; /* sorted by key */
    size_t label_count;       /* number of labels */
    const char *unit;         /* NULL: not known */
    const char *help;         /* NULL: not known */
    int32_t instrument;       /* enum weir_instrument: what its values mean */
    const double *buckets;    /* of a histogram: upper bounds, rising; NULL: none declared */
    size_t bucket_count;      /* number of buckets */
    bool cumulative;          /* its values are running totals */
    bool foreign;             /* its values came from elsewhere, through a source: settings.labels do not apply
                                 to it; see weir_batch_labels */
} weir_series;

/* Samples to deliver, in the order in which they were added. Owned by the core; constant; valid until the call
 * that got it returns. Events are never split between batches. */
typedef struct weir_batch {
    size_t size;                /* sizeof(weir_batch) of the core */
    uint32_t count;             /* number of samples */
    const weir_sample *samples; /* the samples */
    const char *const *notes;   /* metadata, by weir_sample.note; any valid UTF-8. NULL: no sample has any */

    /* (origin, sequence) identifies a sample: it is the same each time the sample is delivered, also after a
     * retry and by another process that found it in a spool or journal, and no other sample has it.
     * samples[i] has the number sequence + i. Numbers that are missing within an origin belong to samples that
     * were dropped. */
    uint64_t sequence;  /* the first sample's number within its origin, from 0 */
    const char *origin; /* of all samples here: 32 lowercase hex digits, 128 random bits for each process and
                           handler; a forked child has its own. Never NULL. Valid during the call */

    const weir_label *labels; /* settings.labels: they apply to all samples, but those of foreign series */
    size_t label_count;       /* number of labels */
    /* those of `labels` that apply to samples of foreign series too: "instance", if they come from summaries,
       because these were made here */
    const weir_label *foreign_labels;
    size_t foreign_label_count; /* number of them */

    /* another number than that of an earlier batch: since then a series may have another unit, help, instrument
     * or buckets, or an id may stand for another series */
    uint64_t definitions;

    /* for weir_batch_series */
    const weir_series *(*series)(const struct weir_batch *batch, uint32_t id);
    const void *core; /* for the core */
} weir_batch;

/* Returns the series of one of the batch's samples. Never NULL. */
static inline const weir_series *weir_batch_series(const weir_batch *batch, const weir_sample *sample)
{
    return batch->series(batch, sample->series);
}

/* Returns the batch's labels that apply to a series of it, sorted by key, and sets *count. The series' own
 * labels take precedence over those with the same key. Valid as long as the batch. */
static inline const weir_label *weir_batch_labels(const weir_batch *batch, const weir_series *series,
                                                  size_t *count)
{
    *count = series->foreign ? batch->foreign_label_count : batch->label_count;
    return series->foreign ? batch->foreign_labels : batch->labels;
}

/* ---- Services for handlers ------------------------------------------------------------------- */

/* Service "encoder/1", a weir_encoder: the handler's configured format. NULL for a type without formats. */
#define WEIR_SERVICE_ENCODER "encoder/1"

/* What a format makes. Bits of weir_handler_type.formats. */
enum {
    WEIR_FORMAT_LINES = 1u << 0,     /* a line for each sample or event, ending in a newline */
    WEIR_FORMAT_DOCUMENTS = 1u << 1, /* one text for a whole batch */
    WEIR_FORMAT_RECORDS = 1u << 2,   /* a text for each sample, to be sent by itself */
};

/* Encoded samples. Filled by encode in the caller's memory; the data is owned by the core and valid until the
 * next call of encode for the same handler. This struct never changes. */
typedef struct weir_encoded {
    uint32_t count;   /* how many samples are in it; whole events, except for WEIR_FORMAT_RECORDS */
    const char *data; /* does not end in NUL */
    size_t length;    /* of data, in bytes */
} weir_encoded;

/* Encodes samples; see WEIR_SERVICE_ENCODER. */
typedef struct weir_encoder {
    size_t size; /* sizeof(weir_encoder) of the core */

    /* [worker, caller] Encodes samples of the batch from index start on, event by event, until at least limit
     * bytes are there or the batch ends; at least one event. A format of documents encodes the whole rest,
     * whatever the limit: for less, pass a copy of the batch with a smaller count that ends with an event. A
     * format of records encodes one sample. Samples that the format cannot represent are left out, and the core
     * counts them; if nothing else is left, length is 0 and there is nothing to send. Returns false if out of
     * memory.
     */
    bool (*encode)(const weir_host *host, const weir_batch *batch, uint32_t start, size_t limit,
                   weir_encoded *encoded);

    /* [worker, caller] Returns how many samples lie completely within the first length bytes of the last
     * encoded data: what a short write has settled, in whole events. Sets *end to the offset in bytes where
     * they end. */
    uint32_t (*settled)(const weir_host *host, size_t length, size_t *end);

    /* Returns the format's name, like "json", for handlers whose destination responds in a way of the format.
     * Valid until the process ends. */
    const char *(*name)(const weir_host *host);

    /* Returns the format's media type, like "application/json". Valid until the process ends. */
    const char *(*content_type)(const weir_host *host);

    /* Returns what the format makes: one of WEIR_FORMAT_*. */
    uint32_t (*format)(const weir_host *host);

    /* Returns what each file or request has to begin with, such as csv's line of names; it is not part of
     * the encoded data. "": nothing. Valid as long as the handler. */
    const char *(*header)(const weir_host *host);

    /* [configuring] In create: no line should be longer than limit bytes, newline included; 0, the default: any
     * length. A format of lines then writes an event that needs a longer line as several lines, each with a
     * part of the event's samples. A line of a single sample may still be longer. */
    void (*limit_lines)(const weir_host *host, size_t limit);
} weir_encoder;

/* Service "color/1", a weir_color: for handlers that show values to people. NULL for a type without formats. */
#define WEIR_SERVICE_COLOR "color/1"

/* Colors in encoded text; see WEIR_SERVICE_COLOR. */
typedef struct weir_color {
    size_t size; /* sizeof(weir_color) of the core */

    /* [configuring] In create: whether a format that knows colors may use them. Default: false. */
    void (*set)(const weir_host *host, bool color);
} weir_color;

/* Service "try_timeout/1", a weir_try_timeout: for handlers whose attempts take long by design. */
#define WEIR_SERVICE_TRY_TIMEOUT "try_timeout/1"

/* How long an attempt may take; see WEIR_SERVICE_TRY_TIMEOUT. */
typedef struct weir_try_timeout {
    size_t size; /* sizeof(weir_try_timeout) of the core */

    /* [configuring] In create: for how many milliseconds open or emit may block before it returns, because the
     * handler's options say so. Calls with delivery "sync" wait that much longer than block_timeout. Default:
     * 0; at most a day. */
    void (*set)(const weir_host *host, int64_t timeout_ms);
} weir_try_timeout;

/* Service "summaries/1", a weir_summaries: what is in a sample of WEIR_KIND_SUMMARY. Handlers with the option
 * "aggregate" get these, if their type has WEIR_KINDS_SUMMARY, and else their parts as plain samples. */
#define WEIR_SERVICE_SUMMARIES "summaries/1"

/* What is known of a series' values in one interval, which ends at the sample's time. */
typedef struct weir_summary {
    size_t size;          /* sizeof(weir_summary) of the core, at most what the caller has set */
    int32_t instrument;   /* enum weir_instrument: as what the values were summed up */
    int64_t start_ns;     /* the interval's begin: nanoseconds since 1970-01-01 UTC */
    int64_t since_ns;     /* since when the totals are counted */
    uint64_t count;       /* of the interval */
    double sum;           /* of the interval; 0 for gauges */
    double min;           /* of the interval; 0 for counters and gauges, and with a count of 0 */
    double max;           /* the same */
    double last;          /* of a gauge, its level; of others, one of the interval's values */
    uint64_t total_count; /* since since_ns */
    double total_sum;     /* since since_ns: of a counter, its running total; 0 for gauges */

    /* of a histogram: its buckets, the last of which has no bound. Each counts its own values alone. Valid
     * until the next call of read for the same handler */
    size_t bucket_count;           /* number of buckets; 0: there are none */
    const double *bounds;          /* bucket_count - 1 upper bounds, rising, in the bucket themselves */
    const uint64_t *buckets;       /* of the interval */
    const uint64_t *total_buckets; /* since since_ns */
} weir_summary;

/* Reading summaries; see WEIR_SERVICE_SUMMARIES. */
typedef struct weir_summaries {
    size_t size; /* sizeof(weir_summaries) of the core */

    /* [worker] Reads a sample of WEIR_KIND_SUMMARY of the batch. summary->size must be set. Returns false if it
     * is not one, or if out of memory. */
    bool (*read)(const weir_host *host, const weir_batch *batch, const weir_sample *sample,
                 weir_summary *summary);

    /* [worker] Returns the quantile, 0..1, of the values of the interval that was read last: the smallest value
     * that at least this share of them do not exceed, or, of more than 256 distinct values, one within 1 % of
     * it. For a histogram, if the handler's option "percentiles" is an empty list: the upper bound of the
     * bucket that this value is in, or the largest value. NaN: there were none, or the instrument has none. */
    double (*quantile)(const weir_host *host, double q);

    /* [worker, inside emit] For a type that gets the parts of summaries: since when the totals are counted of
     * the summary that this sample of the batch is a part of, in nanoseconds since 1970-01-01 UTC. A total that
     * begins at 0 again, since its series had ended, has a later one. 0: the sample is no such part. */
    int64_t (*since)(const weir_host *host, const weir_sample *part);
} weir_summaries;

/* Service "ledger/1", a weir_ledger: what became of the handler's values, for handlers that report it onwards.
 */
#define WEIR_SERVICE_LEDGER "ledger/1"

struct weir_handler_stats;

/* Reading the handler's own ledger; see WEIR_SERVICE_LEDGER. */
typedef struct weir_ledger {
    size_t size; /* sizeof(weir_ledger) of the core */

    /* [worker] Fills the first size bytes of *stats as weir_get_handler_stats of <weir/weir.h> does; what the
     * running call settles is still counted as queued. Returns false, with nothing changed, if the handler is
     * not in use yet. */
    bool (*get)(const weir_host *host, struct weir_handler_stats *stats, size_t size);

    /* [worker, inside emit] How many values of the ledger each of these samples of the batch is. Returns false,
     * with nothing set, if each is one. Otherwise summaries are among them, or their parts: a summary is of any
     * number of values; of its parts the last one is of all of them and the others of none. */
    bool (*values)(const weir_host *host, const weir_sample *samples, uint32_t count, uint64_t *values);
} weir_ledger;

/* Service "ahead/1", a weir_ahead: what the handler is going to get next, for types that wait for replies. They
 * send it before all replies to the present batch are there, and when it is offered, wait only for the rest. */
#define WEIR_SERVICE_AHEAD "ahead/1"

/* Looking at what is queued; see WEIR_SERVICE_AHEAD. */
typedef struct weir_ahead {
    size_t size; /* sizeof(weir_ahead) of the core */

    /* [worker, inside emit] Sets *next, of which the caller has set the size, to samples behind those of the
     * running emit or of the last call within it: whole events, at most as many as the option `batch`. Valid
     * until the next call or the end of emit. They stay queued, and nothing of them is settled by this call. A
     * later emit offers them, perhaps cut otherwise and after a restart by another process, always with the
     * same origin and sequence: the handler must know by these what it has sent. Returns false if there are
     * none for now: nothing is queued, or not in the order in which it is going to be offered (the queue drops
     * its oldest, or a spool has older ones), or it is of kinds that are offered otherwise, or a stop was
     * requested. */
    bool (*next)(const weir_host *host, weir_batch *next);
} weir_ahead;

/* Service "series/1", a weir_series_keeper: for types that keep pointers to series beyond a batch. */
#define WEIR_SERVICE_SERIES "series/1"

/* Keeping series; see WEIR_SERVICE_SERIES. */
typedef struct weir_series_keeper {
    size_t size; /* sizeof(weir_series_keeper) of the core */

    /* [worker, inside emit] The series of one of the batch's samples, and everything that it points to, stays
     * valid, and its id stays its own, until release was called as often. A later batch may have another
     * pointer for the id, if the series was described anew since: then both are of one series. */
    void (*keep)(const weir_host *host, const weir_series *series);

    /* [any thread] With the pointer that was passed to keep; to be called before destroy returns. */
    void (*release)(const weir_host *host, const weir_series *series);
} weir_series_keeper;

/* ---- Handler types --------------------------------------------------------------------------- */

/* Why wake is called. */
enum weir_wake {
    WEIR_WAKE_TIMER = 0,  /* the delay of host->wake_in is over */
    WEIR_WAKE_RELOAD = 1, /* the program called weir_reload: reopen files */
};

/* Bits of weir_handler_type.flags. Others are ignored. */
enum {
    /* Handlers of the type share nothing: neither its code nor the libraries that it calls have data or locks
     * for the whole process, except for malloc. If the program forks while a callback of one is running, the
     * child uses the type as usual. Without the flag all handlers of the type are unusable in that child: a
     * library such as libcurl or OpenSSL may have been interrupted with a lock held. Nor is there anything that
     * an exit handler could destroy: handlers of the type may be called while those of the program run. */
    WEIR_TYPE_SHARES_NOTHING = 1u << 0,

    /* A handler of the type is opened when weir starts or the handler is configured, without waiting for
     * something to deliver, and after a REOPEN as well: for a type that others connect to. */
    WEIR_TYPE_OPENS_EARLY = 1u << 1,

    /* The libraries that handlers of the type call register no exit handlers (atexit) once prepare and create
     * have returned, and the type uses nothing that an exit handler of the program destroys: its handlers may
     * be called while those of the program run, which can then add values. Without this flag and
     * WEIR_TYPE_SHARES_NOTHING, weir ends before all exit handlers. OpenSSL, if the plugin is linked with it,
     * registers none: it is initialized that way when the plugin is loaded. */
    WEIR_TYPE_WORKS_AT_EXIT = 1u << 2,
};

/* A handler type: its name, its options, and its callbacks. Constant and valid until the process ends.
 * Callbacks that are not marked as optional are required. */
typedef struct weir_handler_type {
    size_t size;    /* sizeof(weir_handler_type) */
    uint32_t abi;   /* WEIR_ABI */
    uint32_t flags; /* WEIR_TYPE_* */

    const char *name;    /* [a-z][a-z0-9_]*, at most 63 bytes */
    const char *summary; /* one line, for people */

    const weir_option *options;   /* its options, see <weir/options.h>; NULL: none */
    size_t option_row_size;       /* sizeof(weir_option) */
    size_t options_size;          /* sizeof the struct that the table fills */
    const weir_default *defaults; /* its defaults for common options; NULL: none */

    /* WEIR_KINDS_*: kinds of samples that it takes. 0: doubles and integers. An event with a sample of another
     * kind, also of a kind that a later core adds, is withheld and counted as dropped (unrepresentable). */
    uint32_t kinds;

    uint32_t formats; /* WEIR_FORMAT_*: what it can write. 0: it uses no encoder */

    /* [configuring] Optional. Initializes libraries that have state for the whole process (libcurl, OpenSSL).
     * Called before the first create of the type; once in a process: after it has returned true it is not
     * called again, nor in a forked child, which inherits what it did. No core lock is held, and no two calls
     * overlap. Must not start threads or leave descriptors open; may read files. host is valid during the call;
     * host->name is the type's name. Returns false after host->refuse(host, "", ...): the configuration is
     * refused, and the next one that needs the type calls it again. weir's exit handler is registered after it,
     * so it runs before exit handlers that the library registers here. */
    bool (*prepare)(const weir_host *host);

    /* [configuring] Creates a handler: checks what the table cannot, and allocates. No I/O, no threads.
     * options: the filled struct, owned by the core, valid until destroy has returned. Returns the instance, or
     * NULL after host->refuse: the configuration is refused. */
    void *(*create)(const weir_host *host, const void *options);

    /* [worker] Optional. Connects. Called when there is something to deliver; see WEIR_TYPE_OPENS_EARLY. */
    void (*open)(void *self, weir_outcome *outcome);

    /* [worker] Delivers a batch. */
    void (*emit)(void *self, const weir_batch *batch, weir_outcome *outcome);

    /* [worker] Optional, for a handler whose emit settles samples that it still buffers. Sends what is
     * buffered, within timeout_ms milliseconds (-1: no limit, 0: only checks). RETRY: not all of it yet. */
    void (*flush)(void *self, int64_t timeout_ms, weir_outcome *outcome);

    /* [worker] Optional. Disconnects. Called once after each open that returned OK; open or destroy follows. */
    void (*close)(void *self);

    /* [configuring or worker] Frees the instance. It is closed. */
    void (*destroy)(void *self);

    /* [worker] Optional. A timer or a reload, while open. why: enum weir_wake. */
    void (*wake)(void *self, int why, weir_outcome *outcome);

    /* [caller, while open] Optional. Delivers a batch as emit does, on the thread of the program whose call
     * waits for it (delivery "sync"), which saves the call two changes of threads. The core calls it instead of
     * emit only if the handler is idle and has delivered everything before; never at the same time as another
     * callback. The batch is one event, as a rule. All signals are blocked and cancellation is disabled.
     *
     * It may run in a signal handler of the program, and on a stack of 64 KiB. So it must not block, wait,
     * sleep, allocate or free memory, take a lock that a thread may hold while it is interrupted, or start a
     * thread, and it needs at most 8 KiB of stack, those of the core's services included. Of the host's
     * functions it may use log (logged later, by the worker), count, wake_in, stopping and the encoder, which
     * returns false where it would have to allocate: for the first sample of a series, and longer data than
     * before. SIGPIPE and SIGXFSZ that it raises on its own thread are discarded by the core.
     *
     * WEIR_OUTCOME_NOT_NOW where any of that is not possible, such as a write that might block: `done` samples
     * are settled, the worker calls emit with the rest at once, and the caller waits for it. A handler that
     * cannot ever do it, because of its options or its destination, returns it always. */
    void (*emit_now)(void *self, const weir_batch *batch, weir_outcome *outcome);

    /* [fork] Optional, for a handler with descriptors. Gives up the parent's connection: calls close(2) for the
     * instance's descriptors, fstat(2) to see that they still are its own, and nothing else, since other
     * threads may have held any lock. The instance is never used again in the child. */
    void (*abandon)(void *self);

    /* [check] Optional. Finds out, within timeout_ms milliseconds, whether the destination can be reached now.
     * Sends nothing, creates and empties nothing, leaves nothing open. OK: reachable; reason may hold a remark
     * ("it does not exist yet"). Any other code: not reachable, for that reason. NULL: open and close are
     * called instead, during which host->wait does not wait. */
    void (*probe)(void *self, int64_t timeout_ms, weir_outcome *outcome);
} weir_handler_type;

/* The entry point, defined by the plugin. Returns the type of that index, always the same pointer, or NULL if
 * there are no more. [configuring] */
WEIR_PLUGIN_EXPORT const weir_handler_type *weir_handler_type_at(uint32_t index);

#ifdef __cplusplus
}
#endif

#endif
