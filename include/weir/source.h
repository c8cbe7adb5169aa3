/* weir - the contract for source types: everything that a plugin needs which reads values from elsewhere. It
 * links to nothing.
 *
 * A source type is to a program's values what a handler type is to its destinations; read <weir/handler.h>
 * beside this. A plugin is a shared object NAME.source.so, in weir's plugin folder or wherever a configuration
 * points to, that exports one symbol:
 *
 *     const weir_source_type *weir_source_type_at(uint32_t index);
 *
 * It returns the plugin's source types for the indexes 0, 1, 2 and so on, then NULL. The core owns the thread,
 * the retries, the limits, the labels and the counters, and parses text. A source type implements how to
 * create, open, run, close and destroy.
 *
 * Life of a source (an instance of a type, with its options):
 *
 *     create --> [open --> run* --> close]* --> destroy
 *
 * Threads: [configuring] is any thread that configures weir. [source] is the source's own thread: it alone
 * calls open, run and close, never two at a time, and destroy if it was started. It has all signals blocked,
 * and at least 1 MiB of stack. [fork] is a child process, before fork() returns in it.
 *
 * The rule of run: it waits in weir_intake.wait alone, and returns when that reports WEIR_WAIT_STOP. Adding
 * never waits: what finds no room is offered again after the next wait, and meanwhile nothing more is read, so
 * that the pipe or the connection slows down its writer. */
#ifndef WEIR_SOURCE_H
#define WEIR_SOURCE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/host.h>
#include <weir/options.h>
#include <weir/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Adding ---------------------------------------------------------------------------------- */

/* Bits of weir_record.flags. */
enum {
    WEIR_RECORD_CUMULATIVE = 1u << 0, /* the values are running totals */
    WEIR_RECORD_CHANGE = 1u << 1,     /* of a gauge: the value is added to its level */
};

/* One event: values that belong together. Everything is borrowed during the call. Set size to
 * sizeof(weir_record), and to 0 what is not known. */
typedef struct weir_record {
    size_t size;                    /* sizeof(weir_record) */
    const char *group;              /* NULL: the source's option "group" */
    const weir_label *labels;       /* the source's own labels take precedence */
    size_t label_count;             /* number of labels */
    const weir_typed_value *values; /* doubles and integers */
    size_t count;                   /* at least 1 */
    int64_t time_ns;                /* nanoseconds since 1970-01-01 UTC; 0: now */
    int32_t instrument;             /* enum weir_instrument of the names, unless they have one already */
    uint32_t flags;                 /* WEIR_RECORD_* */
    double sample_rate;             /* of counters: the values are divided by it; 0 is 1 */
    const char *unit;               /* of the names, as for weir_describe */
    const char *help;               /* the same */
    const char *metadata;           /* valid UTF-8; only with a count of 1 */
} weir_record;

/* What became of a record. */
enum weir_add_result {
    WEIR_ADD_TAKEN = 0,   /* all its values are added */
    WEIR_ADD_FULL = 1,    /* there is no room: nothing is added; wait, and add the same record again */
    WEIR_ADD_REFUSED = 2, /* a name, label or value is not allowed, or a limit is reached: counted and logged */
};

/* What wait reports: bits. 0: the timeout. */
enum {
    WEIR_WAIT_READY = 1u << 0, /* a descriptor has an event: see its revents */
    WEIR_WAIT_ROOM = 1u << 1,  /* after WEIR_ADD_FULL or a parser that is full: there may be room now */
    WEIR_WAIT_STOP = 1u << 2,  /* a stop is requested: return from run. Reported until then */
};

/* Service "intake/1", a weir_intake: how a source adds what it reads. Sources only. */
#define WEIR_SERVICE_INTAKE "intake/1"

/* Adding and waiting; see WEIR_SERVICE_INTAKE. */
typedef struct weir_intake {
    size_t size; /* sizeof(weir_intake) of the core */

    /* [source] Adds an event. Never waits. Returns enum weir_add_result. */
    int (*add)(const weir_host *host, const weir_record *record);

    /* [source] Waits for an event of a descriptor, for room if something found none, for a stop, or for
     * timeout_ms milliseconds (-1: no limit). fds are as for poll(2), and their revents are set; at most 8: a
     * source with more waits for an epoll descriptor. Returns WEIR_WAIT_* bits; may return 0 early. */
    unsigned (*wait)(const weir_host *host, struct pollfd *fds, size_t count, int64_t timeout_ms);

    /* [source] Counts n values that were read and cannot be added, and logs the first message in full; where:
     * what it came from, such as an address, or "". */
    void (*refuse)(const weir_host *host, uint64_t n, const char *where, const char *format, ...)
        WEIR_PRINTF(4, 5);
} weir_intake;

/* ---- Parsing --------------------------------------------------------------------------------- */

/* Service "parser/1", a weir_parser: turns text into records as the source's option `parse` names it, and adds
 * them. NULL for a type that does not have the flag for text. */
#define WEIR_SERVICE_PARSER "parser/1"

/* A text that is being parsed: one for each pipe, file or connection. */
typedef struct weir_text weir_text;

/* Parsing; see WEIR_SERVICE_PARSER. */
typedef struct weir_parser {
    size_t size; /* sizeof(weir_parser) of the core */

    /* [source] Begins a text. where: what it comes from, for messages; copied. NULL: out of memory. */
    weir_text *(*begin)(const weir_host *host, const char *where);

    /* [source] Returns where the next bytes belong, and how many at most. NULL: out of memory. */
    char *(*room)(weir_text *text, size_t *room);

    /* [source] Parses `length` bytes that were written there, line by line, and adds what is complete. Lines
     * that cannot be parsed are counted, and the first is logged. Returns false if there is no room for a
     * record: then wait, and call resume until it returns true. */
    bool (*parse)(weir_text *text, size_t length);
    /* [source] Goes on with what was written before. Returns as parse. */
    bool (*resume)(weir_text *text);

    /* [source] The text ends: parses a last line without a newline. A text that goes on later, such as that of
     * the next writer of a pipe, begins anew. Returns as parse. is_whole: without it, such a line is torn: it
     * is counted as a line that cannot be parsed. */
    bool (*finish)(weir_text *text, bool is_whole);

    /* [source] Frees the text. What finds no room now is lost and counted. May be NULL. */
    void (*end)(weir_text *text);
} weir_parser;

/* ---- Outcomes -------------------------------------------------------------------------------- */

/* What the core does next:
 *
 *          OK                            RETRY             REOPEN                   FAILED
 *   open   it is open                    back off, open    like RETRY               give up
 *   run    stop requested: it stops;     back off, run     close, back off, open    close, give up
 *          else: its input has ended
 *
 * An unknown code is a fault of the source type, and treated as FAILED. */
enum weir_source_code {
    WEIR_SOURCE_OK = 0,
    WEIR_SOURCE_RETRY = 1,
    WEIR_SOURCE_REOPEN = 2,
    WEIR_SOURCE_FAILED = 3,
};

/* The result of a callback. The core owns it, and sets it to OK before the call. Never write beyond size. */
typedef struct weir_source_outcome {
    size_t size;      /* sizeof(weir_source_outcome) of the core */
    int32_t code;     /* enum weir_source_code */
    char reason[256]; /* why, for people: "bind 127.0.0.1:8125: Address already in use"; "" with OK */
} weir_source_outcome;

/* ---- Source types ---------------------------------------------------------------------------- */

/* Bits of weir_source_type.flags. Others are ignored. */
enum {
    WEIR_SOURCE_PARSES = 1u << 0, /* it reads text: it has the options of parsers, and the service */
};

/* A source type: its name, its options, and its callbacks. Constant and valid until the process ends. Callbacks
 * that are not marked as optional are required. */
typedef struct weir_source_type {
    size_t size;    /* sizeof(weir_source_type) */
    uint32_t abi;   /* WEIR_ABI */
    uint32_t flags; /* WEIR_SOURCE_* */

    const char *name;    /* [a-z][a-z0-9_]*, at most 63 bytes */
    const char *summary; /* one line, for people */

    const weir_option *options;   /* its options, see <weir/options.h>; NULL: none */
    size_t option_row_size;       /* sizeof(weir_option) */
    size_t options_size;          /* sizeof the struct that the table fills */
    const weir_default *defaults; /* its defaults for common options, such as "parse"; NULL: none */

    /* [configuring] Creates a source: checks what the table cannot, and allocates. No I/O, no threads. options:
     * the filled struct, owned by the core, valid until destroy has returned. Returns the instance, or NULL
     * after host->refuse: the configuration is refused. */
    void *(*create)(const weir_host *host, const void *options);

    /* [source] Optional. Opens what it reads from. A source is stopped before the one that replaces it is
     * opened, so both may use one address. */
    void (*open)(void *self, weir_source_outcome *outcome);

    /* [source] Reads and adds until a stop is requested, or its input has ended for good. */
    void (*run)(void *self, weir_source_outcome *outcome);

    /* [source] Optional. Called once after each open that returned OK; open or destroy follows. */
    void (*close)(void *self);

    /* [configuring or source] Frees the instance. It is closed. */
    void (*destroy)(void *self);

    /* [fork] Optional, for a source with descriptors. Calls close(2) for the instance's descriptors and nothing
     * else. The instance is never used again in the child: a forked process has no sources. */
    void (*abandon)(void *self);
} weir_source_type;

/* The entry point, defined by the plugin. Returns the type of that index, always the same pointer, or NULL if
 * there are no more. [configuring] */
WEIR_PLUGIN_EXPORT const weir_source_type *weir_source_type_at(uint32_t index);

#ifdef __cplusplus
}
#endif

#endif
