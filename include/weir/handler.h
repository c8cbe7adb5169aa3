/* weir - the handler's side: everything a plugin needs. It links to nothing.
 *
 * A plugin is a shared object NAME.so in weir's plugin folder, or anywhere the configuration points to, that
 * exports one symbol:
 *
 *     const weir_handler_type *weir_handler_type_at(uint32_t index);
 *
 * It answers the plugin's handler types one after the other, then NULL. The core owns queue, threads, batching,
 * retries, back-pressure and counters; a handler type says how to create, open, emit, flush, close and destroy.
 *
 * Life of one handler (an instance of a type, with options):
 *
 *     create --> [open --> (emit | flush | wake)* --> close]* --> destroy
 *
 * Threads: [configuring] is whatever thread configures; [worker] is the handler's own thread. The worker alone
 * calls open, emit, flush, wake and close, never two at a time: write plain sequential code, and block if you
 * must; it harms only this handler. All signals are blocked on it. [fork] is a child process between fork and
 * the return of fork.
 *
 * Growth: every struct that may grow begins with its size, and fields are only appended. Fields beyond the size
 * that the other side was compiled with are read as zero. What cannot grow that way comes as a service under a
 * name with a revision.
 */
#ifndef WEIR_HANDLER_H
#define WEIR_HANDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The contract's number; a plugin built for another one is refused. Stable since 1: doc/abi.md. */
#define WEIR_ABI 1

/* ---- Samples and batches --------------------------------------------------------------------- */

/* weir_sample.kind: what the value is. */
enum {
    WEIR_KIND_DOUBLE = 0, /* value.f64 */
    WEIR_KIND_INT = 1,    /* value.i64 */
};

/* Bits of kinds that a type takes. */
enum {
    WEIR_TAKES_DOUBLE = 1u << WEIR_KIND_DOUBLE, /* samples of WEIR_KIND_DOUBLE */
    WEIR_TAKES_INT = 1u << WEIR_KIND_INT,       /* samples of WEIR_KIND_INT */
};

/* weir_sample.flags; bits above these are the core's own: ignore them */
enum {
    WEIR_SAMPLE_MORE = 1u << 0,       /* the next sample is of the same event */
    WEIR_SAMPLE_CUMULATIVE = 1u << 1, /* the value is a running total */
};

/* One value at one time; the same 32 bytes everywhere. series and note are resolved by the batch it came in. */
typedef struct weir_sample {
    uint32_t series; /* see weir_batch_series */
    uint16_t kind;   /* WEIR_KIND_*: which part of value holds */
    uint16_t flags;  /* WEIR_SAMPLE_* */
    int64_t time_ns; /* since 1970-01-01 UTC */
    union {
        double f64;
        int64_t i64;
    } value;           /* as kind says */
    uint32_t note;     /* 0: none; else batch->notes[note] */
    uint32_t reserved; /* the core's own */
} weir_sample;

/* What a sample's series is. Valid as long as the process lives. */
typedef struct weir_series {
    uint32_t size;            /* sizeof(weir_series), as the core has it */
    uint32_t id;              /* the number that samples have; dense */
    const char *group;        /* never NULL */
    const char *name;         /* never NULL */
    const weir_label *labels; /* sorted by key */
    size_t label_count;       /* of labels */
    const char *unit;         /* NULL: not said */
    const char *help;         /* NULL: not said */
    bool cumulative;          /* its values are running totals */
} weir_series;

/* Samples to deliver, in order; valid during the call that brings it. Events are never split between batches.
 */
typedef struct weir_batch {
    uint32_t size;              /* sizeof(weir_batch), as the core has it */
    uint32_t count;             /* of samples */
    const weir_sample *samples; /* in the order in which they were added */
    const char *const *notes;   /* metadata, by weir_sample.note */
    const weir_label *labels;   /* settings.labels: true of every sample here */
    size_t label_count;         /* of labels */
    /* what weir_batch_series asks */
    const weir_series *(*series)(const struct weir_batch *batch, uint32_t id);
    const void *core; /* the core's own */
    /* (origin, sequence) identifies a sample: it is the same each time the sample is delivered, also after a
     * retry and by another process that found it in a spool or journal, and no other sample has it.
     * samples[i] has the number sequence + i. Numbers that are missing within an origin are of samples that were
     * dropped. */
    uint64_t sequence;  /* the first sample's number within its origin, from 0 */
    const char *origin; /* of all samples here: 32 lowercase hex digits, 128 random bits for each process and
                           handler; a forked child has its own. Never NULL. Valid during the call */
} weir_batch;

/* The series of one of the batch's samples. Never NULL. */
static inline const weir_series *weir_batch_series(const weir_batch *batch, const weir_sample *sample)
{
    return batch->series(batch, sample->series);
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

/* What the core does next; not why. */
enum weir_outcome_code {
    WEIR_OUTCOME_OK = 0,     /* go on */
    WEIR_OUTCOME_RETRY = 1,  /* offer the rest again after a pause */
    WEIR_OUTCOME_REOPEN = 2, /* close, pause, open, offer the rest again */
    WEIR_OUTCOME_DROP = 3,   /* the rest of the batch can never be delivered */
    WEIR_OUTCOME_FAILED = 4, /* this handler is finished */
};

/* A handler's answer. The core fills it beforehand with size, OK and, for emit, done = the whole batch. */
typedef struct weir_outcome {
    uint32_t size; /* sizeof(weir_outcome), as the core has it */
    int32_t code;  /* enum weir_outcome_code */
    uint32_t done; /* emit: so many samples from the front are settled; rounded down to the end of an event */
    uint32_t rejected;      /* emit: of those done, refused for good by the destination */
    int64_t retry_after_ms; /* RETRY, REOPEN: the pause that the destination asked for; 0: the core's own
                               back-off */
    char reason[256];       /* why, in words, for the log: "connect 127.0.0.1:8086: refused" */
    int32_t error;          /* 0, or what calls that wait for this handler are told; see weir_outcome_tell */
} weir_outcome;

/* Says by which error, of enum weir_error in <weir/weir.h>, those calls come back that wait for this handler
 * (delivery "sync", and weir_flush); they get the reason as words.
 *
 * With RETRY and REOPEN they come back at once, and calls that come later do not wait at all, until open or
 * emit answers without an error; a later weir_flush waits for one more answer. Values stay queued and are tried
 * again. Without an error they would wait on: calls for block_timeout, a flush for its own.
 *
 * With `rejected`, DROP and FAILED the calls whose values are lost are told this instead of WEIR_ERR_DROPPED.
 */
static inline void weir_outcome_tell(weir_outcome *outcome, int32_t error)
{
    /* an older core has no room for it */
    if (outcome->size >= offsetof(weir_outcome, error) + sizeof outcome->error)
        outcome->error = error;
}

/* ---- Options --------------------------------------------------------------------------------- */

/* The types of options, with the C type of the field at weir_option.offset. */
enum weir_option_type {
    WEIR_OPTION_BOOL = 1, /* bool */
    WEIR_OPTION_INT,      /* int64_t */
    WEIR_OPTION_DOUBLE,   /* double */
    WEIR_OPTION_STRING,   /* const char *, NULL when not set */
    WEIR_OPTION_PATH,     /* const char *, absolute, NULL when not set */
    WEIR_OPTION_DURATION, /* int64_t, nanoseconds */
    WEIR_OPTION_SIZE,     /* int64_t, bytes */
    WEIR_OPTION_ENUM,     /* int64_t, the index in allowed */
    WEIR_OPTION_LIST,     /* weir_list */
    WEIR_OPTION_MAP,      /* weir_map */
};

/* Bits of weir_option.flags. */
enum {
    WEIR_OPTION_REQUIRED = 1u << 0,    /* a configuration without it is wrong */
    WEIR_OPTION_SECRET = 1u << 1,      /* masked wherever options are shown */
    WEIR_OPTION_URL = 1u << 2,         /* of a string: user, password and the like in it are masked */
    WEIR_OPTION_DESTINATION = 1u << 3, /* says where values go: shown beside the handler's name */
};

/* The value of an option of type LIST; as long as the options live. */
typedef struct weir_list {
    size_t count;             /* of items */
    const char *const *items; /* as they were written */
} weir_list;

/* The value of an option of type MAP; as long as the options live. */
typedef struct weir_map {
    size_t count;            /* of items */
    const weir_label *items; /* as they were written; no key comes twice */
} weir_map;

/* One option of a handler type; a table of them ends with a row whose name is NULL. The table validates the
 * configuration, fills the struct, and is what users see of the type. */
typedef struct weir_option {
    const char *name;     /* dotted names make objects */
    uint32_t type;        /* enum weir_option_type */
    uint32_t flags;       /* WEIR_OPTION_REQUIRED and so on */
    const char *standard; /* the default, as one would write it in a configuration; NULL: none */
    const char *allowed;  /* enum: "auto|always|never"; numbers: "1..65535", "1s..", "..1GiB"; NULL: anything of
                             the  type */
    const char *help;     /* one line */
    size_t offset;        /* of the field in the type's options struct */
} weir_option;

/* Another default for one of the options that every handler has ("queue", "linger", "format", ...); ends with a
 * NULL name. */
typedef struct weir_standard {
    const char *name;  /* of the common option */
    const char *value; /* as one would write it in a configuration */
} weir_standard;

/* ---- What the core offers to a handler ------------------------------------------------------- */

/* Valid from create until destroy has returned; one for each handler. Every function takes it as its first
 * argument and may be called from any of the handler's callbacks but abandon; log, count, wake_in, stopping and
 * service also from threads of the handler's own. */
typedef struct weir_host {
    uint32_t size;       /* sizeof(weir_host), as the core has it */
    uint32_t abi;        /* WEIR_ABI, as the core has it */
    const char *handler; /* the handler's name in the configuration */

    /* Says something in weir's log, under the handler's name; level: enum weir_log_level of <weir/weir.h> (1
     * error ... 4 debug). */
    void (*log)(const struct weir_host *host, int level, const char *format, ...)
#if defined(__GNUC__)
        __attribute__((format(printf, 3, 4)))
#endif
        ;

    /* In create only: says why it fails: place (an option's name, or ""), value, what is allowed. */
    void (*refuse)(const struct weir_host *host, const char *option, const char *format, ...)
#if defined(__GNUC__)
        __attribute__((format(printf, 3, 4)))
#endif
        ;

    /* Adds n to a counter of the handler's own, shown beside its ledger; name is a constant like "status.404".
     */
    void (*count)(const struct weir_host *host, const char *name, uint64_t n);

    /* Has wake called once, delay_ms from now; a later call replaces an earlier one, a negative delay cancels
     * it. */
    void (*wake_in)(const struct weir_host *host, int64_t delay_ms);

    /* [worker] Sleeps; false as soon as a stop is asked: come to an end then, as far as the deadline allows.
     * What fills the queue meanwhile may go to disk, also with ms 0: whoever waits by other means calls it now
     * and then. */
    bool (*wait)(const struct weir_host *host, int64_t ms);

    /* Whether a stop is asked. */
    bool (*stopping)(const struct weir_host *host);

    /* A service by its name and revision ("encoder/1"), or NULL where this core has none of it. */
    const void *(*service)(const struct weir_host *host, const char *id);
} weir_host;

/* Service "encoder/1": the handler's configured format. */
#define WEIR_ENCODER "encoder/1"

/* What a format makes; bits of weir_handler_type.takes. */
enum {
    WEIR_FORMAT_LINES = 1u << 0,     /* a line for each sample or event, ending in a newline */
    WEIR_FORMAT_DOCUMENTS = 1u << 1, /* one text for a whole batch */
    WEIR_FORMAT_RECORDS = 1u << 2,   /* a text for each sample, to be sent by itself */
};

/* Encoded samples, valid until the next call of encode on the same handler. */
typedef struct weir_encoded {
    uint32_t size;    /* sizeof(weir_encoded), as the core has it */
    uint32_t count;   /* samples that are in it, from the start that was asked; whole events, but for records */
    const char *data; /* not ended by NUL */
    size_t length;    /* of data, in bytes */
} weir_encoded;

/* What encodes samples: service "encoder/1". */
typedef struct weir_encoder {
    uint32_t size; /* sizeof(weir_encoder), as the core has it */

    /* [worker] Encodes samples from number start on, event by event, until about limit bytes are reached, but
     * at least one event. A format of documents: the whole rest; for less, hand in a copy of the batch whose
     * count ends with an earlier event. A format of records: one sample, whatever its event. Samples that the
     * format cannot carry are left out and counted by the core; when that is all, length is 0 and there is
     * nothing to send. false: no memory. */
    bool (*encode)(const weir_host *host, const weir_batch *batch, uint32_t start, size_t limit,
                   weir_encoded *encoded);

    /* [worker] How many samples lie wholly within the first length bytes of what encode answered last: what a
     * short write has settled, in whole events. *end: where the last of them ends in bytes. */
    uint32_t (*settled)(const weir_host *host, size_t length, size_t *end);

    /* The format's media type ("application/json"). Static. */
    const char *(*content_type)(const weir_host *host);

    /* What the format makes: one of WEIR_FORMAT_*. */
    uint32_t (*shape)(const weir_host *host);

    /* What a text of its own begins with, such as a file or the body of a request: csv's line of names. It is
     * not part of what encode answers. "": nothing. Valid as long as the handler is. See weir_encoder_header.
     */
    const char *(*header)(const weir_host *host);
} weir_encoder;

/* The header of the handler's format; "": it has none. */
static inline const char *weir_encoder_header(const weir_encoder *encoder, const weir_host *host)
{
    /* an older core has no such function */
    bool known = encoder->size >= offsetof(weir_encoder, header) + sizeof encoder->header;
    return known ? encoder->header(host) : "";
}

/* Service "terminal/1": for handlers that show values to people. */
#define WEIR_TERMINAL "terminal/1"

/* What is known of terminals: service "terminal/1". */
typedef struct weir_terminal {
    uint32_t size; /* sizeof(weir_terminal), as the core has it */

    /* [configuring] Whether the format may use colours, as far as it has any; false if never said. */
    void (*set_color)(const weir_host *host, bool color);
} weir_terminal;

/* Service "patience/1": for handlers whose tries take long on purpose. */
#define WEIR_PATIENCE "patience/1"

/* What tells the core to wait: service "patience/1". */
typedef struct weir_patience {
    uint32_t size; /* sizeof(weir_patience), as the core has it */

    /* [configuring] In create: how long a try may take before the handler answers, because its options say so.
     * Calls with delivery "sync" wait that much longer than block_timeout. 0 if never said. */
    void (*set)(const weir_host *host, int64_t ms);
} weir_patience;

/* Service "waiting/1": for handlers that wait in calls of their own, like poll(2). */
#define WEIR_WAITING "waiting/1"

/* What stands around a call that waits: service "waiting/1". */
typedef struct weir_waiting {
    uint32_t size; /* sizeof(weir_waiting), as the core has it */

    /* [worker] Around such a call, within a callback: a fork does not wait for it to return. In between nothing
     * may be done but waiting, for the child finds whatever else is going on half done. end comes back only
     * when no fork is on its way; after a shutdown that did not wait for this thread, never. */
    void (*begin)(const weir_host *host);

    /* [worker] See begin. */
    void (*end)(const weir_host *host);

    /* How long a callback may still take before the core goes on without it; -1: no end was set. */
    int64_t (*left_ms)(const weir_host *host);
} weir_waiting;

/* ---- Handler types --------------------------------------------------------------------------- */

/* Why wake is called. */
enum weir_wake {
    WEIR_WAKE_TIMER = 0,  /* the delay of wake_in is over */
    WEIR_WAKE_RELOAD = 1, /* the program called weir_reload: open files anew */
};

/* A handler type: what it is called, which options it has, and what the core calls it for. Plain data that is
 * valid until the process ends. */
typedef struct weir_handler_type {
    uint32_t size; /* sizeof(weir_handler_type) */
    uint32_t abi;  /* WEIR_ABI */

    const char *name;    /* [a-z][a-z0-9_]*, at most 63 bytes */
    const char *summary; /* one line */

    uint32_t kinds; /* WEIR_TAKES_*; samples of other kinds are withheld and counted. 0: all */
    uint32_t takes; /* WEIR_FORMAT_*: formats it can write. 0: it uses no encoder */

    const weir_option *options;     /* NULL: none */
    uint32_t option_size;           /* sizeof(weir_option) */
    uint32_t options_size;          /* of the struct that the table fills */
    const weir_standard *standards; /* other defaults for the common options; NULL: none */

    /* [configuring] Makes a handler: checks what the table cannot, and allocates. No I/O, no threads. options
     * is the filled struct, valid until destroy. Answers the instance, or NULL after host->refuse. */
    void *(*create)(const weir_host *host, const void *options);

    /* [worker] Connects. RETRY and REOPEN both mean: try again after a pause. NULL: nothing to open. */
    void (*open)(void *self, weir_outcome *outcome);

    /* [worker] Delivers a batch. */
    void (*emit)(void *self, const weir_batch *batch, weir_outcome *outcome);

    /* [worker] Makes sure that what emit has settled has left the handler's own buffers, within timeout_ms (-1:
     * no limit). RETRY: not yet. NULL: emit keeps nothing back. */
    void (*flush)(void *self, int64_t timeout_ms, weir_outcome *outcome);

    /* [worker] Disconnects; open may follow. NULL: nothing to close. */
    void (*close)(void *self);

    /* [configuring or worker] Frees the instance; after close. */
    void (*destroy)(void *self);

    /* [worker] A timer or a reload, while open; why: enum weir_wake. May be NULL. */
    void (*wake)(void *self, int why, weir_outcome *outcome);

    /* [fork] Gives up the parent's connection: close(2) of the instance's descriptors and nothing else. The
     * instance is never used again in the child. NULL: it has no descriptors. */
    void (*abandon)(void *self);

    /* [worker, while not open] For `weir check --open`: finds out, within timeout_ms, whether the destination
     * could be reached now, without sending anything to it, without creating or emptying anything, and without
     * leaving anything open. OK: it could; what there is to say of it may stand in reason ("it does not exist
     * yet"). Any other code: it could not, for that reason. NULL: open and close are called instead, and
     * host->wait does not wait. */
    void (*probe)(void *self, int64_t timeout_ms, weir_outcome *outcome);
} weir_handler_type;

/* Marks the one function that a plugin exports. */
#if defined(__GNUC__)
#define WEIR_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define WEIR_PLUGIN_EXPORT
#endif

/* What a plugin defines. */
WEIR_PLUGIN_EXPORT const weir_handler_type *weir_handler_type_at(uint32_t index);

#ifdef __cplusplus
}
#endif

#endif
