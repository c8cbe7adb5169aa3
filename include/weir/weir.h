/* weir - grouped metric streams for C programs. The application's side.
 *
 *     weir_stream *stream = weir_get_stream("my_app");
 *     weir_add_value(stream, "calculate_latency", 12.375);
 *
 * A program adds values to streams; where they go is decided outside the program, by a configuration that
 * routes each group to handlers. With no configuration nothing is printed and nothing is written.
 *
 * Threads: every function here may be called from any thread at any time: before any configuration, after fork,
 * after shutdown (then it is a counted no-op). In a signal handler only weir_metric_add and weir_metric_add_int
 * are allowed, on a thread that has added a value before.
 *
 * Failure: functions that return int answer 0, or a negative enum weir_error; weir_last_error() says the rest
 * in words. No function here exits, prints (but for messages that WEIR_LOG allows, on stderr), or changes
 * signals, locale, umask or the working folder.
 *
 * Text: names are valid UTF-8 of 1 to 255 bytes without control characters. A group has no empty part between
 * its dots and no '*'.
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

/* Marks what the shared library exports. */
#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#else
#define WEIR_API
#endif

/* What a call answers when it fails. The numbers never change; new ones are appended. */
enum weir_error {
    WEIR_OK = 0,              /* done */
    WEIR_ERR_ARGUMENT = -1,   /* an argument is NULL or out of its range */
    WEIR_ERR_NAME = -2,       /* a group, name or label breaks the rules for text above */
    WEIR_ERR_CONFIG = -3,     /* a configuration is wrong; the one in force stays */
    WEIR_ERR_PLUGIN = -4,     /* a handler type is not installed, or its plugin was refused */
    WEIR_ERR_MEMORY = -5,     /* no memory */
    WEIR_ERR_LIMIT = -6,      /* settings.max_series is reached */
    WEIR_ERR_FULL = -7,       /* delivery "sync": the handler's queue was full, the value was dropped */
    WEIR_ERR_TIMEOUT = -8,    /* not done in time; what was added stays in the ledger and goes on */
    WEIR_ERR_DROPPED = -9,    /* values were dropped; the ledger tells how many and why */
    WEIR_ERR_SPOOLED = -10,   /* values are safe on disk, but not delivered yet */
    WEIR_ERR_CLOSED = -11,    /* after weir_shutdown, or on a thread that is ending */
    WEIR_ERR_BUSY = -12,      /* called by a signal handler that interrupted another call of weir */
    WEIR_ERR_TOO_LARGE = -13, /* one event of more samples or metadata than fit a quarter of a thread's ring;
                                 or, delivery "sync", more bytes than its destination takes: it was dropped */
    WEIR_ERR_FIFO_NOT_CREATED = -14, /* nobody created the named pipe in time; what was added goes on, as with
                                        TIMEOUT */
};

typedef struct weir_stream weir_stream; /* the handle through which a program adds values to one group */
typedef struct weir_metric weir_metric; /* one name of a stream, looked up once */
struct weir_handler_type;               /* <weir/handler.h> */

/* One value of an event; see weir_emit. */
typedef struct weir_value {
    const char *name; /* as for weir_add_value */
    double value;     /* any, also infinite or not a number */
} weir_value;

/* One sample with all that can be said of it; see weir_add_sample. Set size to sizeof(weir_sample_spec) and
 * what is not used to 0. */
typedef struct weir_sample_spec {
    size_t size;          /* sizeof(weir_sample_spec) */
    const char *name;     /* as for weir_add_value */
    double value;         /* any, also infinite or not a number */
    int64_t time_ns;      /* nanoseconds since 1970-01-01 UTC; 0: now */
    bool cumulative;      /* the value is a running total of its series, not a measurement of this moment */
    const char *metadata; /* free text for this sample, valid UTF-8, or NULL */
} weir_sample_spec;

/* ---- Streams and values ---------------------------------------------------------------------- */

/* The stream of a group; the same pointer for the same group. It is valid until the process ends and follows
 * every later configuration. Never NULL: with a bad name or no memory it is a stream that refuses every value,
 * and counts it. */
WEIR_API weir_stream *weir_get_stream(const char *group);

/* The stream of a group with fixed labels; the same pointer for the same group and labels, whatever their
 * order. At most 64 labels; keys are names, and no key may come twice; values are valid UTF-8 of at most 1023
 * bytes. Groups and labels are copied. Never NULL, as above. */
WEIR_API weir_stream *weir_get_stream_labeled(const char *group, const weir_label *labels, size_t count);

/* Adds one value. 0: the value is in the ledger. Otherwise it was refused, and counted; this may be ignored.
 * The caller may reuse name's buffer. After the first use of a name: no lock, no allocation, and no system call
 * but the wake-up that ends an idle period and the waits that a configuration asks for (overflow "block",
 * delivery "sync"). */
WEIR_API int weir_add_value(weir_stream *stream, const char *name, double value);
WEIR_API int weir_add_int(weir_stream *stream, const char *name, int64_t value);

/* The handle of one name of a stream, for hot loops: adding by it needs no look-up. Valid until the process
 * ends. Never NULL: one that refuses and counts where the stream would. */
WEIR_API weir_metric *weir_get_metric(weir_stream *stream, const char *name);

/* Adds one value by handle; otherwise like weir_add_value. Safe in a signal handler on a thread that has added
 * before; a call that interrupted another call of weir on the same thread is refused with WEIR_ERR_BUSY, and
 * counted. */
WEIR_API int weir_metric_add(weir_metric *metric, double value);
WEIR_API int weir_metric_add_int(weir_metric *metric, int64_t value);

/* Adds values as one event: they share one time, are never split, and are all refused if one of them is. */
WEIR_API int weir_emit(weir_stream *stream, const weir_value *values, size_t count);

/* Adds one sample with its own time, cumulative or with metadata; see weir_sample_spec. */
WEIR_API int weir_add_sample(weir_stream *stream, const weir_sample_spec *spec);

/* Says what a name of a stream is measured in ("ms", "bytes") and what it means; formats that can, pass it on.
 * Either may be NULL. Copied; the latest call counts. unit: at most 63 bytes, help: at most 1023, both valid
 * UTF-8. After 16 changes a description stays: WEIR_ERR_LIMIT. */
WEIR_API int weir_describe(weir_stream *stream, const char *name, const char *unit, const char *help);

/* Whether anybody listens to the stream's group at this moment. false: costly measuring can be skipped. */
WEIR_API bool weir_stream_enabled(weir_stream *stream);

/* ---- Configuration ------------------------------------------------------------------------------
 *
 * Configuring is a barrier between two values: what was added before goes by the old routes. A configuration
 * that is wrong in any place changes nothing. These calls may load plugins and take time; they never wait for a
 * destination. When the environment has a valid WEIR_CONFIG, or selects one of benchmarkai's modes by
 * BENCHMARK_AI, that stays in force, and these calls only validate.
 */

/* Routes a group ("*" or NULL: the default of all groups) to a handler of a type, in place of the group's
 * present route. options_json is the handler's object as in a configuration file, without "type" (NULL:
 * defaults). handler_type NULL removes the route. The handler is named after its type, or "TYPE:GROUP" where a
 * handler of that name with other options exists. */
WEIR_API int weir_configure(const char *group, const char *handler_type, const char *options_json);

/* Puts a whole configuration in force, in place of the present one: a file, or text that need not end in NUL.
 */
WEIR_API int weir_configure_file(const char *path);
WEIR_API int weir_configure_text(const char *json, size_t length);

/* Reads the configuration in force again and has handlers reopen their files; for a program's SIGHUP (call it
 * from the program's main loop, not from the signal handler). */
WEIR_API int weir_reload(void);

/* Makes a handler type known that lives in the program instead of in a plugin. The type must stay valid until
 * the process ends. It is found before a plugin of the same name. */
WEIR_API int weir_register_handler_type(const struct weir_handler_type *type);

/* ---- Delivery -------------------------------------------------------------------------------- */

/* Waits until every value added before the call is delivered; timeout_ms -1: for ever, 0: no waiting. Cuts
 * short any pause before another try. 0: all delivered. WEIR_ERR_DROPPED: done, but values were dropped since
 * the last flush. WEIR_ERR_SPOOLED: some are safe on disk only. WEIR_ERR_TIMEOUT: not done in time, or a
 * handler says that it is no use waiting. WEIR_ERR_FIFO_NOT_CREATED: nobody created a handler's named pipe in
 * time. */
WEIR_API int weir_flush(int64_t timeout_ms);

/* Delivers what it can within timeout_ms (-1: for ever) and stops. Done by itself at exit, with
 * settings.shutdown_timeout. What could not be delivered goes to disk where the handler has a spool, else it is
 * dropped and counted; both is said by handler. A handler that is at work then gets a quarter of a second more
 * to come to a stop. A second call does nothing. Answers 0, WEIR_ERR_DROPPED when values were dropped since the
 * last flush, or WEIR_ERR_SPOOLED when some are on disk. */
WEIR_API int weir_shutdown(int64_t timeout_ms);

/* ---- Errors and messages --------------------------------------------------------------------- */

/* The calling thread's last failure in words: place, value, what is allowed. Never NULL; valid until the
 * thread's next failure. */
WEIR_API const char *weir_last_error(void);

/* An error's name in words; for any number. Static. */
WEIR_API const char *weir_strerror(int error);

/* The version of the library that is running, as "1.2.3"; WEIR_VERSION is the one compiled against. Static. */
WEIR_API const char *weir_version(void);

/* How much a message matters. */
enum weir_log_level {
    WEIR_LOG_ERROR = 1,   /* values are lost, or a configuration is wrong */
    WEIR_LOG_WARNING = 2, /* something is in the way, and may pass */
    WEIR_LOG_INFO = 3,    /* what is going on */
    WEIR_LOG_DEBUG = 4,   /* what helps to find mistakes */
};

/* Sends weir's own messages to a function instead of stderr, up to the level that the environment's WEIR_LOG
 * sets (default: warning). text is one line without its newline, valid during the call. The function is called
 * from any thread, also from weir's own, and must not call weir. NULL: stderr again. */
WEIR_API void weir_set_log(void (*write)(void *ctx, int level, const char *text), void *ctx);

/* ---- The ledger ------------------------------------------------------------------------------ */

/* Why a call refused a value. */
enum weir_refusal {
    WEIR_REFUSED_NAME,      /* a group, name or label breaks the rules for text */
    WEIR_REFUSED_LIMIT,     /* settings.max_series is reached */
    WEIR_REFUSED_MEMORY,    /* no memory */
    WEIR_REFUSED_CLOSED,    /* after weir_shutdown */
    WEIR_REFUSED_BUSY,      /* by a signal handler that interrupted another call */
    WEIR_REFUSED_TOO_LARGE, /* more than fits the ring, or its destination */
    WEIR_REFUSED_ARGUMENT,  /* an argument is NULL or out of its range */
    WEIR_REFUSALS = 16      /* the length of arrays; the rest is for later */
};

/* Why a handler's value was dropped. */
enum weir_drop {
    WEIR_DROPPED_FULL,            /* the queue was full */
    WEIR_DROPPED_REJECTED,        /* the destination refused it for good */
    WEIR_DROPPED_UNREPRESENTABLE, /* the format or the handler type cannot carry it */
    WEIR_DROPPED_FAILED,          /* the handler has failed for good */
    WEIR_DROPPED_REMOVED,         /* the handler was configured away before it could deliver */
    WEIR_DROPPED_SHUTDOWN,        /* the shutdown's time was over */
    WEIR_DROPPED_CORRUPT,         /* a record on disk was damaged */
    WEIR_DROPPED_NO_THREAD,       /* no thread could be started */
    WEIR_DROPPED_REENTRANT,       /* added by a handler's own code to a full queue */
    WEIR_DROPPED_FORK_UNSAFE,     /* the handler was inside foreign code when the process forked */
    WEIR_DROPS = 16               /* the length of arrays; the rest is for later */
};

/* The process's side of the ledger. At any time added = taken + in_rings. The samples of group "weir" are left
 * out. */
typedef struct weir_stats {
    size_t size;                     /* of what was filled in, in bytes */
    uint64_t added;                  /* values whose call answered 0 */
    uint64_t taken;                  /* of these: handed to the handlers of their route */
    uint64_t in_rings;               /* of these: still on their way there */
    uint64_t unrouted;               /* of those taken: nobody listened */
    uint64_t refused[WEIR_REFUSALS]; /* not in added: by enum weir_refusal */
    uint64_t threads;                /* rings in use or ready for adoption */
    uint64_t series;                 /* groups, label sets and series, as settings.max_series counts them */
} weir_stats;

/* A handler's side of the ledger, in samples; a value that goes to two handlers counts in both. At any time
 * offered + recovered = delivered + dropped[0] + ... + dropped[WEIR_DROPS - 1] + queued + spooled. */
typedef struct weir_handler_stats {
    size_t size;                  /* of what was filled in, in bytes */
    uint64_t offered;             /* came by the handler's routes */
    uint64_t recovered;           /* came from a spool or journal of an earlier process */
    uint64_t delivered;           /* the handler has settled them, and not refused */
    uint64_t dropped[WEIR_DROPS]; /* by enum weir_drop */
    uint64_t queued;              /* in memory, those being tried right now included */
    uint64_t spooled;             /* on disk */
    uint64_t queue_bytes;         /* what queued takes in memory */
    int64_t queue_age_ms;         /* how long the oldest has been queued */
    uint64_t retries;             /* tries that the handler asked to repeat */
    uint64_t faults;              /* calls of the handler in which it broke its contract */
    int32_t failing;              /* 1 while tries fail */
    int32_t open;                 /* 1 while the handler is open */
    uint64_t spool_bytes;         /* what spooled takes on disk */
    uint64_t spool_limit;         /* how much it may take; 0: the handler has no spool */
} weir_handler_stats;

/* Fills the first size bytes of *stats with an exact snapshot: the identities above hold in it, whatever other
 * threads do. Costs the threads that add values nothing. */
WEIR_API int weir_get_stats(weir_stats *stats, size_t size);

/* The same for one handler by its name; WEIR_ERR_ARGUMENT: there is none of that name. */
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

/* ---- Timing ---------------------------------------------------------------------------------- */

/* A running measurement; plain data on the caller's stack, to be used only by the functions below. */
typedef struct weir_prof {
    weir_stream *stream; /* where the end adds */
    const char *name;    /* borrowed */
    int64_t start_ns;    /* by the monotonic clock */
    int32_t failed;      /* 1 after weir_prof_fail */
    int32_t running;     /* 1 until the end */
} weir_prof;

/* Starts measuring; name must stay valid until the end. */
WEIR_API weir_prof weir_prof_begin(weir_stream *stream, const char *name);

/* Says that what is measured has failed. */
WEIR_API void weir_prof_fail(weir_prof *prof);

/* Ends measuring and adds one event: NAME.duration.ms, by the monotonic clock, and NAME.success or NAME.failure
 * with the value 1. A second call does nothing. */
WEIR_API void weir_prof_end(weir_prof *prof);

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

/* WEIR_PROF(p, stream, "calculate"); declares a guard p: when its scope is left, by whatever way, the
 * measurement ends. */
#if defined(__GNUC__)
#define WEIR_PROF(prof, stream, name)                                                                          \
    __attribute__((cleanup(weir_prof_end), unused)) weir_prof prof = weir_prof_begin((stream), (name))
#endif

#endif
