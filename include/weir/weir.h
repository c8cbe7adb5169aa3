/* weir - grouped metric streams for C programs. The application's side.
 *
 *     weir_stream *stream = weir_get_stream("my_app");
 *     weir_add_value(stream, "calculate_latency", 12.375);
 *
 * A program adds values to streams; where they go is decided outside the program, by a configuration that
 * routes each group to handlers. With no configuration nothing is printed and nothing is written.
 *
 * Threads: every function here may be called from any thread at any time: before any configuration, after fork,
 * and after shutdown (values are then refused and counted). In a signal handler only weir_metric_try_add and
 * weir_metric_try_add_int are allowed. No function is a cancellation point (pthread_cancel).
 *
 * Failure: functions that return int return 0, or a negative enum weir_error; weir_last_error() then returns a
 * description. No function here exits, prints (except for log messages on stderr, see weir_set_log), or changes
 * signals, locale, umask or the working directory.
 *
 * Text: names are valid UTF-8, 1 to 255 bytes, without control characters. A group name has no empty part
 * between its dots and no '*'. All text passed in is copied, unless stated otherwise.
 *
 * Growth: a struct that may grow begins with its size; see WEIR_HAS in <weir/types.h>. Enumerators keep their
 * numbers, and new ones are appended.
 */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/types.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks the functions that the shared library exports. */
#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#else
#define WEIR_API
#endif

/* What a call returns. The numbers never change; new ones are appended. */
enum weir_error {
    WEIR_OK = 0,            /* success */
    WEIR_ERR_ARGUMENT = -1, /* an argument is NULL or out of range */
    WEIR_ERR_NAME = -2,     /* a group, name or label breaks the rules for text above */
    WEIR_ERR_CONFIG = -3,   /* a configuration is invalid; the present one stays in use */
    WEIR_ERR_PLUGIN = -4,   /* a handler type is not installed, or its plugin was refused */
    WEIR_ERR_MEMORY = -5,   /* out of memory */
    WEIR_ERR_LIMIT = -6,    /* settings.max_series is reached */
    WEIR_ERR_FULL = -7,     /* delivery "sync": the handler's queue was full, the value was dropped */
    WEIR_ERR_TIMEOUT = -8,  /* not done in time; what was added stays in the ledger and is delivered later */
    WEIR_ERR_DROPPED = -9,  /* values were dropped; the ledger shows how many and why */
    WEIR_ERR_SPOOLED = -10, /* values are stored on disk, but not delivered yet */
    WEIR_ERR_CLOSED = -11,  /* after weir_shutdown, or on a thread that is ending */
    WEIR_ERR_BUSY = -12,    /* the call interrupted another call of weir, or would have to wait and must not */
    WEIR_ERR_TOO_LARGE = -13, /* the samples and metadata of an event exceed a quarter of a thread's ring; or,
                                 with delivery "sync", more bytes than the destination takes: it was dropped */
    WEIR_ERR_FIFO_NOT_CREATED = -14, /* a named pipe was not created in time; otherwise like TIMEOUT */
};

typedef struct weir_stream weir_stream; /* a handle for adding values to one group; never freed */
typedef struct weir_metric weir_metric; /* a handle for one name of a stream; never freed */
struct weir_handler_type;               /* <weir/handler.h> */
struct weir_source_type;                /* <weir/source.h> */

/* One value of an event; see weir_emit. This struct never changes. */
typedef struct weir_value {
    const char *name; /* as for weir_add_value */
    double value;     /* any double, including NaN and infinities */
} weir_value;

/* One sample with all its attributes; see weir_add. Set size to sizeof(weir_sample_spec) and unused fields to
 * 0, so that the value is a double unless its kind says otherwise. */
typedef struct weir_sample_spec {
    size_t size;              /* sizeof(weir_sample_spec) */
    const char *name;         /* as for weir_add_value */
    int kind;                 /* WEIR_KIND_DOUBLE, which is 0, or WEIR_KIND_INT */
    double value;             /* the value of WEIR_KIND_DOUBLE; any double, including NaN and infinities */
    int64_t integer;          /* the value of WEIR_KIND_INT */
    const weir_label *labels; /* as for weir_add_value_labeled; NULL: only those of the stream */
    size_t label_count;       /* of labels */
    int64_t time_ns;          /* nanoseconds since 1970-01-01 UTC; 0: now */
    bool cumulative;          /* the value is a running total of its series, not a measurement of this moment */
    const char *metadata;     /* text for this sample, valid UTF-8 of at most 32736 bytes, or NULL */
} weir_sample_spec;

/* ---- Streams and values ---------------------------------------------------------------------- */

/* Returns the stream of a group: always the same pointer for the same group. It is valid until the process ends
 * and follows every later configuration. Never NULL: if the name is invalid or memory is exhausted, it is a
 * stream that refuses and counts every value. */
WEIR_API weir_stream *weir_get_stream(const char *group);

/* Returns the stream of a group with fixed labels: always the same pointer for the same group and labels,
 * whatever their order, until weir_stream_remove. At most 64 labels; keys are names and unique; values are
 * valid UTF-8 of at most 1023 bytes. Never NULL, like weir_get_stream. */
WEIR_API weir_stream *weir_get_stream_labeled(const char *group, const weir_label *labels, size_t count);

/* Ends all series of a stream with labels, as weir_metric_remove does, and gives its memory to label sets that
 * come later: for label sets whose subjects come and go. No thread may use the stream or a handle of it any
 * more, or is using one while it is called; who asks for the stream again gets one that begins anew. Returns as
 * weir_metric_remove; WEIR_ERR_ARGUMENT if the stream has no labels. */
WEIR_API int weir_stream_remove(weir_stream *stream);

/* Adds one value. Returns 0 once the value is in the ledger; otherwise it was refused and counted, which the
 * caller may ignore. The caller may reuse name's buffer. After the first use of a name a call takes no lock,
 * does not allocate, and makes no system call, except to wake the dispatcher after an idle period and to wait
 * where the configuration requires it (overflow "block", delivery "sync"). */
WEIR_API int weir_add_value(weir_stream *stream, const char *name, double value);
WEIR_API int weir_add_int(weir_stream *stream, const char *name, int64_t value);

/* Returns the handle of one name of a stream, for hot loops: adding by it needs no lookup. Valid until the
 * process ends. Never NULL: it refuses and counts where the stream would. */
WEIR_API weir_metric *weir_get_metric(weir_stream *stream, const char *name);

/* Adds one value by handle; otherwise like weir_add_value. */
WEIR_API int weir_metric_add(weir_metric *metric, double value);
WEIR_API int weir_metric_add_int(weir_metric *metric, int64_t value);

/* Ends the series of a handle, such as that of a queue that is gone: handlers that sum have it in
 * the summaries of the present interval for the last time, and a page to scrape does not show it any more; its
 * label set does not count against the limits of label sets. The handle stays valid (weir_stream_remove gives
 * the memory of label sets back), and the next value begins the series anew: a total at 0; the level of a gauge
 * is kept for weir_metric_change. Values that this thread has added before belong to the series that ends,
 * those that it adds later do not. Takes locks and allocates, but waits for no handler. Returns 0, also if the
 * series has no values; WEIR_ERR_LIMIT if it is shared by names or label sets beyond a limit, and stays; or
 * what adding to a handle that refuses would. WEIR_ERR_BUSY: on a handler's thread. */
WEIR_API int weir_metric_remove(weir_metric *metric);

/* Adds one value by handle, or refuses it: never waits, takes no lock, does not allocate, and starts nothing.
 * Safe in a signal handler, whatever it interrupts; leaves errno and weir_last_error as they are. Returns 0
 * once the value is in the ledger. WEIR_ERR_BUSY, counted: another function would have to wait here, or to
 * start something. That is so if the call interrupts another one on its thread that adds a value; while the
 * handler's queue or the thread's ring is full; with delivery "sync"; and until the thread, in this process,
 * has added a value by another function, and so has any thread to this group. A forked child is another
 * process. */
WEIR_API int weir_metric_try_add(weir_metric *metric, double value);
WEIR_API int weir_metric_try_add_int(weir_metric *metric, int64_t value);

/* Adds one value with labels of the call (route, status), in addition to those of the stream: at most 64 in
 * all; a key that the stream has too is refused. Otherwise like weir_add_value. Labels are looked up by their
 * text; a call is cheapest if they are sorted by key. */
WEIR_API int weir_add_value_labeled(weir_stream *stream, const char *name, double value,
                                    const weir_label *labels, size_t count);

/* Adds at most 1024 values as one event: they have one time, are never split, and are all refused if one of
 * them is. Returns as weir_add_value. */
WEIR_API int weir_emit(weir_stream *stream, const weir_value *values, size_t count);

/* The same for doubles and integers. */
WEIR_API int weir_emit_typed(weir_stream *stream, const weir_typed_value *values, size_t count);

/* Adds one sample, which may be an integer, have labels, a time and metadata of its own, and be a running
 * total, in any combination; see weir_sample_spec. Returns as weir_add_value, which is cheaper.
 * WEIR_ERR_ARGUMENT, counted too: an unknown kind, a size without the value, or a count without labels. */
WEIR_API int weir_add(weir_stream *stream, const weir_sample_spec *spec);

/* Sets the unit ("ms", "bytes") and the help text of a name of the stream's group, for formats that carry them,
 * whatever the labels. The last call takes precedence. unit: at most 63 bytes, help: at most 1023; both valid
 * UTF-8, either may be NULL. WEIR_ERR_LIMIT: it has been changed 16 times already, and stays as it is. */
WEIR_API int weir_describe(weir_stream *stream, const char *name, const char *unit, const char *help);

/* Returns whether the stream's group is routed to a handler at this moment. If not, costly measuring can be
 * skipped. */
WEIR_API bool weir_stream_enabled(weir_stream *stream);

/* ---- Instruments --------------------------------------------------------------------------------
 *
 * A name that is not declared is a WEIR_VALUE: a measurement of this moment. An instrument determines what the
 * values of a name mean, so that they can be summed up, and get the right type downstream (a counter in
 * Prometheus, "c" in StatsD). It belongs to a name in a group, for all label sets. The section "metrics" of a
 * configuration takes precedence over what the program declares.
 */

/* What a program declares of a name. Set size to sizeof(weir_metric_spec) and unused fields to 0. */
typedef struct weir_metric_spec {
    size_t size;           /* sizeof(weir_metric_spec) */
    int instrument;        /* enum weir_instrument */
    const char *unit;      /* as for weir_describe; NULL: as it was */
    const char *help;      /* as for weir_describe; NULL: as it was */
    const double *buckets; /* WEIR_HISTOGRAM: upper bounds, finite and rising; NULL: as they were */
    size_t bucket_count;   /* at most 200 */
} weir_metric_spec;

/* Declares what a name of the stream's group means. A repeated declaration does nothing. WEIR_ERR_ARGUMENT: the
 * program declared something else before, which stays. */
WEIR_API int weir_declare(weir_stream *stream, const char *name, const weir_metric_spec *spec);

/* Declare a name and return its handle: see weir_get_metric. weir_metric_add adds an increment to a counter,
 * sets the level of a gauge, and records a measurement in a histogram. buckets: as in weir_metric_spec. If the
 * name was declared as something else, the handle refuses all values with WEIR_ERR_ARGUMENT. */
WEIR_API weir_metric *weir_get_counter(weir_stream *stream, const char *name);
WEIR_API weir_metric *weir_get_gauge(weir_stream *stream, const char *name);
WEIR_API weir_metric *weir_get_histogram(weir_stream *stream, const char *name, const double *buckets,
                                         size_t bucket_count);

/* Moves the level of a gauge by a difference of either sign, and adds the new level. The level of each process
 * begins at 0; a forked child continues from its parent's. A difference that would make it infinite is refused
 * with WEIR_ERR_ARGUMENT. Otherwise like weir_metric_add. */
WEIR_API int weir_metric_change(weir_metric *gauge, double difference);

/* Adds an increment to a counter; declares it at its first use. Otherwise like weir_add_value. */
WEIR_API int weir_count(weir_stream *stream, const char *name, double increment);

/* ---- Configuration ------------------------------------------------------------------------------
 *
 * Configuring is a barrier: values added before it take the old routes. A configuration with any error changes
 * nothing. These calls may load plugins and take time; they never wait for a destination. If the environment
 * has a valid WEIR_CONFIG, or selects one of benchmarkai's modes by BENCHMARK_AI, that stays in use, and these
 * calls only validate.
 */

/* Reads the configuration of the environment (WEIR_CONFIG) and starts weir's threads now instead of with the
 * first value, so that a daemon learns of errors before it drops its privileges. Optional. Returns 0, also if
 * there is nothing to start; or the error of that configuration, which is not used then. */
WEIR_API int weir_start(void);

/* Routes a group ("*" or NULL: the default of all groups) to a handler of a type, in place of the group's
 * present route. options_json: the handler's object as in a configuration file, without "type"; NULL: defaults.
 * handler_type NULL removes the route. The handler is named after its type, or "TYPE:GROUP" if a handler of
 * that name with other options exists. */
WEIR_API int weir_configure(const char *group, const char *handler_type, const char *options_json);

/* Applies a whole configuration in place of the present one, from a file, or from text of length bytes. */
WEIR_API int weir_configure_file(const char *path);
WEIR_API int weir_configure_text(const char *json, size_t length);

/* Reads the present configuration again and lets handlers reopen their files. For a program's SIGHUP: call it
 * from the main loop, not from the signal handler. */
WEIR_API int weir_reload(void);

/* Register a handler or source type that is part of the program instead of a plugin. Type and context are
 * borrowed and must stay valid until the process ends. The type's handlers or sources find the context in
 * host->context. A registered type takes precedence over a plugin of the same name. WEIR_ERR_PLUGIN: the type
 * breaks the contract, or its name is registered already. */
WEIR_API int weir_register_handler_type(const struct weir_handler_type *type, void *context);
WEIR_API int weir_register_source_type(const struct weir_source_type *type, void *context);

/* ---- Delivery -------------------------------------------------------------------------------- */

/* Waits until every value added before the call is delivered, for at most timeout_ms milliseconds (-1: no
 * limit, 0: no waiting). Ends any back-off: handlers try again at once. Returns 0 if all were delivered.
 * WEIR_ERR_DROPPED: done, but values were dropped since the last flush. WEIR_ERR_SPOOLED: some are only stored
 * on disk. WEIR_ERR_TIMEOUT: not done in time, or a handler reported that waiting is of no use.
 * WEIR_ERR_FIFO_NOT_CREATED: a handler's named pipe was not created in time. */
WEIR_API int weir_flush(int64_t timeout_ms);

/* Delivers what it can within timeout_ms milliseconds (-1: no limit) and stops. Called by weir itself at exit,
 * with settings.shutdown_timeout. Exit handlers that were registered after weir was configured can still add
 * values, if all handlers have always been of types that work at exit (all of weir's own but nats) and nothing
 * of the program is called by weir (a log function, collectors, sources); otherwise weir ends before them. What
 * is added later is refused, counted and logged. What could not be delivered goes to disk if the handler has a
 * spool; otherwise it is dropped and counted. Both are logged by handler. A handler that is busy gets another
 * 250 ms to finish, and a disk that is in use up to 10 s. A call while another thread shuts down waits for that
 * thread and returns its result, or WEIR_ERR_TIMEOUT after timeout_ms; a later one does nothing and returns 0.
 * So does the exit of the program. Returns 0; WEIR_ERR_DROPPED if values were dropped since the last flush,
 * WEIR_ERR_SPOOLED if some are on disk, or WEIR_ERR_TIMEOUT if a thread that is stopped inside weir kept it
 * from counting the last values, which is waited for up to 10 s longer. */
WEIR_API int weir_shutdown(int64_t timeout_ms);

/* ---- Errors and messages --------------------------------------------------------------------- */

/* Returns a description of the calling thread's last failure: place, value, what is allowed. Never NULL; valid
 * until the thread's next failure. */
WEIR_API const char *weir_last_error(void);

/* Returns a description of an error number, of any number. Never NULL; static. */
WEIR_API const char *weir_strerror(int error);

/* Returns the version of the library that is running, like "1.2.3"; WEIR_VERSION is the one that the program
 * was compiled with. Static. */
WEIR_API const char *weir_version(void);

/* Sends weir's log messages to a function instead of stderr. level: enum weir_log_level, up to the one that the
 * environment's WEIR_LOG sets (default: warning). text: one line without a newline, valid during the call. The
 * function is called from any thread, including weir's own, and must not call weir. NULL: stderr again. */
WEIR_API void weir_set_log(void (*write)(void *ctx, int level, const char *text), void *ctx);

/* ---- The ledger ------------------------------------------------------------------------------ */

/* Why a call refused a value: the index in weir_stats.refused. */
enum weir_refusal {
    WEIR_REFUSED_NAME,      /* a group, name or label breaks the rules for text */
    WEIR_REFUSED_LIMIT,     /* settings.max_series is reached */
    WEIR_REFUSED_MEMORY,    /* no memory */
    WEIR_REFUSED_CLOSED,    /* after weir_shutdown */
    WEIR_REFUSED_BUSY,      /* the call interrupted another one, or would have to wait and must not */
    WEIR_REFUSED_TOO_LARGE, /* more than fits the ring, or its destination */
    WEIR_REFUSED_ARGUMENT,  /* an argument is NULL or out of range */
    WEIR_REFUSED_MAX = 16   /* the length of arrays; unused indexes are reserved */
};

/* Why a value of a handler was dropped: the index in weir_handler_stats.dropped. */
enum weir_drop {
    WEIR_DROPPED_FULL,            /* the queue was full */
    WEIR_DROPPED_REJECTED,        /* the destination refused it for good */
    WEIR_DROPPED_UNREPRESENTABLE, /* the format or the handler type cannot carry it */
    WEIR_DROPPED_FAILED,          /* the handler has failed permanently */
    WEIR_DROPPED_REMOVED,         /* a configuration removed the handler before it could deliver */
    WEIR_DROPPED_SHUTDOWN,        /* not delivered within the shutdown's timeout */
    WEIR_DROPPED_CORRUPT,         /* a record on disk was damaged */
    WEIR_DROPPED_NO_THREAD,       /* no thread could be started */
    WEIR_DROPPED_REENTRANT,       /* added by a handler's own code to a full queue */
    WEIR_DROPPED_FORK_UNSAFE, /* a handler of its type was busy when the process forked; no spool or journal */
    /* of more series than the handler's aggregate_series, or, in a spool of summaries, than max_series */
    WEIR_DROPPED_LIMIT,
    WEIR_DROPPED_FILTERED, /* left out by an object in the route: on purpose, and not reported as a loss */
    WEIR_DROPPED_MAX = 16  /* the length of arrays; unused indexes are reserved */
};

/* The process's side of the ledger, in values. At any time added = taken + in_rings. Values of the group "weir"
 * are not counted. */
typedef struct weir_stats {
    size_t size;                        /* number of bytes filled in */
    uint64_t added;                     /* values whose call returned 0 */
    uint64_t taken;                     /* of these: passed to the handlers of their route */
    uint64_t in_rings;                  /* of these: not passed to handlers yet */
    uint64_t unrouted;                  /* of those taken: without any handler */
    uint64_t refused[WEIR_REFUSED_MAX]; /* not in added: by enum weir_refusal */
    uint64_t threads;                   /* rings in use or ready for reuse */
    uint64_t series;                    /* groups, label sets and series, as settings.max_series counts them */
} weir_stats;

/* A handler's side of the ledger, in values; a value that goes to two handlers counts in both. At any time
 * offered + recovered = delivered + dropped[0] + ... + dropped[WEIR_DROPPED_MAX - 1] + queued + spooled +
 * summing. A summary counts as the values that are in it. */
typedef struct weir_handler_stats {
    size_t size;                        /* number of bytes filled in */
    uint64_t offered;                   /* routed to the handler */
    uint64_t recovered;                 /* from a spool or journal of an earlier process */
    uint64_t delivered;                 /* settled by the handler, and not rejected */
    uint64_t dropped[WEIR_DROPPED_MAX]; /* by enum weir_drop */
    uint64_t queued;                    /* in memory, including those being delivered at the moment */
    uint64_t spooled;                   /* on disk */
    uint64_t summing;                   /* with "aggregate": in the open interval */
    uint64_t queue_bytes;               /* memory used by those queued */
    int64_t queue_age_ms;               /* for how long the oldest has been queued */
    uint64_t spool_bytes;               /* disk space used by those spooled */
    uint64_t spool_limit;               /* the most that may be used; 0: the handler has no spool */
    uint64_t retries;                   /* attempts that the handler asked to repeat */
    uint64_t faults;                    /* calls in which the handler broke its contract */
    int32_t failing;                    /* 1 while attempts fail */
    int32_t open;                       /* 1 while the handler is open */
    char last_error[256];               /* why an attempt failed last, also when it works again; "": none has */
    int64_t last_error_ms;              /* how long ago that was; -1: never */
} weir_handler_stats;

/* Fills the first size bytes of *stats with an exact snapshot: the identities above hold in it, whatever other
 * threads do. Does not slow down threads that add values. Owned by the caller. */
WEIR_API int weir_get_stats(weir_stats *stats, size_t size);

/* The same for one handler. WEIR_ERR_ARGUMENT: there is no handler of that name. */
WEIR_API int weir_get_handler_stats(const char *handler, weir_handler_stats *stats, size_t size);

/* Returns the name of the handler with an index, or NULL if there are not that many. Valid until the process
 * ends.
 *
 * Indices count from 0 in the order in which handlers were first configured. An index keeps its handler, also
 * when other threads configure meanwhile, and a handler that was removed keeps its index and its counters. So
 * this lists all handlers, once each:
 *
 *     for (size_t i = 0; (name = weir_get_handler_name(i)); i++)
 *         weir_get_handler_stats(name, &stats, sizeof stats);
 *
 * A forked child has no handlers until its first routed value or weir_configure* call. */
WEIR_API const char *weir_get_handler_name(size_t index);

/* ---- Sources --------------------------------------------------------------------------------- */

/* The state of a source: weir_source_stats.state. */
enum weir_source_state {
    WEIR_SOURCE_STARTING = 0, /* it was not open yet */
    WEIR_SOURCE_RUNNING,      /* it reads */
    WEIR_SOURCE_WAITING,      /* it failed, and tries again later */
    WEIR_SOURCE_ENDED,        /* its input has ended */
    WEIR_SOURCE_BROKEN,       /* it failed for good, and said why in the log */
    WEIR_SOURCE_STOPPED,      /* it was stopped */
};

/* What a source has read. lines, bad_lines and bytes are of sources that read text. All values that were read
 * are either added, and so in the ledger of the process, or refused. */
typedef struct weir_source_stats {
    size_t size;           /* number of bytes filled in */
    char name[256];        /* in the configuration */
    char type[64];         /* its source type */
    int32_t state;         /* enum weir_source_state */
    uint64_t bytes;        /* bytes of text that were read, decompressed if need be */
    uint64_t lines;        /* lines that were read */
    uint64_t bad_lines;    /* lines that were not understood; the first one is quoted in the log */
    uint64_t records;      /* events that were added */
    uint64_t added;        /* values that were added */
    uint64_t refused;      /* values that were not, because of their names, labels or limits */
    char last_error[256];  /* why it failed last, also when it works again; "": it never has */
    int64_t last_error_ms; /* how long ago that was; -1: never */
} weir_source_stats;

/* Starts the sources of the configuration in force: threads that read values from elsewhere and add them. From
 * then on they follow the configuration. Without this call its section "sources" has no effect, so that several
 * programs can share a configuration. A forked child has no sources. Returns WEIR_ERR_CONFIG or
 * WEIR_ERR_PLUGIN, with no source started, if one of them cannot be made; one that cannot be opened tries again
 * later. */
WEIR_API int weir_start_sources(void);

/* Stops all sources; weir_shutdown does so too. Configurations start none until weir_start_sources is called
 * again. Values that were added are delivered as usual. timeout_ms: as for weir_flush. WEIR_ERR_TIMEOUT: a
 * source did not stop in time. Unless timeout_ms was 0, it is left behind then, which is logged, and no later
 * call waits for it. */
WEIR_API int weir_stop_sources(int64_t timeout_ms);

/* Waits until no source reads any more: each has ended, failed for good or was stopped. timeout_ms: as for
 * weir_flush. WEIR_ERR_TIMEOUT: some still do. */
WEIR_API int weir_wait_sources(int64_t timeout_ms);

/* Fills the first size bytes of *stats for one source of the configuration. WEIR_ERR_ARGUMENT: there is no
 * source of that name. */
WEIR_API int weir_get_source_stats(const char *source, weir_source_stats *stats, size_t size);

/* Returns the name of the source with an index, or NULL if there are not that many, or out of memory. Valid
 * until the process ends. Indices count from 0 in the order of the configuration, until that changes: unlike a
 * handler, a source that was removed has no index. */
WEIR_API const char *weir_get_source_name(size_t index);

/* ---- Collectors ------------------------------------------------------------------------------ */

/* A function of the program that weir calls at intervals. */
typedef struct weir_collector weir_collector;

/* Has `collect` called with the stream and the context every interval_ms milliseconds (1 to 86,400,000), for
 * figures that have to be asked for: it reads them and adds them, as any thread does. It is called on a thread
 * of weir's with all signals blocked, from weir_start or the first value on: at once, then shortly before each
 * multiple of the interval by the wall clock, which is where the intervals of handlers end. Collectors are
 * called one after the other, so that a slow one delays the others; what it misses by that is left out. One
 * that takes longer than its interval is logged. One that has not returned after its interval, but at least one
 * second and at most ten, is logged while it hangs, and the others are called at the same time from then on.
 * None is called any more once weir_shutdown has begun, which a collector cannot call itself (WEIR_ERR_BUSY):
 * it waits for a call that is just made, but for one that hangs and for more than half of its time, which is
 * logged. A forked child has no collectors. Returns NULL, with weir_last_error, for arguments that are not
 * allowed and if out of memory or threads. */
WEIR_API weir_collector *weir_add_collector(weir_stream *stream,
                                            void (*collect)(weir_stream *stream, void *context), void *context,
                                            int64_t interval_ms);

/* Ends the calls of a collector and frees it. Waits for a call that is just made, so that no call is running
 * or follows once this has returned, and the context may be freed, however long it takes; except if a collector
 * removes itself: then its call is the last. The caller must not hold a lock that the collector waits for. NULL
 * does nothing; nor does, in a forked child, a collector of the parent. */
WEIR_API void weir_remove_collector(weir_collector *collector);

/* ---- Timing ---------------------------------------------------------------------------------- */

/* A running measurement: plain data on the caller's stack, used by the functions below. This struct never
 * changes. */
typedef struct weir_prof {
    weir_stream *stream; /* the stream to add to */
    const char *name;    /* borrowed from the caller */
    const void *core;    /* for the core */
    int64_t start_ns;    /* monotonic clock */
    int32_t failed;      /* 1 after weir_prof_fail */
    int32_t running;     /* not 0 until weir_prof_end */
} weir_prof;

/* Starts measuring. Declares the counters NAME.success and NAME.failure, and the histogram NAME.duration.ms
 * with the unit "ms". name is borrowed until weir_prof_end. Never fails: an invalid name is refused and counted
 * at the end. */
WEIR_API weir_prof weir_prof_begin(weir_stream *stream, const char *name);

/* The same with the name FILE:FUNCTION, without the folders of the file; see WEIR_PROF_HERE. */
WEIR_API weir_prof weir_prof_begin_here(weir_stream *stream, const char *file, const char *function);

/* Marks what is measured as failed. */
WEIR_API void weir_prof_fail(weir_prof *prof);

/* Ends measuring and adds one event: NAME.success or NAME.failure with the value 1, and NAME.duration.ms by the
 * monotonic clock. A second call for the same measurement does nothing. */
WEIR_API void weir_prof_end(weir_prof *prof);

/* The same with labels that are known at the end only (route, status); as for weir_add_value_labeled. */
WEIR_API void weir_prof_end_labeled(weir_prof *prof, const weir_label *labels, size_t count);

#ifdef __cplusplus
}
#endif

/* WEIR_EMIT(stream, {"a", 1}, {"b", 2}); adds the values as one event; see weir_emit. */
#ifdef __cplusplus
#include <initializer_list>
inline int weir_emit_list(weir_stream *stream, std::initializer_list<weir_value> values)
{
    return weir_emit(stream, values.begin(), values.size());
}
#define WEIR_EMIT(stream, ...) weir_emit_list((stream), {__VA_ARGS__})
#else
#define WEIR_EMIT(stream, ...)                                                                                 \
    weir_emit((stream), (const weir_value[]){__VA_ARGS__},                                                     \
              sizeof((const weir_value[]){__VA_ARGS__}) / sizeof(weir_value))
#endif

/* WEIR_EMIT_TYPED(stream, {"epoch", WEIR_INT(3)}, {"loss", WEIR_DOUBLE(0.5)}); adds doubles and integers as one
 * event; see weir_emit_typed. */
#ifdef __cplusplus
inline int weir_emit_typed_list(weir_stream *stream, std::initializer_list<weir_typed_value> values)
{
    return weir_emit_typed(stream, values.begin(), values.size());
}
#define WEIR_EMIT_TYPED(stream, ...) weir_emit_typed_list((stream), {__VA_ARGS__})
#else
#define WEIR_EMIT_TYPED(stream, ...)                                                                           \
    weir_emit_typed((stream), (const weir_typed_value[]){__VA_ARGS__},                                         \
                    sizeof((const weir_typed_value[]){__VA_ARGS__}) / sizeof(weir_typed_value))
#endif

/* WEIR_PROF(p, stream, "calculate"); declares a guard p: the measurement ends when its scope is left in any way
 * (return, break, goto, a C++ exception). */
#if defined(__GNUC__)
#define WEIR_PROF(prof, stream, name)                                                                          \
    __attribute__((cleanup(weir_prof_end), unused)) weir_prof prof = weir_prof_begin((stream), (name))

/* WEIR_PROF_HERE(p, stream); the same, named after the file and the function: "server.c:handle". */
#define WEIR_PROF_HERE(prof, stream)                                                                           \
    __attribute__((cleanup(weir_prof_end), unused)) weir_prof prof =                                           \
        weir_prof_begin_here((stream), __FILE__, __func__)
#endif

#endif
